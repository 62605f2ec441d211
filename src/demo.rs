//! `spectap demo`: the main job on one machine. A simulated engine with several models, clients that use it, the tap
//! between them, and a table that grows while the traffic goes through. No GPU, nothing beyond loopback.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::cli::demo::DemoArgs;
use crate::config::Config;
use crate::export::table::Look;
use crate::export::{By, Query, Summary, summary, table};
use crate::proxy::{UpstreamAddress, UpstreamAddressError};
use crate::serve::{Instance, StartError};
use crate::simulate::traffic::{self, Category, Collapse, Outcomes, Tally, Traffic};
use crate::simulate::{
    Acceptance, AcceptanceError, Engine, EngineKind, Level, Model, Settings, Totals,
};
use crate::tap::{AskSglang, ExposeUsage, TagSource};

/// Models of the demo, and the probability of each draft position to be kept, given that all before it were.
const MODELS: [(&str, &str); 3] = [
    ("chat-8b", "0.82,0.74,0.66,0.58"),
    ("code-32b", "0.93,0.90,0.87,0.84,0.80"),
    ("reasoning-70b", "0.71,0.55,0.42"),
];

/// Categories of the demo's requests, and what their text does to a draft.
const CATEGORIES: [Category; 5] = [
    Category {
        tag: "code",
        factor: 1.06,
    },
    Category {
        tag: "summary",
        factor: 1.0,
    },
    Category {
        tag: "chat",
        factor: 0.92,
    },
    Category {
        tag: "translation",
        factor: 0.8,
    },
    Category {
        tag: "poetry",
        factor: 0.6,
    },
];

/// How many of a hundred clients leave in the middle of a response.
const LEAVING: u8 = 3;

/// Times of the simulated engine: a first token that can be seen to wait, and steps of a mid-sized model.
const PREFILL_TIME: Duration = Duration::from_millis(40);
const STEP_TIME: Duration = Duration::from_millis(12);

/// Most tokens of one reply.
const MOST_TOKENS: u64 = 160;

/// Time between two tables on a terminal, and where output is kept.
const LIVE_PERIOD: Duration = Duration::from_secs(1);
const KEPT_PERIOD: Duration = Duration::from_secs(5);

