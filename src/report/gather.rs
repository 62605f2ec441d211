//! Gathers exchanges one by one, from records files, an export or captured bodies, into statistics like the tap's own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::ReportError;
use super::labels::Labels;
use super::render::{Report, Source};
use crate::export::{By, Query, Snapshot, Summary, snapshot, snapshot::Filter, summary};
use crate::observation::{Observation, ObservationSink};
use crate::stats::{GroupKey, Period, Statistics, Window};
use crate::store::records::{self, FileRead, Head, Line, Manifest, Skipped};

/// Why there is nothing to report on.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file or directory can't be read.
    #[error("can't read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file has no line of records.
    #[error(
        "{} holds no records of spectap ({problem}); name a file that `spectap serve --records` wrote", path.display()
    )]
    NoRecords {
        /// Which.
        path: PathBuf,
        /// What is wrong with its first line.
        problem: String,
    },
    /// No exchange is of the run that is asked for.
    #[error(
        "--run {run}: there is no exchange of that run; the runs there are: {}",
        list_of_runs(runs)
    )]
    NoRun {
        /// Which.
        run: String,
        /// Those that there are.
        runs: BTreeSet<String>,
    },
    /// A directory has no response body.
    #[error(
        "{} holds no response of an inference server; expected *.json, *.sse or *.http files", path.display()
    )]
    NoBodies {
        /// Which.
        path: PathBuf,
    },
}

/// The names of runs in a sentence.
pub(crate) fn list_of_runs(runs: &BTreeSet<String>) -> String {
    match runs.is_empty() {
        true => "none".to_owned(),
        false => Vec::from_iter(runs.iter().map(String::as_str)).join(", "),
    }
}

/// The largest number of drafts that a step may carry, by group; groups that never said are missing.
pub(super) type Widths = BTreeMap<GroupKey, u64>;

/// What of the exchanges is wanted.
pub(super) struct Wanted<'a> {
    /// Which exchanges.
    pub(super) query: &'a Query,
    /// Whether they are told apart by hour.
    pub(super) by_hour: bool,
    /// Categories that take the place of the exchanges' own tags.
    pub(super) labels: Option<Labels>,
    /// Where each is written to.
    pub(super) lines: Option<&'a mut dyn Write>,
}

/// What was gathered.
pub(super) struct Gathered<'a> {
    wanted: Wanted<'a>,
    manifests: Vec<Manifest>,
    sources: Vec<Source>,
    statistics: Statistics,
    hours: BTreeMap<String, Statistics>,
    widths: Widths,
    /// Of all exchanges, wanted or not.
    runs: BTreeSet<String>,
    /// Exchanges whose X-Request-ID has no label.
    unlabelled: u64,
    failed: Option<io::Error>,
}

impl<'a> Gathered<'a> {
    pub(super) fn new(wanted: Wanted<'a>) -> Self {
        Self {
            wanted,
            manifests: Vec::new(),
            sources: Vec::new(),
            statistics: Statistics::new(),
            hours: BTreeMap::new(),
            widths: Widths::new(),
            runs: BTreeSet::new(),
            unlabelled: 0,
            failed: None,
        }
    }

    /// Reads records files.
    pub(super) fn take_files(&mut self, files: &[PathBuf]) -> Result<(), SourceError> {
        for path in files {
            let mut read = 0_u64;
            let mut exchanges = 0;
            let FileRead { sha256, skipped } = records::read(path, |line| {
                read += 1;
                exchanges += u64::from(matches!(line, Line::Observation(_)));
                self.take_line(line);
            })
            .map_err(|source| SourceError::Read {
                path: path.clone(),
                source,
            })?;
            if read == 0 {
                let problem = skipped.first.map_or_else(
                    || "it is empty".to_owned(),
                    |(number, problem)| format!("line {number}: {problem}"),
                );
                return Err(SourceError::NoRecords {
                    path: path.clone(),
                    problem,
                });
            }
            tell_skipped(path, &skipped);
            self.sources.push(Source {
                file: path.display().to_string(),
                sha256,
                exchanges,
            });
        }
        Ok(())
    }

