//! The records file: one JSON line per observation, written off the data path.
//!
//! [`RecordsSink`] hands an observation to a writer thread through a bounded queue and never waits: when the queue is
//! full, the observation is not written and counted. The thread rotates the file by size and number, and when the disk
//! is full or the file can't be written it counts, tells once a minute, and goes on as soon as there is room again.

mod aiperf;
mod counters;
mod disk;
mod line;
mod manifest;
mod output;
mod reading;
mod trouble;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::observation::{Observation, ObservationSink};

use super::weight;

pub use counters::RecordsCounters;
pub use line::RecordsFormat;
pub use manifest::{FORCED_ACCEPTANCE, FORM, Manifest};
pub use reading::{FileRead, Head, Line, Skipped, read, read_line};

use counters::Dropped;
use line::Form;
use output::Output;
use writer::{Message, Writer};

/// Observations that may wait for the writer.
const MOST_QUEUED: usize = 8_192;

/// Bytes that they may take together, as `weight` estimates them.
const MOST_QUEUED_BYTES: usize = 32 << 20;

/// Pause between two attempts to tell a busy writer that it should stop.
const STOP_PAUSE: Duration = Duration::from_millis(5);

/// When the system is told to put written lines on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Fsync {
    /// When it likes.
    Never,
    /// A second after a line at the latest.
    #[default]
    Interval,
    /// After every batch of lines.
    Always,
}

/// Where and how records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordsSettings {
    /// The file; older ones stand beside it as `PATH.1` (the newest of them), `PATH.2`, …. `-` is standard output.
    pub path: PathBuf,
    /// A line that would make the file larger than this begins a new one.
    pub max_bytes: u64,
    /// Older files that are kept.
    pub keep: usize,
    /// When lines are put on the disk.
    pub fsync: Fsync,
    /// What a line looks like.
    pub format: RecordsFormat,
}

/// Why there can be no records file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It can't be opened.
    #[error("{source}; name a file in a directory that spectap may write to")]
    File {
        /// What the system said.
        #[from]
        source: io::Error,
    },
    /// There is a file of another kind.
    #[error("there is a file already, and it holds no records of spectap; name another")]
    NotRecords,
    /// The thread could not be started.
    #[error("the thread that writes can not be started: {0}")]
    Thread(io::Error),
}

/// The open file and the thread that writes it.
pub struct RecordsFile {
    sink: RecordsSink,
}

/// Hands observations to the writer. Cheap to clone.
#[derive(Clone)]
pub struct RecordsSink {
    sender: SyncSender<Message>,
    queued_bytes: Arc<AtomicUsize>,
    counters: RecordsCounters,
}

impl RecordsFile {
    /// Opens the file, or appends to the one that is there, and starts the writer.
    ///
    /// # Errors
    ///
    /// When the file can't be opened, or is no records file.
    pub fn open(
        settings: RecordsSettings,
        manifest: Manifest,
        counters: RecordsCounters,
    ) -> Result<Self, OpenError> {
        let form = Form::new(settings.format, manifest);
        let output = Output::open(&settings, form.head())?;
        let (sender, receiver) = sync_channel(MOST_QUEUED);
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let writer = Writer::new(
            receiver,
            Arc::clone(&queued_bytes),
            output,
            form,
            settings.fsync,
            counters.clone(),
        );
        std::thread::Builder::new()
            .name("records".to_owned())
            .spawn(move || writer.run())
            .map_err(OpenError::Thread)?;
        Ok(Self {
            sink: RecordsSink {
                sender,
                queued_bytes,
                counters,
            },
        })
    }

    /// Where observations go.
    pub fn sink(&self) -> RecordsSink {
        self.sink.clone()
    }

    /// Waits until all that was handed over before is written. The caller sets the deadline: a disk may hang.
    pub async fn finish(self) {
        let (done, is_done) = oneshot::channel();
        let mut stop = Message::Stop(done);
        loop {
            match self.sink.sender.try_send(stop) {
                Ok(()) => break,
                Err(TrySendError::Full(again)) => {
                    stop = again;
                    tokio::time::sleep(STOP_PAUSE).await;
                }
                Err(TrySendError::Disconnected(_)) => return,
            }
        }
        // An error means that the writer is gone, and so is what it could write.
        let _ = is_done.await;
    }
}

impl ObservationSink for RecordsSink {
    fn record(&self, observation: Arc<Observation>) {
        let bytes = weight::base_bytes(&observation) + weight::per_step_bytes(&observation);
        let before = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_sent = before + bytes <= MOST_QUEUED_BYTES
            && self
                .sender
                .try_send(Message::Observation(observation, bytes))
                .is_ok();
        if !is_sent {
            self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.counters.dropped(Dropped::QueueFull, 1);
        }
    }
}

#[cfg(test)]
mod tests;
