//! Flags of `spectap serve` about what is spoken below and beside HTTP/1.1: TLS on both sides, and HTTP/2 with the engine.

use std::path::PathBuf;

use clap::Args;
use rustls::pki_types::ServerName;

use super::value::parse_switch;

/// How the engine and clients are spoken to.
#[derive(Clone, Debug, Args)]
pub struct TransportArgs {
    /// PEM file with the authorities that vouch for an engine at https://, or with its own certificate. The system's
    /// authorities do not count then. Without it they do, or Mozilla's where the system has none.
    #[arg(long, value_name = "FILE", env = "SPECTAP_UPSTREAM_CA")]
    pub upstream_ca: Option<PathBuf>,

    /// PEM file with the certificate, and its chain, that spectap shows an engine which asks for one.
    #[arg(long, value_name = "FILE", env = "SPECTAP_UPSTREAM_CLIENT_CERT")]
    pub upstream_client_cert: Option<PathBuf>,

    /// PEM file with the private key of --upstream-client-cert.
    #[arg(long, value_name = "FILE", env = "SPECTAP_UPSTREAM_CLIENT_KEY")]
    pub upstream_client_key: Option<PathBuf>,

    /// Name, or IP address, that the certificate of an engine at https:// must be for, and that it is asked for by.
    /// Without it, the host of its URL.
    #[arg(long, value_name = "NAME", value_parser = parse_name, env = "SPECTAP_UPSTREAM_SERVER_NAME")]
    pub upstream_server_name: Option<ServerName<'static>>,

    /// Speak HTTP/2 with the engine, so that gRPC passes: as TLS agrees on it at https://, without asking at http:// and
    /// unix:. For engines that serve it; those of the OpenAI API serve HTTP/1.1.
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_UPSTREAM_HTTP2")]
    pub upstream_http2: bool,

    /// Serve TLS on the data port, all lanes: PEM file with the certificate and its chain. It is read again when it
    /// changes.
    #[arg(long, value_name = "FILE", env = "SPECTAP_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,

    /// PEM file with the private key of --tls-cert.
    #[arg(long, value_name = "FILE", env = "SPECTAP_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
}

fn parse_name(text: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(text.to_owned())
        .map_err(|_| "write a host name or an IP address, like engine.example".to_owned())
}
