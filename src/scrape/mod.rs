//! The server scrape: what an engine's own metrics page says of speculation, for the whole server.
//!
//! ```text
//! engine ──► fetch (bounded) ──► exposition (text → samples) ──► page (series table of each engine → counts)
//!                                                                      │
//!            figures, coverage ◄── server (marks over time) ◄── totals (resets repaired)
//! ```
//!
//! It only reads, on the admin side's threads and never on the data path. The other way to the numbers, the records of
//! single requests, is not known here: what the tap itself has counted comes in as [`TapSums`].

mod counts;
mod coverage;
mod exposition;
mod fetch;
mod figures;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod llamacpp;
mod lmdeploy;
mod marks;
mod page;
mod rapid_mlx;
mod schema;
mod scraper;
mod server;
mod sglang;
mod target;
mod tensorrt_llm;
mod tgi;
mod tokenspeed;
mod totals;
mod vllm;
mod xllm;

pub use counts::{Counts, Source};
pub use coverage::{Coverage, Share};
pub use exposition::{Sample, read as read_exposition};
pub use fetch::{Fetched, Problem, Requester};
pub use figures::{Counted, Gauge, ServerFigures};
pub use marks::Stretch;
pub use page::Page;
pub use scraper::{Probe, Settings, TapSums, run, version};
pub use server::Server;
pub use target::{Identity, NoPage, Target, find, identify};
