//! Length and rate of two runs whose requests have nothing to do with each other: those of each side are drawn anew.

use super::margin::error_of_draws;
use super::width::DraftWidth;
use super::{DRAWS, Difference, Figures, Measured, latency};
use crate::stats::group::Group;
use crate::stats::interval::{Lens, MOST_DRAWN_FROM, Sample, Sums};

/// The figures that a verdict is given on.
pub(super) fn figures(
    base: &Group,
    other: &Group,
    level: f64,
    random: &mut fastrand::Rng,
) -> Figures {
    let sides = [Side::of(base), Side::of(other)];
    let (mut lengths, mut rates) = (Vec::new(), Vec::new());
    if sides.iter().all(|side| side.samples.len() > 1) {
        for _ in 0..DRAWS {
            let [base, other] = [sides[0].draw(random), sides[1].draw(random)];
            lengths.extend(difference(base.length, other.length));
            rates.extend(difference(base.rate, other.rate));
        }
    }
    let fewest = sides[0].samples.len().min(sides[1].samples.len());
    let [base_pool, other_pool] = [&base.aiperf.pooled, &other.aiperf.pooled];
    let length = Measured {
        values: [base_pool.length(), other_pool.length()],
        error: error_of_draws(&lengths, fewest),
        requests: [base_pool.records_with_steps, other_pool.records_with_steps],
    };
    let rate = Measured {
        values: [base_pool.rate(), other_pool.rate()],
        error: error_of_draws(&rates, fewest),
        requests: [base_pool.records, other_pool.records],
    };
    let (latency, speed_up) = latency::unpaired(base, other, level, random);
    Figures {
        differences: vec![
            Difference::of_length(length, level),
            Difference::of_rate(rate, level, &[width(base), width(other)]),
            latency,
        ],
        speed_up,
    }
}

/// How wide the steps of a group's records are.
pub(super) fn width(group: &Group) -> DraftWidth {
    DraftWidth {
        ks: group.evidence.records_by_k.keys().copied().collect(),
        drafted: group.evidence.output.drafted_in_steps,
        steps: group.aiperf.pooled.steps,
    }
}

fn difference(base: Option<f64>, other: Option<f64>) -> Option<f64> {
    base.zip(other).map(|(base, other)| other - base)
}

/// What is drawn from on one side.
struct Side {
    samples: Vec<Sample>,
    length: Option<Lens>,
    rate: Option<Lens>,
}

/// What one draw gave.
struct Drawn {
    length: Option<f64>,
    rate: Option<f64>,
}

impl Side {
    fn of(group: &Group) -> Self {
        let samples = &group.evidence.samples;
        let samples = samples.first(MOST_DRAWN_FROM, Sample::has_record);
        let (of_sample, pooled) = (Sums::of(samples.iter().copied()), &group.aiperf.pooled);
        let lens = |of_sample: Option<f64>, exact: Option<f64>| {
            Some(Lens::new(of_sample?, exact?, samples.len(), pooled.records))
        };
        Self {
            length: lens(of_sample.length(), pooled.length()),
            rate: lens(of_sample.rate(), pooled.rate()),
            samples,
        }
    }

    fn draw(&self, random: &mut fastrand::Rng) -> Drawn {
        let sums = Sums::drawn(&self.samples, random);
        let see = |lens: Option<Lens>, drawn: Option<f64>| Some(lens?.see(drawn?));
        Drawn {
            length: see(self.length, sums.length()),
            rate: see(self.rate, sums.rate()),
        }
    }
}
