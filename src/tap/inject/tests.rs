use super::*;

fn injected(body: &str, expose: ExposeUsage, is_vllm: bool) -> Result<(String, bool), Plan> {
    let root = members(body.as_bytes()).unwrap();
    match plan(body.as_bytes(), &root, expose, is_vllm) {
        Plan::Inject { edits, strip } => Ok((
            String::from_utf8(splice(body.as_bytes(), edits).to_vec()).unwrap(),
            strip,
        )),
        other => Err(other),
    }
}

fn as_requested(body: &str) -> Result<(String, bool), Plan> {
    injected(body, ExposeUsage::AsRequested, true)
}

#[test]
fn the_member_stands_last_and_every_other_byte_stays() {
    let body = "\n{ \"stream\" : true , \"temperature\":1.50,\"seed\":1E3 \t}\n";
    let expected = "\n{ \"stream\" : true , \"temperature\":1.50,\"seed\":1E3 \t,\"stream_options\":{\"include_usage\":true}}\n";
    assert_eq!(as_requested(body), Ok((expected.to_owned(), true)));
}

#[test]
fn a_present_value_is_replaced_in_place() {
    let cases = [
        (
            r#"{"stream_options":null,"stream":true}"#,
            r#"{"stream_options":{"include_usage":true},"stream":true}"#,
        ),
        (
            r#"{"stream_options":{ "include_usage" : false , "x":1},"stream":true}"#,
            r#"{"stream_options":{ "include_usage" : true , "x":1},"stream":true}"#,
        ),
        (
            r#"{"stream_options":{"include_usage":null},"stream":true}"#,
            r#"{"stream_options":{"include_usage":true},"stream":true}"#,
        ),
        (
            r#"{"stream_options":{ },"stream":true}"#,
            r#"{"stream_options":{ "include_usage":true},"stream":true}"#,
        ),
        (
            r#"{"stream_options":{"continuous_usage_stats":true,"include_usage":false},"stream":true}"#,
            r#"{"stream_options":{"continuous_usage_stats":false,"include_usage":true},"stream":true}"#,
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(
            as_requested(body),
            Ok((expected.to_owned(), true)),
            "{body}"
        );
    }
}

#[test]
fn names_are_compared_after_decoding_their_escapes() {
    let body = r#"{"str\u0065am":true,"stream\u005foptions":{"include_us\u0061ge":true}}"#;
    assert_eq!(as_requested(body), Err(Plan::Leave));
}

#[test]
fn what_decides_twice_is_left_alone() {
    for body in [
        r#"{"stream":true,"stream":true}"#,
        r#"{"stream":true,"stream_options":{},"stream_options":null}"#,
        r#"{"stream":true,"stream_options":{"include_usage":null,"include_usage":false}}"#,
    ] {
        assert_eq!(
            as_requested(body),
            Err(Plan::Skip(Skip::DuplicateMember)),
            "{body}"
        );
    }
}

#[test]
fn shapes_that_can_not_be_completed_are_left_alone() {
    for body in [
        r#"{"stream":true,"stream_options":[]}"#,
        r#"{"stream":true,"stream_options":"x"}"#,
        r#"{"stream":true,"stream_options":{"include_usage":1}}"#,
        r#"{"stream":true,"stream_options":{"continuous_usage_stats":"yes"}}"#,
    ] {
        assert_eq!(
            as_requested(body),
            Err(Plan::Skip(Skip::OptionsShape)),
            "{body}"
        );
    }
}

#[test]
fn always_shows_what_it_injects_and_respects_a_refusal() {
    let always = |body| injected(body, ExposeUsage::Always, true);
    assert_eq!(
        always(r#"{"stream":true}"#),
        Ok((
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#.to_owned(),
            false
        ))
    );
    assert_eq!(
        always(r#"{"stream":true,"stream_options":{"include_usage":false}}"#),
        Err(Plan::Leave)
    );
    assert_eq!(
        always(r#"{"stream":true,"stream_options":{"continuous_usage_stats":true}}"#),
        Err(Plan::Leave)
    );
}

#[test]
fn continuous_usage_alone_is_touched_only_on_a_known_vllm() {
    let body = r#"{"stream":true,"stream_options":{"continuous_usage_stats":true}}"#;
    assert_eq!(
        injected(body, ExposeUsage::AsRequested, false),
        Err(Plan::Skip(Skip::ContinuousUsage))
    );
    assert!(as_requested(body).is_ok());
}
