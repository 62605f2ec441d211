//! `/api/v1/export`: what the ring keeps, oldest first, as a file that is written while it is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use http_body::Frame;
use serde_json::json;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use crate::export::rows;
use crate::observation::Observation;
use crate::store::ObservationRing;

use super::answer::{ApiError, shown};
use super::router::AdminState;

/// Forms of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Format {
    /// A manifest and one observation a line: a records file.
    #[default]
    JsonLines,
    /// One JSON object.
    Json,
    /// A row per sequence.
    Csv,
}

pub(super) async fn show(
    State(state): State<AdminState>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let format = parse(&parameters)?;
    let ring = Arc::clone(&state.ring);
    let (gone, slimmed) = (ring.dropped(), ring.per_step_dropped());
    let head = json!({
        "manifest": *state.manifest, "dropped": gone, "per_step_dropped": slimmed,
    })
    .to_string();
    let (media_type, name, first, last) = match format {
        Format::JsonLines => ("application/x-ndjson", "jsonl", format!("{head}\n"), ""),
        // The head's own end goes behind the list.
        Format::Json => (
            "application/json",
            "json",
            format!("{},\"requests\":[\n", &head[..head.len() - 1]),
            "\n]}\n",
        ),
        Format::Csv => ("text/csv; charset=utf-8", "csv", rows::headings(), ""),
    };
    let pieces = Pieces {
        end: ring.end(),
        ring,
        place: 0,
        format,
        first: Some(first),
        last,
        is_first_row: true,
        next: None,
    };
    let disposition = format!("attachment; filename=\"spectap.{name}\"");
    Ok((
        [
            (CONTENT_TYPE.as_str(), media_type.to_owned()),
            (CONTENT_DISPOSITION.as_str(), disposition),
            ("x-spectap-dropped", gone.to_string()),
            ("x-spectap-per-step-dropped", slimmed.to_string()),
        ],
        Body::new(pieces),
    )
        .into_response())
}

fn parse(parameters: &[(String, String)]) -> Result<Format, ApiError> {
    let mut format = None;
    for (name, value) in parameters {
        if name != "format" {
            return Err(ApiError::bad_parameter(format!(
                "there is no parameter '{}'; expected format",
                shown(name)
            )));
        }
        let read = match value.as_str() {
            "jsonl" | "" => Format::JsonLines,
            "json" => Format::Json,
            "csv" => Format::Csv,
            _ => {
                return Err(ApiError::bad_parameter(format!(
                    "the parameter 'format' is '{}'; expected one of jsonl, json, csv",
                    shown(value)
                )));
            }
        };
        if format.replace(read).is_some() {
            return Err(ApiError::bad_parameter(
                "the parameter 'format' is given twice",
            ));
        }
    }
    Ok(format.unwrap_or_default())
}

/// The body. Each piece is made off the runtime's threads, and only when the client has taken the one before: neither
/// a large ring nor a slow client holds anybody up.
struct Pieces {
    ring: Arc<ObservationRing>,
    /// Where the next piece begins.
    place: u64,
    /// Where the export ends: what came after it began is not in it.
    end: u64,
    format: Format,
    first: Option<String>,
    last: &'static str,
    is_first_row: bool,
    next: Option<JoinHandle<Piece>>,
}

struct Piece {
    text: String,
    /// Where the next one begins; none at the end.
    place: Option<u64>,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = JoinError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, JoinError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first.into()))));
        }
        if self.place >= self.end && self.next.is_none() {
            return Poll::Ready(match std::mem::take(&mut self.last) {
                "" => None,
                last => Some(Ok(Frame::data(last.into()))),
            });
        }
        let (ring, place, end) = (Arc::clone(&self.ring), self.place, self.end);
        let (format, is_first_row) = (self.format, self.is_first_row);
        let next = self.next.get_or_insert_with(|| {
            spawn_blocking(move || piece(&ring, place, end, format, is_first_row))
        });
        let made = ready!(Pin::new(next).poll(context));
        self.next = None;
        let piece = match made {
            Ok(piece) => piece,
            Err(error) => {
                self.place = self.end;
                self.last = "";
                return Poll::Ready(Some(Err(error)));
            }
        };
        self.place = piece.place.unwrap_or(self.end);
        self.is_first_row &= piece.text.is_empty();
        Poll::Ready(Some(Ok(Frame::data(piece.text.into()))))
    }
}

fn piece(
    ring: &ObservationRing,
    place: u64,
    end: u64,
    format: Format,
    mut is_first_row: bool,
) -> Piece {
    let mut text = String::new();
    let mut next = None;
    for (place, observation) in ring.chunk_from(place, end) {
        next = Some(place + 1);
        push(&mut text, &observation, format, is_first_row);
        is_first_row = false;
    }
    Piece { text, place: next }
}

fn push(text: &mut String, observation: &Observation, format: Format, is_first_row: bool) {
    if format == Format::Csv {
        text.push_str(&rows::of(observation));
        return;
    }
    // An observation is numbers and names: it can always be written.
    let Ok(line) = serde_json::to_string(observation) else {
        return;
    };
    if format == Format::Json && !is_first_row {
        text.push_str(",\n");
    }
    text.push_str(&line);
    if format == Format::JsonLines {
        text.push('\n');
    }
}
