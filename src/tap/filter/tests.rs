use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;

const USAGE: Added = Added {
    usage: true,
    details: false,
    strip_usage: true,
};
const DETAILS: Added = Added {
    usage: false,
    details: true,
    strip_usage: false,
};
const BOTH: Added = Added {
    details: true,
    ..USAGE
};

/// Feeds the pieces and gives what came out, with what was reported.
fn filtered(restore: Restore, pieces: &[&[u8]]) -> (String, Vec<Incident>) {
    filtered_of(USAGE, restore, pieces)
}

fn filtered_of(added: Added, restore: Restore, pieces: &[&[u8]]) -> (String, Vec<Incident>) {
    let incidents = Arc::new(Mutex::new(Vec::new()));
    let report = Arc::clone(&incidents);
    let mut filter = Filter::new(
        added,
        restore,
        Box::new(move |incident| report.lock().unwrap().push(incident)),
    );
    let mut out = Vec::new();
    for piece in pieces {
        if let Pushed::Content(bytes, _) = filter.push(Bytes::copy_from_slice(piece)) {
            out.extend_from_slice(&bytes);
        }
        out.extend(std::iter::from_fn(|| filter.next()).flatten());
    }
    filter.end();
    out.extend(std::iter::from_fn(|| filter.next()).flatten());
    let incidents = incidents.lock().unwrap().clone();
    (String::from_utf8(out).unwrap(), incidents)
}

fn one(stream: &str) -> (String, Vec<Incident>) {
    filtered(Restore::FromSuccessor, &[stream.as_bytes()])
}

const CONTENT: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
const FINISH: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const FINISH_RESTORED: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"system_fingerprint\":\"fp\"}\n\n";
const CAUSED: &str =
    "data: {\"choices\":[],\"usage\":{\"total_tokens\":3},\"system_fingerprint\":\"fp\"}\n\n";
const DONE: &str = "data: [DONE]\n\n";

#[test]
fn the_caused_event_goes_and_the_fingerprint_returns() {
    let (out, incidents) = one(&format!("{CONTENT}{FINISH}{CAUSED}{DONE}"));
    assert_eq!(out, format!("{CONTENT}{FINISH_RESTORED}{DONE}"));
    assert_eq!(incidents, [Incident::Stripped]);
}

#[test]
fn a_fingerprint_on_every_event_never_moved() {
    let native = FINISH_RESTORED.replace("fp", "own");
    assert_eq!(
        one(&format!("{native}{CAUSED}{DONE}")).0,
        format!("{native}{DONE}")
    );
}

#[test]
fn an_engine_without_fingerprint_gets_none() {
    let caused = CAUSED.replace(",\"system_fingerprint\":\"fp\"", "");
    assert_eq!(
        one(&format!("{FINISH}{caused}{DONE}")).0,
        format!("{FINISH}{DONE}")
    );
    let null = CAUSED.replace("\"fp\"", "null");
    assert_eq!(
        one(&format!("{FINISH}{null}{DONE}")).0,
        format!("{FINISH}{DONE}")
    );
}

#[test]
fn timings_return_too() {
    let caused = "data: {\"choices\":[],\"usage\":{},\"timings\":{\"draft_n\":6,\"x\":1.50}}\n\n";
    let expected = FINISH.replace("}]}", "}],\"timings\":{\"draft_n\":6,\"x\":1.50}}");
    assert_eq!(
        one(&format!("{FINISH}{caused}{DONE}")).0,
        format!("{expected}{DONE}")
    );
}

#[test]
fn sglangs_own_event_goes_with_its_option_and_only_with_it() {
    let numbers = "data: {\"choices\":[],\"usage\":null,\"sglext\":{\"spec_tokens_details\":{\"spec_verify_ct\":3}}}\n\n";
    let usage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":3}}\n\n";
    let stream = format!("{CONTENT}{FINISH}{numbers}{usage}{DONE}");
    let through = |added| filtered_of(added, Restore::FromSuccessor, &[stream.as_bytes()]).0;
    assert_eq!(through(BOTH), format!("{CONTENT}{FINISH}{DONE}"));
    assert_eq!(through(DETAILS), format!("{CONTENT}{FINISH}{usage}{DONE}"));
    assert_eq!(through(USAGE), format!("{CONTENT}{FINISH}{numbers}{DONE}"));
}

#[test]
fn of_a_shared_event_only_the_injected_part_goes() {
    let shared = "data: {\"choices\":[],\"usage\":null,\"sglext\":{\"cached\":{\"n\":1},\"spec_tokens_details\":[{\"x\":1}]}}\n\n";
    let expected = "data: {\"choices\":[],\"usage\":null,\"sglext\":{\"cached\":{\"n\":1}}}\n\n";
    let stream = format!("{FINISH}{shared}{DONE}");
    let (out, incidents) = filtered_of(BOTH, Restore::FromSuccessor, &[stream.as_bytes()]);
    assert_eq!(out, format!("{FINISH}{expected}{DONE}"));
    assert_eq!(incidents, [Incident::Stripped]);
    // One event with both: the client asked for usage itself.
    let event =
        "data: {\"choices\":[],\"usage\":{\"n\":1},\"sglext\":{\"spec_tokens_details\":{}}}\n\n";
    let (out, _) = filtered_of(DETAILS, Restore::FromSuccessor, &[event.as_bytes()]);
    assert_eq!(out, "data: {\"choices\":[],\"usage\":{\"n\":1}}\n\n");
    assert_eq!(
        filtered_of(BOTH, Restore::FromSuccessor, &[event.as_bytes()]).0,
        ""
    );
}

