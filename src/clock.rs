//! The clock that windows and runs go by: the system's, or one that a test moves by hand.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Tells the time. Clones tell the same.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<Mutex<SystemTime>>>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that stands at `start` until it is moved.
    pub fn by_hand(start: SystemTime) -> Self {
        Self(Some(Arc::new(Mutex::new(start))))
    }

    /// The time now.
    pub fn now(&self) -> SystemTime {
        match &self.0 {
            None => SystemTime::now(),
            Some(hand) => *hand.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Moves a clock that is driven by hand; the system's clock can't be moved and stays as it is.
    pub fn advance(&self, by: Duration) {
        if let Some(hand) = &self.0 {
            *hand.lock().unwrap_or_else(PoisonError::into_inner) += by;
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() {
            "Clock(by hand)"
        } else {
            "Clock(system)"
        })
    }
}
