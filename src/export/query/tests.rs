//! Questions that can be asked, and the sentences for those that can't.

use strum::VariantArray;

use super::*;

fn error(parameter: &str, value: &str) -> String {
    Query::from_pairs([(parameter, value)])
        .unwrap_err()
        .to_string()
}

#[test]
fn every_parameter_is_read() {
    let query = Query::from_pairs([
        ("by", "model,engine,model"),
        ("model", "qwen"),
        ("tag", "math"),
        ("engine", "trtllm"),
        ("window", "all"),
        ("run", ""),
    ]);
    assert_eq!(
        query,
        Ok(Query {
            by: vec![By::Model, By::Engine],
            model: Some("qwen".into()),
            tag: Some("math".into()),
            engine: Some(EngineName::TensorrtLlm),
            ..Query::default()
        })
    );
    assert_eq!(Query::from_pairs([]), Ok(Query::default()));
}

#[test]
fn a_wrong_value_names_parameter_value_and_what_would_be_right() {
    assert_eq!(
        error("by", "model,colour"),
        format!("by=model,colour: should be {BY_EXPECTED}")
    );
    let unknown_engine = error("engine", "vlm");
    assert!(
        unknown_engine.starts_with("engine=vlm: should be one of vllm, tensorrt_llm (or trtllm), "),
        "{unknown_engine}"
    );
    for engine in EngineName::VARIANTS {
        assert!(unknown_engine.contains(engine.as_str()), "{engine:?}");
    }
    assert_eq!(
        error("models", "x"),
        "models=x: no such parameter; there are by, model, tag, engine, window and run"
    );
}

#[test]
fn windows_runs_and_one_facet_are_read() {
    let query = Query::from_pairs([("window", "15m"), ("run", "k = 8"), ("by", "tag,context")]);
    let query = query.unwrap();
    assert_eq!(
        query.selection(),
        Selection {
            window: Window::Quarter,
            run: Some("k = 8".into()),
            facet: Some(Facet::Context),
        }
    );
    assert_eq!(
        query.for_snapshot(),
        "window=15m&run=k%20%3D%208&by=context"
    );
    assert_eq!(Query::default().for_snapshot(), "");
    assert_eq!(
        error("window", "10m"),
        "window=10m: should be 1m, 5m, 15m, 1h or all"
    );
}

#[test]
fn two_facets_at_once_are_too_many() {
    assert_eq!(
        error("by", "context,model,stream"),
        format!("by=context,model,stream: should be {BY_EXPECTED}")
    );
}
