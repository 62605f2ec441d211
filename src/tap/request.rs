//! What a client's JSON body asks for: read once, without keeping any of its text.

use serde_json::Value;

use super::members::{Member, members, text};
use crate::observation::{Facets, OutputFormat, TemperatureBand, cut_name};

/// The properties of a request that decide what is injected and explain what comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestFacts {
    /// Root `stream` is literally `true`.
    pub(super) stream: bool,
    pub(super) model: Option<String>,
    /// Sequences asked for, at least 1.
    pub(super) n: u32,
    /// Prompts in the request, at least 1.
    pub(super) prompts: u32,
    /// Stop strings are given.
    pub(super) has_stop: bool,
    pub(super) beam_search: bool,
    /// The client's own `stream_options.include_usage`.
    pub(super) include_usage: Option<bool>,
    /// The client's own `stream_options.continuous_usage_stats` is `true`.
    pub(super) continuous_usage: bool,
    /// The client itself asks SGLang for its numbers.
    pub(super) spec_tokens_details: bool,
    /// A prefill leg of disaggregated serving: `kv_transfer_params` with one token.
    pub(super) prefill_leg: bool,
    pub(super) facets: Facets,
}

impl RequestFacts {
    /// Whether the response holds more than one sequence.
    pub(super) fn is_several(&self) -> bool {
        u64::from(self.n) * u64::from(self.prompts) > 1
    }
}

