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
        })
    );
    assert_eq!(Query::from_pairs([]), Ok(Query::default()));
}

#[test]
fn a_wrong_value_names_parameter_value_and_what_would_be_right() {
    assert_eq!(
        error("by", "model,colour"),
        "by=model,colour: should be a comma list of model, engine, tag, route"
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
fn windows_and_runs_are_not_available_yet_and_say_so() {
    assert_eq!(
        error("window", "5m"),
        "window=5m: not available yet; leave it out or say window=all"
    );
    assert_eq!(error("run", "a"), "run=a: not available yet; leave it out");
}
