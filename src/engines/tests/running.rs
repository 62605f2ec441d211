//! llama.cpp's running totals: the last ones of each sequence hold, and sequences are told apart without an index.

use serde_json::{Value, json};

use super::*;

fn timings(drafted: u64, accepted: u64) -> Value {
    json!({"predicted_n": drafted, "draft_n": drafted, "draft_n_accepted": accepted})
}

fn chunk(index: u32, timings: Value) -> Value {
    json!({"choices": [{"index": index, "delta": {}}], "timings": timings})
}

fn usage_chunk(timings: Value) -> Value {
    json!({"choices": [], "usage": {"completion_tokens": 9}, "timings": timings})
}

fn seen(objects: &[Value]) -> Vec<(Option<u32>, u64)> {
    let verdict = verdict(objects, 1);
    assert_eq!(verdict.reason, None, "{objects:?}");
    let records = verdict.records.iter();
    records
        .map(|record| (record.choice_index, record.num_draft_tokens))
        .collect()
}

#[test]
fn the_last_totals_of_a_sequence_hold() {
    assert_eq!(
        seen(&[
            chunk(0, json!({"predicted_n": 1})),
            chunk(0, timings(3, 1)),
            chunk(0, timings(6, 2)),
            chunk(0, json!({})),
            usage_chunk(timings(9, 4)),
        ]),
        [(None, 9)]
    );
}

#[test]
fn broken_totals_never_replace_good_ones() {
    let broken = json!({"draft_n": -1, "draft_n_accepted": 2});
    assert_eq!(
        seen(&[chunk(0, timings(6, 2)), chunk(0, broken.clone())]),
        [(None, 6)]
    );
    let verdict = verdict(&[chunk(0, broken)], 1);
    assert_eq!(verdict.reason, Some(Reason::BadNumber));
    assert_eq!(verdict.engine, Some(EngineName::LlamaCpp));
}

#[test]
fn a_change_of_choice_or_a_second_usage_chunk_is_another_sequence() {
    let two = [(Some(0), 3), (Some(1), 6)];
    // Totals on the finish chunks.
    assert_eq!(
        seen(&[chunk(0, timings(3, 1)), chunk(1, timings(6, 2))]),
        two
    );
    // On every chunk, interleaved.
    let interleaved = [
        chunk(0, timings(1, 1)),
        chunk(1, timings(4, 1)),
        chunk(0, timings(3, 1)),
        chunk(1, timings(6, 2)),
    ];
    assert_eq!(seen(&interleaved), two);
    // On the usage chunks, each behind the finish chunk of its sequence.
    let finish = |index| json!({"choices": [{"index": index, "finish_reason": "stop"}]});
    let paired = [
        finish(0),
        usage_chunk(timings(3, 1)),
        finish(1),
        usage_chunk(timings(6, 2)),
    ];
    assert_eq!(seen(&paired), two);
    // And without anything that names the sequence.
    assert_eq!(
        seen(&[usage_chunk(timings(3, 1)), usage_chunk(timings(6, 2))]),
        two
    );
}

#[test]
fn each_sequence_tells_its_own_completion_tokens() {
    let verdict = verdict(&[chunk(0, timings(3, 1)), chunk(1, timings(6, 2))], 2);
    let tokens: Vec<_> = verdict
        .records
        .iter()
        .map(|r| r.completion_tokens)
        .collect();
    assert_eq!(tokens, [Some(3), Some(6)]);
}

#[test]
fn every_route_of_llamacpp_is_read() {
    for object in [
        json!({"choices": [{"index": 0, "message": {}}], "usage": {}, "timings": timings(3, 1)}),
        json!({"choices": [{"index": 0}, {"index": 1}], "timings": timings(3, 1)}),
        json!({"index": 0, "content": "a", "stop": true, "timings": timings(3, 1)}),
        json!({"type": "response.completed", "response": {"usage": {}}, "timings": timings(3, 1)}),
    ] {
        assert_eq!(seen(std::slice::from_ref(&object)), [(None, 3)], "{object}");
    }
}

#[test]
fn endless_sequences_stay_bounded() {
    let mut payloads = Payloads::default();
    for _ in 0..3000 {
        payloads.take(usage_chunk(timings(3, 1)).as_object().unwrap(), None);
    }
    assert_eq!(payloads.len(), 1024);
}
