//! The checked settings of `serve`. What one flag alone can have wrong is refused while it is parsed; here is what only
//! shows in several of them, or in a file. All of it before a port is bound.

mod transport;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::limits::MostConnections;
use crate::cli::serve::{Inject, Ready, ServeArgs};
use crate::cli::token;
use crate::proxy::{PortTls, Timeouts, Upstream, UpstreamAddress};
use crate::record::EngineName;
use crate::scrape::{self, Target};
use crate::stats::Facet;
use crate::store::records::RecordsSettings;
use crate::tap::{AskSglang, ExposeUsage, TagSource};

/// An engine is not to be flooded.
const SHORTEST_SCRAPE: Duration = Duration::from_millis(10);

/// Settings of a serving instance.
#[derive(Clone, Debug)]
pub struct Config {
    /// Listen addresses and their engines; none where only the engine's metrics page is read.
    pub lanes: Vec<(SocketAddr, Upstream)>,
    /// How clients are spoken to in TLS, if at all.
    pub tls: Option<PortTls>,
    /// Threads that serve clients.
    pub workers: NonZeroUsize,
    /// Address of spectap's own endpoints.
    pub admin_listen: SocketAddr,
    /// The engine, where the user said it.
    pub engine: Option<EngineName>,
    /// Whether requests may be altered at the start.
    pub inject: bool,
    /// What clients get to see of the usage that they did not ask for.
    pub expose_usage: ExposeUsage,
    /// When SGLang is asked for its numbers.
    pub ask_sglang: AskSglang,
    /// Whether it is asked on requests that are not streamed.
    pub ask_sglang_unary: bool,
    /// Whether an inference request may be sent again when a kept connection turns out closed.
    pub replay: bool,
    /// Most client connections of each listener; `None`: what the limit of open files allows.
    pub most_connections: Option<NonZeroUsize>,
    /// How long each side may take.
    pub timeouts: Timeouts,
    /// Time for running exchanges after a signal.
    pub grace: Duration,
    /// Time in which new connections are still accepted after a signal.
    pub drain_delay: Duration,
    /// Whether readiness includes the engine.
    pub ready_needs_upstream: bool,
    /// Whether usage details are read as acceptance.
    pub usage_details: bool,
    /// Where a request's tag comes from.
    pub tag: TagSource,
    /// Bound on all series of `/metrics`.
    pub most_series: usize,
    /// Facet that the acceptance counters carry as a label.
    pub metric_facet: Option<Facet>,
    /// The token that the admin port asks for.
    pub admin_token: Option<AdminToken>,
    /// Whether `/metrics` asks for it too.
    pub protect_metrics: bool,
    /// The engine's metrics page, where it is read.
    pub scrape: Option<scrape::Settings>,
    /// The records file, where one is wanted.
    pub records: Option<RecordsSettings>,
    /// What the user noted, for the manifest.
    pub notes: BTreeMap<String, String>,
}

/// The token of the admin port and where it came from.
#[derive(Clone)]
pub struct AdminToken {
    /// The file, which is read again while serving.
    pub file: PathBuf,
    /// What was in it.
    pub text: String,
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "(in {})", self.file.display())
    }
}

