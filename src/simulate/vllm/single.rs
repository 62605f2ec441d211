//! vLLM's responses in one piece: every member of the schema is there, null where there is nothing to say.

use std::io;

use super::report::{Report, list, stop_reason};
use super::{JSON, quoted};
use crate::simulate::play::Play;
use crate::simulate::request::{Asked, Route};
use crate::simulate::response::{Extra, Responder};

/// Text and tokens of a sequence.
#[derive(Clone, Default)]
struct Whole {
    text: String,
    tokens: Vec<u32>,
}

/// Generates to the end, then sends it all.
pub(super) async fn send(
    mut play: Play,
    asked: &Asked,
    report: &Report,
    extra: &Extra,
    responder: &mut Responder,
) -> io::Result<()> {
    let mut wholes = vec![Whole::default(); play.sequences().len()];
    if asked.echo {
        wholes
            .iter_mut()
            .for_each(|whole| whole.text.push_str(&asked.prompt_text));
    }
    while let Some(piece) = play.next(None).await? {
        if let Some(whole) = wholes.get_mut(piece.index) {
            whole.text.push_str(&piece.text);
            whole.tokens.extend(&piece.tokens);
        }
    }
    let choices: Vec<_> = wholes
        .iter()
        .enumerate()
        .map(|(index, whole)| choice(&play, asked.route, index, whole))
        .collect();
    let body = body(&play, asked.route, report, &choices.join(","));
    let told = report.has_payload(&play);
    play.record(true, &[told]);
    responder.reply("200 OK", JSON, extra, &body).await
}

fn choice(play: &Play, route: Route, index: usize, whole: &Whole) -> String {
    let reason = play
        .finish(index)
        .map_or_else(|| "null".to_owned(), |finish| quoted(finish.reason()));
    let stop = play
        .finish(index)
        .map_or_else(|| "null".to_owned(), stop_reason);
    let text = quoted(&whole.text);
    match route {
        Route::Chat | Route::ChatBatch => format!(
            concat!(
                r#"{{"index":{},"message":{{"role":"assistant","content":{},"refusal":null,"annotations":null,"#,
                r#""audio":null,"function_call":null,"reasoning":null}},"logprobs":null,"finish_reason":{},"#,
                r#""stop_reason":{},"token_ids":null,"routed_experts":null}}"#,
            ),
            index, text, reason, stop,
        ),
        Route::Completions => format!(
            concat!(
                r#"{{"index":{},"text":{},"logprobs":null,"finish_reason":{},"stop_reason":{},"token_ids":null,"#,
                r#""prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}}"#,
            ),
            index, text, reason, stop,
        ),
        _ => format!(
            concat!(
                r#"{{"index":{},"finish_reason":{},"stop_reason":{},"token_ids":{},"routed_experts":null,"#,
                r#""sampling_mask":null,"weight_versions":[{{"version":"default","start":0,"end":{}}}],"#,
                r#""logprobs":null}}"#,
            ),
            index,
            reason,
            stop,
            list(&whole.tokens),
            whole.tokens.len(),
        ),
    }
}

fn body(play: &Play, route: Route, report: &Report, choices: &str) -> String {
    let (id, created, model) = (quoted(&play.id), play.created, &report.model);
    let usage = report.whole_usage(play);
    let metrics = report.whole_metrics(play);
    let fingerprint = report.fingerprint.as_deref().unwrap_or("null");
    let (object, prompt) = match route {
        Route::Chat | Route::ChatBatch => (
            "chat.completion",
            r#""prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,"#,
        ),
        Route::Completions => ("text_completion", ""),
        _ => {
            return format!(
                concat!(
                    r#"{{"request_id":{},"model":{},"created":{},"usage":{},"prompt_logprobs":null,"#,
                    r#""prompt_token_id_logprobs":null,"prompt_token_ids":null,"mm_placeholders":null,"metrics":{},"#,
                    r#""kv_transfer_params":null,"ec_transfer_params":null,"output_mode":"tokens","choices":[{}]}}"#,
                ),
                id, model, created, usage, metrics, choices,
            );
        }
    };
    format!(
        concat!(
            r#"{{"id":{},"object":"{}","created":{},"model":{},"choices":[{}],"service_tier":null,"#,
            r#""system_fingerprint":{},"usage":{},{}"kv_transfer_params":null,"ec_transfer_params":null,"metrics":{}}}"#,
        ),
        id, object, created, model, choices, fingerprint, usage, prompt, metrics,
    )
}
