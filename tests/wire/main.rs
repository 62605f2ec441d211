//! Wire promises: raw bytes over real sockets, through a serving instance.

mod support;

mod bad_input;
mod ends;
mod framing;
mod heads;
mod injection;
mod observation;
mod replay;
mod strip;
