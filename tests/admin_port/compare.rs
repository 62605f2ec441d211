//! `spectap compare` of what a running tap keeps: its runs, its tags, and pairs of its requests.

use clap::Parser;
use serde_json::Value;
use spectap::cli::{Cli, Command};
use spectap::observation::Observation;

use crate::server::{Choice, Server, observation};

/// What the command prints, or why it does not.
async fn compare(arguments: &[String]) -> Result<String, String> {
    let command = ["spectap", "compare"].map(str::to_owned);
    let command = command.iter().chain(arguments);
    let Command::Compare(args) = Cli::try_parse_from(command).unwrap().command else {
        unreachable!()
    };
    let mut out = Vec::new();
    match spectap::compare::run(&args, &mut out).await {
        Ok(()) => Ok(String::from_utf8(out).unwrap()),
        Err(error) => Err(error.to_string()),
    }
}

async fn json(arguments: &[String]) -> Value {
    let format = ["--format=json".to_owned()];
    let text = compare(&[arguments, &format].concat()).await.unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Request `number` of a run: ten steps of k = 4 that accepted `accepted` drafts each.
fn request(number: u128, run: &str, tag: &str, accepted: u64) -> Observation {
    let mut observation = observation(number);
    observation.x_request_id = Some(format!("prompt-{}", number % 1000));
    (observation.run, observation.tag) = (Some(run.to_owned()), Some(tag.to_owned()));
    let record = &mut observation.spec_decode_acceptance[0];
    record.acceptance_histogram = [(u32::try_from(accepted).unwrap(), 10)].into();
    (record.num_spec_steps, record.num_spec_tokens) = (Some(10), Some(4));
    (record.num_draft_tokens, record.num_accepted_draft_tokens) = (40, 10 * accepted);
    (record.mean_acceptance_length, record.draft_acceptance_rate) = (None, None);
    observation
}

/// A tap with a run `old` and a run `new`, which accepts one draft more in every step.
async fn two_runs() -> (Server, String) {
    let server = Server::start().await;
    for (run, first, more) in [("old", 0, 0), ("new", 1000, 1)] {
        server.runs.begin(Some(run)).unwrap();
        for number in 0..64_u64 {
            let tag = ["prose", "math"][usize::from(number % 4 < 2)];
            let accepted = u64::from(number % 3 == 0) + more;
            server.record(request(first + u128::from(number), run, tag, accepted));
        }
    }
    let url = format!("http://{}", server.address);
    (server, url)
}

#[tokio::test]
async fn two_runs_of_one_tap_are_compared_by_name() {
    let (server, url) = two_runs().await;
    let sides = [format!("{url}?run=old"), format!("{url}/?run=new")];
    let json = json(&sides).await;
    assert_eq!(json["base"]["name"], sides[0]);
    let other = &json["others"][0];
    assert_eq!(
        (&json["base"]["n"], &other["run"]["n"]),
        (&64.into(), &64.into())
    );
    let length = &other["differences"][0];
    assert_eq!(
        (&length["difference"], &length["verdict"]),
        (&1.0.into(), &"higher".into())
    );
    assert_eq!(other["pairing"], Value::Null);
    let tags: Vec<&Value> = other["categories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|category| &category["tag"])
        .collect();
    assert_eq!(tags, ["math", "prose"]);
    server.stop().await;
}

#[tokio::test]
async fn tags_of_one_run_are_compared_as_well() {
    let (server, url) = two_runs().await;
    let sides = [
        format!("{url}?run=old&tag=math"),
        format!("{url}?run=old&tag=prose"),
    ];
    let json = json(&sides).await;
    assert_eq!(json["base"]["n"], 32);
    assert_eq!(json["others"][0]["run"]["n"], 32);
    server.stop().await;
}

#[tokio::test]
async fn the_exchanges_that_a_tap_keeps_are_paired_within_the_run_that_is_named() {
    let (server, url) = two_runs().await;
    // One that only the newer run has.
    server.record(request(1999, "new", "math", 0));
    let sides = [format!("{url}?run=old"), format!("{url}?run=new")];
    for pair in ["x_request_id", "tag-index"] {
        let flag = [format!("--pair={pair}")];
        let json = json(&[&sides[..], &flag].concat()).await;
        let other = &json["others"][0];
        let pairing = serde_json::json!({
            "by": pair, "pairs": 64, "unpaired_base": 0, "unpaired_other": 1
        });
        assert_eq!(other["pairing"], pairing);
        let length = &other["differences"][0];
        // Every prompt gains the same: nothing is left to chance.
        assert_eq!(
            (&length["n_base"], &length["difference"]),
            (&64.into(), &1.0.into())
        );
        let low = length["interval"]["low"].as_f64().unwrap();
        assert!((low - 1.0).abs() < 1e-9, "{low}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_window_is_asked_of_every_tap() {
    let server = Server::start_with(Choice {
        clock: spectap::clock::Clock::by_hand(observation(0).ended_at),
        ..Choice::default()
    })
    .await;
    for number in 0..40 {
        server.record(request(number, "old", "math", 1));
    }
    let mut earlier = request(99, "old", "math", 1);
    earlier.ended_at -= std::time::Duration::from_secs(600);
    server.record(earlier);
    let url = format!("http://{}", server.address);
    let n = |json: Value| {
        (
            json["base"]["n"].clone(),
            json["others"][0]["run"]["n"].clone(),
        )
    };
    let sides = [url.clone(), format!("{url}?window=1h")];
    let window = ["--window=5m".to_owned()];
    assert_eq!(n(json(&sides).await), (41.into(), 41.into()));
    assert_eq!(
        n(json(&[&sides[..], &window].concat()).await),
        (40.into(), 41.into())
    );
    let paired = [&sides[..], &window, &["--pair=tag-index".to_owned()]].concat();
    let error = compare(&paired).await.unwrap_err();
    assert!(error.contains("it does not go with --pair"), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn a_run_that_a_tap_does_not_have_is_named() {
    let (server, url) = two_runs().await;
    let sides = [format!("{url}?run=older"), url.clone()];
    let error = compare(&sides).await.unwrap_err();
    assert!(error.contains("run=older: there is no such run"), "{error}");
    let error = compare(&[&sides[..], &["--pair=x_request_id".to_owned()]].concat())
        .await
        .unwrap_err();
    assert!(
        error.starts_with(&format!(
            "{url}?run=older: there is no exchange of that run"
        )) && error.ends_with("the runs there are: new, old"),
        "{error}"
    );
    server.stop().await;
}