#[test]
fn comments_stay_where_they_stand() {
    let (out, _) = one(&format!(": a\n\n{FINISH}: b\n\n{CAUSED}: c\n\n{DONE}"));
    assert_eq!(out, format!(": a\n\n{FINISH_RESTORED}: b\n\n: c\n\n{DONE}"));
    let inside = CAUSED.replace("data:", ": d\ndata:");
    assert_eq!(
        one(&format!("{FINISH}{inside}{DONE}")).0,
        format!("{FINISH_RESTORED}: d\n\n{DONE}")
    );
}

#[test]
fn an_error_after_the_finish_event_releases_it_unchanged() {
    let error = "data: {\"error\": {\"message\": \"x\"}}\n\n";
    let (out, incidents) = one(&format!("{CONTENT}{FINISH}{error}{DONE}"));
    assert_eq!(
        (out, incidents),
        (format!("{CONTENT}{FINISH}{error}{DONE}"), vec![])
    );
}

#[test]
fn a_stream_that_breaks_off_loses_no_byte() {
    let whole = format!("{CONTENT}{FINISH}{CAUSED}");
    let caused_at = CONTENT.len() + FINISH.len();
    for cut in 0..whole.len() {
        assert_eq!(
            one(&whole[..cut]).0,
            whole[..cut],
            "cut at {cut} of {caused_at}"
        );
    }
}

#[test]
fn usage_unasked_passes_whole() {
    let first = CONTENT.replace("null}]", "null}],\"usage\":{\"total_tokens\":1}");
    let whole = format!(": hello\n\n{first}{FINISH}{CAUSED}{DONE}");
    assert_eq!(one(&whole), (whole, vec![Incident::SentUnasked]));
}

#[test]
fn native_data_beside_usage_is_passed() {
    for member in ["\"error\":{\"code\":1}", "\"sglext\":{\"x\":1}"] {
        let event = format!("data: {{\"choices\":[],\"usage\":{{}},{member}}}\n\n");
        assert_eq!(one(&event).0, event);
    }
}

#[test]
fn each_of_several_sequences_gets_the_known_fingerprint_at_once() {
    let known = Restore::Known(Fingerprint::Value("fp".into()));
    let stream = format!("{FINISH}{CONTENT}{FINISH}{CAUSED}{DONE}");
    let (out, incidents) = filtered(known, &[stream.as_bytes()]);
    assert_eq!(
        out,
        format!("{FINISH_RESTORED}{CONTENT}{FINISH_RESTORED}{DONE}")
    );
    assert_eq!(incidents, [Incident::Stripped]);
    let other = Restore::Known(Fingerprint::Value("other".into()));
    let (_, incidents) = filtered(other, &[stream.as_bytes()]);
    assert_eq!(
        incidents,
        [Incident::Skipped("fingerprint_changed"), Incident::Stripped]
    );
}

#[test]
fn whole_events_of_content_are_told_as_such() {
    let (half, rest) = CONTENT.split_at(CONTENT.len() - 3);
    let pieces: [(String, Option<u32>); 11] = [
        // A byte order mark may have stood in front of the first.
        (CONTENT.to_owned(), None),
        (CONTENT.to_owned(), Some(1)),
        (CONTENT.repeat(3), Some(3)),
        // Not at its end, not at its start.
        (half.to_owned(), None),
        (rest.to_owned(), None),
        (CONTENT.to_owned(), Some(1)),
        (format!("{CONTENT}: a comment\n\n"), None),
        // An LF that follows may belong to it.
        (CONTENT.replace('\n', "\r"), None),
        (CONTENT.to_owned(), None),
        (format!("{CONTENT}{FINISH}"), None),
        // What waits for its successor goes out first.
        (CONTENT.to_owned(), None),
    ];
    let mut filter = Filter::new(USAGE, Restore::FromSuccessor, Box::new(|_| {}));
    let mut out = Vec::new();
    for (piece, told) in &pieces {
        let events = match filter.push(Bytes::copy_from_slice(piece.as_bytes())) {
            Pushed::Content(bytes, content) => {
                out.extend_from_slice(&bytes);
                Some(content.events)
            }
            Pushed::Queued => None,
        };
        out.extend(std::iter::from_fn(|| filter.next()).flatten());
        assert_eq!(events, *told, "{piece}");
    }
    let all: String = pieces.iter().map(|(piece, _)| piece.as_str()).collect();
    assert_eq!(String::from_utf8(out).unwrap(), all);
}

