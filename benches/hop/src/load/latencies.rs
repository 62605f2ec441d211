//! Times from sending to receiving, kept one by one.

/// Times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    /// Adds one; more than four seconds count as four.
    pub fn record(&mut self, nanoseconds: u64) {
        self.0.push(nanoseconds.try_into().unwrap_or(u32::MAX));
    }

    /// The value below which `share` of them are, in microseconds; `None` without any.
    pub fn quantile(&mut self, share: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        let at = (share * last as f64).round() as usize;
        let (_, value, _) = self.0.select_nth_unstable(at);
        Some(f64::from(*value) / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), None);
        (1..=101)
            .rev()
            .for_each(|value| latencies.record(value * 1000));
        assert_eq!(latencies.quantile(0.5), Some(51.0));
        assert_eq!(latencies.quantile(0.99), Some(100.0));
        assert_eq!(latencies.quantile(1.0), Some(101.0));
    }
}
