//! Which model to ask for: the first that the engine lists.

use serde_json::Value;

use super::VerifyError;
use super::address::Address;
use super::exchange::Exchange;
use super::requests;

/// The first model of `/v1/models`.
pub(super) fn model(upstream: &Address, key: Option<&str>) -> Result<String, VerifyError> {
    let request = requests::models(&upstream.authority(), key);
    let exchange =
        Exchange::of(&request, upstream).map_err(|error| upstream.unreachable(&error))?;
    let problem = match (exchange.answers.first(), exchange.missing) {
        (Some(answer), _) => {
            let list: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            if let Some(name) = list["data"][0]["id"].as_str() {
                return Ok(name.to_owned());
            }
            format!("it answers {}", answer.status)
        }
        (None, missing) => missing.unwrap_or_else(|| "no answer".to_owned()),
    };
    Err(VerifyError::Model {
        address: format!("http://{}", upstream.authority()),
        problem,
    })
}
