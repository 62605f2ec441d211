//! What spectap must reach, and whether it does.

use serde::Serialize;

use crate::figure::Figure;
use crate::peers::Peer;
use crate::results::{Results, Spread};
use crate::scenario::Scenario;

/// A goal for spectap, observing with all defaults on, on one core.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// In words.
    pub what: &'static str,
    scenario: Scenario,
    figure: Figure,
    /// What it is divided by; the figure itself counts if there is none.
    against: Option<(Scenario, Peer)>,
    /// The most that it may be, or the least where more is better.
    pub bound: f64,
}

impl Target {
    /// An upper or a lower bound.
    pub fn is_lower_bound(&self) -> bool {
        self.figure.is_better_high()
    }
}

/// What became of a target.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The median is within the bound.
    Met,
    /// The median is beyond the bound, but by no more than the noise.
    WithinNoise,
    /// The median is beyond the bound by more than the noise.
    Missed,
    /// There are no readings for it.
    NotMeasured,
}

impl Verdict {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::WithinNoise => "within the noise",
            Self::Missed => "**missed**",
            Self::NotMeasured => "not measured",
        }
    }
}

const fn against(
    what: &'static str,
    scenario: Scenario,
    figure: Figure,
    peer: Peer,
    bound: f64,
) -> Target {
    Target {
        what,
        scenario,
        figure,
        against: Some((scenario, peer)),
        bound,
    }
}

const fn alone(what: &'static str, scenario: Scenario, figure: Figure, bound: f64) -> Target {
    Target {
        what,
        scenario,
        figure,
        against: None,
        bound,
    }
}

use Figure::{
    AddedP50, AfterCut, CpuPerEvent, CpuPerRequest, MemoryPerStream, MemoryWithStreams,
    RequestsPerSecond, Start,
};
use Peer::{Hyper, Nginx};
use Scenario::{Flood1, Flood32, Open1000, Paced256, Paced1000, Unary1m, Unary2k};

/// All of them.
#[rustfmt::skip]
pub const TARGETS: &[Target] = &[
    against("256 × 50/s: CPU per event / nginx", Paced256, CpuPerEvent, Nginx, 1.00),
    against("1000 × 20/s: CPU per event / nginx", Paced1000, CpuPerEvent, Nginx, 1.00),
    against("256 × 50/s: CPU per event / plain hyper", Paced256, CpuPerEvent, Hyper, 1.03),
    against("1000 × 20/s: CPU per event / plain hyper", Paced1000, CpuPerEvent, Hyper, 1.03),
    against("256 × 50/s: added p50 / nginx", Paced256, AddedP50, Nginx, 1.00),
    against("1000 × 20/s: added p50 / nginx", Paced1000, AddedP50, Nginx, 1.00),
    against("flood, 1 event per write: CPU per event / nginx", Flood1, CpuPerEvent, Nginx, 1.05),
    alone("flood, 32 events per write: CPU per event, µs", Flood32, CpuPerEvent, 1.0),
    against("flood, 32 events per write: CPU per event / plain hyper", Flood32, CpuPerEvent, Hyper, 0.20),
    against("replies of 2 KB: requests per second / nginx", Unary2k, RequestsPerSecond, Nginx, 0.88),
    against("replies of 2 KB: requests per second / plain hyper", Unary2k, RequestsPerSecond, Hyper, 0.96),
    against("replies of 1 MB: CPU per request / plain hyper", Unary1m, CpuPerRequest, Hyper, 1.25),
    alone("memory per open stream, kB", Open1000, MemoryPerStream, 30.0),
    alone("memory with 1000 streams, MB", Open1000, MemoryWithStreams, 45.0),
    alone("start to first forwarded answer, ms", Scenario::Start, Start, 50.0),
    alone("1000 streams cut at once: next answer, ms", Open1000, AfterCut, 50.0),
    Target {
        what: "watched / not watched: CPU per event",
        scenario: Scenario::Watched,
        figure: CpuPerEvent,
        against: Some((Paced256, Peer::Spectap)),
        bound: 1.03,
    },
];

impl Target {
    /// What was measured, and the verdict.
    pub fn judge(&self, results: &Results) -> (Option<Spread>, Verdict) {
        let own = (self.scenario, Peer::Spectap);
        let spread = match self.against {
            Some(base) => results.ratio(self.figure, own, base),
            None => results.spread(self.scenario, Peer::Spectap, self.figure),
        };
        let verdict = spread.map_or(Verdict::NotMeasured, |spread| {
            let beyond = if self.is_lower_bound() {
                self.bound - spread.median
            } else {
                spread.median - self.bound
            };
            match beyond {
                beyond if beyond <= 0.0 => Verdict::Met,
                beyond if beyond <= spread.noise => Verdict::WithinNoise,
                _ => Verdict::Missed,
            }
        });
        (spread, verdict)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::reading::Reading;

    fn results(scenario: Scenario, figure: Figure, values: [(f64, f64); 3]) -> Results {
        let reading = |round, peer, value| Reading {
            round,
            scenario,
            peer,
            figures: BTreeMap::from([(figure, value)]),
            foreign_cores: None,
            attempts: 1,
            is_disturbed: false,
        };
        let rounds = values.iter().zip(1..);
        Results(
            rounds
                .flat_map(|((spectap, nginx), round)| {
                    [
                        reading(round, Peer::Spectap, *spectap),
                        reading(round, Nginx, *nginx),
                    ]
                })
                .collect(),
        )
    }

    fn verdict(target: &Target, values: [(f64, f64); 3]) -> Verdict {
        target
            .judge(&results(target.scenario, target.figure, values))
            .1
    }

    #[test]
    fn a_bound_is_missed_only_by_more_than_the_noise() {
        let cpu = against("", Paced256, CpuPerEvent, Nginx, 1.0);
        assert_eq!(verdict(&cpu, [(9.0, 10.0); 3]), Verdict::Met);
        assert_eq!(verdict(&cpu, [(11.0, 10.0); 3]), Verdict::Missed);
        let noisy = [(9.0, 10.0), (10.5, 10.0), (12.0, 10.0)];
        assert_eq!(verdict(&cpu, noisy), Verdict::WithinNoise);
        let rate = against("", Unary2k, RequestsPerSecond, Nginx, 0.88);
        assert_eq!(verdict(&rate, [(80.0, 100.0); 3]), Verdict::Missed);
        assert_eq!(verdict(&rate, [(95.0, 100.0); 3]), Verdict::Met);
        let memory = alone("", Open1000, MemoryPerStream, 30.0);
        assert_eq!(verdict(&memory, [(31.0, 1.0); 3]), Verdict::Missed);
        assert_eq!(verdict(&memory, [(30.0, 1.0); 3]), Verdict::Met);
    }

    #[test]
    fn a_target_without_readings_is_neither_met_nor_missed() {
        for target in TARGETS {
            let (spread, verdict) = target.judge(&Results::default());
            assert_eq!((spread, verdict), (None, Verdict::NotMeasured));
        }
    }
}