    /// Reads what a tap exports.
    pub(super) fn take_export(&mut self, from: &str, export: &[u8]) -> Result<(), SourceError> {
        for line in export.split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            match records::read_line(line) {
                Ok(line) => {
                    if let Line::Head(Head { dropped, .. }) = &line
                        && *dropped > 0
                    {
                        tracing::warn!(
                            "{dropped} exchanges are gone from the memory of {from}: this report is about those that it \
                             still keeps; with --records it would keep all"
                        );
                    }
                    self.take_line(line);
                }
                Err(problem) => {
                    return Err(SourceError::NoRecords {
                        path: format!("{from}/api/v1/export").into(),
                        problem,
                    });
                }
            }
        }
        Ok(())
    }

    fn take_line(&mut self, line: Line) {
        match line {
            Line::Head(head) => self.take_manifest(head.manifest),
            Line::Observation(observation) => self.take(*observation),
        }
    }

    /// Notes where the following exchanges come from.
    pub(super) fn take_manifest(&mut self, manifest: Manifest) {
        self.write(&json!({ "manifest": manifest }));
        // Each of the files that one tap wrote begins with it.
        if !self.manifests.contains(&manifest) {
            self.manifests.push(manifest);
        }
    }

    /// Takes an exchange, if it is wanted.
    pub(super) fn take(&mut self, mut observation: Observation) {
        if let Some(labels) = &self.wanted.labels {
            observation.tag = labels.of(observation.x_request_id.as_deref());
            self.unlabelled += u64::from(observation.tag.is_none());
        }
        if let Some(run) = observation.run.as_ref()
            && !self.runs.contains(run)
        {
            self.runs.insert(run.clone());
        }
        if !wants(self.wanted.query, &observation) {
            return;
        }
        self.write(&observation);
        note_width(&mut self.widths, &observation);
        let observation = Arc::new(observation);
        if self.wanted.by_hour {
            let hours = self.hours.entry(hour(&observation)).or_default();
            hours.record(Arc::clone(&observation));
        }
        self.statistics.record(observation);
    }

    fn write(&mut self, line: &impl serde::Serialize) {
        let Some(out) = &mut self.wanted.lines else {
            return;
        };
        if self.failed.is_none() {
            let written = serde_json::to_writer(&mut **out, line)
                .map_err(io::Error::from)
                .and_then(|()| out.write_all(b"\n"));
            self.failed = written.err();
        }
    }

    /// What it comes to.
    pub(super) fn into_report(self, by: &[By]) -> Result<Report, ReportError> {
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        if let Some(run) = &self.wanted.query.run
            && !self.runs.contains(run)
        {
            let (run, runs) = (run.clone(), self.runs);
            return Err(SourceError::NoRun { run, runs }.into());
        }
        if self.unlabelled > 0 {
            tracing::warn!(
                "{} exchanges have no label: their X-Request-ID is not in the file, or belongs to a request of the \
                 warm-up, one that failed or one without category",
                self.unlabelled
            );
        }
        let whole = Snapshot {
            manifests: self.manifests,
            run: self.wanted.query.run.clone(),
            filter: filter(self.wanted.query),
            ..grouped(&self.statistics, by)
        };
        let mut report = Report::of_snapshot(whole, by);
        report.widths = self.widths;
        report.sources = self.sources;
        if self.wanted.by_hour {
            let rest: Vec<By> = by.iter().copied().filter(|by| *by != By::Hour).collect();
            report.summary.groups = groups_by_hour(&self.hours, &rest);
        }
        Ok(report)
    }
}

/// All of it, told apart by the facet that is among `by`, if there is one.
fn grouped(statistics: &Statistics, by: &[By]) -> Snapshot {
    let query = Query {
        by: by.to_vec(),
        ..Query::default()
    };
    snapshot(statistics, &query)
}