/// Reads the members of a request's root object.
pub(super) fn read(root: &[Member<'_>]) -> RequestFacts {
    let mut facts = RequestFacts {
        n: 1,
        prompts: 1,
        facets: Facets {
            temperature: TemperatureBand::Default,
            format: OutputFormat::None,
        },
        ..RequestFacts::default()
    };
    let mut kv_transfer = false;
    let mut one_token = false;
    for member in root {
        let value = member.value;
        match &*member.name {
            "stream" => facts.stream = value == "true",
            "model" => facts.model = text(value).map(|name| cut_name(&name)),
            "prompt" => facts.prompts = count_prompts(value),
            "stream_options" => read_stream_options(value, &mut facts),
            "return_spec_tokens_details" => facts.spec_tokens_details = value == "true",
            "kv_transfer_params" => kv_transfer = value.starts_with('{'),
            "max_tokens" | "max_completion_tokens" => one_token |= value == "1",
            "sampling_params" => {
                for inner in members(value.as_bytes()).unwrap_or_default() {
                    one_token |= &*inner.name == "max_tokens" && inner.value == "1";
                    read_sampling(&inner, &mut facts);
                }
            }
            _ => read_sampling(member, &mut facts),
        }
    }
    facts.prefill_leg = kv_transfer && one_token;
    facts
}

/// Sampling members: at the root, or in vLLM's `sampling_params`.
fn read_sampling(member: &Member<'_>, facts: &mut RequestFacts) {
    let value = member.value;
    match &*member.name {
        "n" => facts.n = sequences(value),
        "stop" => facts.has_stop = !matches!(value, "null" | "\"\"") && !is_empty_list(value),
        "use_beam_search" => facts.beam_search = value == "true",
        "temperature" => facts.facets.temperature = temperature_band(value),
        "tools" if !is_empty_list(value) && value != "null" => {
            facts.facets.format = OutputFormat::Tools
        }
        "response_format" if facts.facets.format == OutputFormat::None => {
            facts.facets.format = response_format(value);
        }
        "structured_outputs" | "guided_json" | "guided_regex" | "guided_grammar"
        | "guided_choice" | "grammar" | "json_schema" | "regex" | "ebnf"
            if value != "null" && facts.facets.format == OutputFormat::None =>
        {
            facts.facets.format = OutputFormat::Schema;
        }
        _ => {}
    }
}

/// The engines read numbers leniently: `2.0` and `"2"` ask for two sequences as well.
fn sequences(value: &str) -> u32 {
    let bare = value.trim_matches('"').trim();
    let number = bare.parse::<f64>().ok().filter(|n| n.fract() == 0.0);
    // The conversion stops at the limits of the type.
    number.map_or(1, |number| (number as u32).max(1))
}

fn read_stream_options(value: &str, facts: &mut RequestFacts) {
    for option in members(value.as_bytes()).unwrap_or_default() {
        match &*option.name {
            "include_usage" => facts.include_usage = option.value.parse().ok(),
            "continuous_usage_stats" => facts.continuous_usage = option.value == "true",
            _ => {}
        }
    }
}

fn is_empty_list(value: &str) -> bool {
    value
        .strip_prefix('[')
        .is_some_and(|rest| rest.trim_ascii_start() == "]")
}

/// A list of strings or of token lists holds one prompt each; a list of token ids is one prompt.
fn count_prompts(value: &str) -> u32 {
    let first = value.strip_prefix('[').map(str::trim_ascii_start);
    if first.is_some_and(|rest| rest.starts_with(['"', '['])) {
        let list: Vec<&serde_json::value::RawValue> =
            serde_json::from_str(value).unwrap_or_default();
        u32::try_from(list.len()).unwrap_or(u32::MAX).max(1)
    } else {
        1
    }
}

fn temperature_band(value: &str) -> TemperatureBand {
    match value.parse::<f64>() {
        Ok(0.0) => TemperatureBand::Zero,
        Ok(temperature) if temperature > 0.7 => TemperatureBand::Above07,
        Ok(temperature) if temperature > 0.0 => TemperatureBand::UpTo07,
        _ => TemperatureBand::Default,
    }
}

fn response_format(value: &str) -> OutputFormat {
    let format: Value = serde_json::from_str(value).unwrap_or_default();
    match format.get("type").and_then(Value::as_str) {
        Some("json_object") => OutputFormat::Json,
        Some("json_schema" | "structural_tag" | "regex" | "grammar") => OutputFormat::Schema,
        _ => OutputFormat::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> RequestFacts {
        read(&members(text.as_bytes()).unwrap())
    }

    #[test]
    fn prompts_and_sequences_are_counted() {
        assert_eq!(facts(r#"{"prompt":["a", "b"],"n":2}"#).prompts, 2);
        assert_eq!(facts(r#"{"prompt":[[1,2],[3]]}"#).prompts, 2);
        assert_eq!(facts(r#"{"prompt":[1,2,3]}"#).prompts, 1);
        assert_eq!(facts(r#"{"prompt":"[\"a\",\"b\"]"}"#).prompts, 1);
        assert_eq!(facts(r#"{"sampling_params":{"n":3,"stop":["x"]}}"#).n, 3);
        for text in [
            r#"{"n":2.0}"#,
            r#"{"n":2e0}"#,
            r#"{"n":"2"}"#,
            r#"{"n":" 2 "}"#,
        ] {
            assert_eq!(facts(text).n, 2, "{text}");
        }
        for text in [r#"{"n":1.5}"#, r#"{"n":"x"}"#, r#"{"n":-3}"#, r#"{"n":{}}"#] {
            assert_eq!(facts(text).n, 1, "{text}");
        }
        assert_eq!(facts(r#"{"n":99999999999}"#).n, u32::MAX);
        assert_eq!(facts(r#"{"n":null}"#).n, 1);
        assert_eq!(facts(r#"{"n":0}"#).n, 1);
    }

    #[test]
    fn only_a_literal_true_streams() {
        assert!(facts(r#"{"stream" : true}"#).stream);
        for text in [
            r#"{"stream":"true"}"#,
            r#"{"stream":1}"#,
            r#"{"stream":null}"#,
            r#"{"a":{"stream":true}}"#,
        ] {
            assert!(!facts(text).stream, "{text}");
        }
    }

    #[test]
    fn empty_stops_are_none() {
        for (text, expected) in [
            (r#"{"stop":["a"]}"#, true),
            (r#"{"stop":"a"}"#, true),
            (r#"{"stop":[ ]}"#, false),
            (r#"{"stop":null}"#, false),
        ] {
            assert_eq!(facts(text).has_stop, expected, "{text}");
        }
    }

    #[test]
    fn facets_come_from_the_request_alone() {
        let seen = facts(r#"{"temperature":0.0,"response_format":{"type":"json_schema"}}"#).facets;
        assert_eq!(
            seen,
            Facets {
                temperature: TemperatureBand::Zero,
                format: OutputFormat::Schema
            }
        );
        assert_eq!(
            facts(r#"{"tools":[{}],"temperature":1}"#).facets.format,
            OutputFormat::Tools
        );
    }

    #[test]
    fn a_prefill_leg_is_told_by_both_signs() {
        assert!(
            facts(r#"{"max_tokens":1,"kv_transfer_params":{"do_remote_decode":true}}"#).prefill_leg
        );
        assert!(!facts(r#"{"max_tokens":1}"#).prefill_leg);
        assert!(!facts(r#"{"max_tokens":1,"kv_transfer_params":null}"#).prefill_leg);
    }
}
