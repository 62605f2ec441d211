//! Real gRPC calls through the tap give what they give without it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use crate::support::certificates::{Authority, When};
use crate::support::tap::Tap;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/grpc_peer.py");

/// A real server; it ends when its standard input does.
struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start(python: &str, files: &[&str]) -> Self {
        let mut process = Command::new(python)
            .args([SCRIPT, "serve"])
            .args(files)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], line.trim().parse().unwrap()));
        Self { process, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The Python that has the real parts; none where it is missing and may be.
fn python(test: &str) -> Option<String> {
    let python = std::env::var("SPECTAP_TEST_PYTHON")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/.venv/bin/python").to_owned());
    let has_package = Command::new(&python)
        .args(["-c", "import grpc"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if has_package {
        return Some(python);
    }
    let why = format!("{test}: '{python}' has no grpcio (pip)");
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "{why}, and CI=true allows no skip"
    );
    eprintln!("skipped {why}");
    None
}

/// Makes the same calls of both, and compares what comes of them.
fn assert_same_calls(python: &str, server: &Server, tap: &Tap, authority: &[&str]) {
    let ports = [server.address.port(), tap.data.port()].map(|port| port.to_string());
    let calls = Command::new(python)
        .args([SCRIPT, "call", &ports[0], &ports[1]])
        .args(authority)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&calls.stdout);
    let complained = String::from_utf8_lossy(&calls.stderr);
    assert!(calls.status.success(), "{said}\n{complained}");
}

#[test]
fn real_grpc_calls_pass_as_without_the_tap() {
    let Some(python) = python("real_grpc_calls_pass_as_without_the_tap") else {
        return;
    };
    let server = Server::start(&python, &[]);
    let tap = Tap::with(server.address, &["--upstream-http2"]);
    assert_same_calls(&python, &server, &tap, &[]);
}

#[test]
fn real_grpc_calls_pass_in_tls_on_both_sides() {
    let Some(python) = python("real_grpc_calls_pass_in_tls_on_both_sides") else {
        return;
    };
    let authority = Authority::new();
    let pair = authority.server("both", &["localhost"], When::Now);
    let [ca, certificate, key] =
        [&authority.file, &pair.certificate, &pair.key].map(|file| file.to_str().unwrap());
    let server = Server::start(&python, &[certificate, key]);
    let url = format!("https://localhost:{}", server.address.port());
    let flags = [
        ("upstream-ca", ca),
        ("tls-cert", certificate),
        ("tls-key", key),
    ]
    .map(|(flag, file)| format!("--{flag}={file}"));
    let tap = Tap::of(&url, &["--upstream-http2", &flags[0], &flags[1], &flags[2]]);
    assert_same_calls(&python, &server, &tap, &[ca]);
}
