//! The thread that writes: takes what is queued, turns it into lines, and puts them on the disk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::observation::Observation;

use super::Fsync;
use super::counters::{Dropped, RecordsCounters};
use super::line::Form;
use super::output::Output;
use super::trouble::Trouble;

/// Bytes of lines that are written at once.
const BATCH: usize = 64 << 10;

/// With [`Fsync::Interval`], the longest time that a line may not be on the disk.
const SYNC_PERIOD: Duration = Duration::from_secs(1);

/// What the writer is told.
pub(super) enum Message {
    /// Write this; it weighs so many bytes in the queue.
    Observation(Arc<Observation>, usize),
    /// Write what came before, put it on the disk, say so, and end.
    Stop(oneshot::Sender<()>),
}

/// The writer's side of the queue, and all it needs.
pub(super) struct Writer {
    receiver: Receiver<Message>,
    queued_bytes: Arc<AtomicUsize>,
    output: Output,
    form: Form,
    fsync: Fsync,
    counters: RecordsCounters,
    trouble: Trouble,
    /// Observations that the queue had no room for, as far as it was told.
    overrun: u64,
    last_sync: Instant,
    lines: Vec<u8>,
    /// How many lines they are.
    count: u64,
}

impl Writer {
    pub(super) fn new(
        receiver: Receiver<Message>,
        queued_bytes: Arc<AtomicUsize>,
        output: Output,
        form: Form,
        fsync: Fsync,
        counters: RecordsCounters,
    ) -> Self {
        Self {
            receiver,
            queued_bytes,
            trouble: Trouble::new(output.name()),
            output,
            form,
            fsync,
            overrun: counters.dropped_so_far(Dropped::QueueFull),
            counters,
            last_sync: Instant::now(),
            lines: Vec::new(),
            count: 0,
        }
    }

    /// Writes until it is told to stop, or nobody is left to tell.
    pub(super) fn run(mut self) {
        // The manifest stands in the file from the start, so that a file without traffic says what it is.
        self.flush(true);
        let stopped = loop {
            match self.next() {
                Ok(Message::Observation(observation, bytes)) => self.take(&observation, bytes),
                Ok(Message::Stop(done)) => break Some(done),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break None,
            }
            self.sync_if_due();
        };
        self.flush(false);
        if self.fsync != Fsync::Never {
            self.sync();
        }
        if let Some(done) = stopped {
            let _ = done.send(());
        }
    }

    /// The next message. What was taken is written before it is waited for.
    fn next(&mut self) -> Result<Message, RecvTimeoutError> {
        match self.receiver.try_recv() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => {}
        }
        self.flush(false);
        if self.fsync == Fsync::Interval && self.output.is_dirty() {
            let patience = SYNC_PERIOD.saturating_sub(self.last_sync.elapsed());
            return self.receiver.recv_timeout(patience);
        }
        self.receiver
            .recv()
            .map_err(|_| RecvTimeoutError::Disconnected)
    }

    fn take(&mut self, observation: &Observation, bytes: usize) {
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        let before = self.lines.len();
        self.form.push(observation, &mut self.lines);
        if self.lines.len() == before {
            return;
        }
        if self.output.is_full_for(before, self.lines.len() - before) {
            let line = self.lines.split_off(before);
            self.flush(false);
            if self.output.is_full_for(0, line.len())
                && let Err(error) = self.output.rotate()
            {
                self.lost(1, &error);
                return;
            }
            self.lines = line;
        }
        self.count += 1;
        if self.lines.len() >= BATCH {
            self.flush(false);
        }
    }

    /// Writes the lines; with `even_none`, the manifest at least.
    fn flush(&mut self, even_none: bool) {
        let overrun = self.counters.dropped_so_far(Dropped::QueueFull);
        self.trouble.overrun(overrun - self.overrun, Instant::now());
        self.overrun = overrun;
        if self.lines.is_empty() && !even_none {
            return;
        }
        match self.output.append(&self.lines) {
            Ok(()) => {
                self.counters.written(self.count);
                self.trouble.succeeded();
                if self.fsync == Fsync::Always {
                    self.sync();
                }
            }
            Err(error) => self.lost(self.count, &error),
        }
        self.lines.clear();
        self.count = 0;
    }

    fn lost(&mut self, lines: u64, error: &io::Error) {
        let reason = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Dropped::DiskFull,
            _ => Dropped::WriteFailed,
        };
        self.counters.dropped(reason, lines);
        self.trouble.failed(lines, error, Instant::now());
    }

    fn sync_if_due(&mut self) {
        if self.fsync == Fsync::Interval && self.last_sync.elapsed() >= SYNC_PERIOD {
            self.sync();
        }
    }

    fn sync(&mut self) {
        self.last_sync = Instant::now();
        if let Err(error) = self.output.sync() {
            self.trouble.failed(0, &error, self.last_sync);
        }
    }
}
