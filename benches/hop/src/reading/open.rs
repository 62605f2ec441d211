//! Memory of open streams, and how fast the next request is answered once all of them were cut.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::load::Taken;
use crate::accounting;
use crate::fetch;
use crate::figure::Figure;
use crate::load::{Load, Until, Work};
use crate::measure::memory;
use crate::order::Order;
use crate::peers::Peer;
use crate::stage::{Place, Stage};

/// How long a hop may take to cut the engine's side too.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes the reading.
pub fn take(place: &Place, peer: Peer, streams: usize) -> Result<Taken> {
    let stage = Stage::set(place, peer)?;
    let unary = Order::Unary { size: 2048 };
    fetch::completion(stage.target(), stream(4, Duration::from_millis(1)))?;
    fetch::completion(stage.target(), unary)?;
    let hop = stage.hop_processes();
    let before = memory::of_processes(&hop)?;

    let mut load = Load::new(Work {
        target: stage.target(),
        connections: streams,
        order: stream(u32::MAX, Duration::from_secs(1)),
        spread: Duration::from_secs(1),
        until: Until::Requests(1),
    })?;
    // A few events of each, so that all buffers that a stream needs are there.
    let some = 3 * streams as u64;
    load.drive(|load| load.tally.events >= some && load.flowing() == streams)?;
    let after = memory::of_processes(&hop)?;

    drop(load);
    let cut = Instant::now();
    fetch::completion(stage.target(), unary)?;
    let answered = cut.elapsed();

    let mut figures = BTreeMap::from([(Figure::AfterCut, answered.as_secs_f64() * 1e3)]);
    if stage.hop.is_some() {
        let per_stream = after.pss.saturating_sub(before.pss) as f64 / streams as f64;
        figures.insert(Figure::MemoryPerStream, per_stream / 1e3);
        figures.insert(Figure::MemoryWithoutStreams, before.rss as f64 / 1e6);
        figures.insert(Figure::MemoryWithStreams, after.rss as f64 / 1e6);
    }
    wait_for_cut(stage.engine_address, streams as u64)?;
    if let Some(admin) = stage.admin() {
        accounting::check(stage.engine_address, admin)?;
    }
    Ok((figures, None))
}

fn stream(events: u32, interval: Duration) -> Order {
    Order::Stream {
        events,
        batch: 1,
        interval,
    }
}

/// Waits until the engine has lost every stream too: a client that left must not keep the engine busy.
fn wait_for_cut(engine: SocketAddr, streams: u64) -> Result<()> {
    let started = Instant::now();
    loop {
        let cut = accounting::of_engine(engine)?.cut;
        if cut == streams {
            return Ok(());
        }
        ensure!(
            started.elapsed() < PATIENCE,
            "{cut} of {streams} streams ended at the engine once their clients had gone"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
