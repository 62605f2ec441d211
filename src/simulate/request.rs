//! What a generation request asks for, of whichever engine and route.

use serde_json::Value;

use super::acceptance::Acceptance;
use super::vocabulary;

/// The member by which a request brings the acceptance of its own drafts: a list of probabilities.
pub(super) const ACCEPTANCE: &str = "simulate_acceptance";

/// A route that generates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Chat,
    /// Several conversations in one request, never streamed.
    ChatBatch,
    Completions,
    /// vLLM's tokens in, tokens out.
    Generate,
    /// SGLang's own route.
    SglangGenerate,
    /// llama.cpp's own route.
    LlamaCompletion,
}

impl Route {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::ChatBatch => "/v1/chat/completions/batch",
            Self::Completions => "/v1/completions",
            Self::Generate => "/inference/v1/generate",
            Self::SglangGenerate => "/generate",
            Self::LlamaCompletion => "/completion",
        }
    }
}

/// What a request asks for. Members of a wrong type count as left out; refusing them is the engine's part.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) route: Route,
    pub(super) model: Option<String>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) continuous_usage: bool,
    /// Sequences per prompt.
    pub(super) n: usize,
    pub(super) prompts: usize,
    pub(super) prompt_text: String,
    pub(super) prompt_tokens: usize,
    /// Tokens of each prompt.
    pub(super) prompt_sizes: Vec<usize>,
    pub(super) max_tokens: Option<usize>,
    pub(super) stop: Vec<String>,
    pub(super) stop_token_ids: Vec<u32>,
    pub(super) beam_search: bool,
    pub(super) echo: bool,
    /// How well its drafts do, where the request says so itself; no real engine knows that.
    pub(super) acceptance: Option<Acceptance>,
}

impl Asked {
    pub(super) fn read(route: Route, body: &Value) -> Self {
        let sampling = match route {
            Route::Generate | Route::SglangGenerate => &body["sampling_params"],
            _ => body,
        };
        let options = &body["stream_options"];
        let number = |name: &str| {
            sampling[name]
                .as_u64()
                .and_then(|number| usize::try_from(number).ok())
        };
        let max_tokens = match route {
            Route::Chat | Route::ChatBatch => {
                number("max_completion_tokens").or_else(|| number("max_tokens"))
            }
            // The default of the completions route and of vLLM's sampling parameters.
            Route::Completions | Route::Generate => number("max_tokens").or(Some(16)),
            Route::SglangGenerate => number("max_new_tokens").or(Some(128)),
            Route::LlamaCompletion => number("n_predict").or_else(|| number("max_tokens")),
        };
        let prompt = Prompt::read(route, body);
        Self {
            route,
            model: body["model"].as_str().map(str::to_owned),
            stream: body["stream"].as_bool().unwrap_or_default(),
            include_usage: options["include_usage"].as_bool().unwrap_or_default(),
            continuous_usage: options["continuous_usage_stats"]
                .as_bool()
                .unwrap_or_default(),
            n: number("n").unwrap_or(1).max(1),
            prompts: prompt.sizes.len(),
            prompt_text: prompt.text,
            prompt_tokens: prompt.sizes.iter().sum(),
            prompt_sizes: prompt.sizes,
            max_tokens,
            stop: strings(&sampling["stop"]),
            stop_token_ids: ids(&sampling["stop_token_ids"]),
            beam_search: sampling["use_beam_search"].as_bool().unwrap_or_default(),
            echo: body["echo"].as_bool().unwrap_or_default(),
            acceptance: acceptance(&body[ACCEPTANCE]),
        }
    }

    /// Sequences of the response.
    pub(super) fn sequences(&self) -> usize {
        self.n * self.prompts
    }
}

struct Prompt {
    /// The first one's text.
    text: String,
    /// Tokens of each.
    sizes: Vec<usize>,
}

impl Prompt {
    fn read(route: Route, body: &Value) -> Self {
        match route {
            Route::Chat => {
                let text = contents(&body["messages"]);
                Self {
                    sizes: vec![vocabulary::count(&text)],
                    text,
                }
            }
            Route::ChatBatch => {
                let texts: Vec<_> = body["messages"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(contents)
                    .collect();
                Self::of_texts(&texts)
            }
            Route::Completions | Route::LlamaCompletion => Self::of_list(&body["prompt"]),
            Route::SglangGenerate if body["input_ids"].is_array() => {
                Self::of_list(&body["input_ids"])
            }
            Route::SglangGenerate => Self::of_list(&body["text"]),
            Route::Generate => {
                let tokens = body["token_ids"].as_array().map_or(0, Vec::len);
                Self {
                    text: String::new(),
                    sizes: vec![tokens],
                }
            }
        }
    }

    /// A text or tokens, or a list of either.
    fn of_list(prompt: &Value) -> Self {
        match prompt {
            Value::Array(list) if list.iter().all(Value::is_string) => {
                Self::of_texts(&strings(prompt))
            }
            Value::Array(list) if list.iter().all(Value::is_array) && !list.is_empty() => Self {
                text: String::new(),
                sizes: list
                    .iter()
                    .map(|ids| ids.as_array().map_or(0, Vec::len))
                    .collect(),
            },
            Value::Array(list) => Self {
                text: String::new(),
                sizes: vec![list.len()],
            },
            other => Self::of_texts(&strings(other)),
        }
    }

    fn of_texts(texts: &[String]) -> Self {
        let mut sizes: Vec<_> = texts.iter().map(|text| vocabulary::count(text)).collect();
        if sizes.is_empty() {
            sizes.push(1);
        }
        Self {
            text: texts.first().cloned().unwrap_or_default(),
            sizes,
        }
    }
}

/// All text of a conversation.
fn contents(messages: &Value) -> String {
    let mut text = String::new();
    for message in messages.as_array().into_iter().flatten() {
        let parts = message["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|part| part["text"].as_str());
        for part in message["content"].as_str().into_iter().chain(parts) {
            text.push_str(part);
            text.push('\n');
        }
    }
    text
}

fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list
            .iter()
            .filter_map(|text| text.as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}

fn acceptance(value: &Value) -> Option<Acceptance> {
    let list = value.as_array()?.iter();
    let list: Option<Vec<f64>> = list.map(Value::as_f64).collect();
    Acceptance::new(list?).ok()
}

fn ids(value: &Value) -> Vec<u32> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()))
        .collect()
}
