//! A model whose acceptance length fell against its own past is named, with the figures that the windows give.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use numbers_support::{record, recorded};
use spectap::clock::Clock;
use spectap::export::{Query, Summary, summary};
use spectap::observation::ObservationSink;
use spectap::stats::{Finding, Statistics, Window};

const LENGTH: &str = "spec_decode_token_weighted_acceptance_length";

struct Tap {
    clock: Clock,
    statistics: Statistics,
}

impl Tap {
    fn new() -> Self {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let clock = Clock::by_hand(start);
        // So few single exchanges are kept that only the sums can tell about the past.
        let statistics = Statistics::with_log(clock.clone(), 40_000);
        Self { clock, statistics }
    }

    /// A request of each of two models every four seconds; those of `falling` accept as many drafts as given in each of
    /// 40 steps, or one more or less, those of `steady` two.
    fn run(&self, length: Duration, accepted: usize) {
        for number in 0..length.as_secs() / 4 {
            self.clock.advance(Duration::from_secs(4));
            for (model, accepted) in [("falling", accepted), ("steady", 2)] {
                let mut histogram = [0; 5];
                histogram[accepted] = 36;
                histogram[accepted - 1] += 4 * (number % 2);
                histogram[accepted + 1] += 4 * ((number + 1) % 2);
                let mut exchange = recorded(vec![record(&histogram)]);
                exchange.model = Some(model.into());
                exchange.ended_at = self.clock.now();
                exchange.started_at = self.clock.now() - Duration::from_secs(2);
                self.statistics.record(Arc::new(exchange));
            }
        }
    }

    fn ask(&self, query: Query) -> Summary {
        summary(&self.statistics, &query)
    }

    fn falls(&self, query: Query) -> Vec<Finding> {
        let findings = self.ask(query).findings.into_iter();
        findings.filter(|it| it.code == "length_fell").collect()
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_model_whose_length_fell_is_named_until_its_past_is_as_low() {
    let tap = Tap::new();
    tap.run(50 * MINUTE, 3);
    assert_eq!(tap.falls(Query::default()), []);
    tap.run(5 * MINUTE, 2);
    let falls = tap.falls(Query::default());
    assert_eq!(falls.len(), 1, "{falls:?}");
    let recent = tap.ask(Query {
        window: Window::FiveMinutes,
        model: Some("falling".into()),
        ..Query::default()
    });
    let (length, n) = (recent.metrics[LENGTH].avg, recent.n.exchanges);
    assert_eq!(falls[0].n, n);
    let text = &falls[0].text;
    let starts = format!(
        "The acceptance length of falling fell: {length:.2} over the last five minutes (n = {n}) against 4.00 over the hour before (n = "
    );
    assert!(text.starts_with(&starts), "{starts}\n{text}");
    assert!(
        text.contains(", a difference of -1.00 (99.9 % interval -1."),
        "{text}"
    );
    tap.run(60 * MINUTE, 2);
    assert_eq!(tap.falls(Query::default()), []);
}

#[test]
fn it_is_said_wherever_all_requests_of_the_model_are_asked_about() {
    let tap = Tap::new();
    tap.run(50 * MINUTE, 3);
    tap.run(5 * MINUTE, 2);
    let of = |query: Query| tap.falls(query).len();
    let model = |name: &str| Query {
        model: Some(name.to_owned()),
        ..Query::default()
    };
    assert_eq!(of(model("falling")), 1);
    assert_eq!(of(model("steady")), 0);
    assert_eq!(
        of(Query {
            window: Window::Minute,
            ..Query::default()
        }),
        1
    );
    assert_eq!(
        of(Query {
            run: Some("r".into()),
            ..Query::default()
        }),
        0
    );
    assert_eq!(
        of(Query {
            tag: Some("t".into()),
            ..Query::default()
        }),
        0
    );
}
