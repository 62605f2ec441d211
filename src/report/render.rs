//! Prints a report in the form that is asked for.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use super::ReportError;
use super::gather::Widths;
use crate::cli::report::{ReportArgs, ReportFormat, ReportSource};
use crate::export::categories::{self, Matrix};
use crate::export::summary::GroupSummary;
use crate::export::table::{self, Look};
use crate::export::{By, Snapshot, Summary, csv, markdown, summary, synthetic};
use crate::stats::advice::Advice;
use crate::store::records::{FORCED_ACCEPTANCE, Manifest};

/// A records file that a report is about.
#[derive(Debug, Serialize)]
pub(super) struct Source {
    /// As it was named.
    pub(super) file: String,
    pub(super) sha256: String,
    /// Exchanges in it, before any filter.
    pub(super) exchanges: u64,
}

/// What a report is made of.
pub(super) struct Report {
    pub(super) summary: Summary,
    pub(super) widths: Widths,
    pub(super) sources: Vec<Source>,
    matrix: Option<Matrix>,
}

impl Report {
    pub(super) fn of_snapshot(snapshot: Snapshot, by: &[By]) -> Self {
        let by: Vec<By> = by.iter().copied().filter(|by| *by != By::Hour).collect();
        Self {
            summary: summary::of_snapshot(&snapshot, &by),
            widths: Widths::new(),
            sources: Vec::new(),
            matrix: categories::of_snapshot(&snapshot),
        }
    }

    pub(super) fn print(&self, args: &ReportArgs, out: &mut dyn Write) -> Result<(), ReportError> {
        let is_forced = self.summary.manifests.iter().any(Manifest::is_forced);
        let look = Look {
            all: args.all,
            mark: is_forced.then_some(FORCED_ACCEPTANCE),
        };
        if args.labels.is_some() {
            return self.print_matrix(args.format, look, out);
        }
        let matrix = self.matrix.as_ref().filter(|_| args.by.contains(&By::Tag));
        match args.format {
            ReportFormat::Table => {
                self.print_table(matrix, look, args, out)?;
            }
            ReportFormat::Json => self.print_json(matrix, look, out)?,
            ReportFormat::Csv => {
                write!(out, "{}", csv::of_summary(&self.summary, look.mark))?;
                if let Some(matrix) = matrix {
                    write!(out, "\r\n{}", categories::to_csv(matrix, look.mark))?;
                }
            }
            ReportFormat::Markdown => {
                write!(out, "{}", markdown::of_summary(&self.summary, look))?;
                if let Some(matrix) = matrix {
                    write!(out, "\n{}", categories::to_markdown(matrix, look.mark))?;
                }
            }
            ReportFormat::Synthetic => self.print_synthetic(look, out)?,
            // Written while the exchanges were read.
            ReportFormat::Jsonl => {}
        }
        Ok(())
    }

    fn print_table(
        &self,
        matrix: Option<&Matrix>,
        look: Look,
        args: &ReportArgs,
        out: &mut dyn Write,
    ) -> Result<(), ReportError> {
        let (cost_given, source) = (args.draft_cost.is_some(), args.source);
        let draft_depth = |advice: Option<&Advice>| {
            let wanted = advice.filter(|advice| cost_given || advice.measured_cost.is_some());
            wanted.map(table::draft_depth)
        };
        write!(out, "{}", table::spec_decode_like(&self.summary, look))?;
        write!(out, "{}", table::beyond(&self.summary, look))?;
        let advice = self.summary.advice.as_ref();
        let cost_wanted = || advice.map(table::cost_wanted).unwrap_or_default();
        write!(out, "{}", draft_depth(advice).unwrap_or_else(cost_wanted))?;
        let coverage = self.summary.coverage.as_ref();
        // Low coverage is a finding, which stands there already.
        if let Some(coverage) = coverage.filter(|_| source == ReportSource::Both) {
            writeln!(out, "\n{}", table::coverage(coverage))?;
        }
        if let Some(server) = self
            .summary
            .server
            .as_ref()
            .filter(|_| source == ReportSource::Both)
        {
            write!(out, "\n{}", table::server(server, look))?;
        }
        if let Some(traffic) = table::traffic("Traffic", &self.summary.metrics, look) {
            write!(out, "\n{traffic}")?;
        }
        for group in &self.summary.groups {
            write!(out, "\n{}", table::spec_decode_of_group(group, look))?;
            let detail = group.detail.as_ref();
            let advice = detail.and_then(|detail| detail.advice.as_ref());
            write!(out, "{}", draft_depth(advice).unwrap_or_default())?;
        }
        if let Some(matrix) = matrix {
            write!(out, "\n{}", table::categories(matrix, look.mark))?;
        }
        Ok(())
    }

