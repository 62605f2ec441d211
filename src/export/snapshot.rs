//! (stub)
use super::summary::Query;
use crate::stats::Statistics;

/// (stub)
pub fn snapshot(_: &Statistics, _: &Query) -> serde_json::Value {
    serde_json::json!({"version":1})
}
