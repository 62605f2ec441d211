//! The strip: takes out of a stream exactly what the injection caused, and puts back what its presence moved.
//!
//! The engine sends one more event, with `usage` and no choices, before `[DONE]`. vLLM then writes
//! `system_fingerprint` on that event instead of the finish event; llama.cpp does the same with `timings`. So the finish
//! event waits for its successor (the same engine step writes both) and gets back what moved. SGLang's numbers come on
//! an event of their own before it, and are cut out the same way.
//!
//! This is not the observer: it changes what the client gets. What it can't read, and all that it holds when something
//! is wrong, goes out as it came.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use super::event::{Finish, Kind, classify, may_be_caused};
use super::injection::Added;
use super::learned::Fingerprint;
use super::needle::Needle;
use super::sse::{LARGEST_EVENT, Splitter};

/// What happened in a stripped stream that others must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incident {
    /// An event was taken out.
    Stripped,
    /// The stream carries usage that nobody asked for: it passes whole.
    SentUnasked,
    /// The stream could not be stripped, and why.
    Skipped(&'static str),
}

/// How a stream is stripped.
#[derive(Clone, Debug)]
pub(super) enum Restore {
    /// One sequence: the finish event waits for the value.
    FromSuccessor,
    /// Several sequences, each with a finish event: the value is known beforehand.
    Known(Fingerprint),
}

/// The filter of one stream.
pub struct Filter {
    splitter: Splitter,
    needle: Needle,
    added: Added,
    restore: Restore,
    report: Box<dyn FnMut(Incident) + Send>,
    out: VecDeque<Bytes>,
    /// Bytes of the unfinished block that are not out yet.
    pending: Vec<Bytes>,
    /// Some bytes of the unfinished block are out already.
    partly_out: bool,
    /// The finish event and the comments behind it.
    held: Option<HeldFinish>,
    /// A data event was seen.
    begun: bool,
    /// The last block ended in a CR at the end of its chunk: an LF that follows belongs to it.
    ended_in_cr: bool,
    /// The last block was taken out.
    dropped: bool,
    /// Everything goes on as it comes.
    passing: bool,
}

struct HeldFinish {
    event: Vec<Bytes>,
    finish: Finish,
    followers: Vec<Bytes>,
    /// Bytes of all of it. There may be very many comments: nobody adds them up for each that comes.
    length: usize,
}

impl HeldFinish {
    /// Adds a comment behind the event.
    fn follow(&mut self, pieces: Vec<Bytes>) {
        self.length += length(&pieces);
        self.followers.extend(pieces);
    }

    /// Adds the late LF of the block that was held last.
    fn append(&mut self, line_feed: Bytes) {
        self.length += line_feed.len();
        if self.followers.is_empty() {
            self.finish.grow_end(line_feed.len());
            self.event.push(line_feed);
        } else {
            self.followers.push(line_feed);
        }
    }
}

impl Filter {
    /// `added`: what the request asked for in the client's name.
    pub(super) fn new(
        added: Added,
        restore: Restore,
        report: Box<dyn FnMut(Incident) + Send>,
    ) -> Self {
        Self {
            splitter: Splitter::default(),
            needle: Needle::default(),
            added,
            restore,
            report,
            out: VecDeque::new(),
            pending: Vec::new(),
            partly_out: false,
            held: None,
            begun: false,
            ended_in_cr: false,
            dropped: false,
            passing: false,
        }
    }

    /// Takes bytes of the engine; what may go on comes out of [`Filter::next`].
    pub fn push(&mut self, chunk: Bytes) {
        if self.passing {
            self.out.push_back(chunk);
            return;
        }
        if chunk.is_empty() {
            return;
        }
        let mut start = 0;
        if std::mem::take(&mut self.ended_in_cr) && chunk[0] == b'\n' {
            start = 1;
            if !self.dropped {
                let line_feed = chunk.slice(..start);
                match &mut self.held {
                    Some(held) => held.append(line_feed),
                    None => self.emit([line_feed]),
                }
            }
        }
        // Blocks that are the client's own go on in one piece; the others stand here.
        let mut marked = Vec::new();
        let mut last_end = 0;
        let mut begun = self.begun;
        let read = catch_unwind(AssertUnwindSafe(|| {
            let Self {
                splitter, needle, ..
            } = self;
            splitter.feed(&chunk, |block| {
                let kind = classify(&block, !begun, self.added, needle);
                begun |= !matches!(kind, Kind::NoData);
                if !matches!(kind, Kind::Other) {
                    marked.push((last_end, block.end, kind));
                }
                last_end = block.end;
            });
        }));
        if read.is_err() {
            (self.report)(Incident::Skipped("filter_failed"));
            self.pending.push(chunk.slice(start..));
            self.end();
            return;
        }
        self.begun = begun;
        self.ended_in_cr = last_end == chunk.len() && chunk.ends_with(b"\r");
        for (block_start, end, kind) in marked {
            self.own(&chunk, start, block_start);
            start = start.max(block_start).min(end);
            self.piece(chunk.slice(start..end), kind);
            start = end;
        }
        self.own(&chunk, start, last_end);
        start = start.max(last_end);
        let rest = chunk.slice(start..);
        if self.passing {
            self.emit([rest]);
        } else if !rest.is_empty() {
            self.pending.push(rest);
            self.unfinished();
        }
    }

    /// Whole blocks of the client's own.
    fn own(&mut self, chunk: &Bytes, start: usize, end: usize) {
        if start < end {
            let piece = chunk.slice(start..end);
            if self.pending.is_empty() && self.held.is_none() {
                // Nearly always: nothing to put in front, and nothing to allocate.
                self.partly_out = false;
                self.dropped = false;
                self.out.push_back(piece);
            } else {
                self.piece(piece, Kind::Other);
            }
        }
    }

