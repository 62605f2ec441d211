//! Time from the start of a hop to its first forwarded answer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::load::Taken;
use crate::fetch;
use crate::figure::Figure;
use crate::peers::Peer;
use crate::stage::{Hop, Place, engine};

/// Starts per reading; the median counts.
const STARTS: usize = 5;

/// How long a hop may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Takes the reading.
pub fn take(place: &Place, peer: Peer) -> Result<Taken> {
    let (_engine, address) = engine(place)?;
    let mut times = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let started = Instant::now();
        let hop = Hop::start(place, peer, address)?;
        // The connection is refused until the hop listens.
        while fetch::get(hop.listen, "/health").is_err() {
            ensure!(started.elapsed() < PATIENCE, "no answer");
            std::thread::sleep(Duration::from_micros(200));
        }
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let median = *times.get(STARTS / 2).context("no start")?;
    Ok((BTreeMap::from([(Figure::Start, median)]), None))
}