#[test]
fn an_event_that_can_not_be_the_caused_one_is_not_held() {
    let mut filter = Filter::new(USAGE, Restore::FromSuccessor, Box::new(|_| {}));
    filter.push(Bytes::from_static(
        b"data: {\"choices\":[{\"delta\":{\"content\":\"long te",
    ));
    assert!(filter.next().is_some(), "content is held back");
    filter.push(Bytes::from_static(b"xt"));
    assert_eq!(filter.next().unwrap(), "xt");
}

#[test]
fn comments_behind_a_held_finish_event_can_not_fill_memory() {
    let comment = format!(": {}\n\n", "x".repeat(LARGEST_EVENT / 4));
    let pieces = [FINISH, &comment, &comment, &comment, &comment, CAUSED, DONE];
    let (out, incidents) = filtered(Restore::FromSuccessor, &pieces.map(str::as_bytes));
    assert_eq!(out, format!("{FINISH}{}{DONE}", comment.repeat(4)));
    assert_eq!(
        incidents,
        [Incident::Skipped("too_large"), Incident::Stripped]
    );
}

#[test]
fn a_carriage_return_of_the_dropped_event_takes_its_line_feed_along() {
    let stream = format!("{FINISH}{CAUSED}{DONE}").replace('\n', "\r\n");
    let expected = format!("{FINISH_RESTORED}{DONE}").replace('\n', "\r\n");
    for split in 0..stream.len() {
        let (head, tail) = stream.as_bytes().split_at(split);
        assert_eq!(
            filtered(Restore::FromSuccessor, &[head, tail]).0,
            expected,
            "split at {split}"
        );
    }
    let lone = stream.replace("\r\n", "\r");
    assert_eq!(one(&lone).0, expected.replace("\r\n", "\r"));
}

#[test]
fn an_endless_event_goes_on_as_it_comes() {
    let (mut filter, mut out) = (
        Filter::new(USAGE, Restore::FromSuccessor, Box::new(|_| {})),
        0,
    );
    let piece = Bytes::from(vec![b'x'; 64 << 10]);
    filter.push(Bytes::from_static(FINISH.as_bytes()));
    filter.push(Bytes::from_static(b"data: "));
    for _ in 0..40 {
        filter.push(piece.clone());
        while let Some(bytes) = filter.next() {
            out += bytes.len();
        }
    }
    assert_eq!(out, FINISH.len() + 6 + 40 * piece.len());
}

#[test]
fn a_member_that_can_not_return_any_more_is_reported() {
    let finish = FINISH.replace("\n\n", "\nid: 7\n\n");
    let restored = FINISH_RESTORED.replace("\n\n", "\nid: 7\n\n");
    let stream = format!("{finish}{CAUSED}{DONE}");
    assert_eq!(one(&stream).0, format!("{restored}{DONE}"));
    let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
    let (out, incidents) = filtered(Restore::FromSuccessor, &bytes);
    assert_eq!(out, format!("{finish}{DONE}"));
    assert_eq!(
        incidents,
        [Incident::Skipped("event_sent"), Incident::Stripped]
    );
}

#[test]
fn a_finish_event_does_not_wait_behind_comments_without_end() {
    let mut filter = Filter::new(USAGE, Restore::FromSuccessor, Box::new(|_| {}));
    filter.push(Bytes::from_static(FINISH.as_bytes()));
    let comments = Bytes::from(": a\n\n".repeat(1 << 12));
    let mut pushed = FINISH.len();
    while filter.next().is_none() {
        filter.push(comments.clone());
        pushed += comments.len();
        assert!(
            pushed <= LARGEST_EVENT + 2 * comments.len(),
            "held for ever"
        );
    }
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_stream(cuts in prop::collection::vec(0usize..900, 0..12)) {
        let stream = format!(": a\n\n{CONTENT}{CONTENT}{FINISH}: b\n\n{CAUSED}{DONE}");
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream.as_bytes()[pair[0]..pair[1]]).collect();
        let (out, _) = filtered(Restore::FromSuccessor, &pieces);
        prop_assert_eq!(out, format!(": a\n\n{CONTENT}{CONTENT}{FINISH_RESTORED}: b\n\n{DONE}"));
    }

    #[test]
    fn no_byte_is_lost_from_streams_that_hold_nothing_caused(bytes in prop::collection::vec(any::<u8>(), 0..600),
                                                             cut in 0usize..600) {
        let (head, tail) = bytes.split_at(cut.min(bytes.len()));
        let mut filter = Filter::new(USAGE, Restore::FromSuccessor, Box::new(|_| {}));
        let mut out = Vec::new();
        for piece in [head, tail] {
            filter.push(Bytes::copy_from_slice(piece));
        }
        filter.end();
        while let Some(piece) = filter.next() {
            out.extend_from_slice(&piece);
        }
        prop_assert_eq!(out, bytes);
    }
}