/// A setting that can't be: which flag, which value, and what would be right.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value '{value}' for '{flag}': {problem}")]
pub struct ConfigError {
    /// The flag.
    pub flag: &'static str,
    /// Its value.
    pub value: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl Config {
    /// Checks the flags.
    ///
    /// # Errors
    ///
    /// The first flag that can't be.
    pub fn check(args: &ServeArgs) -> Result<Self, ConfigError> {
        if args.protect_metrics && args.admin_token_file.is_none() {
            return Err(ConfigError {
                flag: "--protect-metrics",
                value: "true".to_owned(),
                problem: "there is no token to ask for; give one with --admin-token-file FILE"
                    .to_owned(),
            });
        }
        let first = args
            .upstream
            .clone()
            .map(|upstream| (args.listen, upstream));
        let mut lanes: Vec<_> = first.into_iter().chain(args.lane.iter().cloned()).collect();
        check_addresses(&lanes, args.admin_listen)?;
        let scrape = scrape_settings(args, &lanes)?;
        if args.scrape.scrape_only {
            lanes.clear();
        } else if lanes.is_empty() {
            return Err(ConfigError {
                flag: "--upstream",
                value: String::new(),
                problem: "there is no engine to pass requests to; name it with --upstream URL, or read its metrics page \
                          alone with --scrape-only"
                    .to_owned(),
            });
        }
        Ok(Self {
            lanes: reachable(args, lanes)?,
            tls: transport::port(&args.transport)?,
            workers: args.workers,
            admin_listen: args.admin_listen,
            engine: args.engine.map(EngineName::from),
            inject: args.inject == Inject::Auto,
            expose_usage: args.expose_usage,
            ask_sglang: args.inject_sglang,
            ask_sglang_unary: args.inject_sglang_unary,
            replay: !args.no_replay,
            most_connections: match args.limits.max_connections {
                MostConnections::Auto => None,
                MostConnections::Number(number) => Some(number),
            },
            timeouts: Timeouts {
                head: args.limits.head_timeout,
                response_head: args.limits.response_head_timeout,
                idle: args.limits.idle_timeout,
                total: args.limits.total_timeout,
            },
            grace: args.grace,
            drain_delay: args.drain_delay,
            ready_needs_upstream: args.ready == Ready::Upstream,
            usage_details: args.usage_details,
            tag: TagSource {
                header: args.tag_header.clone(),
                body: args.tag_body.clone(),
            },
            most_series: args.max_series,
            metric_facet: args.metric_facet,
            admin_token: read_token(args)?,
            protect_metrics: args.protect_metrics,
            scrape,
            records: args.records.records.clone().map(|path| RecordsSettings {
                path,
                max_bytes: args.records.records_max_bytes,
                keep: args.records.records_keep.into(),
                fsync: args.records.records_fsync,
                format: args.records.records_format,
            }),
            notes: notes(&args.records.note)?,
        })
    }
}

/// The pages: those that were named, else one of each engine.
fn scrape_settings(
    args: &ServeArgs,
    lanes: &[(SocketAddr, UpstreamAddress)],
) -> Result<Option<scrape::Settings>, ConfigError> {
    let scrape = &args.scrape;
    if scrape.no_scrape {
        return Ok(None);
    }
    for (flag, value) in [
        ("--scrape-interval", scrape.scrape_interval),
        ("--scrape-timeout", scrape.scrape_timeout),
    ] {
        if value < SHORTEST_SCRAPE {
            return Err(ConfigError {
                flag,
                value: humantime::format_duration(value).to_string(),
                problem: "should be at least 10ms".to_owned(),
            });
        }
    }
    let is_asked_for = !scrape.scrape.is_empty() || scrape.scrape_only;
    let mut targets = scrape.scrape.clone();
    if targets.is_empty() {
        // The page is read in clear text over TCP only; of other engines nobody has asked for it.
        let plain =
            |upstream: &&UpstreamAddress| !upstream.is_tls() && upstream.socket_path().is_none();
        for upstream in lanes.iter().map(|(_, upstream)| upstream).filter(plain) {
            let target = Target::Engine(upstream.url());
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    }
    Ok(Some(scrape::Settings {
        targets,
        is_asked_for,
        interval: scrape.scrape_interval,
        timeout: scrape.scrape_timeout,
    }))
}

/// The engines, with what is needed to reach them.
fn reachable(
    args: &ServeArgs,
    lanes: Vec<(SocketAddr, UpstreamAddress)>,
) -> Result<Vec<(SocketAddr, Upstream)>, ConfigError> {
    let addresses: Vec<_> = lanes.iter().map(|(_, address)| address).collect();
    let transport = transport::upstream(&args.transport, args.limits.connect_timeout, &addresses)?;
    let reach = |(listen, address): (SocketAddr, UpstreamAddress)| {
        let value = address.url();
        match Upstream::new(address, &transport) {
            Ok(upstream) => Ok((listen, upstream)),
            Err(problem) => Err(ConfigError {
                flag: "--upstream",
                value,
                problem: problem.to_string(),
            }),
        }
    };
    lanes.into_iter().map(reach).collect()
}

fn notes(given: &[(String, String)]) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut notes = BTreeMap::new();
    for (key, value) in given {
        if notes.insert(key.clone(), value.clone()).is_some() {
            return Err(ConfigError {
                flag: "--note",
                value: format!("{key}={value}"),
                problem: "the key is given twice; each note needs a key of its own".to_owned(),
            });
        }
    }
    Ok(notes)
}

/// No address is used twice, and no lane's engine is spectap itself: its requests would go round for ever.
fn check_addresses(
    lanes: &[(SocketAddr, UpstreamAddress)],
    admin: SocketAddr,
) -> Result<(), ConfigError> {
    let mut used = HashSet::from([admin]);
    for (index, (listen, _)) in lanes.iter().enumerate() {
        let flag = if index == 0 { "--listen" } else { "--lane" };
        if listen.port() != 0 && !used.insert(*listen) {
            let problem =
                "the address is used twice; each lane and --admin-listen need one of their own"
                    .to_owned();
            return Err(ConfigError {
                flag,
                value: listen.to_string(),
                problem,
            });
        }
    }
    for (_, upstream) in lanes {
        let Some((host, port)) = upstream.host_and_port() else {
            continue;
        };
        let host = if host == "localhost" {
            "127.0.0.1"
        } else {
            host
        };
        let itself = used
            .iter()
            .any(|own| own.port() == port && own.ip().to_string() == host);
        if itself {
            let problem =
                "this is spectap's own address; name the engine's, like http://127.0.0.1:8000"
                    .to_owned();
            return Err(ConfigError {
                flag: "--upstream",
                value: upstream.url(),
                problem,
            });
        }
    }
    Ok(())
}

fn read_token(args: &ServeArgs) -> Result<Option<AdminToken>, ConfigError> {
    let Some(path) = &args.admin_token_file else {
        return Ok(None);
    };
    let text = token::read(path).map_err(|problem| ConfigError {
        flag: "--admin-token-file",
        value: path.display().to_string(),
        problem,
    })?;
    Ok(Some(AdminToken {
        file: path.clone(),
        text,
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn config(flags: &[&str]) -> Result<Config, ConfigError> {
        let cli = Cli::try_parse_from(["spectap", "serve"].iter().chain(flags)).unwrap();
        let Command::Serve(args) = cli.command else {
            unreachable!()
        };
        Config::check(&args)
    }

    #[test]
    fn the_defaults_are_loopback() {
        let config = config(&["--upstream", "http://127.0.0.1:8000"]).unwrap();
        assert_eq!(config.lanes[0].0.to_string(), "127.0.0.1:8090");
        assert_eq!(config.admin_listen.to_string(), "127.0.0.1:8091");
        assert_eq!(
            (config.grace, config.drain_delay),
            (Duration::from_secs(25), Duration::ZERO)
        );
    }

    #[test]
    fn an_address_used_twice_is_named() {
        let error =
            config(&["--upstream", "http://h:1", "--listen", "127.0.0.1:8091"]).unwrap_err();
        assert_eq!(
            (error.flag, error.value.as_str()),
            ("--listen", "127.0.0.1:8091")
        );
        let lane = "127.0.0.1:8090=http://h:2";
        assert_eq!(
            config(&["--upstream", "http://h:1", "--lane", lane])
                .unwrap_err()
                .flag,
            "--lane"
        );
    }

    #[test]
    fn a_loop_to_itself_is_refused() {
        for upstream in ["http://127.0.0.1:8090", "http://localhost:8091"] {
            assert_eq!(
                config(&["--upstream", upstream]).unwrap_err().flag,
                "--upstream"
            );
        }
    }

    #[test]
    fn a_token_file_must_hold_one_token() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let with = || {
            config(&[
                "--upstream",
                "http://h:1",
                "--admin-token-file",
                path.to_str().unwrap(),
            ])
        };
        assert_eq!(with().unwrap_err().flag, "--admin-token-file");
        fs::write(&path, " \n").unwrap();
        assert!(with().is_err());
        fs::write(&path, "secret\n").unwrap();
        assert_eq!(with().unwrap().admin_token.unwrap().text, "secret");
    }
}
