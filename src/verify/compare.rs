//! Holds what came through the tap against what came directly.

use super::answer::{Answer, Framing};
use super::body::{self, Bodies};
use super::difference::{Difference, shown};
use super::exchange::Exchange;
use super::requests::Request;
use super::{head, timing};

/// What was found in one comparison.
#[derive(Default)]
pub(super) struct Found {
    pub(super) differences: Vec<Difference>,
    /// A body could not be compared, since the engine itself does not repeat it.
    pub(super) is_not_repeated: bool,
}

/// Compares an exchange with direct ones, of which there are at least two.
pub(super) fn compare(request: &Request, direct: &[Exchange], through: &Exchange) -> Found {
    let mut found = Found::default();
    let [first, again, ..] = direct else {
        return found;
    };
    if first.answers.len() != through.answers.len() {
        let told = |exchange: &Exchange| {
            let count = exchange.answers.len();
            let why = exchange.missing.clone().unwrap_or_default();
            format!("{count} {why}")
        };
        let detail = format!("answers: direct {}, through {}", told(first), told(through));
        let missing = Difference::by_chance_perhaps("no-answer", detail);
        found.differences.push(missing);
        return found;
    }
    for (number, ours) in through.answers.iter().enumerate() {
        let all: Vec<&Answer> = direct
            .iter()
            .filter_map(|exchange| exchange.answers.get(number))
            .collect();
        if let (Some(first), Some(again)) = (first.answers.get(number), again.answers.get(number)) {
            answer(request, [first, again], &all, ours, &mut found);
        }
    }
    // An answer that is spectap's own ends its connection, and that is told already.
    if !through.answers.iter().any(is_own) {
        end(request, first, through, &mut found.differences);
    }
    found
}

fn answer(
    request: &Request,
    [first, again]: [&Answer; 2],
    all: &[&Answer],
    ours: &Answer,
    found: &mut Found,
) {
    let differences = &mut found.differences;
    if is_own(ours) && !is_own(first) {
        let kind = ours.values("x-spectap-error").next().unwrap_or_default();
        let detail = format!(
            "direct {}, through {} {}",
            first.status,
            ours.status,
            shown(kind)
        );
        differences.push(if request.lacks_host && kind == b"bad-host" {
            Difference::by_design("host-required", detail)
        } else {
            Difference::by_accident("own-error", detail)
        });
        return;
    }
    let told = |one: &dyn std::fmt::Debug, other: &dyn std::fmt::Debug| {
        format!("direct {one:?}, through {other:?}")
    };
    if (first.status, &first.reason) != (ours.status, &ours.reason) {
        let line = |answer: &Answer| format!("{} {}", answer.status, answer.reason);
        let detail = told(&line(first), &line(ours));
        differences.push(Difference::by_accident("status", detail));
    }
    if first.interim != ours.interim {
        let detail = told(&first.interim, &ours.interim);
        differences.push(Difference::by_design("interim-answers", detail));
    }
    framing(request, first, ours, differences);
    head::compare(
        first,
        again,
        ours,
        first.framing == ours.framing,
        differences,
    );
    if first.trailers != ours.trailers {
        let detail = format!(
            "direct {}, through {}",
            shown(&first.trailers),
            shown(&ours.trailers)
        );
        differences.push(Difference::by_design("trailers", detail));
    }
    let bodies: Vec<&[u8]> = all.iter().map(|answer| answer.body.as_slice()).collect();
    match body::compare(&bodies, &ours.body) {
        Bodies::Same => {}
        Bodies::NotRepeated => found.is_not_repeated = true,
        Bodies::Different(difference) => differences.push(difference),
    }
    timing::compare(all, ours, differences);
}

fn framing(request: &Request, first: &Answer, ours: &Answer, found: &mut Vec<Difference>) {
    let name = |answer: &Answer| -> &'static str { answer.framing.into() };
    let told = |answer: &Answer| format!("HTTP/1.{} {}", answer.version, name(answer));
    let detail = format!("direct {}, through {}", told(first), told(ours));
    let is_stream = first
        .values("content-type")
        .any(|value| value.starts_with(b"text/event-stream"));
    let same = first.framing == ours.framing;
    if (first.version, first.framing) != (ours.version, ours.framing) {
        found.push(
            if request.is_http10 && (same || ours.framing == Framing::Close) {
                Difference::by_design("http-1-0", detail)
            } else if same && ours.framing == Framing::Close {
                Difference::by_design("close-delimited", detail)
            } else if is_stream
                && (first.framing, ours.framing) == (Framing::Length, Framing::Chunked)
            {
                Difference::by_design("stripped-length", detail)
            } else {
                Difference::by_accident("framing", detail)
            },
        );
    }
    // An end without a frame around it is whole and cut at the same time, here as there.
    let is_open_ended = ours.framing == Framing::Close;
    match (first.is_cut, ours.is_cut) {
        (true, false) if !is_open_ended => {
            let detail = "the engine's answer breaks off, and this one ends as if it were whole";
            found.push(Difference::by_accident("cut-hidden", detail.to_owned()));
        }
        (false, true) => {
            let detail = format!("breaks off after {} bytes", ours.body.len());
            found.push(Difference::by_chance_perhaps("cut", detail));
        }
        _ => {}
    }
}

/// How the connection ended.
fn end(request: &Request, first: &Exchange, through: &Exchange, found: &mut Vec<Difference>) {
    let detail = |exchange: &Exchange| if exchange.is_closed { "closed" } else { "kept" };
    let told = format!("direct {}, through {}", detail(first), detail(through));
    match (first.is_closed, through.is_closed) {
        (true, false) if request.closes => {
            found.push(Difference::by_chance_perhaps("not-closed", told));
        }
        (true, false) => found.push(Difference::by_design("connection-kept", told)),
        (false, true) if !request.closes => {
            found.push(Difference::by_chance_perhaps("closed", told));
        }
        _ => {}
    }
    if first.behind != through.behind {
        let detail = format!("direct {}, through {}", first.behind, through.behind);
        found.push(Difference::by_accident("bytes-behind", detail));
    }
}

fn is_own(answer: &Answer) -> bool {
    answer.values("x-spectap-error").next().is_some()
}
