//! Holds a stream against what was ordered: every event, once, in order, and nothing else.

use anyhow::{Result, bail, ensure};
use memchr::memmem;

use crate::shape::{self, Text};

/// Follows one stream.
#[derive(Debug)]
pub struct Events {
    text: Text,
    expected: u32,
    seen: u32,
    has_role: bool,
    is_done: bool,
    /// The beginning of an event whose end has not come yet.
    unfinished: Vec<u8>,
}

impl Events {
    /// Expects a stream of so many token events, one at least.
    pub fn new(expected: u32) -> Self {
        Self {
            text: Text::new(),
            expected,
            seen: 0,
            has_role: false,
            is_done: false,
            unfinished: Vec::new(),
        }
    }

    /// Begins anew for the next stream.
    pub fn reset(&mut self) {
        self.seen = 0;
        self.has_role = false;
        self.is_done = false;
        self.unfinished.clear();
    }

    /// Token events seen.
    pub fn seen(&self) -> u32 {
        self.seen
    }

    /// Takes bytes of the body and hands the time of sending of each token event to `stamp`.
    ///
    /// # Errors
    ///
    /// An event is missing, doubled, out of order or none that was ordered.
    pub fn feed(&mut self, data: &[u8], mut stamp: impl FnMut(u64)) -> Result<()> {
        let mut data = data;
        if !self.unfinished.is_empty() {
            let from = self.unfinished.len() - 1;
            // The event's end may be half in what was kept.
            let joint = self.unfinished[from] == b'\n' && data.first() == Some(&b'\n');
            let Some(end) = (if joint { Some(1) } else { end(data) }) else {
                self.unfinished.extend_from_slice(data);
                return Ok(());
            };
            let mut event = std::mem::take(&mut self.unfinished);
            event.extend_from_slice(&data[..end]);
            self.take(&event, &mut stamp)?;
            event.clear();
            self.unfinished = event;
            data = &data[end..];
        }
        while !data.is_empty() {
            // Nearly all events have the same length, so that the end need not be searched.
            let usual = self.text.content_length;
            let length = match data.get(usual - 2..usual) {
                Some(b"\n\n") => Some(usual),
                _ => end(data),
            };
            let Some(length) = length else {
                self.unfinished.extend_from_slice(data);
                return Ok(());
            };
            self.take(&data[..length], &mut stamp)?;
            data = &data[length..];
        }
        Ok(())
    }

    fn take(&mut self, event: &[u8], stamp: &mut impl FnMut(u64)) -> Result<()> {
        if let Some((number, sent)) = self.text.read(event) {
            ensure!(
                number == self.seen && self.has_role && !self.is_done,
                "token event {number} where {} was due",
                self.seen
            );
            self.seen += 1;
            stamp(sent);
            return Ok(());
        }
        if !self.has_role && shape::is_role_event(event) {
            self.has_role = true;
        } else if event == shape::DONE && !self.is_done {
            self.is_done = true;
        } else {
            bail!("an event too many: {}", String::from_utf8_lossy(event));
        }
        Ok(())
    }

    /// Holds the whole stream against the order, at its end.
    ///
    /// # Errors
    ///
    /// Something did not come.
    pub fn check_end(&self) -> Result<()> {
        ensure!(
            self.seen == self.expected && self.is_done && self.unfinished.is_empty(),
            "a stream of {} token events instead of {}, done: {}",
            self.seen,
            self.expected,
            self.is_done
        );
        Ok(())
    }
}

/// Length of the first event, its empty line included.
fn end(data: &[u8]) -> Option<usize> {
    memmem::find(data, b"\n\n").map(|at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(events: u32) -> Vec<Vec<u8>> {
        let text = Text::new();
        let mut all = vec![shape::role_event(1)];
        for number in 0..events {
            let mut event = if number + 1 == events {
                shape::finish_event(1, false)
            } else {
                shape::content_event(1)
            };
            text.fill(&mut event, number, 1000 + u64::from(number));
            all.push(event);
        }
        all.push(shape::DONE.to_vec());
        all
    }

    fn check(pieces: &[&[u8]]) -> Result<Vec<u64>> {
        let (mut events, mut stamps) = (Events::new(3), Vec::new());
        for piece in pieces {
            events.feed(piece, |stamp| stamps.push(stamp))?;
        }
        events.check_end()?;
        Ok(stamps)
    }

    #[test]
    fn a_whole_stream_passes_wherever_it_is_cut() {
        let whole = stream(3).concat();
        for cut in 0..whole.len() {
            let stamps = check(&[&whole[..cut], &whole[cut..]]).unwrap();
            assert_eq!(stamps, [1000, 1001, 1002], "{cut}");
        }
    }

    #[test]
    fn what_is_missing_doubled_or_added_is_an_error() {
        let whole = stream(3);
        for missing in 0..whole.len() {
            let mut events = whole.clone();
            events.remove(missing);
            assert!(check(&[&events.concat()]).is_err(), "{missing}");
        }
        for doubled in 0..whole.len() {
            let mut events = whole.clone();
            events.insert(doubled, whole[doubled].clone());
            assert!(check(&[&events.concat()]).is_err(), "{doubled}");
        }
        let mut events = whole.clone();
        events.insert(4, shape::usage_event(1, 3));
        assert!(check(&[&events.concat()]).is_err());
        let mut events = whole;
        events.push(b"data: {".to_vec());
        assert!(check(&[&events.concat()]).is_err());
    }
}
