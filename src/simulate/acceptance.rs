//! How well drafts do: a probability for each draft position, and steps drawn from it.

use fastrand::Rng;

/// One verify step of one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Draft tokens put before the verifier.
    pub drafted: u32,
    /// Draft tokens kept, the bonus token not among them.
    pub accepted: u32,
}

/// Why a list of probabilities is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AcceptanceError {
    /// A member is not a number from 0 to 1.
    #[error("'{0}' is not a probability; each member must be a number from 0 to 1, such as 0.8")]
    NotAProbability(String),
    /// More positions than any engine drafts.
    #[error("{0} positions are more than any engine drafts; give at most {MAX_POSITIONS}")]
    TooMany(usize),
}

/// The most draft positions that a list may have.
pub const MAX_POSITIONS: usize = 64;

/// For each draft position the probability that its draft is kept, given that all before it were.
///
/// The length of the list is k. An empty list stands for an engine that does not speculate.
#[derive(Clone, Debug, PartialEq)]
pub struct Acceptance(Vec<f64>);

impl Acceptance {
    /// Takes the probabilities, first position first.
    pub fn new(probabilities: Vec<f64>) -> Result<Self, AcceptanceError> {
        if probabilities.len() > MAX_POSITIONS {
            return Err(AcceptanceError::TooMany(probabilities.len()));
        }
        match probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            Some(wrong) => Err(AcceptanceError::NotAProbability(wrong.to_string())),
            None => Ok(Self(probabilities)),
        }
    }

    /// Reads a comma list such as `0.8,0.7,0.6`; `none` is the empty list.
    pub fn parse(text: &str) -> Result<Self, AcceptanceError> {
        if text.trim() == "none" {
            return Ok(Self(Vec::new()));
        }
        let number = |part: &str| {
            part.trim()
                .parse()
                .map_err(|_| AcceptanceError::NotAProbability(part.trim().to_owned()))
        };
        Self::new(text.split(',').map(number).collect::<Result<_, _>>()?)
    }

    /// The most drafts that a step carries; 0 means no speculation.
    pub fn k(&self) -> usize {
        self.0.len()
    }

    /// The same with every probability multiplied, none above 0.99.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let scaled = self.0.iter().map(|p| (p * factor).clamp(0.0, 0.99));
        Self(scaled.collect())
    }

    /// The probabilities, first position first.
    pub fn probabilities(&self) -> &[f64] {
        &self.0
    }

    /// Draws one step. With `adaptive` the number of drafts is drawn too, from 1 to k.
    pub fn draw(&self, rng: &mut Rng, adaptive: bool) -> Step {
        let drafted = if adaptive && self.k() > 0 {
            rng.usize(1..=self.k())
        } else {
            self.k()
        };
        let accepted = self
            .0
            .iter()
            .take(drafted)
            .take_while(|p| rng.f64() < **p)
            .count();
        Step {
            drafted: drafted as u32,
            accepted: accepted as u32,
        }
    }

    /// The mean number of accepted drafts of a step that drafts k.
    pub fn expected_accepted(&self) -> f64 {
        let mut reached = 1.0;
        self.0
            .iter()
            .map(|p| {
                reached *= p;
                reached
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_the_probability_of_each_position() {
        let acceptance = Acceptance::parse("0.8,0.7,0.6,0.5").unwrap();
        let mut rng = Rng::with_seed(7);
        let draws = 40_000;
        let mut survived = [0_u32; 4];
        for _ in 0..draws {
            let step = acceptance.draw(&mut rng, false);
            assert_eq!(step.drafted, 4);
            survived
                .iter_mut()
                .take(step.accepted as usize)
                .for_each(|count| *count += 1);
        }
        for (count, wanted) in survived.iter().zip([0.8, 0.56, 0.336, 0.168]) {
            let share = f64::from(*count) / f64::from(draws);
            assert!(
                (share - wanted).abs() < 0.01,
                "{share} is not near {wanted}"
            );
        }
        let mean = f64::from(survived.iter().sum::<u32>()) / f64::from(draws);
        assert!((mean - acceptance.expected_accepted()).abs() < 0.03);
    }

    #[test]
    fn certain_positions_leave_nothing_to_chance() {
        let mut rng = Rng::with_seed(1);
        let all = Acceptance::parse("1,1,1").unwrap().draw(&mut rng, false);
        assert_eq!(
            all,
            Step {
                drafted: 3,
                accepted: 3
            }
        );
        let first_fails = Acceptance::parse("0,1,1").unwrap().draw(&mut rng, false);
        assert_eq!(
            first_fails,
            Step {
                drafted: 3,
                accepted: 0
            }
        );
    }

    #[test]
    fn an_adaptive_step_accepts_no_more_than_it_drafted() {
        let acceptance = Acceptance::parse("0.9,0.9,0.9").unwrap();
        let mut rng = Rng::with_seed(3);
        let steps: Vec<_> = (0..500).map(|_| acceptance.draw(&mut rng, true)).collect();
        assert!(
            steps
                .iter()
                .all(|s| s.accepted <= s.drafted && (1..=3).contains(&s.drafted))
        );
        assert!((1..=3).all(|depth| steps.iter().any(|s| s.drafted == depth)));
    }

    #[test]
    fn a_wrong_list_is_refused_with_the_member_at_fault() {
        assert_eq!(
            Acceptance::parse("0.8,1.5"),
            Err(AcceptanceError::NotAProbability("1.5".into()))
        );
        assert_eq!(
            Acceptance::parse("0.8,x"),
            Err(AcceptanceError::NotAProbability("x".into()))
        );
        assert_eq!(
            Acceptance::parse("NaN"),
            Err(AcceptanceError::NotAProbability("NaN".into()))
        );
        assert_eq!(
            Acceptance::new(vec![0.5; 65]),
            Err(AcceptanceError::TooMany(65))
        );
        assert_eq!(Acceptance::parse("none").unwrap().k(), 0);
    }
}
