//! vLLM's streams: one event per piece, then the usage event where it is asked for.

use std::io;

use super::quoted;
use super::report::{Report, list, stop_reason};
use crate::simulate::generation::{Finish, Piece};
use crate::simulate::play::Play;
use crate::simulate::request::{Asked, Route};
use crate::simulate::response::{Extra, Responder};

/// What a stream says when the engine dies under it.
const FAILURE: &str = concat!(
    r#"{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","#,
    r#""type":"InternalServerError","param":null,"code":500}}"#,
);

/// Streams a generation.
pub(super) async fn send(
    mut play: Play,
    asked: &Asked,
    report: &Report,
    extra: &Extra,
    responder: &mut Responder,
) -> io::Result<()> {
    responder.start_events(extra).await?;
    let mut sent = vec![0; play.sequences().len()];
    let mut begun = false;
    while let Some(piece) = play.next(Some(responder)).await? {
        if !begun && asked.route == Route::Chat {
            for index in 0..sent.len() {
                responder.event(&role(&play, report, index)).await?;
            }
        }
        let first = !std::mem::replace(&mut begun, true);
        if let Some(sent) = sent.get_mut(piece.index) {
            *sent += piece.tokens.len();
        }
        let completion = sent.get(piece.index).copied().unwrap_or_default();
        let event = match asked.route {
            Route::Chat | Route::ChatBatch => chat(&play, report, &piece, completion),
            Route::Completions => completions(
                &play,
                report,
                &piece,
                completion,
                asked.echo && first,
                asked,
            ),
            _ => generate(&play, &piece, completion),
        };
        responder.event(&event).await?;
    }
    if play.failed() {
        play.record_failure();
        responder.event(FAILURE).await?;
        return responder.end_events().await;
    }
    play.before_trailer().await;
    if report.usage_event {
        responder.event(&usage(&play, report, asked.route)).await?;
    }
    let told = report.usage_event && report.has_payload(&play);
    play.record(report.usage_event, &[told]);
    responder.end_events().await
}

/// What every event of the OpenAI routes begins with.
fn start(play: &Play, report: &Report, object: &str) -> String {
    format!(
        r#"{{"id":{id},"object":"{object}","created":{created},"model":{model},"choices":["#,
        id = quoted(&play.id),
        created = play.created,
        model = report.model,
    )
}

fn object(route: Route) -> &'static str {
    if route == Route::Completions {
        "text_completion"
    } else {
        "chat.completion.chunk"
    }
}

fn role(play: &Play, report: &Report, index: usize) -> String {
    let start = start(play, report, "chat.completion.chunk");
    let usage = if report.usage_on_each {
        report.running_usage(play.prompt_tokens(), 0)
    } else {
        String::new()
    };
    format!(
        concat!(
            r#"{}{{"index":{},"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}]{},"#,
            r#""prompt_token_ids":null,"prompt_text":null}}"#,
        ),
        start, index, usage,
    )
}

/// What stands between the choices and the end of an event with text.
fn tail(play: &Play, report: &Report, piece: &Piece, completion: usize) -> String {
    let mut tail = String::new();
    if report.usage_on_each {
        tail.push_str(&report.running_usage(play.prompt_tokens(), completion));
    }
    // With a usage event to come, the fingerprint waits for that.
    if piece.finish.is_some()
        && !report.usage_event
        && let Some(fingerprint) = &report.fingerprint
    {
        tail.push_str(&format!(r#","system_fingerprint":{fingerprint}"#));
    }
    tail
}

fn chat(play: &Play, report: &Report, piece: &Piece, completion: usize) -> String {
    let finish = match &piece.finish {
        Some(finish) => format!(
            r#""{}","stop_reason":{}"#,
            finish.reason(),
            stop_reason(finish)
        ),
        None => "null".to_owned(),
    };
    format!(
        r#"{}{{"index":{},"delta":{{"content":{}}},"logprobs":null,"finish_reason":{},"token_ids":null}}]{}}}"#,
        start(play, report, object(Route::Chat)),
        piece.index,
        quoted(&piece.text),
        finish,
        tail(play, report, piece, completion),
    )
}

fn completions(
    play: &Play,
    report: &Report,
    piece: &Piece,
    completion: usize,
    with_prompt: bool,
    asked: &Asked,
) -> String {
    let text = if with_prompt {
        quoted(&(asked.prompt_text.clone() + &piece.text))
    } else {
        quoted(&piece.text)
    };
    let prompt_ids = if with_prompt {
        list(&play.prompt_ids)
    } else {
        "null".to_owned()
    };
    format!(
        concat!(
            r#"{}{{"index":{},"text":{},"logprobs":null,"finish_reason":{},"stop_reason":{},"#,
            r#""prompt_token_ids":{},"token_ids":null}}]{}}}"#,
        ),
        start(play, report, object(Route::Completions)),
        piece.index,
        text,
        finish_reason(piece.finish.as_ref()),
        piece
            .finish
            .as_ref()
            .map_or_else(|| "null".to_owned(), stop_reason),
        prompt_ids,
        tail(play, report, piece, completion),
    )
}

fn generate(play: &Play, piece: &Piece, completion: usize) -> String {
    let versions = match piece.finish {
        Some(_) => format!(r#"[{{"version":"default","start":0,"end":{completion}}}]"#),
        None => "null".to_owned(),
    };
    format!(
        concat!(
            r#"{{"request_id":{},"usage":null,"output_mode":"tokens","choices":[{{"index":{},"finish_reason":{},"#,
            r#""stop_reason":{},"token_ids":{},"routed_experts":null,"sampling_mask":null,"weight_versions":{},"#,
            r#""logprobs":null}}]}}"#,
        ),
        quoted(&play.id),
        piece.index,
        finish_reason(piece.finish.as_ref()),
        piece
            .finish
            .as_ref()
            .map_or_else(|| "null".to_owned(), stop_reason),
        list(&piece.tokens),
        versions,
    )
}

fn finish_reason(finish: Option<&Finish>) -> String {
    finish.map_or_else(|| "null".to_owned(), |finish| quoted(finish.reason()))
}

fn usage(play: &Play, report: &Report, route: Route) -> String {
    let metrics = report
        .stream_metrics(play)
        .map(|metrics| format!(r#","metrics":{metrics}"#))
        .unwrap_or_default();
    let usage = report.final_usage(play);
    if route == Route::Generate {
        let id = quoted(&play.id);
        return format!(
            r#"{{"request_id":{id},"usage":{usage}{metrics},"output_mode":"tokens","choices":[]}}"#
        );
    }
    let fingerprint = match &report.fingerprint {
        Some(fingerprint) => format!(r#","system_fingerprint":{fingerprint}"#),
        None => String::new(),
    };
    format!(
        r#"{}],"usage":{usage}{fingerprint}{metrics}}}"#,
        start(play, report, object(route))
    )
}
