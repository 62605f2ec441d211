//! The bytes of a vLLM chat completion: what the engine double sends and the load client expects.
//!
//! Token events carry their number and the time of sending in their text, at places that never move, so that neither side
//! has to read JSON. Sizes and members are those of a real vLLM 0.32.

/// Model that requests and responses name.
pub const MODEL: &str = "bench-model";

const CREATED: u64 = 1_796_087_410;
const FINGERPRINT: &str = "vllm-0.32.0-5c435f56";

/// Digits of an event's number, hexadecimal.
const NUMBER_DIGITS: usize = 8;
/// Digits of an event's time, hexadecimal nanoseconds.
const STAMP_DIGITS: usize = 16;

/// Verify steps, drafted and accepted tokens that one token event stands for, and the tokens that it brings.
pub const STEPS_PER_EVENT: u64 = 1;
/// See [`STEPS_PER_EVENT`].
pub const DRAFTED_PER_EVENT: u64 = 4;
/// See [`STEPS_PER_EVENT`].
pub const ACCEPTED_PER_EVENT: u64 = 2;
/// See [`STEPS_PER_EVENT`].
pub const TOKENS_PER_EVENT: u64 = 3;

/// Token events that a reply which is not streamed stands for.
pub const UNARY_EVENTS: u64 = 32;

/// The last event's data.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

const ROLE: &str = r#""delta":{"role":"assistant","content":""}"#;

fn envelope(id: u64) -> String {
    format!(
        r#"data: {{"id":"chatcmpl-{id:016x}","object":"chat.completion.chunk","created":{CREATED},"model":"{MODEL}","choices":["#
    )
}

/// The first event, without text.
pub fn role_event(id: u64) -> Vec<u8> {
    let event = format!(
        "{}{{\"index\":0,{ROLE},\"logprobs\":null,\"finish_reason\":null}}],\"prompt_token_ids\":null,\"prompt_text\":null}}\n\n",
        envelope(id)
    );
    event.into_bytes()
}

/// Whether an event is the first one.
pub fn is_role_event(event: &[u8]) -> bool {
    event.get(envelope_length()..).is_some_and(|rest| {
        rest.starts_with(b"{\"index\":0,") && rest[11..].starts_with(ROLE.as_bytes())
    })
}

fn envelope_length() -> usize {
    envelope(0).len()
}

const BEFORE_TEXT: &str = r#"{"index":0,"delta":{"content":" "#;

fn token_event(id: u64, end: &str) -> Vec<u8> {
    let (number, stamp) = ("0".repeat(NUMBER_DIGITS), "0".repeat(STAMP_DIGITS));
    format!(
        "{}{BEFORE_TEXT}{number} {stamp}\"}},{end}\n\n",
        envelope(id)
    )
    .into_bytes()
}

/// A token event in the middle of a stream, number and time to be filled in.
pub fn content_event(id: u64) -> Vec<u8> {
    token_event(
        id,
        r#""logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
    )
}

/// The last token event; the fingerprint stands here where no usage event follows.
pub fn finish_event(id: u64, usage_follows: bool) -> Vec<u8> {
    let end = r#""logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]"#;
    if usage_follows {
        return token_event(id, &format!("{end}}}"));
    }
    token_event(
        id,
        &format!(r#"{end},"system_fingerprint":"{FINGERPRINT}"}}"#),
    )
}

/// The usage event of a stream of so many token events.
pub fn usage_event(id: u64, events: u64) -> Vec<u8> {
    let event = format!(
        "{}],{},\"system_fingerprint\":\"{FINGERPRINT}\",\"metrics\":{{{}}}}}\n\n",
        envelope(id),
        usage(events, ""),
        acceptance(events, "")
    );
    event.into_bytes()
}

fn usage(events: u64, more: &str) -> String {
    let tokens = events * TOKENS_PER_EVENT;
    let total = 22 + tokens;
    format!(
        r#""usage":{{"prompt_tokens":22,"total_tokens":{total},"completion_tokens":{tokens}{more}}}"#
    )
}

fn acceptance(events: u64, more: &str) -> String {
    let steps = events * STEPS_PER_EVENT;
    let (drafted, accepted) = (events * DRAFTED_PER_EVENT, events * ACCEPTED_PER_EVENT);
    format!(
        r#""speculative_decoding":{{"mean_acceptance_length":3.0,"draft_acceptance_rate":0.5,"acceptance_histogram":[0,0,{steps},0,0],"num_spec_steps":{steps},"num_accepted_draft_tokens":{accepted},"num_draft_tokens":{drafted},"num_spec_tokens":4{more}}}"#
    )
}

/// Where the text of a token event stands, both sides' offset into the event.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    number: usize,
    stamp: usize,
    /// Length of an event from the middle of a stream.
    pub content_length: usize,
}

