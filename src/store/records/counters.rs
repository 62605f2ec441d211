//! What became of the lines of the records file, as Prometheus counters.

use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use strum::VariantArray;

/// Why an observation is not in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Dropped {
    /// The writer was too far behind.
    QueueFull,
    /// There was no room on the disk.
    DiskFull,
    /// The file could not be opened, written or rotated.
    WriteFailed,
}

/// The counters of one records file. Cheap to clone: all handles share their values.
#[derive(Clone, Debug)]
pub struct RecordsCounters {
    written: IntCounter,
    dropped: IntCounterVec,
}

impl RecordsCounters {
    /// Makes a set and registers it.
    ///
    /// # Errors
    ///
    /// Only if the registry already holds a metric of one of these names.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let written = IntCounter::new(
            "spectap_records_written_total",
            "Observations written to the records file.",
        )?;
        let dropped = IntCounterVec::new(
            Opts::new(
                "spectap_records_dropped_total",
                "Observations missing in the records file, by reason.",
            ),
            &["reason"],
        )?;
        // From the start, so that an alert sees the first one as an increase.
        for reason in Dropped::VARIANTS {
            dropped.with_label_values(&[<&str>::from(*reason)]);
        }
        registry.register(Box::new(written.clone()))?;
        registry.register(Box::new(dropped.clone()))?;
        Ok(Self { written, dropped })
    }

    pub(super) fn written(&self, lines: u64) {
        self.written.inc_by(lines);
    }

    pub(super) fn dropped(&self, reason: Dropped, lines: u64) {
        self.dropped
            .with_label_values(&[<&str>::from(reason)])
            .inc_by(lines);
    }

    /// How many were dropped for this reason so far.
    pub(super) fn dropped_so_far(&self, reason: Dropped) -> u64 {
        self.dropped
            .with_label_values(&[<&str>::from(reason)])
            .get()
    }
}
