//! All readings of a run, and what is computed across them: always within one round, so that a machine that is faster
//! in one hour than in the next does not show.

use crate::figure::Figure;
use crate::peers::Peer;
use crate::reading::Reading;
use crate::scenario::Scenario;

/// Readings of all rounds.
#[derive(Clone, Debug, Default)]
pub struct Results(pub Vec<Reading>);

/// Values of several rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// How many rounds.
    pub rounds: usize,
    /// The middle one.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Distance of the quartiles: the noise.
    pub noise: f64,
}

impl Spread {
    /// Of some values; `None` without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Some(Self {
            rounds: values.len(),
            median: quantile(&values, 0.5)?,
            low: *values.first()?,
            high: *values.last()?,
            noise: quantile(&values, 0.75)? - quantile(&values, 0.25)?,
        })
    }
}

/// By linear interpolation.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (
        sorted[place.floor() as usize],
        sorted[place.ceil() as usize],
    );
    Some(low + (high - low) * place.fract())
}

impl Results {
    fn rounds(&self) -> u32 {
        self.0
            .iter()
            .map(|reading| reading.round)
            .max()
            .unwrap_or(0)
    }

    fn reading(&self, round: u32, scenario: Scenario, peer: Peer) -> Option<&Reading> {
        self.0.iter().find(|reading| {
            reading.round == round && reading.scenario == scenario && reading.peer == peer
        })
    }

    /// A figure of one round.
    pub fn value(&self, round: u32, scenario: Scenario, peer: Peer, figure: Figure) -> Option<f64> {
        if let Some(latency) = figure.latency() {
            let with = self.value(round, scenario, peer, latency)?;
            return Some(with - self.value(round, scenario, Peer::Direct, latency)?);
        }
        let reading = self.reading(round, scenario, peer)?;
        reading.figures.get(&figure).copied()
    }

    /// A figure over the rounds.
    pub fn spread(&self, scenario: Scenario, peer: Peer, figure: Figure) -> Option<Spread> {
        let rounds = 1..=self.rounds();
        Spread::of(rounds.filter_map(|round| self.value(round, scenario, peer, figure)))
    }

    /// A figure over that of another hop or scenario in the same round.
    pub fn ratio(
        &self,
        figure: Figure,
        (scenario, peer): (Scenario, Peer),
        (base_scenario, base_peer): (Scenario, Peer),
    ) -> Option<Spread> {
        Spread::of((1..=self.rounds()).filter_map(|round| {
            let base = self.value(round, base_scenario, base_peer, figure)?;
            let value = self.value(round, scenario, peer, figure)?;
            (base > 0.0).then_some(value / base)
        }))
    }

    /// Whether a reading of a hop was disturbed in any round.
    pub fn is_disturbed(&self, scenario: Scenario, peer: Peer) -> bool {
        self.0.iter().any(|reading| {
            reading.is_disturbed && reading.scenario == scenario && reading.peer == peer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A round in which latency and CPU of every hop are `slow` times as large as in a quiet one.
    fn round(round: u32, slow: f64) -> Vec<Reading> {
        let reading = |peer, cpu, latency| Reading {
            round,
            scenario: Scenario::Paced256,
            peer,
            figures: BTreeMap::from([
                (Figure::CpuPerEvent, cpu * slow),
                (Figure::LatencyP50, latency * slow),
            ]),
            foreign_cores: None,
            attempts: 1,
            is_disturbed: round == 2,
        };
        vec![
            reading(Peer::Direct, 0.0, 20.0),
            reading(Peer::Nginx, 8.0, 50.0),
            reading(Peer::Spectap, 10.0, 80.0),
        ]
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let results = Results([round(1, 1.0), round(2, 3.0), round(3, 1.0)].concat());
        let ratio = |figure| {
            let scenario = Scenario::Paced256;
            results.ratio(figure, (scenario, Peer::Spectap), (scenario, Peer::Nginx))
        };
        let cpu = ratio(Figure::CpuPerEvent).unwrap();
        assert_eq!(
            (cpu.median, cpu.low, cpu.high, cpu.noise),
            (1.25, 1.25, 1.25, 0.0)
        );
        assert_eq!(ratio(Figure::AddedP50).unwrap().median, 2.0);
        assert_eq!(ratio(Figure::Start), None);
        let cpu = results.spread(Scenario::Paced256, Peer::Nginx, Figure::CpuPerEvent);
        assert_eq!(cpu.unwrap().high, 24.0);
        assert!(results.is_disturbed(Scenario::Paced256, Peer::Nginx));
        assert!(!results.is_disturbed(Scenario::Paced256, Peer::Envoy));
    }

    #[test]
    fn noise_is_the_distance_of_the_quartiles() {
        let spread = Spread::of([5.0, 1.0, 2.0, 4.0, 3.0]).unwrap();
        assert_eq!((spread.median, spread.noise), (3.0, 2.0));
        assert_eq!((spread.low, spread.high, spread.rounds), (1.0, 5.0, 5));
        assert_eq!(Spread::of([]), None);
    }
}
