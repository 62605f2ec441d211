//! The admin port's promises, over real sockets with raw bytes.

mod endpoints;
mod exposition;
mod guard;
mod health;
mod inject;
mod requests;
mod scrape;
mod server;
