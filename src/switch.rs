//! The switch for injection, shared by the tap that asks it and the admin port that moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether requests may be altered at all; moved while running by `POST /api/v1/inject`.
#[derive(Clone, Debug)]
pub struct InjectSwitch(Arc<AtomicBool>);

impl InjectSwitch {
    /// A switch in the given position.
    pub fn new(on: bool) -> Self {
        Self(Arc::new(AtomicBool::new(on)))
    }

    /// Whether injection is on.
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Moves the switch; requests that arrive afterwards see the new position.
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }
}
