//! Nothing that clients or the engine write can grow `/metrics` without bound: the reports B34, B35 and B38 in one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::client::Client;
use crate::support::origin::{Origin, Then};
use crate::support::tap::Tap;

const EXCHANGES: usize = 5_000;

const ROUTES: usize = 8;
/// 24 codes, five classes and one for the rest, and `none`.
const CODES: usize = 24 + 6 + 1;

/// Every label that there is, and the most values that it may have.
const LABELS: [(&str, usize); 15] = [
    // 100, `other`, and `unknown`.
    ("model_name", 102),
    // 50, and `other`.
    ("tag", 51),
    ("backend", 2),
    ("route", ROUTES),
    ("code", CODES),
    ("outcome", 5),
    ("acceptance", 6),
    ("reason", 40),
    ("kind", 12),
    ("state", 2),
    ("position", 4),
    ("le", 80),
    ("option", 2),
    ("version", 1),
    ("commit", 1),
];

/// The most series of each family that does not belong to a model, as its labels allow.
const FAMILIES: [(&str, usize); 12] = [
    ("spectap_requests_total", ROUTES * CODES),
    ("spectap_requests_in_flight", ROUTES),
    ("spectap_exchange_outcomes_total", 5),
    ("spectap_injections_total", 2 * 8),
    ("spectap_injections_skipped_total", 20),
    ("spectap_stripped_events_total", 1),
    ("spectap_strips_skipped_total", 10),
    ("spectap_replays_total", 3),
    ("spectap_unobserved_total", 12),
    ("spectap_upstream_errors_total", 12),
    ("spectap_upstream_connections", 2),
    ("spectap_upstream_retries_total", 1),
];

/// An engine that answers as each request's header `x-want` says: a status, and a model of its own.
fn engine() -> Origin {
    Origin::start(|_, request, stream| {
        let value = |name: &str| {
            let line = request
                .head
                .split("\r\n")
                .find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().to_owned()
        };
        let (status, model) = (value("x-want: "), value("x-model: "));
        let body = format!(
            r#"{{"id":"c","model":"{model}","choices":[{{"index":0,"message":{{"content":"a"}},"finish_reason":"length"}}],"usage":{{"prompt_tokens":1,"completion_tokens":9}},"metrics":{{"speculative_decoding":{{"mean_acceptance_length":2.75,"draft_acceptance_rate":0.4375,"acceptance_histogram":[0,2,1,1,0],"num_accepted_draft_tokens":7,"num_draft_tokens":16,"num_spec_steps":4,"num_spec_tokens":4}}}}}}"#
        );
        let body = if matches!(status.as_str(), "204" | "304") {
            ""
        } else {
            &body
        };
        let length = if body.is_empty() {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        let _ = write!(
            stream,
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{length}\r\n{body}"
        );
        Then::KeepAlive
    })
}

/// Sends exchanges over one connection, each unlike all others.
fn send(tap: &Tap, from: usize, to: usize) {
    let mut random = fastrand::Rng::with_seed(from as u64 + 7);
    let mut client = Client::connect(tap.data);
    let word =
        |random: &mut fastrand::Rng| -> String { (0..12).map(|_| random.alphanumeric()).collect() };
    for number in from..to {
        let random = &mut random;
        let method = if number % 10 == 0 {
            word(random)
        } else {
            "POST".to_owned()
        };
        let prefix = if number % 3 == 0 {
            format!("/{}", word(random))
        } else {
            String::new()
        };
        let route = random
            .choice([
                "/v1/chat/completions",
                "/v1/completions",
                "/generate",
                "/completion",
                "/v1/responses",
                "/v1/messages",
                "/unknown",
            ])
            .unwrap();
        let status = if number % 2 == 0 {
            200
        } else {
            random.usize(200..1000)
        };
        let body = format!(
            r#"{{"model":"{}","user":"{}"}}"#,
            word(random),
            word(random)
        );
        let fields = format!(
            "Host: {}\r\nx-spectap-tag: {}\r\nx-want: {status}\r\nx-model: {}\r\n{}: {}\r\n",
            word(random),
            word(random),
            word(random),
            word(random),
            word(random),
        );
        client.send(format!(
            "{method} {prefix}{route}?{} HTTP/1.1\r\n{fields}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            word(random),
            body.len()
        ));
        read(&mut client, status);
    }
}

/// Reads one answer, which has a length or no body.
fn read(client: &mut Client, status: usize) {
    let head = String::from_utf8(client.read_until(b"\r\n\r\n")).unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    if head.contains("content-length") {
        client.read_until(b"}}}");
    }
}

/// All series, as exposed.
fn series(tap: &Tap) -> BTreeSet<String> {
    let mut admin = TcpStream::connect(tap.admin).unwrap();
    admin
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    admin.read_to_string(&mut text).unwrap();
    let (_, text) = text.split_once("\r\n\r\n").unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| line.rsplit_once(' ').unwrap().0.to_owned())
        .collect()
}

fn family(series: &str) -> &str {
    series.split('{').next().unwrap()
}

/// The labels of a series.
fn labels(series: &str) -> Vec<(&str, &str)> {
    let Some((_, labels)) = series.split_once('{') else {
        return Vec::new();
    };
    let pairs = labels.trim_end_matches('}').split("\",");
    pairs
        .map(|pair| pair.split_once("=\"").unwrap())
        .map(|(name, value)| (name, value.trim_end_matches('"')))
        .collect()
}

/// The values that each label has.
fn values(all: &BTreeSet<String>) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, value) in all.iter().flat_map(|series| labels(series)) {
        values.entry(name).or_default().insert(value);
    }
    values
}

fn holds(flags: &[&str], most: usize) {
    let origin = engine();
    let tap = Tap::with(origin.address, flags);
    send(&tap, 0, EXCHANGES);
    let first = series(&tap);
    assert!(first.len() <= most, "{} series", first.len());
    for (name, bound) in FAMILIES {
        let count = first.iter().filter(|series| family(series) == name).count();
        assert!(count <= bound, "{name}: {count}, at most {bound}");
    }
    // A path, a host, a method, another header or a name of the body is the value of no label; models and tags are few.
    let values = values(&first);
    for (name, values) in &values {
        let bound = LABELS.iter().find(|(known, _)| known == name);
        let (_, bound) = bound.unwrap_or_else(|| panic!("a new label {name}: {values:?}"));
        assert!(
            values.len() <= *bound,
            "{name}: {}, at most {bound}",
            values.len()
        );
    }
    assert!(
        values["model_name"].contains("other"),
        "{:?}",
        values["model_name"]
    );
    assert_eq!(values["code"].len(), CODES - 1, "{:?}", values["code"]);
    // 500 more of everything: no series goes, and none comes but a code on a route that had not had it.
    send(&tap, EXCHANGES, EXCHANGES + 500);
    let second = series(&tap);
    assert_eq!(first.difference(&second).collect::<Vec<_>>(), [""; 0]);
    let new = second.difference(&first);
    let new: Vec<&String> = new.filter(|new| family(new) != FAMILIES[0].0).collect();
    assert_eq!(new, [""; 0]);
    assert!(second.len() <= most, "{} series", second.len());
}

#[test]
fn five_thousand_of_everything_leave_a_fixed_number_of_series() {
    holds(&[], 5_000);
}

#[test]
fn max_series_holds_whatever_comes() {
    holds(&["--max-series=1000"], 1_000);
}
