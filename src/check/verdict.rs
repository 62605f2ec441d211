//! The conclusion: one sentence, and the flag or line to change.

use serde::Serialize;

use super::facts::{Facts, PageFact};
use crate::observation::Acceptance;

/// What is the matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Short fixed name; `docs/troubleshooting.md` explains each.
    pub code: &'static str,
    /// One sentence.
    pub text: String,
    /// The flag or line to change; absent where there is none.
    pub change: Option<String>,
    /// Whether the engine's counters have what the replies lack.
    pub counters_help: bool,
}

impl Verdict {
    /// 0: numbers come. 1: the engine can't be asked. 4: no numbers with the replies, but the counters have them. 5: neither.
    pub fn exit_code(&self) -> u8 {
        match self.code {
            "numbers_come" | "zero_steps" => 0,
            "unreachable" | "key_wanted" | "no_model" | "refused" => 1,
            _ if self.counters_help => 4,
            _ => 5,
        }
    }
}

/// Draws the conclusion.
pub fn verdict(facts: &Facts) -> Verdict {
    let (code, text, change) = conclusion(facts);
    let is_on = facts.page == PageFact::Speculates && facts.drafted() != Some(false);
    Verdict {
        code,
        text: text.to_owned(),
        change: change.map(str::to_owned),
        counters_help: is_on,
    }
}

