//! A serving instance: binds its ports, puts the parts together, and stops in order.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use prometheus::Registry;
use prometheus::process_collector::ProcessCollector;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

use crate::admin::{self, Access, AdminState, Drain, Feeds, Readiness, Token};
use crate::cli::token;
use crate::clock::Clock;
use crate::config::Config;
use crate::counters::TapCounters;
use crate::export::{self, prometheus::BuildInfo};
use crate::logs;
use crate::observation::{Observation, ObservationSink};
use crate::proxy::{self, Lane, Stop, Stopped, Workers};
use crate::runs::Runs;
use crate::scrape;
use crate::stats::Statistics;
use crate::store::ObservationRing;
use crate::store::records::{Manifest, OpenError, RecordsCounters, RecordsFile, RecordsSink};
use crate::switch::InjectSwitch;
use crate::tap::{Tap, TapSettings};

mod sums;

/// How long the end may wait for the disk.
const RECORDS_PATIENCE: Duration = Duration::from_secs(5);

/// How long the admin port stays once a drain that it was asked for is over, so that who waits for that hears of it.
const LAST_WORD: Duration = Duration::from_millis(500);

/// Why an instance could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port can't be bound.
    #[error("can not listen on {address} ({flag}): {source}; choose another with {flag}")]
    Bind {
        /// The flag that names the address.
        flag: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The threads that serve clients can't be started.
    #[error("can not start the threads that serve clients (--workers): {0}")]
    Workers(io::Error),
    /// A metric could not be registered: a fault of spectap itself.
    #[error("the metrics could not be set up: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The records file can't be written.
    #[error("can not write records to {} (--records): {source}", path.display())]
    Records {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what would be right.
        source: OpenError,
    },
}

/// A running instance.
pub struct Instance {
    addresses: Vec<SocketAddr>,
    admin_address: SocketAddr,
    statistics: Arc<Statistics>,
    records: Option<RecordsFile>,
    readiness: Arc<Readiness>,
    drain: Drain,
    config: Config,
    workers: Workers,
    admin: JoinSet<()>,
    stop: Stop,
    stop_admin: CancellationToken,
    /// Follows the data port's certificate.
    _certificate: Option<AbortOnDropHandle<()>>,
    /// Workers do not outlive an instance that is dropped.
    _dropped: [DropGuard; 2],
}

/// Everything that an observation goes to.
struct Sinks {
    statistics: Arc<Statistics>,
    ring: Arc<ObservationRing>,
    records: Option<RecordsSink>,
}

impl ObservationSink for Sinks {
    fn record(&self, observation: Arc<Observation>) {
        logs::exchange(&observation);
        self.statistics.record(Arc::clone(&observation));
        if let Some(records) = &self.records {
            records.record(Arc::clone(&observation));
        }
        self.ring.record(observation);
    }
}

impl Instance {
    /// Binds every port, then starts to serve.
    ///
    /// # Errors
    ///
    /// When a port can't be bound; nothing serves then.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let manifest =
            Manifest::of_this_build(SystemTime::now(), config.engine, config.notes.clone());
        let registry = Registry::new();
        let records = open_records(&config, &manifest, &registry)?;
        let mut listeners = Vec::new();
        for (index, (address, upstream)) in config.lanes.iter().enumerate() {
            let flag = if index == 0 { "--listen" } else { "--lane" };
            listeners.push((bind(flag, *address).await?, upstream.clone()));
        }
        let admin_listener = bind("--admin-listen", config.admin_listen).await?;

