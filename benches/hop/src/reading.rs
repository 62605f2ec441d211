//! One reading: a hop in a scenario.

mod load;
mod open;
mod start;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::peers::Peer;
use crate::scenario::{Kind, Scenario};
use crate::stage::Place;

/// What was read.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Reading {
    /// Number of the round, from 1.
    pub round: u32,
    /// The scenario.
    pub scenario: Scenario,
    /// The hop.
    pub peer: Peer,
    /// The figures.
    pub figures: BTreeMap<Figure, f64>,
    /// CPU that neither hop nor engine nor client used in the meantime, in cores; where that was looked at.
    pub foreign_cores: Option<f64>,
    /// How often it was taken until it was quiet enough.
    pub attempts: u32,
    /// Whether it was not quiet enough in the end either.
    pub is_disturbed: bool,
}

impl Reading {
    /// A reading for people.
    pub fn line(&self) -> String {
        let figures: Vec<_> = self
            .figures
            .iter()
            .map(|(figure, value)| format!("{} {value:.2}", figure.heading()))
            .collect();
        let foreign = self.foreign_cores.map_or_else(String::new, |foreign| {
            let mark = if self.is_disturbed { ", disturbed" } else { "" };
            format!("; foreign {foreign:.2} cores{mark}")
        });
        format!(
            "{} {:<9} {:<8} {}{foreign}",
            self.round,
            self.scenario.name(),
            self.peer.name(),
            figures.join("; "),
        )
    }
}

/// Takes a reading again until no more than `quiet` cores worked for others, `attempts` times at most; the quietest
/// counts.
///
/// # Errors
///
/// Something did not start, a response was not as ordered, or spectap's counters do not account for what was sent.
pub fn take(
    place: &Place,
    (round, scenario, peer): (u32, Scenario, Peer),
    seconds: f64,
    quiet: f64,
    attempts: u32,
) -> Result<Reading> {
    let mut best: Option<Reading> = None;
    for attempt in 1..=attempts.max(1) {
        let (figures, foreign_cores) = match scenario.kind(seconds) {
            Kind::Load(shape) => load::take(place, scenario, peer, shape),
            Kind::Open(streams) => open::take(place, peer, streams),
            Kind::Start => start::take(place, peer),
        }
        .with_context(|| format!("round {round}, {} through {peer}", scenario.name()))?;
        let foreign = foreign_cores.unwrap_or_default();
        let is_best = best
            .as_ref()
            .is_none_or(|best| foreign < best.foreign_cores.unwrap_or_default());
        if is_best {
            best = Some(Reading {
                round,
                scenario,
                peer,
                figures,
                foreign_cores,
                attempts: attempt,
                is_disturbed: foreign > quiet,
            });
        }
        if foreign <= quiet {
            break;
        }
    }
    best.context("no attempt")
}
