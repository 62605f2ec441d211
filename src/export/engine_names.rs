//! The acceptance counters under vLLM's own names, for tools that know only those, such as AIPerf's server source.
//!
//! They are never on `/metrics`: whoever scrapes engine and tap would count twice there. One series per name and model,
//! summed over ranks, since such tools look at the first one only. The TYPE line carries `_total`, as the classic format
//! has it and as AIPerf's reader needs it.

use std::collections::BTreeMap;

use crate::scrape::{Counts, Server};
use crate::stats::{Pooled, Statistics, steps_in};

/// The label of a model that is not known.
const UNKNOWN: &str = "unknown";

/// Where the sums come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The records of single requests.
    Requests,
    /// The engine's own counters.
    Server,
}

/// Reads the name of a source.
pub fn read_source(name: &str) -> Option<Source> {
    match name {
        "requests" => Some(Source::Requests),
        "server" => Some(Source::Server),
        _ => None,
    }
}

/// The page. Without a source named it is of the engine's own counters where those tell steps, drafted and accepted tokens,
/// and of the records where they don't or are not read.
pub fn page(statistics: &Statistics, server: &Server, source: Option<Source>) -> String {
    let of_server = || of_server(server);
    let by_model = match source {
        Some(Source::Requests) => of_requests(statistics),
        Some(Source::Server) => of_server(),
        None => {
            let counts = of_server();
            let tells_all = |it: &Counts| it.steps.and(it.drafted).and(it.accepted).is_some();
            if !counts.is_empty() && counts.values().all(tells_all) {
                counts
            } else {
                of_requests(statistics)
            }
        }
    };
    render(&by_model)
}

fn of_server(server: &Server) -> BTreeMap<String, Counts> {
    let mut by_model: BTreeMap<String, Counts> = BTreeMap::new();
    for counted in server.whole() {
        if counted.counts.speculates() {
            let model = counted.source.model.unwrap_or_else(|| UNKNOWN.to_owned());
            by_model.entry(model).or_default().add(&counted.counts);
        }
    }
    by_model
}

fn of_requests(statistics: &Statistics) -> BTreeMap<String, Counts> {
    let mut by_model: BTreeMap<String, Counts> = BTreeMap::new();
    for (key, group) in statistics.shared_groups() {
        let model = key.model.clone().unwrap_or_else(|| UNKNOWN.to_owned());
        let counts = counts_of(&group.all_pooled());
        if counts.speculates() {
            by_model.entry(model).or_default().add(&counts);
        }
    }
    by_model
}

fn counts_of(pooled: &Pooled) -> Counts {
    let deepest = pooled.histogram.keys().next_back().copied().unwrap_or(0);
    let has_steps = pooled.records_with_steps > 0;
    Counts {
        // Totals alone say nothing about steps.
        steps: has_steps.then_some(pooled.steps),
        drafted: (pooled.records > 0).then_some(pooled.drafted),
        accepted: (pooled.records > 0).then_some(pooled.accepted),
        accepted_at: (0..deepest)
            .map(|position| (position, steps_in(&pooled.histogram, position + 1..)))
            .collect(),
        ..Counts::default()
    }
}

fn render(by_model: &BTreeMap<String, Counts>) -> String {
    let mut page = String::new();
    let mut family = |name: &str, help: &str, of: fn(&Counts) -> Option<u64>| {
        let series: Vec<String> = by_model
            .iter()
            .filter_map(|(model, counts)| {
                let model = escaped(model);
                let value = of(counts)?;
                Some(format!(
                    "{name}{{engine=\"0\",model_name=\"{model}\"}} {value}\n"
                ))
            })
            .collect();
        if !series.is_empty() {
            page.push_str(&head(name, help));
            page.push_str(&series.concat());
        }
    };
    family(
        "vllm:spec_decode_num_drafts_total",
        "Verify steps.",
        |counts| counts.steps,
    );
    family(
        "vllm:spec_decode_num_draft_tokens_total",
        "Drafts put before the verifier.",
        |counts| counts.drafted,
    );
    family(
        "vllm:spec_decode_num_accepted_tokens_total",
        "Drafts that the verifier kept.",
        |counts| counts.accepted,
    );
    let name = "vllm:spec_decode_num_accepted_tokens_per_pos_total";
    let mut positions = String::new();
    for (model, counts) in by_model {
        for (position, count) in &counts.accepted_at {
            let model = escaped(model);
            positions.push_str(&format!(
                "{name}{{engine=\"0\",model_name=\"{model}\",position=\"{position}\"}} {count}\n"
            ));
        }
    }
    if !positions.is_empty() {
        page.push_str(&head(name, "Steps that accepted the draft at a position."));
        page.push_str(&positions);
    }
    if page.is_empty() {
        page.push_str("# Nothing was counted so far.\n");
    }
    page
}

fn head(name: &str, help: &str) -> String {
    format!("# HELP {name} {help} Told by spectap.\n# TYPE {name} counter\n")
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
