//! Looks at what passes: the request's route and options, the response's events and members.

pub mod json;
pub mod needle;
pub mod reply;
pub mod sse;
