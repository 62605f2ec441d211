//! What was found, line by line in the order in which it was looked for.

use serde::Serialize;

use super::facts::{Facts, PageFact, ReplyFact};
use crate::observation::Acceptance;

/// Clocks further apart than this are told, in seconds.
const CLOCKS_APART: i64 = 2;

/// How a line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Neither good nor bad.
    Info,
    /// Not as it should be.
    Fail,
}

impl State {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Info => "-",
            State::Fail => "FAIL",
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What was looked at.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub text: String,
}

pub(super) fn of(facts: &Facts) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = |name, state, text: String| lines.push(Line { name, state, text });
    if let Some(problem) = &facts.unreachable {
        line("reachable", State::Fail, problem.clone());
        return lines;
    }
    line("reachable", State::Ok, "the engine answers".to_owned());
    let version = facts.version.as_deref().unwrap_or("version unknown");
    match &facts.engine {
        Some(engine) => line("engine", State::Ok, format!("{engine}, {version}")),
        None => line(
            "engine",
            State::Info,
            "it does not say which it is".to_owned(),
        ),
    }
    if facts.behind_dynamo {
        line(
            "gateway",
            State::Info,
            "Dynamo stands before the engine".to_owned(),
        );
    }
    match facts.models.as_slice() {
        [] => line("models", State::Fail, "/v1/models lists none".to_owned()),
        models => line("models", State::Ok, models.join(", ")),
    }
    line_of_page(facts, &mut line);
    if facts.wants_key {
        let text = "the engine refuses the key, or asks for one";
        line("key", State::Fail, text.to_owned());
        return lines;
    }
    for (name, reply) in [("not streamed", &facts.unary), ("streamed", &facts.stream)] {
        let (state, text) = of_reply(reply);
        line(name, state, text);
    }
    line("usage", State::Info, usage(facts));
    line("injection", state_of_injection(facts), injection(facts));
    match facts.clock_offset {
        None => line("clock", State::Info, "the engine tells no time".to_owned()),
        Some(offset) if offset.abs() > CLOCKS_APART => {
            line(
                "clock",
                State::Info,
                format!("{offset} s apart from this machine's"),
            );
        }
        Some(_) => line("clock", State::Ok, "as this machine's".to_owned()),
    }
    let text = format!(
        "{:.0} ms to the head of a stream, {:.0} ms to its end",
        facts.stream.to_head.as_secs_f64() * 1e3,
        facts.stream.to_end.as_secs_f64() * 1e3
    );
    line("latency", State::Info, text);
    lines
}

fn line_of_page(facts: &Facts, line: &mut impl FnMut(&'static str, State, String)) {
    let url = facts.page_url.as_deref().unwrap_or_default();
    match &facts.page {
        PageFact::None(why) => line("counters", State::Info, why.clone()),
        PageFact::Unknown => {
            line(
                "counters",
                State::Info,
                format!("{url} has no series that is known"),
            );
        }
        PageFact::Silent => {
            line(
                "counters",
                State::Info,
                format!("{url} has no series of speculation"),
            );
        }
        PageFact::Speculates => line("counters", State::Ok, format!("{url} shows speculation")),
    }
    if let Some(configured) = facts.configured {
        let text = if configured {
            "speculation is on"
        } else {
            "speculation is off"
        };
        let state = if configured { State::Ok } else { State::Fail };
        line("settings", state, text.to_owned());
    }
}

fn of_reply(reply: &ReplyFact) -> (State, String) {
    let engine = reply.engine.unwrap_or_default();
    let provenance = reply.provenance.as_deref().unwrap_or_default();
    match (reply.status, reply.acceptance) {
        (None, _) => (State::Fail, reply.problem.clone().unwrap_or_default()),
        (Some(status), None) => {
            let problem = reply.problem.as_deref().unwrap_or_default();
            (State::Fail, format!("status {status}: {problem}"))
        }
        (_, Some(Acceptance::Recorded)) => {
            let place = place(engine);
            (
                State::Ok,
                format!("numbers of {engine} came, level {provenance}, in {place}"),
            )
        }
        (_, Some(Acceptance::ZeroStep)) => (
            State::Info,
            format!("numbers of {engine} came, and not one verify step"),
        ),
        (_, Some(Acceptance::Absent)) => (State::Fail, "no numbers came".to_owned()),
        (_, Some(other)) => (
            State::Fail,
            format!("numbers came that are {}", other.as_str()),
        ),
    }
}

fn place(engine: &str) -> &'static str {
    match engine {
        "vllm" => "metrics.speculative_decoding (of a stream: on the usage event)",
        "tensorrt_llm" => "choices[].speculative_decoding (of a stream: on the finish event)",
        "sglang" => "sglext.spec_tokens_details (of a stream: on an event of its own)",
        "llamacpp" | "mlx_vlm" => "timings (of a stream: on the last event)",
        _ => "the reply",
    }
}

fn usage(facts: &Facts) -> String {
    match (facts.stream.has_usage, facts.plain.has_usage) {
        (_, true) => "streams carry it unasked".to_owned(),
        (true, false) => "streams carry it when asked (stream_options.include_usage)".to_owned(),
        (false, false) => "streams carry none".to_owned(),
    }
}

fn state_of_injection(facts: &Facts) -> State {
    match facts.stream.is_success() || !facts.plain.is_success() {
        true => State::Ok,
        false => State::Fail,
    }
}

fn injection(facts: &Facts) -> String {
    let is_refused = facts.plain.is_success() && !facts.stream.is_success();
    match facts.engine.as_deref() {
        _ if is_refused => {
            "the engine refuses stream_options: spectap would send the client's own bytes again, and get no numbers".to_owned()
        }
        Some("llamacpp") => "spectap would add nothing and strip nothing".to_owned(),
        Some("sglang") => {
            "spectap would add return_spec_tokens_details and stream_options.include_usage to streams, and strip the events that these cause".to_owned()
        }
        _ if facts.plain.has_usage => {
            "streams carry usage unasked: spectap would strip nothing".to_owned()
        }
        _ => {
            let caused = facts.stream.events.saturating_sub(facts.plain.events);
            format!(
                "spectap would add stream_options.include_usage to streams, and strip what it causes ({caused} more events here)"
            )
        }
    }
}
