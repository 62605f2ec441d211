//! Flags of the commands that a container's probes and hooks run: `spectap healthcheck` and `spectap drain`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::value::{parse_duration, parse_switch};

/// Where the tap's own flag says that its admin port is.
const ADMIN_LISTEN: &str = "SPECTAP_ADMIN_LISTEN";

/// Ask a running tap whether it is well: exit code 0 if so, else 1 and why.
#[derive(Args, Clone, Debug)]
pub struct HealthcheckArgs {
    /// Which tap.
    #[command(flatten)]
    pub tap: AdminArgs,

    /// Ask whether it should be sent traffic (/readyz: the engine accepts connections, no drain) and not only whether it
    /// runs (/livez).
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_HEALTHCHECK_READY")]
    pub ready: bool,
}

/// Let a running tap finish: it is not ready at once, takes no new connection after its --drain-delay, lets streams go on
/// for its --grace, and ends.
#[derive(Args, Clone, Debug)]
pub struct DrainArgs {
    /// Which tap.
    #[command(flatten)]
    pub tap: AdminArgs,

    /// Wait until the drain is over: exit code 0 if every stream came to its end, 3 if some were cut, 1 if it still lasts
    /// after --timeout.
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_DRAIN_WAIT")]
    pub wait: bool,

    /// How long --wait waits.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "30s",
          env = "SPECTAP_DRAIN_TIMEOUT")]
    pub timeout: Duration,

    /// File with the tap's admin token, where it asks for one (its own --admin-token-file).
    #[arg(long, value_name = "FILE", env = "SPECTAP_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,
}

/// Which tap is meant.
#[derive(Args, Clone, Debug)]
pub struct AdminArgs {
    /// Admin address of the tap. Without it: where SPECTAP_ADMIN_LISTEN, if it is set as in the tap's own container, says
    /// that it listens, else http://127.0.0.1:8091.
    #[arg(long, value_name = "URL", env = "SPECTAP_ADMIN")]
    pub admin: Option<String>,
}

impl AdminArgs {
    /// The address.
    pub fn url(&self) -> String {
        self.admin
            .clone()
            .unwrap_or_else(|| of_listen(std::env::var(ADMIN_LISTEN).ok()))
    }
}

/// How a port is reached from its own machine.
fn of_listen(listen: Option<String>) -> String {
    let listen: Option<SocketAddr> = listen.and_then(|text| text.parse().ok());
    let mut address = listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 8091)));
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}

#[cfg(test)]
mod tests {
    use super::of_listen;

    #[test]
    fn the_taps_own_setting_tells_where_it_is_reached() {
        for (listen, url) in [
            (None, "http://127.0.0.1:8091"),
            (Some("0.0.0.0:9000"), "http://127.0.0.1:9000"),
            (Some("[::]:9000"), "http://[::1]:9000"),
            (Some("10.0.0.7:8091"), "http://10.0.0.7:8091"),
            (Some("nonsense"), "http://127.0.0.1:8091"),
        ] {
            assert_eq!(of_listen(listen.map(str::to_owned)), url);
        }
    }
}