type Conclusion = (&'static str, &'static str, Option<&'static str>);

fn conclusion(facts: &Facts) -> Conclusion {
    if facts.unreachable.is_some() {
        return (
            "unreachable",
            "The engine can't be reached: is it running, and is this its address?",
            None,
        );
    }
    if facts.wants_key {
        return (
            "key_wanted",
            "The engine asks for a key.",
            Some("spectap check --api-key-file FILE"),
        );
    }
    if !facts.unary.is_success() && !facts.plain.is_success() {
        return if facts.model.is_none() {
            (
                "no_model",
                "The engine lists no model and answered no request.",
                Some("spectap check --model NAME"),
            )
        } else {
            (
                "refused",
                "The engine refused every request: the lines above have its words.",
                None,
            )
        };
    }
    let replies = [&facts.stream, &facts.unary];
    let any = |wanted| replies.iter().any(|it| it.acceptance == Some(wanted));
    if facts.stream.acceptance == Some(Acceptance::Recorded) {
        return (
            "numbers_come",
            "Acceptance numbers come with every request: put spectap before this engine.",
            Some("spectap serve --upstream URL"),
        );
    }
    if facts.plain.is_success() && !facts.stream.is_success() {
        return (
            "option_refused",
            "The engine refuses stream_options, without which its streams carry no numbers.",
            None,
        );
    }
    if any(Acceptance::Recorded) {
        return (
            "not_in_streams",
            "Numbers come with replies that are not streamed, and not with streams: a gateway in between may drop the event \
             that carries them.",
            None,
        );
    }
    if any(Acceptance::ZeroStep) {
        return (
            "zero_steps",
            "Numbers come, but speculation never ran for these requests: the drafter found nothing to draft (an n-gram drafter \
             that does not match), or drafting is switched off under load.",
            None,
        );
    }
    if any(Acceptance::Malformed) || any(Acceptance::Ambiguous) {
        return (
            "bad_payload",
            "Numbers come that contradict themselves: this is worth a report to the engine.",
            None,
        );
    }
    if facts.behind_dynamo {
        return (
            "behind_dynamo",
            "Dynamo passes the engine's numbers on to nobody: put spectap between Dynamo and the engine, or read the engine's \
             counters.",
            Some("spectap serve --scrape-only --scrape URL"),
        );
    }
    without_numbers(facts)
}

/// Nothing came with the replies: why, engine by engine.
fn without_numbers(facts: &Facts) -> Conclusion {
    let is_off = facts.configured == Some(false)
        || facts.page == PageFact::Silent
        || (facts.configured.is_none() && facts.drafted() == Some(false));
    match facts.engine.as_deref() {
        Some("vllm") if is_older(facts.version.as_deref(), (0, 29)) => (
            "too_old",
            "This vLLM is older than 0.29, the first that reports per request: upgrade it, or read its counters.",
            Some("spectap serve --scrape-only --upstream URL"),
        ),
        Some("vllm") if facts.page == PageFact::Silent => (
            "speculation_off",
            "vLLM runs without speculative decoding.",
            Some(
                "--speculative-config '{\"method\": \"ngram\", \"num_speculative_tokens\": 4, \"prompt_lookup_max\": 4}'",
            ),
        ),
        Some("vllm") => (
            "level_off",
            "vLLM speculates and was not told to report per request.",
            Some("--per-request-spec-decode-metrics summary"),
        ),
        Some("tensorrt_llm") if facts.drafted() == Some(false) => (
            "not_drafted",
            "TensorRT-LLM drafted nothing for these requests, and says nothing then: above max_concurrency, or above the largest \
             batch of draft_len_schedule, it switches drafting off.",
            Some("speculative_config: {max_concurrency: N}"),
        ),
        Some("tensorrt_llm") => (
            "level_off",
            "TensorRT-LLM was not told to report per request (PyTorch backend only; the C++ backend can't), or drafts nothing.",
            Some("per_request_spec_decode_stats: true"),
        ),
        Some("sglang") if facts.configured == Some(false) => (
            "speculation_off",
            "SGLang runs without speculative decoding.",
            Some("--speculative-algorithm EAGLE --speculative-draft-model-path MODEL"),
        ),
        Some("sglang") => (
            "too_old",
            "This SGLang does not know return_spec_tokens_details: upgrade it, or use its own /generate route.",
            None,
        ),
        Some("llamacpp") if is_off => (
            "speculation_off",
            "llama.cpp drafted nothing: it runs without a draft model, or the model found nothing to draft.",
            Some("--model-draft MODEL --metrics"),
        ),
        Some("llamacpp") => (
            "not_drafted",
            "llama.cpp sends its counters only for requests that drafted, and these did not.",
            Some("--model-draft MODEL --metrics"),
        ),
        _ if facts.page == PageFact::Speculates => (
            "counters_only",
            "Nothing came with the replies, but the engine's own counters tell.",
            Some("spectap serve --scrape-only --upstream URL"),
        ),
        _ => (
            "nothing_known",
            "Neither the replies nor a metrics page of this server tell anything of speculation.",
            None,
        ),
    }
}

/// Whether a version is known and lower.
fn is_older(version: Option<&str>, least: (u64, u64)) -> bool {
    let mut numbers = version.unwrap_or_default().split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < least,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::ReplyFact;
    use super::*;
    use crate::scrape::Counts;

    fn reply(acceptance: Acceptance) -> ReplyFact {
        ReplyFact {
            status: Some(200),
            acceptance: Some(acceptance),
            ..ReplyFact::default()
        }
    }

    /// An engine whose replies carry nothing.
    fn silent(engine: &str) -> Facts {
        Facts {
            engine: Some(engine.to_owned()),
            model: Some("m".to_owned()),
            unary: reply(Acceptance::Absent),
            stream: reply(Acceptance::Absent),
            plain: reply(Acceptance::Absent),
            ..Facts::default()
        }
    }

    fn moved(drafted: u64) -> Option<Counts> {
        Some(Counts {
            drafted: Some(drafted),
            ..Counts::default()
        })
    }

    #[test]
    fn every_cause_has_its_own_verdict_and_exit_code() {
        let refused = ReplyFact {
            status: Some(400),
            ..ReplyFact::default()
        };
        let cases = [
            (
                "unreachable",
                1,
                Facts {
                    unreachable: Some("no".to_owned()),
                    ..Facts::default()
                },
            ),
            (
                "key_wanted",
                1,
                Facts {
                    wants_key: true,
                    ..silent("vllm")
                },
            ),
            ("no_model", 1, Facts::default()),
            (
                "refused",
                1,
                Facts {
                    model: Some("m".to_owned()),
                    unary: refused.clone(),
                    ..Facts::default()
                },
            ),
            (
                "numbers_come",
                0,
                Facts {
                    stream: reply(Acceptance::Recorded),
                    ..silent("vllm")
                },
            ),
            (
                "zero_steps",
                0,
                Facts {
                    stream: reply(Acceptance::ZeroStep),
                    ..silent("vllm")
                },
            ),
            (
                "option_refused",
                5,
                Facts {
                    stream: refused,
                    unary: reply(Acceptance::Recorded),
                    ..silent("vllm")
                },
            ),
            (
                "not_in_streams",
                5,
                Facts {
                    unary: reply(Acceptance::Recorded),
                    ..silent("vllm")
                },
            ),
            (
                "bad_payload",
                5,
                Facts {
                    stream: reply(Acceptance::Malformed),
                    ..silent("vllm")
                },
            ),
            (
                "behind_dynamo",
                4,
                Facts {
                    behind_dynamo: true,
                    page: PageFact::Speculates,
                    ..silent("vllm")
                },
            ),
            (
                "too_old",
                4,
                Facts {
                    version: Some("0.28.1".to_owned()),
                    page: PageFact::Speculates,
                    ..silent("vllm")
                },
            ),
            (
                "speculation_off",
                5,
                Facts {
                    version: Some("0.32.0".to_owned()),
                    page: PageFact::Silent,
                    ..silent("vllm")
                },
            ),
            (
                "level_off",
                4,
                Facts {
                    version: Some("1.0.0".to_owned()),
                    page: PageFact::Speculates,
                    ..silent("vllm")
                },
            ),
            (
                "not_drafted",
                5,
                Facts {
                    page: PageFact::Speculates,
                    moved: moved(0),
                    ..silent("tensorrt_llm")
                },
            ),
            (
                "level_off",
                4,
                Facts {
                    page: PageFact::Speculates,
                    moved: moved(9),
                    ..silent("tensorrt_llm")
                },
            ),
            (
                "level_off",
                5,
                Facts {
                    page: PageFact::None("404".to_owned()),
                    ..silent("tensorrt_llm")
                },
            ),
            (
                "speculation_off",
                5,
                Facts {
                    configured: Some(false),
                    ..silent("sglang")
                },
            ),
            (
                "too_old",
                4,
                Facts {
                    configured: Some(true),
                    page: PageFact::Speculates,
                    ..silent("sglang")
                },
            ),
            (
                "speculation_off",
                5,
                Facts {
                    page: PageFact::Speculates,
                    moved: moved(0),
                    ..silent("llamacpp")
                },
            ),
            (
                "not_drafted",
                5,
                Facts {
                    page: PageFact::None("501".to_owned()),
                    ..silent("llamacpp")
                },
            ),
            (
                "counters_only",
                4,
                Facts {
                    page: PageFact::Speculates,
                    ..silent("lmdeploy")
                },
            ),
            (
                "nothing_known",
                5,
                Facts {
                    engine: None,
                    ..silent("")
                },
            ),
        ];
        for (code, exit_code, facts) in cases {
            let verdict = verdict(&facts);
            assert_eq!(verdict.code, code, "{facts:?}");
            assert_eq!(verdict.exit_code(), exit_code, "{code}: {facts:?}");
            assert!(verdict.text.ends_with(['.', '?']), "{code}");
        }
    }
}
