//! Tells of trouble with the records file: at once, and then once a minute while it lasts.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time between two lines in the log.
const PERIOD: Duration = Duration::from_secs(60);

/// What is known of the trouble.
pub(super) struct Trouble {
    path: PathBuf,
    last_told: Option<Instant>,
    /// Lines lost since it was last told.
    untold: u64,
    /// Writing fails at the moment, and that was told.
    is_failing: bool,
}

impl Trouble {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            last_told: None,
            untold: 0,
            is_failing: false,
        }
    }

    /// Lines were lost because the file could not be written.
    pub(super) fn failed(&mut self, lost: u64, error: &io::Error, now: Instant) {
        self.untold += lost;
        if self.is_due(now) {
            let path = self.path.display();
            tracing::warn!(%path, %error, lost = self.untold, "records can not be written; traffic goes on");
            self.told(now);
            self.is_failing = true;
        }
    }

    /// Observations did not come through the queue.
    pub(super) fn overrun(&mut self, lost: u64, now: Instant) {
        self.untold += lost;
        if lost > 0 && self.is_due(now) {
            let path = self.path.display();
            tracing::warn!(%path, lost = self.untold, "records come faster than they can be written; traffic goes on");
            self.told(now);
        }
    }

    /// Lines were written.
    pub(super) fn succeeded(&mut self) {
        if self.is_failing {
            let path = self.path.display();
            tracing::info!(%path, lost = self.untold, "records are written again");
            self.is_failing = false;
            self.untold = 0;
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.last_told
            .is_none_or(|told| now.saturating_duration_since(told) >= PERIOD)
    }

    fn told(&mut self, now: Instant) {
        self.last_told = Some(now);
        self.untold = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_at_once_and_then_once_a_minute() {
        let error = io::Error::from(io::ErrorKind::StorageFull);
        let mut trouble = Trouble::new("records.jsonl".into());
        let start = Instant::now();
        trouble.failed(3, &error, start);
        assert_eq!((trouble.untold, trouble.last_told), (0, Some(start)));
        trouble.failed(2, &error, start + PERIOD / 2);
        assert_eq!((trouble.untold, trouble.last_told), (2, Some(start)));
        trouble.failed(2, &error, start + PERIOD);
        assert_eq!(
            (trouble.untold, trouble.last_told),
            (0, Some(start + PERIOD))
        );
        trouble.succeeded();
        trouble.failed(1, &error, start + PERIOD + PERIOD / 2);
        assert_eq!(
            trouble.untold, 1,
            "a disk that comes and goes must not flood the log"
        );
    }
}
