//! Bodies as they come in the wild: endless events, wrong content types, codings, and what is no JSON at all.

use serde_json::{Value, json};

use super::*;

#[test]
fn an_event_named_error_is_one_even_without_data() {
    let mut observer = ReplyObserver::new_stream();
    observer.see(b"event: error\n: engine gone\n\n", Instant::now());
    let reply = observer.finish();
    assert!(reply.error_event);
    assert_eq!(reply.events, 0);
}

#[test]
fn a_megabyte_event_is_read_like_any_other() {
    let padding = "x".repeat(2_500_000);
    let padded = |name: &str, mut event: Value| {
        event[name] = json!(padding);
        event
    };
    let usage = json!({"choices": [], "usage": {"completion_tokens": 3}, "id": "c"});
    let text = [
        format!(
            "data: {}\n\n",
            padded("audio", delta(json!({"content": "a"})))
        ),
        format!("data: {}\n\n", delta(json!({"content": "b"}))),
        format!("event: x\r\ndata: {}\r\n\r\n", padded("a", usage)),
        format!("event: error\n: {padding}\n\n"),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    for size in [usize::MAX, 1 << 20, 65_536, 1_000] {
        let mut observer = ReplyObserver::new_stream();
        for chunk in text.as_bytes().chunks(size) {
            observer.see(chunk, Instant::now());
        }
        let reply = observer.finish();
        assert_eq!(reply.fault, None, "{size}");
        assert_eq!((reply.events, reply.content_chunks), (4, 2), "{size}");
        assert_eq!(reply.usage.completion_tokens, Some(3), "{size}");
        assert_eq!(reply.response_id.as_deref(), Some("c"), "{size}");
        assert!(reply.error_event && reply.done_seen, "{size}");
    }
}

#[test]
fn a_megabyte_event_that_is_cut_is_a_fault() {
    let mut observer = ReplyObserver::new_stream();
    observer.see(
        b"data: {\"usage\":{\"completion_tokens\":3},\"x\":\"",
        Instant::now(),
    );
    observer.see(&vec![b'x'; 2 << 20], Instant::now());
    let reply = observer.finish();
    assert_eq!(
        (reply.events, reply.fault),
        (1, Some(Reason::EventTooLarge))
    );
    assert_eq!(reply.usage, Usage::default());
}

#[test]
fn an_event_whose_facts_are_endless_is_a_fault_and_the_rest_is_read() {
    let mut observer = ReplyObserver::new_stream();
    let now = Instant::now();
    observer.see(b"data: {\"metrics\":[0", now);
    for _ in 0..40 {
        observer.see(&b",0".repeat(1 << 15), now);
    }
    observer.see(b"]}\n\ndata: {\"id\":\"c\"}\n\n", now);
    let reply = observer.finish();
    assert_eq!(reply.fault, Some(Reason::EventTooLarge));
    assert_eq!(reply.response_id.as_deref(), Some("c"));
}

#[test]
fn a_wrong_content_type_does_not_matter() {
    let events =
        b"\n: ping\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n";
    let whole = b"\xEF\xBB\xBF\n {\"choices\":[{\"message\":{\"content\":\"a\"}}]}";
    for size in [1, 3, 1_000] {
        let mut observer = ReplyObserver::new_json();
        for chunk in events.chunks(size) {
            observer.see(chunk, Instant::now());
        }
        let reply = observer.finish();
        assert_eq!((reply.fault, reply.events), (None, 2));
        assert_eq!(reply.content_chunks, 1);
        let mut observer = ReplyObserver::new_stream();
        for chunk in whole.chunks(size) {
            observer.see(chunk, Instant::now());
        }
        let reply = observer.finish();
        assert_eq!((reply.fault, reply.events), (None, 0));
        assert_eq!(reply.content_chunks, 1);
    }
}

#[test]
fn a_coded_body_is_read_and_a_broken_one_keeps_what_came_before() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder
        .write_all(format!("data: {}\n\n", delta(json!({"content": "a"}))).as_bytes())
        .unwrap();
    encoder.flush().unwrap();
    let beginning = encoder.get_ref().clone();
    let mut observer = ReplyObserver::new_stream().decoding(Decoder::new("gzip").unwrap());
    observer.see(&beginning, Instant::now());
    let seen = |observer: ReplyObserver| {
        let reply = observer.finish();
        (reply.content_chunks, reply.fault)
    };
    assert_eq!(seen(observer), (1, None));
    let mut observer = ReplyObserver::new_stream().decoding(Decoder::new("gzip").unwrap());
    observer.see(&beginning, Instant::now());
    observer.see(&[0xFF; 40], Instant::now());
    observer.see(&beginning, Instant::now());
    assert_eq!(seen(observer), (1, Some(Reason::Encoding)));
    let mut observer = ReplyObserver::new_json().decoding(Decoder::new("br").unwrap());
    observer.see(&[0xFF; 40], Instant::now());
    assert_eq!(seen(observer), (0, Some(Reason::Encoding)));
}

#[test]
fn an_unreadable_body_is_a_fault_and_an_unreadable_event_is_counted() {
    for text in ["", "<html>", "{\"id\":\"a\"", "error code: 1\n\n"] {
        let mut observer = ReplyObserver::new_json();
        observer.see(text.as_bytes(), Instant::now());
        assert_eq!(observer.finish().fault, Some(Reason::NotJson), "{text}");
    }
    assert_eq!(body(&json!([])).fault, None);
    let mut observer = ReplyObserver::new_stream();
    observer.see(
        b"data: {bad\n\ndata: {\"id\":\"c\"}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a",
        Instant::now(),
    );
    let reply = observer.finish();
    assert_eq!(reply.fault, None);
    assert_eq!(reply.unreadable_events, 2);
    assert_eq!(reply.content_chunks, 0);
}
