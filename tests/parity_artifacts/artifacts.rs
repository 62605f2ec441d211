//! What AIPerf wrote down of a run, and what the engine of that run logged.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::fixtures::path;

/// AIPerf's tags that spectap has too.
pub(crate) const TAGS: [&str; 14] = [
    "spec_decode_acceptance_length",
    "spec_decode_token_weighted_acceptance_length",
    "spec_decode_draft_acceptance_rate",
    "spec_decode_overall_draft_acceptance_rate",
    "spec_decode_accepted_per_verified",
    "spec_decode_steps",
    "spec_decode_zero_step_requests",
    "spec_decode_accepted_draft_tokens",
    "spec_decode_draft_tokens",
    "total_spec_decode_steps",
    "total_accepted_draft_tokens",
    "total_draft_tokens",
    "output_sequence_length",
    "input_sequence_length",
];

/// Members of AIPerf's record; one that is not there is null on both sides.
pub(crate) const RECORD_MEMBERS: [&str; 11] = [
    "engine",
    "mean_acceptance_length",
    "draft_acceptance_rate",
    "acceptance_histogram",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "num_spec_steps",
    "num_spec_tokens",
    "completion_tokens",
    "per_step_accepted",
    "per_step_drafted",
];

/// The artifacts of one run.
pub(crate) struct Artifacts {
    run: String,
}

impl Artifacts {
    pub(crate) fn of(run: &str) -> Self {
        let run = run.to_owned();
        Self { run }
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(path(&format!("aiperf/{}/{name}", self.run))).unwrap()
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        let text = self.text(name);
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }

    /// AIPerf's summary.
    pub(crate) fn summary(&self) -> Value {
        serde_json::from_str(&self.text("profile_export_aiperf.json")).unwrap()
    }

    /// AIPerf's requests of the profiling phase.
    pub(crate) fn trace(&self) -> Vec<Value> {
        let mut lines = self.lines("profile_export.jsonl");
        lines.retain(|line| line["metadata"]["benchmark_phase"] == "profiling");
        lines
    }

    /// AIPerf's table, title line left out, and the line below it where there is one.
    pub(crate) fn section(&self) -> Vec<String> {
        self.text("console.txt")
            .lines()
            .skip_while(|line| !line.contains("LLM Metrics: Spec Decode"))
            .skip(1)
            .take_while(|line| !line.trim().is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// What the engine sent in the profiling phase, request by request.
    pub(crate) fn log(&self) -> Vec<Value> {
        let trace = self.trace();
        let ids: BTreeSet<&str> = trace
            .iter()
            .map(|line| line["metadata"]["x_request_id"].as_str().unwrap())
            .collect();
        let mut log = self.lines("payload-log.jsonl");
        log.retain(|entry| ids.contains(entry["x_request_id"].as_str().unwrap()));
        assert_eq!(log.len(), ids.len(), "{}: requests in both", self.run);
        log
    }
}
