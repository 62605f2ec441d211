//! The simulated engine's own log: what it sent, request by request, and the totals of it.
//!
//! This is the truth that a tap's numbers are compared with.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// Entries that are kept; totals are kept for ever.
const MAX_ENTRIES: usize = 100_000;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole response was sent.
    Complete,
    /// The engine reported an error in the middle of a stream.
    Failed,
    /// The client went away before, or the connection was cut on purpose.
    Cancelled,
}

/// One generated sequence of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SequenceEntry {
    /// Draft tokens kept in each step, in the order of the steps.
    pub accepted: Vec<u32>,
    /// Draft tokens put before the verifier in each step.
    pub drafted: Vec<u32>,
    /// Tokens sent.
    pub completion_tokens: usize,
    /// The `finish_reason` sent, if it came so far.
    pub finish_reason: Option<&'static str>,
    /// Whether the response told its acceptance numbers.
    pub told: bool,
}

/// What was sent for one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The request's arrival number, from 0.
    pub number: u64,
    /// The model asked.
    pub model: String,
    /// The path asked.
    pub route: &'static str,
    /// The response's id.
    pub id: String,
    /// Whether it was streamed.
    pub stream: bool,
    /// The sequences, by index.
    pub sequences: Vec<SequenceEntry>,
    /// Whether the response told acceptance numbers, of one sequence at least.
    pub payload_on_the_wire: bool,
    /// Whether the response told the token counts.
    pub usage_on_the_wire: bool,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// How it ended.
    pub outcome: Outcome,
}

impl Entry {
    /// Tokens sent, of all sequences.
    pub fn completion_tokens(&self) -> usize {
        self.sequences
            .iter()
            .map(|sequence| sequence.completion_tokens)
            .sum()
    }
}

/// Sums over sequences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests.
    pub requests: u64,
    /// Sequences of those requests.
    pub sequences: u64,
    /// Sequences without a single step.
    pub zero_step: u64,
    /// Verify steps.
    pub steps: u64,
    /// Draft tokens put before the verifier.
    pub drafted: u64,
    /// Draft tokens kept.
    pub accepted: u64,
    /// How many steps kept exactly so many drafts, by that number; as long as the best step needs.
    pub histogram: Vec<u64>,
    /// Tokens of the prompts.
    pub prompt_tokens: u64,
    /// Tokens sent.
    pub completion_tokens: u64,
}

impl Counts {
    fn add(&mut self, entry: &Entry, counted: impl Fn(&SequenceEntry) -> bool) {
        self.requests += 1;
        self.prompt_tokens += entry.prompt_tokens as u64;
        for sequence in entry.sequences.iter().filter(|sequence| counted(sequence)) {
            self.sequences += 1;
            self.completion_tokens += sequence.completion_tokens as u64;
            self.zero_step += u64::from(sequence.accepted.is_empty());
            self.steps += sequence.accepted.len() as u64;
            self.drafted += sequence.drafted.iter().map(|n| u64::from(*n)).sum::<u64>();
            for accepted in &sequence.accepted {
                self.accepted += u64::from(*accepted);
                let bucket = *accepted as usize;
                if self.histogram.len() <= bucket {
                    self.histogram.resize(bucket + 1, 0);
                }
                self.histogram[bucket] += 1;
            }
        }
    }
}

/// Sums of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Everything that the engine did; its own counters say the same.
    pub all: Counts,
    /// Only sequences whose acceptance numbers were told: what a tap can know. It is what the engine did, not how the
    /// engine puts it: llama.cpp tells no steps, and an SGLang whose draft length moves tells the drafts of full length.
    pub on_the_wire: Counts,
}

/// The log; clones share their content.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<Entry>,
    forgotten: u64,
    totals: BTreeMap<String, Totals>,
    file: Option<File>,
}

impl Log {
    /// An empty log in memory only.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty log that also writes one JSON line per request to `path`, replacing what is there.
    pub fn with_file(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Inner {
            file: Some(File::create(path)?),
            ..Inner::default()
        }))))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what was sent for one request.
    pub(super) fn push(&self, entry: Entry) {
        let mut inner = self.lock();
        let totals = inner.totals.entry(entry.model.clone()).or_default();
        totals.all.add(&entry, |_| true);
        if entry.payload_on_the_wire {
            totals.on_the_wire.add(&entry, |sequence| sequence.told);
        }
        if let Some(file) = &mut inner.file {
            let line = serde_json::to_string(&entry).unwrap_or_default() + "\n";
            if let Err(error) = file.write_all(line.as_bytes()) {
                eprintln!("spectap: the log file can't be written any more: {error}");
                inner.file = None;
            }
        }
        inner.entries.push_back(entry);
        if inner.entries.len() > MAX_ENTRIES {
            inner.entries.pop_front();
            inner.forgotten += 1;
        }
    }

    /// The latest requests, at most 100,000, in the order in which they ended.
    pub fn entries(&self) -> Vec<Entry> {
        self.lock().entries.iter().cloned().collect()
    }

    /// How many older entries were dropped.
    pub fn forgotten(&self) -> u64 {
        self.lock().forgotten
    }

    /// The sums by model, over all requests that ended so far.
    pub fn totals(&self) -> BTreeMap<String, Totals> {
        self.lock().totals.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(accepted: Vec<u32>, payload_on_the_wire: bool) -> Entry {
        let drafted = vec![4; accepted.len()];
        Entry {
            number: 0,
            model: "m".into(),
            route: "/v1/completions",
            id: "cmpl-1".into(),
            stream: false,
            sequences: vec![SequenceEntry {
                accepted,
                drafted,
                completion_tokens: 9,
                finish_reason: Some("length"),
                told: payload_on_the_wire,
            }],
            payload_on_the_wire,
            usage_on_the_wire: true,
            prompt_tokens: 3,
            outcome: Outcome::Complete,
        }
    }

    #[test]
    fn totals_keep_what_was_told_apart_from_what_was_done() {
        let log = Log::new();
        log.push(entry(vec![2, 0, 2], true));
        log.push(entry(vec![], true));
        log.push(entry(vec![4], false));
        let totals = log.totals().remove("m").unwrap();
        assert_eq!((totals.all.requests, totals.on_the_wire.requests), (3, 2));
        assert_eq!(
            (totals.all.steps, totals.all.accepted, totals.all.drafted),
            (4, 8, 16)
        );
        assert_eq!(totals.on_the_wire.histogram, [1, 0, 2]);
        assert_eq!(totals.on_the_wire.zero_step, 1);
        assert_eq!(totals.all.completion_tokens, 27);
    }

    #[test]
    fn each_request_is_one_line_of_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = Log::with_file(file.path()).unwrap();
        log.push(entry(vec![1], true));
        log.push(entry(vec![2], false));
        let text = std::fs::read_to_string(file.path()).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["sequences"][0]["accepted"][0], 2);
    }
}
