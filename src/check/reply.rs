//! Looks at one answer with the tap's own observer.

use std::time::Instant;

use http::header::CONTENT_TYPE;

use super::facts::ReplyFact;
use crate::engines;
use crate::scrape::{Fetched, Problem};
use crate::tap::reply::ReplyObserver;

/// Longest part of a refusal that is shown.
const LONGEST_REFUSAL: usize = 200;

/// What the answer to a request for one sequence tells.
pub(super) fn fact(answer: Result<Fetched, Problem>) -> ReplyFact {
    let answer = match answer {
        Ok(answer) => answer,
        Err(problem) => {
            return ReplyFact {
                problem: Some(problem.to_string()),
                ..ReplyFact::default()
            };
        }
    };
    let timed = ReplyFact {
        status: Some(answer.status),
        to_head: answer.to_head,
        to_end: answer.to_end,
        ..ReplyFact::default()
    };
    if !(200..300).contains(&answer.status) {
        let text = String::from_utf8_lossy(&answer.body);
        let text = text[..text.floor_char_boundary(LONGEST_REFUSAL)].replace(char::is_control, " ");
        return ReplyFact {
            problem: Some(text),
            ..timed
        };
    }
    let kind = answer.headers.get(CONTENT_TYPE);
    let is_stream = kind
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut observer = match is_stream {
        true => ReplyObserver::new_stream(),
        false => ReplyObserver::new_json(),
    };
    observer.see(&answer.body, Instant::now());
    let reply = observer.finish();
    let verdict = engines::read(&reply.payloads, &reply.usage, 1);
    let record = verdict.records.first();
    let provenance = record.and_then(|record| serde_json::to_value(record.provenance).ok());
    ReplyFact {
        acceptance: Some(verdict.acceptance),
        engine: record.map(|record| record.engine.as_str()),
        provenance: provenance.and_then(|name| name.as_str().map(str::to_owned)),
        has_usage: reply.usage_seen,
        events: reply.events,
        ..timed
    }
}