        registry.register(Box::new(ProcessCollector::for_self()))?;
        let counters = TapCounters::register(&registry)?;
        let statistics = match config.metric_facet {
            Some(facet) => Statistics::new().counting_by(facet),
            None => Statistics::new(),
        };
        let statistics = Arc::new(statistics);
        let build = BuildInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("SPECTAP_COMMIT").to_owned(),
        };
        let exemplars = export::prometheus::register(
            &registry,
            Arc::clone(&statistics),
            &build,
            config.most_series,
        )?;
        let ring = Arc::new(ObservationRing::default());
        let inject = InjectSwitch::new(config.inject);
        let runs = Runs::new(Clock::system());
        let sinks = Arc::new(Sinks {
            statistics: Arc::clone(&statistics),
            ring: Arc::clone(&ring),
            records: records.as_ref().map(RecordsFile::sink),
        });

        let stop = Stop {
            grace: config.grace,
            ..Stop::default()
        };
        let most_connections = match config.most_connections {
            Some(most) => most.get(),
            None => proxy::clients_for(open_files(), listeners.len()),
        };
        let mut lanes = Vec::new();
        let mut addresses = Vec::new();
        for (listener, upstream) in listeners {
            let address = local_address(&listener, config.lanes[addresses.len()].0);
            addresses.push(address);
            let settings = TapSettings {
                lane: address.to_string(),
                engine: config.engine,
                inject: inject.clone(),
                expose_usage: config.expose_usage,
                ask_sglang: config.ask_sglang,
                ask_sglang_unary: config.ask_sglang_unary,
                usage_details: config.usage_details,
                tag: config.tag.clone(),
                runs: runs.clone(),
            };
            let tap = Tap::new(
                settings,
                counters.clone(),
                Arc::clone(&sinks) as Arc<dyn ObservationSink>,
            );
            lanes.push(Lane {
                listener,
                upstream,
                tls: config.tls.clone(),
                tap,
                replay: config.replay,
                timeouts: config.timeouts,
                most_clients: most_connections,
            });
        }
        let workers =
            Workers::start(config.workers, lanes, &counters, &stop).map_err(StartError::Workers)?;

        let server = scrape::Server::default();
        let shown = runs.clone();
        export::prometheus::register_server(
            &registry,
            server.clone(),
            Arc::new(move || shown.fingerprint()),
        )?;
        let mut admin = JoinSet::new();
        let stop_admin = CancellationToken::new();
        if let Some(settings) = config.scrape.clone() {
            let probe = sums::probe(Arc::clone(&statistics), counters.clone(), runs.clone());
            let stopped = stop_admin.clone();
            admin.spawn(scrape::run(settings, server.clone(), probe, stopped));
        }
        let engine = config.lanes.first();
        let readiness = Arc::new(match engine.filter(|_| config.ready_needs_upstream) {
            Some((_, upstream)) => {
                let upstream = upstream.clone();
                Readiness::with_engine(move || {
                    let upstream = upstream.clone();
                    Box::pin(async move { upstream.reach().await })
                })
            }
            None => Readiness::alone(),
        });
        let drain = Drain::default();
        let admin_address = local_address(&admin_listener, config.admin_listen);
        let state = AdminState {
            registry,
            exemplars,
            statistics: Arc::clone(&statistics),
            ring,
            inject,
            manifest: Arc::new(manifest),
            runs,
            server,
            readiness: Arc::clone(&readiness),
            drain: drain.clone(),
            counters,
            feeds: Feeds::default(),
            access: Arc::new(Access::new(
                admin_address,
                config
                    .admin_token
                    .clone()
                    .map(|token| Token::in_file(token.file, token::read, token.text)),
                config.protect_metrics,
            )),
        };
        let stopped = stop_admin.clone();
        admin.spawn(admin::serve(
            admin_listener,
            admin::router(state),
            stopped.cancelled_owned(),
        ));
        Ok(Self {
            addresses,
            admin_address,
            statistics,
            records,
            readiness,
            drain,
            _certificate: config
                .tls
                .clone()
                .map(|tls| AbortOnDropHandle::new(tokio::spawn(tls.follow()))),
            config,
            workers,
            admin,
            _dropped: [&stop.drain, &stop.cut].map(|token| token.clone().drop_guard()),
            stop,
            stop_admin,
        })
    }

    /// Where clients connect, one address per lane.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where spectap's own endpoints are.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// The numbers so far.
    pub fn statistics(&self) -> &Arc<Statistics> {
        &self.statistics
    }

    /// Ends everything at once while [`Instance::stop`] is waiting.
    pub fn cut(&self) -> CancellationToken {
        self.stop.cut.clone()
    }

    /// Fires when the drain is asked for over the admin port; who runs the instance then calls [`Instance::stop`].
    pub fn drain_asked(&self) -> CancellationToken {
        self.drain.asked().clone()
    }

    /// Turns readiness off; everything else goes on until [`Instance::stop`].
    pub fn start_draining(&self) {
        self.readiness.start_draining();
    }

    /// Stops in order: not ready at once, new connections for the drain delay, running exchanges for the grace, and
    /// the admin port last, so that the numbers of the last exchange can be read.
    pub async fn stop(mut self) -> Stopped {
        self.readiness.start_draining();
        tokio::select! {
            () = tokio::time::sleep(self.config.drain_delay) => {}
            () = self.stop.cut.cancelled() => {}
        }
        self.stop.drain.cancel();
        let stopped = self.workers.stopped().await;
        self.drain.is_over(stopped == Stopped::Cut);
        if self.drain.asked().is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(LAST_WORD) => {}
                () = self.stop.cut.cancelled() => {}
            }
        }
        self.stop_admin.cancel();
        while self.admin.join_next().await.is_some() {}
        if let Some(records) = self.records
            && tokio::time::timeout(RECORDS_PATIENCE, records.finish())
                .await
                .is_err()
        {
            tracing::warn!("the last records could not be written in time");
        }
        stopped
    }
}

/// How many files the process may have open.
fn open_files() -> u64 {
    rlimit::Resource::NOFILE
        .get_soft()
        .unwrap_or(rlimit::INFINITY)
}

fn open_records(
    config: &Config,
    manifest: &Manifest,
    registry: &Registry,
) -> Result<Option<RecordsFile>, StartError> {
    let Some(settings) = &config.records else {
        return Ok(None);
    };
    let counters = RecordsCounters::register(registry)?;
    RecordsFile::open(settings.clone(), manifest.clone(), counters)
        .map(Some)
        .map_err(|source| StartError::Records {
            path: settings.path.clone(),
            source,
        })
}

async fn bind(flag: &'static str, address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| StartError::Bind {
            flag,
            address,
            source,
        })
}

/// The bound address, with the port that the system chose for 0.
fn local_address(listener: &TcpListener, asked: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(asked)
}
