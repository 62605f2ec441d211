//! The question put to the statistics: which exchanges, and by what they are grouped.

use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::de::value::Error as NameError;
use serde::{Deserialize, Serialize};

use crate::record::EngineName;
use crate::stats::{Facet, GroupKey, Selection, Window};

/// What groups are made by.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum By {
    /// Model name.
    Model,
    /// Whose wire shape the records had.
    Engine,
    /// The client's own label.
    Tag,
    /// Inference route.
    Route,
    /// Prompt and completion tokens together.
    Context,
    /// Prompt tokens.
    Prompt,
    /// Share of the prompt that came from the prefix cache.
    Cached,
    /// Sampling temperature.
    Temperature,
    /// What shape the reply must have.
    Format,
    /// Share of the completion that was reasoning.
    Reasoning,
    /// Whether the client asked for a stream.
    Stream,
    /// Exchanges in flight at the tap.
    Concurrency,
}

impl By {
    /// The name in a query and in a group's key.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The facet that it is, if it is one.
    pub fn facet(self) -> Option<Facet> {
        match self {
            By::Model | By::Engine | By::Tag | By::Route => None,
            By::Context => Some(Facet::Context),
            By::Prompt => Some(Facet::Prompt),
            By::Cached => Some(Facet::Cached),
            By::Temperature => Some(Facet::Temperature),
            By::Format => Some(Facet::Format),
            By::Reasoning => Some(Facet::Reasoning),
            By::Stream => Some(Facet::Stream),
            By::Concurrency => Some(Facet::Concurrency),
        }
    }

    /// The value that a group's key has for it; absent where unknown, and for facets, which are not in the key.
    pub fn value_of(self, key: &GroupKey) -> Option<String> {
        match self {
            By::Model => key.model.clone(),
            By::Engine => key.engine.map(|engine| engine.as_str().to_owned()),
            By::Tag => key.tag.clone(),
            By::Route => Some(key.route.as_str().to_owned()),
            _ => None,
        }
    }

    /// Reads one name as it stands in a query or after `--by`.
    ///
    /// # Errors
    ///
    /// When it is none of the names.
    pub fn read(name: &str) -> Result<Self, QueryError> {
        By::from_str(name).map_err(|_| QueryError::invalid("by", name, BY_EXPECTED))
    }
}

const BY_EXPECTED: &str = "a comma list of model, engine, tag, route and at most one of context, prompt, cached, \
                           temperature, format, reasoning, stream, concurrency";

/// The one facet in a list.
///
/// # Errors
///
/// When there are several: exchanges are added up by one facet at a time.
pub fn facet_in(by: &[By]) -> Result<Option<Facet>, QueryError> {
    let facets: Vec<Facet> = by.iter().filter_map(|by| by.facet()).collect();
    match facets.as_slice() {
        [] => Ok(None),
        [facet] => Ok(Some(*facet)),
        _ => {
            let names: Vec<&str> = by.iter().map(|by| by.as_str()).collect();
            Err(QueryError::invalid("by", &names.join(","), BY_EXPECTED))
        }
    }
}

const WINDOW_EXPECTED: &str = "1m, 5m, 15m, 1h or all";

/// Reads a window as it stands in a query or after `--window`.
///
/// # Errors
///
/// When it is none of the names.
pub fn read_window(name: &str) -> Result<Window, QueryError> {
    Window::from_str(name).map_err(|_| QueryError::invalid("window", name, WINDOW_EXPECTED))
}

/// Which exchanges count and how they are grouped. The default is: all, and no groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// What groups are made by; none: no groups.
    pub by: Vec<By>,
    /// Only this model.
    pub model: Option<String>,
    /// Only this tag.
    pub tag: Option<String>,
    /// Only records of this engine.
    pub engine: Option<EngineName>,
    /// Only exchanges that ended in this window.
    pub window: Window,
    /// Only exchanges whose request arrived in the run of this name.
    pub run: Option<String>,
}

/// A parameter that can't be used: which, its value, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The value is not one of those that exist.
    #[error("{parameter}={value}: should be {expected}")]
    Invalid {
        /// Name of the parameter.
        parameter: &'static str,
        /// The value given.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// There is no such parameter.
    #[error(
        "{parameter}={value}: no such parameter; there are by, model, tag, engine, window and run"
    )]
    Unknown {
        /// Name given.
        parameter: String,
        /// Its value.
        value: String,
    },
}

impl QueryError {
    fn invalid(parameter: &'static str, value: &str, expected: &'static str) -> Self {
        Self::Invalid {
            parameter,
            value: value.to_owned(),
            expected,
        }
    }
}

impl Query {
    /// Reads the decoded parameters of a URL's query. An empty value counts as not given.
    ///
    /// # Errors
    ///
    /// The first parameter that is unknown or has a wrong value.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, QueryError> {
        let mut query = Query::default();
        for (parameter, value) in pairs {
            match (parameter, value) {
                ("by" | "model" | "tag" | "engine" | "window" | "run", "") => {}
                ("by", list) => query.by = read_by(list)?,
                ("model", model) => query.model = Some(model.to_owned()),
                ("tag", tag) => query.tag = Some(tag.to_owned()),
                ("engine", engine) => query.engine = Some(read_engine(engine)?),
                ("window", window) => query.window = read_window(window)?,
                ("run", run) => query.run = Some(run.to_owned()),
                _ => {
                    return Err(QueryError::Unknown {
                        parameter: parameter.to_owned(),
                        value: value.to_owned(),
                    });
                }
            }
        }
        facet_in(&query.by)?;
        Ok(query)
    }

    /// What the statistics are asked for.
    pub fn selection(&self) -> Selection {
        Selection {
            window: self.window,
            run: self.run.clone(),
            facet: self.by.iter().find_map(|by| by.facet()),
        }
    }

    /// What a snapshot that is fetched elsewhere needs of it, as the query of a URL; empty where that is nothing.
    pub fn for_snapshot(&self) -> String {
        let facet = self.by.iter().find(|by| by.facet().is_some());
        let window = (self.window != Window::All).then(|| self.window.as_str());
        let parameters = [
            ("window", window),
            ("run", self.run.as_deref()),
            ("by", facet.map(|by| by.as_str())),
        ];
        let given: Vec<String> = parameters
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", percent_encoded(value?))))
            .collect();
        given.join("&")
    }

    /// Whether a group's exchanges are asked for.
    pub fn wants(&self, key: &GroupKey) -> bool {
        let is = |asked: &Option<String>, has: &Option<String>| asked.is_none() || asked == has;
        is(&self.model, &key.model)
            && is(&self.tag, &key.tag)
            && (self.engine.is_none() || self.engine == key.engine)
    }
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn read_by(list: &str) -> Result<Vec<By>, QueryError> {
    let mut by = Vec::new();
    for name in list.split(',') {
        let one =
            By::from_str(name.trim()).map_err(|_| QueryError::invalid("by", list, BY_EXPECTED))?;
        if !by.contains(&one) {
            by.push(one);
        }
    }
    Ok(by)
}

const ENGINE_EXPECTED: &str = "one of vllm, tensorrt_llm (or trtllm), sglang, llamacpp, mlx_vlm, vllm_mlx, tokenspeed, \
                               lmstudio, usage_details";

fn read_engine(name: &str) -> Result<EngineName, QueryError> {
    let full = if name == "trtllm" {
        "tensorrt_llm"
    } else {
        name
    };
    let read: Result<EngineName, NameError> = EngineName::deserialize(full.into_deserializer());
    read.map_err(|_| QueryError::invalid("engine", name, ENGINE_EXPECTED))
}

#[cfg(test)]
mod tests;
