//! A time in milliseconds, written as the whole nanoseconds that it was measured in: those take half the bytes.

use std::time::Duration;

/// Up to this a value holds every whole number.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Milliseconds of whole nanoseconds, as the tap makes them of a duration.
pub(super) fn milliseconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64() * 1e3
}

/// Time per token after the first: (latency − time to first token) / (tokens − 1), as the tap computes it.
pub(super) fn token_latency(latency: f64, first_token: f64, tokens: f64) -> Option<f64> {
    (tokens >= 2.0).then(|| (latency - first_token) / (tokens - 1.0))
}

/// The whole nanoseconds that give back this value to the last digit; absent where there are none.
pub(super) fn nanoseconds(milliseconds_given: f64) -> Option<u64> {
    let nanoseconds = whole((milliseconds_given * 1e6).round())?;
    (milliseconds(nanoseconds).to_bits() == milliseconds_given.to_bits()).then_some(nanoseconds)
}

/// The whole number that gives back this value to the last digit; absent where there is none.
pub(super) fn whole(value: f64) -> Option<u64> {
    let number = (0.0..=LARGEST_WHOLE)
        .contains(&value)
        .then_some(value as u64)?;
    ((number as f64).to_bits() == value.to_bits()).then_some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_a_tap_measures_is_whole_nanoseconds(measured in 0..10_u64.pow(14)) {
            prop_assert_eq!(nanoseconds(milliseconds(measured)), Some(measured));
        }

        #[test]
        fn a_number_comes_back_to_the_last_digit_or_not_at_all(value in any::<f64>()) {
            if let Some(nanoseconds) = nanoseconds(value) {
                prop_assert_eq!(milliseconds(nanoseconds).to_bits(), value.to_bits());
            }
            if let Some(number) = whole(value) {
                prop_assert_eq!((number as f64).to_bits(), value.to_bits());
            }
        }
    }

    #[test]
    fn what_is_no_measured_time_has_no_nanoseconds() {
        for value in [-1.0, -0.0, 0.1 + 1e-17, 1e300, f64::NAN, f64::INFINITY] {
            assert!(nanoseconds(value).is_none_or(|it| milliseconds(it) == value));
        }
        assert_eq!(nanoseconds(-0.0), None);
        assert_eq!(nanoseconds(f64::NAN), None);
        assert_eq!(nanoseconds(1e300), None);
    }
}
