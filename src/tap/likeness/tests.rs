//! What likeness promises: it calls content only what differs from content in its text alone.

use proptest::prelude::*;

use super::*;
use crate::tap::needle::must_parse;

fn chat(text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(
        r#"{{"id":"c","choices":[{{"index":0,"delta":{{"content":{text}}},"finish_reason":null}}],"usage":null}}"#
    )
}

fn after(first: &str) -> LastContent {
    let mut last = LastContent::default();
    assert!(!last.must_parse(first.as_bytes()), "{first}");
    last
}

#[test]
fn another_text_is_content_whatever_it_says() {
    let mut last = after(&chat("um"));
    for text in [
        "a",
        "\n",
        "\\",
        "\"",
        "\\\"",
        "usage",
        "\"usage",
        "\"error\": {\"a\": 1}",
        "\u{7f}\u{e9}\u{1}\u{1f600}",
        "draft_n",
    ] {
        assert!(!last.must_parse(chat(text).as_bytes()), "{text}");
        assert!(last.resembles(chat(text).as_bytes()), "{text}");
    }
}

#[test]
fn what_differs_elsewhere_is_looked_at() {
    let first = chat("um");
    for other in [
        chat(""),
        first.replace("null}]", "\"stop\"}]"),
        first.replace("\"usage\":null", "\"usage\":{}"),
        first.replace("\"um\"", "\"um\",\"role\":\"assistant\""),
        first.replace("\"um\"", "null"),
        // The text ends sooner than the event would have it.
        first.replace(
            "\"um\"",
            "\"um\"},\"finish_reason\":\"stop\",\"a\":{\"b\":\"c\"",
        ),
        // The quote behind it is escaped.
        first.replace("um", "um\\"),
        first.replace("um\"", "um"),
        first[..first.len() - 1].to_owned(),
    ] {
        let mut last = after(&first);
        assert!(!last.resembles(other.as_bytes()), "{other}");
        assert_eq!(
            last.must_parse(other.as_bytes()),
            must_parse(other.as_bytes()),
            "{other}"
        );
    }
}

#[test]
fn an_event_with_two_texts_or_none_is_no_model() {
    for first in [
        r#"{"choices":[{"delta":{"content":"a","reasoning":"b"}}]}"#,
        r#"{"choices":[{"finish_reason":null,"token_ids":[472]}]}"#,
    ] {
        let last = after(first);
        assert!(!last.resembles(first.as_bytes()), "{first}");
    }
}

#[test]
fn nothing_large_is_kept() {
    let large = chat(&"x".repeat(LONGEST_KEPT));
    let last = after(&large);
    assert!(last.event.is_empty());
    assert!(!last.resembles(b""));
}

proptest! {
    #[test]
    fn any_text_is_content_and_any_other_change_is_looked_at(
        texts in proptest::collection::vec(".{1,12}", 1..6),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut last = after(&chat("um"));
        for text in &texts {
            prop_assert!(!last.must_parse(chat(text).as_bytes()));
        }
        let mut changed = chat(&texts[0]).into_bytes();
        let at = at.index(changed.len());
        changed[at] = byte;
        if last.resembles(&changed) {
            // What is left of it is one string, and all around it is as it was.
            let text = text_length(&changed[last.text.start..]).unwrap();
            prop_assert_eq!(&changed[last.text.start + text..], &last.event[last.text.end..]);
            prop_assert_eq!(&changed[..last.text.start], &last.event[..last.text.start]);
        }
    }
}
