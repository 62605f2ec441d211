//! Runs the built program and reads what it says.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) fn spectap(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spectap"));
    command.args(arguments).stdin(Stdio::null());
    // A setting of the machine that runs the tests must not reach them.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SPECTAP_")) {
        command.env_remove(name);
    }
    command
}

/// Runs to the end.
pub(crate) fn output(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = spectap(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// A program that runs, with its standard error as it comes.
pub(crate) struct Running {
    child: Child,
    errors: Arc<Mutex<String>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = Arc::new(Mutex::new(String::new()));
        let (pipe, kept) = (child.stderr.take().unwrap(), Arc::clone(&errors));
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                let mut errors = kept.lock().unwrap();
                errors.push_str(&line);
                errors.push('\n');
            }
        });
        Self { child, errors }
    }

    /// `serve` in front of an engine, on free ports; gives the data and the admin address.
    pub(crate) fn serve(engine: SocketAddr, flags: &[&str]) -> (Self, SocketAddr, SocketAddr) {
        let upstream = format!("http://{engine}");
        let base = [
            "serve",
            "--listen=127.0.0.1:0",
            "--admin-listen=127.0.0.1:0",
            "--upstream",
            &upstream,
            // The engines of these tests count every connection.
            "--no-scrape",
        ];
        let arguments: Vec<&str> = base.iter().chain(flags).copied().collect();
        Self::start_serving(&mut spectap(&arguments))
    }

    /// A command that becomes `serve`; gives the data and the admin address.
    pub(crate) fn start_serving(command: &mut Command) -> (Self, SocketAddr, SocketAddr) {
        let running = Self::start(command);
        let data = running.address_before(" passes to ");
        let admin = running.address_after("numbers on http://");
        (running, data, admin)
    }

    pub(crate) fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }

    /// Waits for a line on standard error that `wanted` finds something in.
    pub(crate) fn until<T>(&self, what: &str, wanted: impl Fn(&str) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = self.errors().lines().find_map(&wanted) {
                return found;
            }
            assert!(
                begun.elapsed() < DEADLINE,
                "no {what} in {:?}",
                self.errors()
            );
            std::thread::yield_now();
        }
    }

    pub(crate) fn address_before(&self, mark: &str) -> SocketAddr {
        self.until(mark, |line| {
            let before = line.split(mark).next().filter(|_| line.contains(mark))?;
            before.rsplit("http://").next()?.parse().ok()
        })
    }

    pub(crate) fn address_after(&self, mark: &str) -> SocketAddr {
        self.until(mark, |line| {
            let after = line.split(mark).nth(1)?;
            after.split([' ', '"']).next()?.parse().ok()
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end; gives exit code and standard output.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut out = String::new();
        let mut pipe = self.child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            pipe.read_to_string(&mut out).unwrap();
            out
        });
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < DEADLINE, "never ended");
            std::thread::yield_now();
        };
        (status.code(), reader.join().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
