//! (stub)
use crate::stats::Statistics;

/// (stub)
pub struct Query;

/// (stub)
#[derive(Debug, thiserror::Error)]
#[error("unknown parameter '{0}'")]
pub struct QueryError(String);

impl Query {
    /// (stub)
    pub fn parse(params: &[(String, String)]) -> Result<Self, QueryError> {
        match params.first() {
            Some((name, _)) if name != "model" => Err(QueryError(name.clone())),
            _ => Ok(Self),
        }
    }
}

/// (stub)
pub fn summary(_: &Statistics, _: &Query) -> serde_json::Value {
    serde_json::json!({"scope":{}, "n":{}})
}
