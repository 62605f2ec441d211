//! How far the true difference may lie from the measured one: Student's t on the spread that requests drawn anew give.
//!
//! Percentiles of the draws would not do: where many figures have to hold together, the ends of each interval lie so far
//! out that hundreds of draws have none beyond them.

use crate::stats::interval::LEVEL;

/// Half of the interval around a difference with this standard error, of at least so many requests on either side;
/// absent with fewer than two.
pub(super) fn margin(error: f64, requests: u64, level: f64) -> Option<f64> {
    (requests > 1).then(|| error * students_t(level, (requests - 1) as f64))
}

/// The standard error of a figure, from what as many draws as you like from `requests` requests gave. A draw spreads as
/// the requests do around their own mean, which lies nearer to them than the true one.
pub(super) fn error_of_draws(draws: &[f64], requests: usize) -> Option<f64> {
    if draws.len() < 2 || requests < 2 {
        return None;
    }
    let n = draws.len() as f64;
    let mean = draws.iter().sum::<f64>() / n;
    let squares: f64 = draws.iter().map(|draw| (draw - mean).powi(2)).sum();
    let requests = requests as f64;
    Some((squares / (n - 1.0) * requests / (requests - 1.0)).sqrt())
}

/// How sure each of `figures` intervals has to be for all of them to err together in no more than this `share` of the 5 %
/// that a comparison may err, of which there are `comparisons`.
pub(super) fn level_of_each(share: f64, comparisons: usize, figures: usize) -> f64 {
    1.0 - (1.0 - LEVEL) * share / (comparisons.max(1) * figures.max(1)) as f64
}

/// The value beyond which Student's t with so many degrees of freedom lies, on both sides together, in 1 − level of
/// cases: the expansion of Fisher and Cornish around the normal one, exact to 1 % from ten degrees on.
fn students_t(level: f64, freedom: f64) -> f64 {
    let z = normal(level);
    let [z3, z5, z7] = [3, 5, 7].map(|power| z.powi(power));
    z + (z3 + z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
}

/// The same of the standard normal distribution.
fn normal(level: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    // Halved until the two are neighbours.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if libm::erfc(middle / std::f64::consts::SQRT_2) > 1.0 - level {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Two-sided 95 % and 99.9 %, as every table of Student's t has them.
        for (level, freedom, wanted) in [
            (0.95, 1e9, 1.959_964),
            (0.95, 10.0, 2.228_139),
            (0.95, 29.0, 2.045_230),
            (0.999, 29.0, 3.659_405),
            (0.999, 100.0, 3.390_491),
        ] {
            let got = students_t(level, freedom);
            assert!(
                (got / wanted - 1.0).abs() < 5e-3,
                "{level} {freedom}: {got}"
            );
        }
    }

    #[test]
    fn two_draws_of_two_requests_have_a_hand_computed_error() {
        // Deviation of 1 and 3 is √2; two requests make it √2 times as large.
        let error = error_of_draws(&[1.0, 3.0], 2).unwrap();
        assert!((error - 2.0).abs() < 1e-12);
        assert_eq!(error_of_draws(&[1.0, 3.0], 1), None);
        assert_eq!(margin(1.0, 1, 0.95), None);
    }

    #[test]
    fn levels_share_the_five_percent() {
        assert!((level_of_each(0.5, 1, 3) - (1.0 - 0.05 / 6.0)).abs() < 1e-15);
        assert!((level_of_each(0.25, 2, 4) - (1.0 - 0.05 / 32.0)).abs() < 1e-15);
    }
}
