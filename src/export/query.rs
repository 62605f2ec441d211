//! The question put to the statistics: which exchanges, and by what they are grouped.

use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::de::value::Error as NameError;
use serde::{Deserialize, Serialize};

use crate::record::EngineName;
use crate::stats::GroupKey;

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
    /// Hour in which the exchange ended; only where there are single exchanges, in a report of records.
    Hour,
}

impl By {
    /// The name in a query and in a group's key.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The value that a group has for it; absent where unknown.
    pub fn value_of(self, key: &GroupKey) -> Option<String> {
        match self {
            By::Model => key.model.clone(),
            By::Engine => key.engine.map(|engine| engine.as_str().to_owned()),
            By::Tag => key.tag.clone(),
            By::Route => Some(key.route.as_str().to_owned()),
            By::Hour => None,
        }
    }

    /// Reads one name as it stands in a query or after `--by`.
    ///
    /// # Errors
    ///
    /// When it is none of the names.
    pub fn read(name: &str) -> Result<Self, QueryError> {
        By::from_str(name).map_err(|_| {
            QueryError::invalid(
                "by",
                name,
                "a comma list of model, engine, tag, route, hour",
            )
        })
    }
}

const BY_EXPECTED: &str = "a comma list of model, engine, tag, route";

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
    /// The parameter is known but this version can't answer it.
    #[error("{parameter}={value}: not available yet; {expected}")]
    NotAvailable {
        /// Name of the parameter.
        parameter: &'static str,
        /// The value given.
        value: String,
        /// What can be asked instead.
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
    /// The first parameter that is unknown, has a wrong value, or is not available yet.
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
                ("window", "all") => {}
                ("window", window) => {
                    return Err(QueryError::NotAvailable {
                        parameter: "window",
                        value: window.to_owned(),
                        expected: "leave it out or say window=all",
                    });
                }
                ("run", run) => {
                    return Err(QueryError::NotAvailable {
                        parameter: "run",
                        value: run.to_owned(),
                        expected: "leave it out",
                    });
                }
                _ => {
                    return Err(QueryError::Unknown {
                        parameter: parameter.to_owned(),
                        value: value.to_owned(),
                    });
                }
            }
        }
        Ok(query)
    }

    /// Whether a group's exchanges are asked for.
    pub fn wants(&self, key: &GroupKey) -> bool {
        let is = |asked: &Option<String>, has: &Option<String>| asked.is_none() || asked == has;
        is(&self.model, &key.model)
            && is(&self.tag, &key.tag)
            && (self.engine.is_none() || self.engine == key.engine)
    }
}

fn read_by(list: &str) -> Result<Vec<By>, QueryError> {
    let mut by = Vec::new();
    for name in list.split(',') {
        if name.trim() == By::Hour.as_str() {
            return Err(QueryError::NotAvailable {
                parameter: "by",
                value: list.to_owned(),
                expected: "statistics have no hours; `spectap report --by hour` makes them of single exchanges",
            });
        }
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
