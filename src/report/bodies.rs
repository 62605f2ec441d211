//! Captured response bodies: looked at by the tap's own observer, as if they had passed it.
//!
//! A body tells what was generated and how, but neither what was asked for nor when: such exchanges have no times, and
//! their route is read from the id of the response.

use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime};

use super::gather::{Gathered, SourceError};
use super::response::{Response, responses};
use crate::engines;
use crate::observation::{
    Acceptance, Facets, Observation, Outcome, Reason, Route, Timing, cut_name, new_id,
};
use crate::store::records::Manifest;
use crate::tap::decoding::Decoder;
use crate::tap::reply::{Reply, ReplyObserver};

/// Names of skipped files that are told.
const MOST_NAMED: usize = 5;

/// Looks at every captured body of a directory.
pub(super) fn gather(directory: &Path, gathered: &mut Gathered<'_>) -> Result<(), SourceError> {
    let error = |source| SourceError::Read {
        path: directory.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(error)? {
        files.push(entry.map_err(error)?.path());
    }
    files.sort();
    let now = SystemTime::now();
    gathered.take_manifest(Manifest::of_this_build(
        now,
        None,
        [("source".to_owned(), "captured bodies".to_owned())].into(),
    ));
    let (mut taken, mut skipped) = (0_usize, Vec::new());
    for path in &files {
        match observations(path) {
            Ok(observations) => {
                taken += observations.len();
                observations.into_iter().for_each(|it| gathered.take(it));
            }
            Err(why) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                skipped.push(format!("{name} ({why})"));
            }
        }
    }
    if taken == 0 {
        return Err(SourceError::NoBodies {
            path: directory.to_owned(),
        });
    }
    if !skipped.is_empty() {
        let more = skipped.len().saturating_sub(MOST_NAMED);
        let count = skipped.len();
        skipped.truncate(MOST_NAMED);
        let more = if more > 0 {
            format!(", and {more} more")
        } else {
            String::new()
        };
        tracing::warn!(
            "skipped {count} of {} files: {}{more}",
            files.len(),
            skipped.join(", ")
        );
    }
    Ok(())
}

fn observations(path: &Path) -> Result<Vec<Observation>, String> {
    let kind = path.extension().and_then(|extension| extension.to_str());
    let kind = kind.filter(|kind| matches!(*kind, "json" | "sse" | "http"));
    let kind = kind.ok_or("not *.json, *.sse or *.http")?;
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let at = fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .unwrap_or(SystemTime::UNIX_EPOCH);
    let responses = if kind == "http" {
        responses(&bytes)?
    } else {
        vec![Response {
            status: 200,
            is_stream: kind == "sse",
            coding: None,
            body: bytes,
            is_whole: true,
        }]
    };
    let mut observations = Vec::new();
    for response in responses {
        observations.extend(observed(&response, at)?);
    }
    if observations.is_empty() {
        return Err("no reply of an inference server in it".to_owned());
    }
    Ok(observations)
}

/// The observation of a response; none, if nothing in it is of an inference server.
fn observed(response: &Response, at: SystemTime) -> Result<Option<Observation>, String> {
    let mut observer = if response.is_stream {
        ReplyObserver::new_stream()
    } else {
        ReplyObserver::new_json()
    };
    if let Some(coding) = &response.coding {
        let decoder = Decoder::new(coding).ok_or(format!("content coding {coding} is not read"))?;
        observer = observer.decoding(decoder);
    }
    observer.see(&response.body, Instant::now());
    let reply = observer.finish();
    let is_reply = reply.content_chunks > 0 || reply.usage_seen || !reply.payloads.is_empty();
    Ok(is_reply.then(|| observation(response, &reply, at)))
}

fn observation(response: &Response, reply: &Reply, at: SystemTime) -> Observation {
    let n = u32::try_from(reply.finish_reasons.len())
        .unwrap_or(u32::MAX)
        .max(1);
    let verdict = engines::read(&reply.payloads, &reply.usage, n);
    let success = (200..300).contains(&response.status);
    let (acceptance, reason) = match (success, reply.fault, verdict.acceptance) {
        (false, _, _) => (None, None),
        (true, Some(fault), Acceptance::Absent) => (Some(Acceptance::Unobserved), Some(fault)),
        (true, None, Acceptance::Absent) => {
            (Some(Acceptance::Absent), Some(absence(response, reply)))
        }
        (true, _, acceptance) => (Some(acceptance), verdict.reason),
    };
    let outcome = match response.status {
        400.. => Outcome::ErrorStatus,
        _ if reply.error_event => Outcome::ErrorEvent,
        _ if !response.is_whole => Outcome::Truncated,
        _ => Outcome::Complete,
    };
    Observation {
        id: new_id(at),
        request_id: reply.response_id.clone(),
        x_request_id: None,
        trace_id: None,
        started_at: at,
        ended_at: at,
        lane: "captured".to_owned(),
        route: route(reply.response_id.as_deref()),
        model: reply.model.as_deref().map(cut_name),
        tag: None,
        run: None,
        stream: response.is_stream,
        n,
        prompts: 1,
        stream_options_asked: None,
        in_flight: 1,
        status: Some(response.status),
        outcome,
        acceptance,
        reason,
        finish_reasons: reply.finish_reasons.clone(),
        facets: Facets::default(),
        usage: reply.usage,
        timing: Timing::default(),
        engine_metrics: reply.engine_metrics.clone(),
        content_chunks: reply.content_chunks,
        spec_decode_acceptance: verdict.records,
    }
}

/// What a body alone tells of why there are no numbers.
fn absence(response: &Response, reply: &Reply) -> Reason {
    if !response.is_whole {
        Reason::Truncated
    } else if reply.error_event {
        Reason::ErrorEvent
    } else if reply.finish_reasons.len() > 1 {
        Reason::NGt1
    } else if response.is_stream && !reply.usage_event_seen {
        Reason::NoUsageEvent
    } else {
        Reason::Unknown
    }
}

/// Every engine that follows OpenAI begins its ids like this; the others answer chat requests as often as not.
fn route(response_id: Option<&str>) -> Route {
    let begins = |start| response_id.is_some_and(|id| id.starts_with(start));
    if begins("cmpl") {
        Route::Completions
    } else if begins("resp_") {
        Route::Responses
    } else if begins("msg_") {
        Route::Messages
    } else {
        Route::ChatCompletions
    }
}
