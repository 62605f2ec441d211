//! The fault matrix: which side × at which moment × what kind of fault, and what all sides show. The table here is what
//! is tested, and what `docs/faults.md` shows.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use crate::cell::Outcome::{Cut, Left, LeftAsking, LeftDone, Refused, Unborn, Whole};
use crate::cell::{Moment, Outcome, Peer, play};
use crate::relay::Kind;

const KINDS: [Kind; 5] = [Kind::Delay, Kind::Stall, Kind::Drip, Kind::Cut, Kind::Reset];

/// A row: the moment, and the outcome of each kind.
type Row = (Moment, [Outcome; 5]);

const CLIENT: [Row; 10] = [
    (Moment::Connect, [Whole, Whole, Whole, Unborn, Unborn]),
    (Moment::RequestHead, [Whole, Whole, Whole, Unborn, Unborn]),
    (
        Moment::RequestBody,
        [Whole, Whole, Whole, LeftAsking, LeftAsking],
    ),
    (Moment::ResponseHead, [Whole, Whole, Whole, Left, Left]),
    (Moment::BeforeFirstEvent, [Whole, Whole, Whole, Left, Left]),
    (Moment::MidEvent, [Whole, Whole, Whole, Left, Left]),
    (Moment::BetweenEvents, [Whole, Whole, Whole, Left, Left]),
    (Moment::BeforeDone, [Whole, Whole, Whole, Left, Left]),
    (
        Moment::BeforeFinalChunk,
        [Whole, Whole, Whole, LeftDone, LeftDone],
    ),
    (Moment::IdleKept, [Whole, Whole, Whole, Whole, Whole]),
];

const ENGINE: [Row; 10] = [
    (Moment::Connect, [Whole, Whole, Whole, Refused, Refused]),
    (Moment::RequestHead, [Whole, Whole, Whole, Refused, Refused]),
    (Moment::RequestBody, [Whole, Whole, Whole, Refused, Refused]),
    (
        Moment::ResponseHead,
        [Whole, Whole, Whole, Refused, Refused],
    ),
    (Moment::BeforeFirstEvent, [Whole, Whole, Whole, Cut, Cut]),
    (Moment::MidEvent, [Whole, Whole, Whole, Cut, Cut]),
    (Moment::BetweenEvents, [Whole, Whole, Whole, Cut, Cut]),
    (Moment::BeforeDone, [Whole, Whole, Whole, Cut, Cut]),
    (Moment::BeforeFinalChunk, [Whole, Whole, Whole, Cut, Cut]),
    (Moment::IdleKept, [Whole, Whole, Whole, Whole, Whole]),
];

fn play_all(peer: Peer, rows: &[Row]) {
    let mut longest = Duration::ZERO;
    for (moment, outcomes) in rows {
        for (kind, outcome) in KINDS.into_iter().zip(outcomes) {
            longest = longest.max(play(peer, *moment, kind, *outcome));
        }
    }
    eprintln!("from a client's end to the end of the engine's connection: at most {longest:?}");
}

#[test]
fn every_fault_of_a_client_shows_as_the_matrix_says() {
    play_all(Peer::Client, &CLIENT);
}

#[test]
fn every_fault_of_an_engine_shows_as_the_matrix_says() {
    play_all(Peer::Engine, &ENGINE);
}

fn words(moment: Moment) -> &'static str {
    match moment {
        Moment::Connect => "connected",
        Moment::RequestHead => "within the request's head",
        Moment::RequestBody => "within the request's body",
        Moment::ResponseHead => "before the response's head is whole",
        Moment::BeforeFirstEvent => "before the first event",
        Moment::MidEvent => "within an event",
        Moment::BetweenEvents => "between two events",
        Moment::BeforeDone => "before `[DONE]`",
        Moment::BeforeFinalChunk => "before the last chunk",
        Moment::IdleKept => "idle, kept for the next request",
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Whole => "whole",
        Cut => "cut",
        Refused => "502",
        Left => "left",
        LeftAsking => "left asking",
        Unborn => "unborn",
        LeftDone => "left, done",
    }
}

fn render() -> String {
    let mut page = String::new();
    for (peer, rows) in [("client", &CLIENT), ("engine", &ENGINE)] {
        writeln!(page, "| the {peer}, | delay | stall | drip | FIN | RST |").unwrap();
        writeln!(page, "|---|---|---|---|---|---|").unwrap();
        for (moment, outcomes) in rows {
            let cells = outcomes.map(word).join(" | ");
            writeln!(page, "| {} | {cells} |", words(*moment)).unwrap();
        }
        page.push('\n');
    }
    page
}

#[test]
fn the_page_shows_the_matrix_that_is_tested() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/faults.md");
    let page = std::fs::read_to_string(path).unwrap();
    let matrix = render();
    assert!(page.contains(&matrix), "docs/faults.md must hold\n{matrix}");
}
