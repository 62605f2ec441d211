//! A serving instance in front of an engine, with free ports.

use std::net::SocketAddr;

use clap::Parser;
use serde_json::Value;
use spectap::cli::{Cli, Command};
use spectap::config::Config;
use spectap::proxy::Stopped;
use spectap::serve::Instance;
use tokio::runtime::Runtime;

use super::client::Client;
use super::until;

pub(crate) struct Tap {
    runtime: Runtime,
    instance: Option<Instance>,
    pub(crate) data: SocketAddr,
    /// All data addresses, that one first.
    pub(crate) lanes: Vec<SocketAddr>,
    pub(crate) admin: SocketAddr,
}

impl Tap {
    pub(crate) fn before(engine: SocketAddr) -> Self {
        Self::with(engine, &[])
    }

    /// With more flags of `serve`.
    pub(crate) fn with(engine: SocketAddr, flags: &[&str]) -> Self {
        let upstream = format!("http://{engine}");
        let base = [
            "spectap",
            "serve",
            "--listen=127.0.0.1:0",
            "--admin-listen=127.0.0.1:0",
            "--upstream",
            &upstream,
            // The engines of these tests count every connection.
            "--no-scrape",
        ];
        let cli = Cli::try_parse_from(base.iter().chain(flags)).unwrap();
        let Command::Serve(args) = cli.command else {
            unreachable!()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let instance = runtime
            .block_on(Instance::start(Config::check(&args).unwrap()))
            .unwrap();
        let lanes = instance.addresses().to_vec();
        let (data, admin) = (lanes[0], instance.admin_address());
        Self {
            runtime,
            instance: Some(instance),
            data,
            lanes,
            admin,
        }
    }

    /// Sends one request through and gives back every byte of the answer; `Connection: close` must be in it.
    pub(crate) fn exchange(&self, request: impl AsRef<[u8]>) -> Vec<u8> {
        super::client::exchange(self.data, request)
    }

    fn admin_get(&self, path: &str) -> String {
        let mut client = Client::connect(self.admin);
        client.send(format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ));
        let response = client.response();
        assert_eq!(
            response.status(),
            200,
            "{path}: {}",
            String::from_utf8_lossy(&response.raw_body)
        );
        String::from_utf8(response.body()).unwrap()
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.admin_get(path)).unwrap()
    }

    /// The value of one series, 0 when it is not there; `series` as exposed, labels in alphabetical order.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.admin_get("/metrics");
        let line = text.lines().find(|line| {
            line.strip_prefix(series)
                .is_some_and(|rest| rest.starts_with(' '))
        });
        line.map_or(0.0, |line| {
            line.rsplit(' ').next().unwrap().parse().unwrap()
        })
    }

    pub(crate) fn until_metric(&self, series: &str, value: f64) {
        until(&format!("{series} {value}"), || {
            (self.metric(series) == value).then_some(())
        });
    }

    /// All observations, newest first, once there are this many.
    pub(crate) fn observations(&self, count: usize) -> Vec<Value> {
        until(&format!("{count} observations"), || {
            let page = self.json("/api/v1/requests?limit=1000");
            let list = page["requests"].as_array().unwrap().clone();
            (list.len() >= count).then_some(list)
        })
    }

    pub(crate) fn switch_injection(&self, on: bool) {
        self.post_json("/api/v1/inject", &format!("{{\"enabled\":{on}}}"), 200);
    }

    /// Begins a run of this name.
    pub(crate) fn begin_run(&self, name: &str) {
        self.post_json("/api/v1/runs", &format!("{{\"name\":\"{name}\"}}"), 201);
    }

    fn post_json(&self, path: &str, body: &str, status: u16) {
        let mut client = Client::connect(self.admin);
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ));
        assert_eq!(client.response().status(), status);
    }

    /// Begins to stop, in the background; the receiver tells how it ended.
    pub(crate) fn stop(&mut self) -> std::sync::mpsc::Receiver<Stopped> {
        let (tell, told) = std::sync::mpsc::channel();
        let instance = self.instance.take().unwrap();
        self.runtime.spawn(async move {
            let _ = tell.send(instance.stop().await);
        });
        told
    }
}
