//! The filter: words that narrow what is shown.

use crate::export::{Query, QueryError};
use crate::observation::Observation;
use crate::report::wants;

/// Words of a filter: `model=`, `tag=` and `engine=` narrow everything; any other word narrows the table of requests to
/// those that have it in their model, tag, outcome, acceptance, reason, route or ids.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// As it was written.
    pub text: String,
    query: Query,
    words: Vec<String>,
}

impl Filter {
    /// Reads the words, with blanks between them.
    ///
    /// # Errors
    ///
    /// An engine that does not exist.
    pub fn read(text: &str) -> Result<Self, QueryError> {
        let (pairs, words): (Vec<&str>, Vec<&str>) = text.split_whitespace().partition(|word| {
            let name = word.split_once('=').map(|(name, _)| name);
            matches!(name, Some("model" | "tag" | "engine"))
        });
        let pairs = pairs.iter().filter_map(|word| word.split_once('='));
        Ok(Self {
            text: text.trim().to_owned(),
            query: Query::from_pairs(pairs)?,
            words: words.iter().map(|word| word.to_lowercase()).collect(),
        })
    }

    /// What the taps are asked for.
    pub(super) fn query(&self) -> Query {
        self.query.clone()
    }

    /// Whether a request is among those that are wanted.
    pub(super) fn wants(&self, exchange: &Observation) -> bool {
        if !wants(&self.query, exchange) {
            return false;
        }
        let names = [
            exchange.model.as_deref(),
            exchange.tag.as_deref(),
            Some(exchange.outcome.as_str()),
            exchange.acceptance.map(|it| it.as_str()),
            exchange.reason.map(|it| it.as_str()),
            Some(exchange.route.as_str()),
            exchange.request_id.as_deref(),
            exchange.x_request_id.as_deref(),
            Some(exchange.id.as_str()),
        ];
        self.words.iter().all(|word| {
            let mut names = names.iter().flatten();
            names.any(|name| name.to_lowercase().contains(word))
        })
    }
}
