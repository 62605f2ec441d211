//! CPU time, throughput and latency under a load.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::accounting;
use crate::figure::Figure;
use crate::load::{Load, Tally, Until, Work};
use crate::measure::cpu::{self, Machine};
use crate::order::Order;
use crate::peers::Peer;
use crate::scenario::{Scenario, Shape};
use crate::stage::{Place, Stage};
use crate::watchers::Watchers;

/// Figures, and the CPU that others used.
pub type Taken = (BTreeMap<Figure, f64>, Option<f64>);

/// Takes the reading.
pub fn take(place: &Place, scenario: Scenario, peer: Peer, shape: Shape) -> Result<Taken> {
    let stage = Stage::set(place, peer)?;
    let work = Work {
        target: stage.target(),
        connections: shape.connections,
        order: shape.order,
        spread: shape.spread,
        until: shape.until,
    };
    Load::run(warm_up(work)).context("warm-up")?;
    let watchers = match (scenario, stage.admin()) {
        (Scenario::Watched, Some(admin)) => Some(Watchers::begin(admin)?),
        _ => None,
    };
    let hop = stage.hop_processes();
    settle(&hop)?;
    let mut rest = stage.engine.tree();
    rest.push(std::process::id());

    let (machine, started) = (Machine::now()?, Instant::now());
    let rest_before = cpu::of_processes(&rest)?;
    let hop_before = cpu::of_processes(&hop)?;
    let mut load = Load::new(work)?;
    load.drive(|_| false)?;
    // The connections are still open: to close them is no part of the load.
    let used = cpu::of_processes(&hop)? - hop_before;
    let ours = used + (cpu::of_processes(&rest)? - rest_before);
    let elapsed = started.elapsed();
    let foreign = Machine::now()?.foreign_cores(&machine, ours);

    let mut figures = figures(
        &mut load.tally,
        elapsed,
        stage.hop.is_some().then_some(used),
    );
    if let Some(watchers) = watchers {
        let subscribers = watchers.subscribers;
        let scrapes = watchers.finish()?;
        ensure!(scrapes > 0, "nobody scraped");
        figures.insert(Figure::Scrapes, scrapes.into());
        figures.insert(Figure::Subscribers, subscribers as f64);
    }
    if let Some(admin) = stage.admin() {
        accounting::check(stage.engine_address, admin)?;
    }
    Ok((figures, Some(foreign)))
}

/// A short load of the same kind: connections to the engine exist, code and pages are there.
fn warm_up(work: Work) -> Work {
    Work {
        spread: Duration::ZERO,
        until: Until::Requests(2),
        order: match work.order {
            Order::Stream { batch, .. } => Order::Stream {
                events: 4,
                batch,
                interval: Duration::from_millis(1),
            },
            order @ Order::Unary { .. } => order,
        },
        ..work
    }
}

/// Waits until a hop has nothing to do any more, such as closing the connections of the warm-up.
fn settle(hop: &[u32]) -> Result<()> {
    let started = Instant::now();
    loop {
        let before = cpu::of_processes(hop)?;
        std::thread::sleep(Duration::from_millis(20));
        let used = cpu::of_processes(hop)? - before;
        // On a machine that is busy with something else it may not get to its rest; then so be it.
        if used < Duration::from_micros(200) || started.elapsed() > Duration::from_secs(2) {
            return Ok(());
        }
    }
}

/// What follows from the counts; `used` is the hop's CPU time, if there is a hop.
fn figures(tally: &mut Tally, elapsed: Duration, used: Option<Duration>) -> BTreeMap<Figure, f64> {
    let seconds = elapsed.as_secs_f64();
    let is_stream = tally.events > 0;
    let (per_second, per_unit, units) = if is_stream {
        (Figure::EventsPerSecond, Figure::CpuPerEvent, tally.events)
    } else {
        let units = tally.responses;
        (Figure::RequestsPerSecond, Figure::CpuPerRequest, units)
    };
    let mut figures = BTreeMap::from([(per_second, units as f64 / seconds)]);
    if let Some(used) = used.map(|used| used.as_secs_f64()) {
        figures.insert(per_unit, used * 1e6 / units as f64);
        figures.insert(Figure::Busy, 100.0 * used / seconds);
    }
    for (figure, share) in [
        (Figure::LatencyP50, 0.5),
        (Figure::LatencyP90, 0.9),
        (Figure::LatencyP99, 0.99),
    ] {
        figures.extend(tally.latencies.quantile(share).map(|value| (figure, value)));
    }
    figures
}