/// Why the demo ended early.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The tap could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A built-in setting is wrong: a fault of spectap itself.
    #[error("the simulated models are wrong: {0}")]
    Models(#[from] AcceptanceError),
    /// The simulated engine has an address that can't be used: a fault of spectap itself.
    #[error("the simulated engine's address {0}")]
    Address(#[from] UpstreamAddressError),
    /// Nothing could be written, or no port could be had.
    #[error("the demo failed: {0}")]
    System(#[from] io::Error),
}

/// What a demo came to.
#[derive(Debug)]
pub struct Finished {
    /// The numbers of the last table.
    pub summary: Summary,
    /// What the simulated engine says that it sent, by model.
    pub totals: BTreeMap<String, Totals>,
    /// How the clients fared.
    pub outcomes: Outcomes,
}

/// Runs the demo until `stop` fires, or its time or its requests are over.
///
/// # Errors
///
/// When a port can't be bound or the output can't be written.
pub async fn run(
    args: &DemoArgs,
    stop: CancellationToken,
    out: &mut dyn Write,
) -> Result<Finished, DemoError> {
    let engine = Engine::start(engine_settings(args.seed)?).await?;
    let instance = Instance::start(tap_settings(args, &engine.url())?).await?;
    let tap_url = format!("http://{}", instance.addresses()[0]);
    writeln!(
        out,
        "The page is at http://{}/ and shows all of it live.\n",
        instance.admin_address()
    )?;
    writeln!(
        out,
        "A simulated vLLM with {} models answers at {}.",
        MODELS.len(),
        engine.url()
    )?;
    writeln!(
        out,
        "{} clients reach it through spectap at {tap_url}; the drafter of {} fails after a minute, and recovers.",
        args.concurrency, MODELS[0].0
    )?;
    writeln!(
        out,
        "Its numbers are on http://{}/metrics and",
        instance.admin_address()
    )?;
    writeln!(
        out,
        "http://{}/api/v1/summary. Ctrl-C stops and prints the report.\n",
        instance.admin_address()
    )?;
    writeln!(
        out,
        "n: requests answered; recorded: those with numbers; length: tokens per verify step, the bonus\n\
         token included; rate: accepted / drafted tokens; zero-step: the drafter never got to run.\n"
    )?;
    out.flush()?;

    let tally = Tally::default();
    let traffic = Traffic {
        base_url: tap_url,
        models: models()?,
        categories: CATEGORIES.to_vec(),
        leaving: LEAVING,
        collapse: Some(collapse()),
        concurrency: args.concurrency.into(),
        requests: args.requests,
        max_tokens: MOST_TOKENS,
        seed: args.seed,
    };
    let end_traffic = stop.child_token();
    let clients = tokio::spawn(traffic::run(traffic, tally.clone(), end_traffic.clone()));
    let drawn = show_live(args, &instance, &stop, &clients, out).await?;
    end_traffic.cancel();
    let outcomes = clients.await.unwrap_or_else(|_| tally.outcomes());

    let statistics = instance.statistics().clone();
    // Draining waits for the last exchange, so that nothing is missing from the last table.
    instance.stop().await;
    let query = Query {
        by: vec![By::Model],
        ..Query::default()
    };
    let summary = summary(&statistics, &query);
    take_back(drawn, out)?;
    writeln!(out, "{}", table::by_group(&summary))?;
    write!(out, "{}", table::spec_decode(&summary))?;
    write!(out, "{}", table::beyond(&summary, Look::default()))?;
    out.flush()?;
    // A response that its client left is in the log once the engine has noticed.
    let log = engine.log.clone();
    engine.stop().await;
    let totals = log.totals();
    Ok(Finished {
        summary,
        totals,
        outcomes,
    })
}

fn models() -> Result<Vec<(String, Acceptance)>, AcceptanceError> {
    let models = MODELS.iter();
    models
        .map(|(name, acceptance)| Ok(((*name).to_owned(), Acceptance::parse(acceptance)?)))
        .collect()
}

/// One drafter fails after a minute, recovers, and does so again every five.
fn collapse() -> Collapse {
    Collapse {
        model: MODELS[0].0.to_owned(),
        from: Duration::from_secs(60),
        until: Duration::from_secs(120),
        period: Duration::from_secs(300),
        factor: 0.45,
    }
}

fn engine_settings(seed: u64) -> Result<Settings, AcceptanceError> {
    let models = models()?.into_iter();
    let models = models.map(|(name, acceptance)| Model::new(name, acceptance));
    let mut settings = Settings::new(EngineKind::Vllm, models.collect());
    // Steps in order, for the steps of a request on the page and for the depth advice.
    settings.level = Level::Detailed;
    settings.seed = seed;
    settings.prefill_time = PREFILL_TIME;
    settings.step_time = STEP_TIME;
    Ok(settings)
}

fn tap_settings(args: &DemoArgs, engine_url: &str) -> Result<Config, UpstreamAddressError> {
    Ok(Config {
        workers: NonZeroUsize::MIN,
        lanes: vec![(args.listen, UpstreamAddress::parse(engine_url)?)],
        admin_listen: args.admin_listen,
        engine: None,
        inject: true,
        expose_usage: ExposeUsage::AsRequested,
        ask_sglang: AskSglang::Auto,
        ask_sglang_unary: false,
        grace: Duration::from_secs(10),
        drain_delay: Duration::ZERO,
        ready_needs_upstream: true,
        usage_details: false,
        replay: true,
        tag: TagSource::default(),
        most_series: 5_000,
        metric_facet: None,
        admin_token: None,
        protect_metrics: false,
        records: None,
        notes: BTreeMap::new(),
    })
}

/// Shows the table again and again until the demo is over. Gives the number of lines that stand on a terminal and can
/// be taken back.
async fn show_live<T>(
    args: &DemoArgs,
    instance: &Instance,
    stop: &CancellationToken,
    clients: &tokio::task::JoinHandle<T>,
    out: &mut dyn Write,
) -> io::Result<usize> {
    let on_terminal = io::stdout().is_terminal();
    let mut ticks = tokio::time::interval(if on_terminal {
        LIVE_PERIOD
    } else {
        KEPT_PERIOD
    });
    ticks.tick().await;
    let mut finished = tokio::time::interval(Duration::from_millis(20));
    let deadline = async {
        match args.duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    let mut deadline = std::pin::pin!(deadline);
    let query = Query {
        by: vec![By::Model],
        ..Query::default()
    };
    let mut drawn = 0;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(drawn),
            () = &mut deadline => return Ok(drawn),
            _ = finished.tick(), if clients.is_finished() => return Ok(drawn),
            _ = ticks.tick() => {
                let table = table::by_group(&summary(instance.statistics(), &query));
                take_back(drawn, out)?;
                drawn = if on_terminal { table.lines().count() + 1 } else { 0 };
                writeln!(out, "{table}")?;
                out.flush()?;
            }
        }
    }
}

/// Clears the last `lines` of a terminal, and what a Ctrl-C left behind them.
fn take_back(lines: usize, out: &mut dyn Write) -> io::Result<()> {
    match lines {
        0 => Ok(()),
        lines => write!(out, "\r\x1b[{lines}A\x1b[J"),
    }
}
