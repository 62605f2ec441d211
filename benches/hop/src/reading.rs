//! One reading: a hop under a load.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::load::{Load, Tally, Until, Work};
use crate::measure::cpu::{self, Machine};
use crate::peers::{Peer, Programs};
use crate::scenario::{Scenario, Shape};
use crate::stage::{Cores, Stage};

/// What was read.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Reading {
    /// The load.
    pub scenario: Scenario,
    /// The hop.
    pub peer: Peer,
    /// Token events that came through.
    pub events: u64,
    /// Responses that came through.
    pub responses: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// CPU seconds of the hop.
    pub cpu: f64,
    /// From the engine's writing to the client's reading in microseconds: median, 90th and 99th percentile.
    pub latency: Option<[f64; 3]>,
    /// CPU that neither hop nor engine nor client used, in cores.
    pub foreign: f64,
}

impl Reading {
    /// CPU microseconds of the hop per token event.
    pub fn cpu_per_event(&self) -> f64 {
        self.cpu * 1e6 / self.events as f64
    }

    /// CPU microseconds of the hop per response.
    pub fn cpu_per_response(&self) -> f64 {
        self.cpu * 1e6 / self.responses as f64
    }

    /// Responses per second.
    pub fn rate(&self) -> f64 {
        self.responses as f64 / self.seconds
    }
}

/// Takes a reading of `seconds` or somewhat more.
///
/// # Errors
///
/// Something did not start, or a response was not as ordered.
pub fn take(
    programs: &Programs,
    scenario: Scenario,
    peer: Peer,
    seconds: f64,
    cores: Cores,
    folder: &Path,
) -> Result<Reading> {
    let stage = Stage::set(programs, peer, cores, folder)?;
    let shape = scenario.shape(seconds);
    warm_up(&stage, shape).context("warm-up")?;
    let hop = stage.hop.as_ref().map(|hop| hop.tree()).unwrap_or_default();
    let mut rest = stage.engine.tree();
    rest.push(std::process::id());

    let machine = Machine::now()?;
    let (started, hop_before) = (Instant::now(), cpu::of_processes(&hop)?);
    let rest_before = cpu::of_processes(&rest)?;
    let mut tally = Load::run(work(&stage, shape))?;
    let used = cpu::of_processes(&hop)? - hop_before;
    let seconds = started.elapsed().as_secs_f64();
    let ours = used + (cpu::of_processes(&rest)? - rest_before);
    let foreign = Machine::now()?.foreign_cores(&machine, ours);
    Ok(Reading {
        scenario,
        peer,
        events: tally.events,
        responses: tally.responses,
        seconds,
        cpu: used.as_secs_f64(),
        latency: latency(&mut tally),
        foreign,
    })
}

fn work(stage: &Stage, shape: Shape) -> Work {
    Work {
        target: stage.target,
        connections: shape.connections,
        order: shape.order,
        spread: shape.spread,
        until: shape.until,
    }
}

/// A short load of the same kind: connections to the engine exist, code and pages are there.
fn warm_up(stage: &Stage, shape: Shape) -> Result<()> {
    let mut work = work(stage, shape);
    work.spread = Duration::ZERO;
    work.until = Until::Requests(2);
    work.order = match work.order {
        crate::order::Order::Stream { batch, .. } => crate::order::Order::Stream {
            events: 4,
            batch,
            interval: Duration::from_millis(1),
        },
        order => order,
    };
    Load::run(work)?;
    Ok(())
}

fn latency(tally: &mut Tally) -> Option<[f64; 3]> {
    let latencies = &mut tally.latencies;
    Some([
        latencies.quantile(0.5)?,
        latencies.quantile(0.9)?,
        latencies.quantile(0.99)?,
    ])
}