fn groups_by_hour(hours: &BTreeMap<String, Statistics>, rest: &[By]) -> Vec<summary::GroupSummary> {
    let mut groups = Vec::new();
    for (hour, statistics) in hours {
        let part = summary::of_snapshot(&grouped(statistics, rest), rest);
        let of_hour = if rest.is_empty() {
            vec![as_group(part)]
        } else {
            part.groups
        };
        for mut group in of_hour {
            group.key.insert(By::Hour, Some(hour.clone()));
            groups.push(group);
        }
    }
    groups
}

fn as_group(summary: Summary) -> summary::GroupSummary {
    summary::GroupSummary {
        key: BTreeMap::new(),
        n: summary.n,
        record_share: summary.record_share,
        reasons: summary.reasons,
        metrics: summary.metrics,
        pooled_spec_decode_acceptance_histogram: summary.pooled_spec_decode_acceptance_histogram,
        sequences: summary.sequences,
        detail: Some(summary::Detail {
            survival: summary.survival,
            gain: summary.gain,
            advice: summary.advice,
            findings: summary.findings,
        }),
    }
}

/// Narrows a whole snapshot to what is asked for.
pub(crate) fn narrow(snapshot: &mut Snapshot, query: &Query) {
    snapshot.groups.retain(|group| query.wants(&group.key));
    // A window keeps its edges.
    if snapshot.window == Window::All {
        snapshot.period = Period::of(snapshot.groups.iter().map(|group| &group.figures));
    }
    snapshot.filter = filter(query);
    // The engine's own counters know neither tags nor wire shapes, and coverage is of all requests.
    if query.tag.is_some() || query.engine.is_some() {
        snapshot.server = None;
    }
    if let (Some(model), Some(server)) = (&query.model, &mut snapshot.server) {
        server
            .counted
            .retain(|it| it.source.model.as_ref() == Some(model));
    }
    if snapshot.filter != Filter::default() {
        snapshot.coverage = None;
    }
}

/// The widths of these exchanges.
pub(super) fn widths(observations: &[Observation], query: &Query) -> Widths {
    let mut widths = Widths::new();
    for observation in observations.iter().filter(|it| wants(query, it)) {
        note_width(&mut widths, observation);
    }
    widths
}

fn note_width(widths: &mut Widths, observation: &Observation) {
    for record in &observation.spec_decode_acceptance {
        if let Some(k) = record.num_spec_tokens {
            let width = widths.entry(key(observation)).or_default();
            *width = k.max(*width);
        }
    }
}

/// Whether an exchange is asked for.
pub(crate) fn wants(query: &Query, observation: &Observation) -> bool {
    query.wants(&key(observation)) && (query.run.is_none() || query.run == observation.run)
}

fn key(observation: &Observation) -> GroupKey {
    let first = observation.spec_decode_acceptance.first();
    GroupKey {
        engine: first.map(|record| record.engine),
        model: observation.model.clone(),
        tag: observation.tag.clone(),
        route: observation.route,
    }
}

fn filter(query: &Query) -> Filter {
    Filter {
        model: query.model.clone(),
        tag: query.tag.clone(),
        engine: query.engine,
    }
}

/// The hour in which an exchange ended, in UTC: `2026-12-01T09:00Z`.
fn hour(observation: &Observation) -> String {
    let text = humantime::format_rfc3339_seconds(observation.ended_at).to_string();
    match text.split_once(':') {
        Some((hour, _)) => format!("{hour}:00Z"),
        None => text,
    }
}

fn tell_skipped(path: &Path, skipped: &Skipped) {
    if let Some((number, problem)) = &skipped.first {
        tracing::warn!(
            "{}: {} lines are no records and left out; the first is line {number}: {problem}",
            path.display(),
            skipped.lines
        );
    }
}