    fn print_json(
        &self,
        matrix: Option<&Matrix>,
        look: Look,
        out: &mut dyn Write,
    ) -> Result<(), ReportError> {
        let mut report = serde_json::to_value(&self.summary)?;
        if !self.sources.is_empty() {
            report["records"] = json!(self.sources);
        }
        if let Some(matrix) = matrix {
            report["categories"] = json!(matrix);
        }
        if let Some(mark) = look.mark {
            put_mark(&mut report, mark);
        }
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
        Ok(())
    }

    fn print_matrix(
        &self,
        format: ReportFormat,
        look: Look,
        out: &mut dyn Write,
    ) -> Result<(), ReportError> {
        let Some(matrix) = &self.matrix else {
            writeln!(
                out,
                "No exchange has a label: none of their X-Request-IDs is in the file. Was it the run that went through this tap?"
            )?;
            return Ok(());
        };
        match format {
            ReportFormat::Json => {
                let mut report = json!({
                    "manifests": self.summary.manifests, "records": self.sources, "categories": matrix,
                });
                if let Some(mark) = look.mark {
                    put_mark(&mut report, mark);
                }
                serde_json::to_writer_pretty(&mut *out, &report)?;
                writeln!(out)?;
            }
            ReportFormat::Csv => write!(out, "{}", categories::to_csv(matrix, look.mark))?,
            ReportFormat::Markdown => {
                write!(out, "{}", categories::to_markdown(matrix, look.mark))?;
            }
            _ => write!(out, "{}", table::categories(matrix, look.mark))?,
        }
        Ok(())
    }

    fn print_synthetic(&self, look: Look, out: &mut dyn Write) -> Result<(), ReportError> {
        let whole = synthetic::knobs(
            "All exchanges",
            &self.summary.metrics,
            &self.summary.pooled_spec_decode_acceptance_histogram,
            self.widths.values().max().copied(),
            look.mark,
        );
        let Some(whole) = whole else {
            writeln!(
                out,
                "{}",
                table::why_nothing(&self.summary.n, &self.summary.reasons)
            )?;
            return Ok(());
        };
        write!(out, "{}\n\n{whole}", synthetic::warning())?;
        for group in &self.summary.groups {
            let knobs = synthetic::knobs(
                &table::group_name(group),
                &group.metrics,
                &group.pooled_spec_decode_acceptance_histogram,
                self.width_of(group),
                look.mark,
            );
            if let Some(knobs) = knobs {
                write!(out, "\n{knobs}")?;
            }
        }
        Ok(())
    }

    fn width_of(&self, group: &GroupSummary) -> Option<u64> {
        let is_in = |key: &crate::stats::GroupKey| {
            group.key.iter().all(|(by, value)| {
                let in_no_key = *by == By::Hour || by.facet().is_some();
                in_no_key || by.value_of(key) == *value
            })
        };
        let widths = self.widths.iter().filter(|(key, _)| is_in(key));
        widths.map(|(_, width)| *width).max()
    }
}

/// A member that only a figure has: of `metrics` and `gain`, `survival` and the categories, `advice.depths`,
/// `along_the_reply` and `relations`.
const MEMBERS_OF_FIGURES: [&str; 5] = ["unit", "share", "depth", "accepted_per_step", "spearman"];

/// Puts the mark into every figure.
fn put_mark(value: &mut Value, mark: &str) {
    match value {
        Value::Array(entries) => entries.iter_mut().for_each(|entry| put_mark(entry, mark)),
        Value::Object(members) => {
            if MEMBERS_OF_FIGURES
                .iter()
                .any(|member| members.contains_key(*member))
            {
                members.insert("mark".to_owned(), json!(mark));
            }
            members
                .values_mut()
                .for_each(|member| put_mark(member, mark));
        }
        _ => {}
    }
}
