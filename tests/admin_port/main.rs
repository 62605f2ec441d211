//! The admin port's promises, over real sockets with raw bytes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail as tests do"
)]

mod compare;
mod endpoints;
mod export;
mod exposition;
mod guard;
mod health;
mod inject;
mod page;
mod requests;
mod runs;
mod scrape;
mod server;
mod stream;
