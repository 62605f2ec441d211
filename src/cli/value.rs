//! Reads the values of flags, with an error that says what would be right.

use std::net::SocketAddr;
use std::time::Duration;

/// An address to listen on.
pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address and a port, like 127.0.0.1:8090, [::1]:8090, or 0.0.0.0:8090 for every interface"
            .to_owned()
    })
}

/// A duration with its unit.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write a duration like 25s or 1m 30s"))
}

/// A switch, as the environment gives it: files and charts write more than `true` and `false`.
pub(super) fn parse_switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("write true or false (1, yes, on and 0, no, off are understood too)".to_owned()),
    }
}