    /// The last bytes of a block, or of several that are the client's own.
    fn piece(&mut self, piece: Bytes, kind: Kind) {
        if self.passing {
            self.out.push_back(piece);
        } else {
            self.pending.push(piece);
            self.block(kind);
        }
    }

    /// The next bytes for the client.
    #[expect(clippy::should_implement_trait, reason = "more may come after a None")]
    pub fn next(&mut self) -> Option<Bytes> {
        self.out.pop_front()
    }

    /// The stream is over, or breaks off: what is held goes out as it came.
    pub fn end(&mut self) {
        self.release_held();
        let pending = std::mem::take(&mut self.pending);
        self.emit(pending);
        self.passing = true;
    }

    /// Bytes that are held back.
    #[cfg(feature = "fuzzing")]
    pub(super) fn held(&self) -> usize {
        let held = self.held.iter();
        let pieces = held.flat_map(|held| held.event.iter().chain(&held.followers));
        pieces.chain(&self.pending).map(Bytes::len).sum()
    }

    fn emit(&mut self, pieces: impl IntoIterator<Item = Bytes>) {
        self.out
            .extend(pieces.into_iter().filter(|piece| !piece.is_empty()));
    }

    fn release_held(&mut self) {
        if let Some(held) = self.held.take() {
            self.emit(held.event);
            self.emit(held.followers);
        }
    }

    /// A block is complete; its unsent bytes are `pending`.
    fn block(&mut self, kind: Kind) {
        let pieces = std::mem::take(&mut self.pending);
        let partly_out = std::mem::take(&mut self.partly_out);
        self.dropped = false;
        match kind {
            Kind::NoData => match &mut self.held {
                Some(held) => {
                    held.follow(pieces);
                    self.bound_held();
                }
                None => self.emit(pieces),
            },
            Kind::Other => {
                self.release_held();
                self.emit(pieces);
            }
            Kind::FirstWithUsage => {
                (self.report)(Incident::SentUnasked);
                self.release_held();
                self.emit(pieces);
                self.passing = true;
            }
            Kind::Finish(finish) => {
                self.release_held();
                self.finish_event(pieces, finish);
            }
            Kind::Mended(block) if !partly_out => {
                self.release_held();
                self.emit([block]);
                (self.report)(Incident::Stripped);
            }
            Kind::Caused { moved, comments } if !partly_out => {
                if let Some(held) = self.held.take() {
                    self.emit(held.finish.restore(held.event, &moved));
                    self.emit(held.followers);
                } else if let Restore::Known(known) = &self.restore
                    && moved
                        .fingerprint
                        .as_ref()
                        .is_some_and(|sent| !known.is_written(sent))
                {
                    (self.report)(Incident::Skipped("fingerprint_changed"));
                }
                self.dropped = comments.is_empty();
                self.emit([comments]);
                (self.report)(Incident::Stripped);
            }
            Kind::Caused { .. } | Kind::Mended(_) | Kind::Unmendable => {
                (self.report)(Incident::Skipped("event_sent"));
                self.release_held();
                self.emit(pieces);
            }
        }
    }

    fn finish_event(&mut self, pieces: Vec<Bytes>, finish: Finish) {
        match &self.restore {
            // Nothing moves for SGLang's own option.
            _ if !self.added.strip_usage => self.emit(pieces),
            // Another line follows the data in its block, and the brace went out before it came.
            _ if finish.may_get_back() && !finish.ends_within(length(&pieces)) => {
                (self.report)(Incident::Skipped("event_sent"));
                self.emit(pieces);
            }
            Restore::FromSuccessor if finish.may_get_back() => {
                self.held = Some(HeldFinish {
                    length: length(&pieces),
                    event: pieces,
                    finish,
                    followers: Vec::new(),
                });
                self.bound_held();
            }
            Restore::Known(Fingerprint::Value(value)) => {
                let restored = finish.restore_fingerprint(pieces, value);
                self.emit(restored);
            }
            _ => self.emit(pieces),
        }
    }

    /// More of a block came, not yet its end: what can't be the caused event any more goes on at once.
    fn unfinished(&mut self) {
        if self.splitter.is_skipping() {
            self.release_held();
            let pending = std::mem::take(&mut self.pending);
            self.emit(pending);
            self.partly_out = true;
        } else if self.held.is_none()
            && (self.partly_out || !may_be_caused(self.splitter.pending()))
        {
            let kept = split_closing_run(&mut self.pending);
            let pending = std::mem::replace(&mut self.pending, kept);
            self.emit(pending);
            self.partly_out = true;
        }
    }

    /// What is held never grows beyond the largest event.
    fn bound_held(&mut self) {
        if self
            .held
            .as_ref()
            .is_some_and(|held| held.length > LARGEST_EVENT)
        {
            (self.report)(Incident::Skipped("too_large"));
            self.release_held();
        }
    }
}

fn length(pieces: &[Bytes]) -> usize {
    pieces.iter().map(Bytes::len).sum()
}

/// Splits off the trailing brackets and white space: the root's closing brace is among them, and a member may have to
/// be put before it.
fn split_closing_run(pieces: &mut Vec<Bytes>) -> Vec<Bytes> {
    let mut run = Vec::new();
    while let Some(mut piece) = pieces.pop() {
        let in_run = |byte: &u8| matches!(byte, b'}' | b']') || byte.is_ascii_whitespace();
        let split = piece
            .iter()
            .rposition(|byte| !in_run(byte))
            .map_or(0, |last| last + 1);
        let tail = piece.split_off(split);
        run.push(tail);
        if !piece.is_empty() {
            pieces.push(piece);
            break;
        }
    }
    run.reverse();
    run.retain(|piece| !piece.is_empty());
    run
}

#[cfg(test)]
mod tests;