impl Text {
    /// Works out the places.
    pub fn new() -> Self {
        let number = envelope_length() + BEFORE_TEXT.len();
        Self {
            number,
            stamp: number + NUMBER_DIGITS + 1,
            content_length: content_event(0).len(),
        }
    }

    /// Fills in an event's number and time.
    pub fn fill(&self, event: &mut [u8], number: u32, stamp: u64) {
        write_hex(&mut event[self.number..][..NUMBER_DIGITS], number.into());
        write_hex(&mut event[self.stamp..][..STAMP_DIGITS], stamp);
    }

    /// An event's number and time, if it is a token event.
    pub fn read(&self, event: &[u8]) -> Option<(u32, u64)> {
        let before = event.get(self.number - BEFORE_TEXT.len()..self.number)?;
        if before != BEFORE_TEXT.as_bytes() {
            return None;
        }
        let number = read_hex(event.get(self.number..)?.get(..NUMBER_DIGITS)?)?;
        let stamp = read_hex(event.get(self.stamp..)?.get(..STAMP_DIGITS)?)?;
        Some((number as u32, stamp))
    }
}

fn write_hex(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
}

fn read_hex(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(value))
    })
}

/// A reply that is not streamed, with a body of `size` bytes where that is possible: the text fills it up.
pub fn unary_body(id: u64, size: usize) -> Vec<u8> {
    let before = format!(
        r#"{{"id":"chatcmpl-{id:016x}","object":"chat.completion","created":{CREATED},"model":"{MODEL}","choices":[{{"index":0,"message":{{"role":"assistant","content":""#
    );
    let after = format!(
        r#"","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null}},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null,"routed_experts":null}}],"service_tier":null,"system_fingerprint":"{FINGERPRINT}",{},"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":{{"time_to_first_token_ms":null,"generation_time_ms":null,"queue_time_ms":null,"mean_itl_ms":null,"tokens_per_second":null,{}}}}}"#,
        usage(
            UNARY_EVENTS,
            r#","prompt_tokens_details":null,"completion_tokens_details":null"#
        ),
        acceptance(
            UNARY_EVENTS,
            r#","per_step_accepted":null,"per_step_drafted":null"#
        )
    );
    let words = b"umrennt with mode system draft step record measure light bonus ";
    let fill = size.saturating_sub(before.len() + after.len());
    let mut body = before.into_bytes();
    body.extend(words.iter().cycle().take(fill));
    body.extend_from_slice(after.as_bytes());
    body
}

/// A JSON request for what `order` says; the order itself goes into a header.
pub fn request_body(stream: bool) -> String {
    let stream = if stream { r#","stream":true"# } else { "" };
    format!(
        r#"{{"model":"{MODEL}","messages":[{{"role":"user","content":"Count the steps, count the drafts, and divide."}}],"max_tokens":4096,"temperature":0{stream}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_time_are_read_where_they_were_filled_in() {
        let text = Text::new();
        for mut event in [
            content_event(7),
            finish_event(7, true),
            finish_event(7, false),
        ] {
            text.fill(&mut event, 0x1234, 0xfedc_ba98_7654);
            assert_eq!(text.read(&event), Some((0x1234, 0xfedc_ba98_7654)));
        }
        for event in [role_event(7), usage_event(7, 3), DONE.to_vec()] {
            assert_eq!(text.read(&event), None);
        }
        assert!(is_role_event(&role_event(9)));
        assert!(!is_role_event(&content_event(9)));
    }

    #[test]
    fn every_event_is_json_of_the_size_that_a_real_one_has() {
        let mut content = content_event(1);
        Text::new().fill(&mut content, 1, 2);
        assert!((230..300).contains(&content.len()), "{}", content.len());
        for event in [
            role_event(1),
            content,
            finish_event(1, false),
            finish_event(1, true),
            usage_event(1, 100),
        ] {
            let text = String::from_utf8(event).unwrap();
            let data = text
                .strip_prefix("data: ")
                .unwrap()
                .strip_suffix("\n\n")
                .unwrap();
            serde_json::from_str::<serde_json::Value>(data).unwrap();
        }
    }

    #[test]
    fn a_reply_has_the_size_that_was_asked_for() {
        for size in [2048, 1 << 20] {
            let body = unary_body(1, size);
            assert_eq!(body.len(), size);
            let reply: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let numbers = &reply["metrics"]["speculative_decoding"];
            assert_eq!(numbers["num_spec_steps"], UNARY_EVENTS * STEPS_PER_EVENT);
        }
    }
}
