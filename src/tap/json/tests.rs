//! What the reducer promises: the members that facts need, whatever surrounds them and however the text is cut.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn reduce(chunks: &[&[u8]]) -> Result<Value, Unreadable> {
    let mut reducer = Reducer::new();
    for chunk in chunks {
        reducer.feed(chunk);
    }
    reducer.finish()
}

fn reduced(text: &str) -> Value {
    reduce(&[text.as_bytes()]).unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn kept_members_come_through_and_others_do_not() {
    let text = r#" { "id" : "a\"b", "prompt_token_ids":[1,[2],{"x":"]"}], "created":17, "usage":{"a":{"b":[1,2.5e3,true,null,"c"]}},
        "choices":[{"index":0,"logprobs":{"content":[{"token":"}"}]},"finish_reason":"stop","stop_reason":null,
        "message":{"role":"assistant","content":"Hello","tool_calls":[]}}],"metrics":null } "#;
    assert_eq!(
        reduced(text),
        json!({"id": "a\"b", "created": 17, "usage": {"a": {"b": [1, 2.5e3, true, null, "c"]}},
            "choices": [{"index": 0, "finish_reason": "stop", "stop_reason": null,
                "message": {"content": "+", "tool_calls": null}}], "metrics": null})
    );
}

#[test]
fn only_the_presence_of_text_is_kept() {
    for (value, is_text) in [
        (r#""x""#, true),
        (r#""\n""#, true),
        (r#""""#, false),
        ("null", false),
        ("7", false),
        ("[]", false),
        ("{}", false),
        (r#"[{"type":"text","text":""}]"#, false),
        (r#"[{"type":"text","text":"x"}]"#, true),
        (
            r#"[{"id":"call-1","type":"function","function":{"arguments":""}}]"#,
            false,
        ),
        (
            r#"[{"id":"call-1","function":{"name":"f"}},{"x":"]}"}]"#,
            true,
        ),
        (r#"[[{"a":[{"arguments":"{"}]},[1]],"b"]"#, true),
    ] {
        let text =
            format!(r#"{{"choices":[{{"delta":{{"content":{value}}},"index":3}}],"id":"i"}}"#);
        let mark = if is_text { json!("+") } else { json!(null) };
        assert_eq!(
            reduced(&text),
            json!({"choices": [{"delta": {"content": mark}, "index": 3}], "id": "i"}),
            "{value}"
        );
    }
}

#[test]
fn token_ids_count_when_there_is_one() {
    let of = |ids: &str| {
        reduced(&format!(
            r#"{{"choices":[{{"token_ids":{ids},"index":1}}]}}"#
        ))
    };
    let marked = |mark: Value| json!({"choices": [{"token_ids": mark, "index": 1}]});
    assert_eq!(of("[7,8, 9]"), marked(json!("+")));
    assert_eq!(of("[]"), marked(json!(null)));
    assert_eq!(of("null"), marked(json!(null)));
}

#[test]
fn an_error_gives_its_kind_and_not_its_text() {
    assert_eq!(
        reduced(r#"{"error":{"message":"prompt: secret"}}"#),
        json!({"error": {}})
    );
    assert_eq!(reduced(r#"{"error":"secret"}"#), json!({"error": "+"}));
    assert_eq!(reduced(r#"{"error":null}"#), json!({"error": null}));
}

#[test]
fn escaped_member_names_are_read() {
    assert_eq!(
        reduced(r#"{"\u0075sage":{"x":1},"\u0075s\u0061ge2":{},"\ud800":1}"#),
        json!({"usage": {"x": 1}})
    );
}

#[test]
fn the_last_of_two_members_wins() {
    assert_eq!(
        reduced(r#"{"usage":null,"id":"a","usage":{"x":1},"id":"b"}"#),
        json!({"usage": {"x": 1}, "id": "b"})
    );
}

#[test]
fn a_choice_that_is_no_object_keeps_its_position() {
    assert_eq!(
        reduced(r#"{"choices":[null,"x",[1],{"index":3},7]}"#),
        json!({"choices": [null, null, null, {"index": 3}, null]})
    );
}

#[test]
fn members_of_another_type_than_usual_are_left_out() {
    assert_eq!(
        reduced(
            r#"{"id":["x"],"choices":{"index":0},"message":"m","response":[{"id":"r"}],"usage":[1]}"#
        ),
        json!({"usage": [1]})
    );
}

#[test]
fn what_is_neither_object_nor_list_gives_null() {
    for text in ["\"x\"", "12", " null ", "true", "NaN"] {
        assert_eq!(reduced(text), Value::Null, "{text}");
    }
}

#[test]
fn a_list_gives_its_objects_in_their_positions() {
    assert_eq!(
        reduced(r#" [{"usage":{},"x":1}, 7, "x", [{"usage":{}}], {"id":"a","choices":[]}] "#),
        json!([{"usage": {}}, null, null, null, {"id": "a", "choices": []}])
    );
    assert_eq!(reduced("[]"), json!([]));
}

#[test]
fn numbers_that_json_does_not_have_become_null() {
    assert_eq!(
        reduced(
            r#"{"x":NaN,"created":-Infinity,"usage":{"a":NaN,"b":[Infinity,-Infinity],"c":-1},"choices":[{"index":NaN}]}"#
        ),
        json!({"created": null, "usage": {"a": null, "b": [null, null], "c": -1}, "choices": [{"index": null}]})
    );
}

#[test]
fn a_byte_order_mark_is_skipped() {
    assert_eq!(reduced("\u{feff}{\"id\":\"a\"}"), json!({"id": "a"}));
}

#[test]
fn of_large_members_only_the_counts_are_kept() {
    assert_eq!(
        reduced(
            r#"{"sglext":{"routed_experts":"x","spec_tokens_details":{"spec_verify_ct":1},"input_ids":[1]},
            "meta_info":{"id":"m","finish_reason":{"type":"stop","matched":"secret"},"output_token_logprobs":[[1]],"spec_verify_ct":2},
            "stats":{"stop_reason":"x","total_draft_tokens_count":3},"generation_metadata":{"x":1,"mtp_drafts":4}}"#
        ),
        json!({"sglext": {"spec_tokens_details": {"spec_verify_ct": 1}},
            "meta_info": {"id": "m", "finish_reason": {"type": "stop"}, "spec_verify_ct": 2},
            "stats": {"total_draft_tokens_count": 3}, "generation_metadata": {"mtp_drafts": 4}})
    );
    assert_eq!(
        reduced(r#"{"meta_info":{"finish_reason":"length"}}"#),
        json!({"meta_info": {"finish_reason": "length"}})
    );
}

#[test]
fn a_delta_is_a_text_or_a_block() {
    assert_eq!(reduced(r#"{"delta":"secret"}"#), json!({"delta": "+"}));
    assert_eq!(reduced(r#"{"delta":""}"#), json!({"delta": null}));
    assert_eq!(
        reduced(r#"{"delta":{"type":"text_delta","text":"secret"}}"#),
        json!({"delta": {"text": "+"}})
    );
    assert_eq!(
        reduced(r#"{"delta":{"stop_reason":"end_turn","stop_sequence":"secret"}}"#),
        json!({"delta": {"stop_reason": "end_turn"}})
    );
}

#[test]
fn what_is_no_json_is_told() {
    let fails = |text: &str| reduce(&[text.as_bytes()]).unwrap_err();
    assert_eq!(fails("hello"), Unreadable::NotJson { offset: 0 });
    assert_eq!(fails(r#"{"a":1,}"#), Unreadable::NotJson { offset: 7 });
    assert_eq!(fails(r#"{"a" 1}"#), Unreadable::NotJson { offset: 5 });
    assert_eq!(fails("{} x"), Unreadable::NotJson { offset: 3 });
    assert_eq!(fails("{}]"), Unreadable::NotJson { offset: 2 });
    assert_eq!(
        fails(r#"{"usage":{"a":[1}}"#),
        Unreadable::NotJson { offset: 16 }
    );
    assert_eq!(fails(""), Unreadable::Unfinished);
    assert_eq!(fails(r#"{"usage":{"a":1"#), Unreadable::Unfinished);
    assert_eq!(fails(r#"{"a":"x\"#), Unreadable::Unfinished);
    assert_eq!(fails(r#"{"usage":{"a":1.e}}"#), Unreadable::BadValue);
    assert_eq!(fails(r#"{"usage":{"a":None}}"#), Unreadable::BadValue);
}

#[test]
fn any_depth_passes_in_little_memory() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    for member in ["logprobs", "usage", "content", "choices"] {
        let mut reducer = Reducer::new();
        for chunk in format!(r#"{{"{member}":{deep},"id":"a"}}"#)
            .as_bytes()
            .chunks(1000)
        {
            reducer.feed(chunk);
            assert!(reducer.held() < 2048, "{member}");
        }
        assert_eq!(reducer.finish().unwrap()["id"], "a", "{member}");
    }
}

#[test]
fn a_large_reply_takes_no_more_memory_than_a_small_one() {
    let filler = vec![b'7'; 1 << 16];
    for open in [r#"{"x":[""#, r#"{"choices":[{"message":{"content":""#] {
        let mut reducer = Reducer::new();
        reducer.feed(open.as_bytes());
        for _ in 0..512 {
            reducer.feed(&filler);
            assert!(reducer.held() < 1024);
        }
    }
}

#[test]
fn kept_members_are_bounded() {
    let mut reducer = Reducer::new();
    reducer.feed(br#"{"usage":[0"#);
    for _ in 0..LARGEST_COPY {
        reducer.feed(b",1");
    }
    assert!(reducer.held() < 1024);
    assert_eq!(reducer.finish(), Err(Unreadable::TooLarge));
}

#[test]
fn a_foreign_byte_in_a_name_costs_no_numbers() {
    let text = b"{\"model\":\"m\xFF\",\"usage\":{\"a\":1}}";
    assert_eq!(reduce(&[text]).unwrap()["usage"]["a"], 1);
}

fn json_value() -> impl Strategy<Value = Value> {
    let name = proptest::sample::select(vec![
        "id",
        "usage",
        "metrics",
        "choices",
        "index",
        "delta",
        "message",
        "content",
        "text",
        "token_ids",
        "speculative_decoding",
        "tool_calls",
        "error",
        "x",
        "ä\"\\",
        "\u{1F600}",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..6).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Value>()),
        ]
    })
}

fn cut<'a>(text: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| &text[pair[0]..pair[1]])
        .collect()
}

proptest! {
    #[test]
    fn chunking_changes_nothing(
        value in json_value(),
        cuts in proptest::collection::vec(any::<usize>(), 0..8),
        indented in any::<bool>(),
    ) {
        let text = if indented { format!("{value:#}") } else { value.to_string() };
        let whole = reduce(&[text.as_bytes()]);
        prop_assert!(whole.is_ok(), "{text}: {whole:?}");
        prop_assert_eq!(&reduce(&cut(text.as_bytes(), &cuts)), &whole);
        prop_assert_eq!(&reduce(&text.as_bytes().chunks(1).collect::<Vec<_>>()), &whole);
        let whole = whole.unwrap();
        for kept in ["usage", "metrics"] {
            prop_assert_eq!(whole.get(kept), value.get(kept));
        }
    }

    #[test]
    fn damaged_text_never_panics_and_chunking_changes_nothing(
        value in json_value(),
        damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4),
        cuts in proptest::collection::vec(any::<usize>(), 0..8),
    ) {
        let mut text = value.to_string().into_bytes();
        for (at, byte) in damage {
            let length = text.len();
            text[at % length] = byte;
        }
        let whole = reduce(&[&text]);
        prop_assert_eq!(&reduce(&cut(&text, &cuts)), &whole);
        if serde_json::from_slice::<Value>(&text).is_ok() {
            prop_assert!(whole.is_ok());
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let whole = reduce(&[&bytes]);
        prop_assert_eq!(reduce(&bytes.chunks(1).collect::<Vec<_>>()), whole);
    }
}
