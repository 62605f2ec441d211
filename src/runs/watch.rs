//! Tells a changed engine from two engines by turns, by one value that each exchange shows.

/// Exchanges in a row with one new value after which the old one is gone for good.
pub(super) const GONE_AFTER: u32 = 20;

/// Times that a value must come back for two values to count as alternating: a restart that is rolled out may show the
/// old one a few times more.
pub(super) const ALTERNATES_AFTER: u64 = 3;

/// Exchanges in a row with one value after which alternation counts as over.
const STEADY_AFTER: u32 = 100;

/// The value that holds, and what came since.
#[derive(Debug)]
pub(super) struct Watch {
    holds: String,
    /// The last other value.
    other: Option<String>,
    /// Exchanges in a row that showed that one.
    without: u32,
    /// Exchanges in a row that showed it.
    steady: u32,
    /// Times that it came back after another.
    returns: u64,
}

impl Watch {
    pub(super) fn new(value: &str) -> Self {
        Self {
            holds: value.to_owned(),
            other: None,
            without: 0,
            steady: 1,
            returns: 0,
        }
    }

    /// The value that holds.
    pub(super) fn holds(&self) -> &str {
        &self.holds
    }

    /// An exchange showed this value. Gives the value that held before, when it is gone for good.
    pub(super) fn see(&mut self, value: &str) -> Option<String> {
        if value == self.holds {
            if self.without > 0 {
                self.returns += 1;
                self.steady = 0;
            }
            self.without = 0;
            self.steady += 1;
            if self.steady >= STEADY_AFTER {
                self.returns = 0;
            }
            return None;
        }
        self.without += 1;
        // A value that is another one each time is none to go by.
        if self.other.as_deref() != Some(value) {
            self.other = Some(value.to_owned());
            self.without = 1;
        }
        if self.without < GONE_AFTER {
            return None;
        }
        let next = Self::new(value);
        Some(std::mem::replace(self, next).holds)
    }

    /// The two values and how often the first came back, where they come by turns.
    pub(super) fn alternation(&self) -> Option<([String; 2], u64)> {
        let other = self.other.clone()?;
        (self.returns >= ALTERNATES_AFTER).then(|| ([self.holds.clone(), other], self.returns))
    }
}
