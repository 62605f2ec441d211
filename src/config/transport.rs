//! The flags about TLS and HTTP/2: which go together, and the files that they name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ConfigError;
use crate::cli::transport::TransportArgs;
use crate::proxy::{
    PortTls, TlsFile, TlsFileError, Transport, UpstreamAddress, UpstreamTls, UpstreamTlsFiles,
};

/// How engines at these addresses are reached.
///
/// # Errors
///
/// A flag without another that it needs, or a file that can't be used.
pub(super) fn upstream(
    args: &TransportArgs,
    connect_limit: Duration,
    addresses: &[&UpstreamAddress],
) -> Result<Transport, ConfigError> {
    let client = together(
        ("--upstream-client-cert", &args.upstream_client_cert),
        ("--upstream-client-key", &args.upstream_client_key),
    )?;
    let name = args
        .upstream_server_name
        .as_ref()
        .map(|name| name.to_str().into_owned());
    let tls = if addresses.iter().any(|address| address.is_tls()) {
        let files = UpstreamTlsFiles {
            ca: args.upstream_ca.clone(),
            client,
            server_name: args.upstream_server_name.clone(),
        };
        Some(UpstreamTls::load(&files, args.upstream_http2).map_err(of_file)?)
    } else {
        let without_use = [
            ("--upstream-ca", args.upstream_ca.as_deref().map(shown)),
            (
                "--upstream-client-cert",
                client.map(|(certificate, _)| shown(&certificate)),
            ),
            ("--upstream-server-name", name),
        ];
        for (flag, value) in without_use {
            if let Some(value) = value {
                let problem = "no engine is spoken to in TLS; write https://HOST:PORT in --upstream or --lane, or leave this out";
                return Err(wrong(flag, value, problem.to_owned()));
            }
        }
        None
    };
    Ok(Transport {
        tls,
        http2: args.upstream_http2,
        connect_limit,
        ..Transport::default()
    })
}

/// How clients are spoken to in TLS, if at all.
///
/// # Errors
///
/// One flag without the other, or a file that can't be used.
pub(super) fn port(args: &TransportArgs) -> Result<Option<PortTls>, ConfigError> {
    let pair = together(("--tls-cert", &args.tls_cert), ("--tls-key", &args.tls_key))?;
    pair.map(|(certificate, key)| PortTls::load(certificate, key))
        .transpose()
        .map_err(of_file)
}

type Given<'a> = (&'static str, &'a Option<PathBuf>);

fn together(
    (certificate_flag, certificate): Given<'_>,
    (key_flag, key): Given<'_>,
) -> Result<Option<(PathBuf, PathBuf)>, ConfigError> {
    let lonely = |flag, value: &Path, missing| {
        let problem = format!("a certificate and its key go together; give {missing} FILE as well");
        Err(wrong(flag, shown(value), problem))
    };
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some((certificate.clone(), key.clone()))),
        (Some(certificate), None) => lonely(certificate_flag, certificate, key_flag),
        (None, Some(key)) => lonely(key_flag, key, certificate_flag),
        (None, None) => Ok(None),
    }
}

fn of_file(error: TlsFileError) -> ConfigError {
    let flag = match error.file {
        TlsFile::UpstreamCa => "--upstream-ca",
        TlsFile::UpstreamCertificate => "--upstream-client-cert",
        TlsFile::UpstreamKey => "--upstream-client-key",
        TlsFile::PortCertificate => "--tls-cert",
        TlsFile::PortKey => "--tls-key",
    };
    wrong(flag, shown(&error.path), error.problem.to_string())
}

fn wrong(flag: &'static str, value: String, problem: String) -> ConfigError {
    ConfigError {
        flag,
        value,
        problem,
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
