//! Recent exchanges, listed and one by one.

use serde_json::Value;
use spectap::observation::Outcome;

use crate::server::{Server, id, observation};

const PATH: &str = "/api/v1/requests";

fn ids(page: &Value) -> Vec<String> {
    page["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn nothing_yet_is_an_empty_page() {
    let server = Server::start().await;
    let page = server.get(PATH).await.json();
    assert_eq!(page["requests"], Value::Array(Vec::new()));
    assert_eq!(
        (&page["next"], &page["dropped"]),
        (&Value::Null, &Value::from(0))
    );
}

#[tokio::test]
async fn an_exchange_is_shown_as_it_was_observed() {
    let server = Server::start().await;
    let seen = observation(7);
    server.record(seen.clone());
    let expected = serde_json::to_value(&seen).unwrap();
    let answer = server.get(&format!("{PATH}/{}", id(7))).await;
    assert_eq!((answer.status, answer.json()), (200, expected.clone()));
    assert_eq!(server.get(PATH).await.json()["requests"][0], expected);
}

#[tokio::test]
async fn an_unknown_id_is_a_json_404_that_names_it() {
    let server = Server::start().await;
    for unknown in ["01JAAAAAAAAAAAAAAAAAAAAAAA", "nonsense", "%22%0a"] {
        let (code, message) = server.get(&format!("{PATH}/{unknown}")).await.error(404);
        assert_eq!(code, "not_found");
        assert!(!message.contains('\n'), "{message:?}");
    }
    assert_eq!(
        server.get(&format!("{PATH}/%ff")).await.error(400).0,
        "bad_request"
    );
}

#[tokio::test]
async fn pages_join_without_gap_or_double_while_new_ones_arrive() {
    let server = Server::start().await;
    (0..25).for_each(|number| server.record(observation(number)));
    let mut all = Vec::new();
    let mut path = format!("{PATH}?limit=10");
    for newcomer in 100.. {
        let page = server.get(&path).await.json();
        all.extend(ids(&page));
        server.record(observation(newcomer));
        match page["next"].as_str() {
            Some(next) => path = format!("{PATH}?limit=10&after={next}"),
            None => break,
        }
    }
    assert_eq!(all, (0..25).rev().map(id).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_page_holds_a_hundred_unless_told_and_the_last_one_has_no_next() {
    let server = Server::start().await;
    (0..100).for_each(|number| server.record(observation(number)));
    let page = server.get(PATH).await.json();
    assert_eq!((ids(&page).len(), &page["next"]), (100, &Value::Null));
    server.record(observation(100));
    let page = server.get(PATH).await.json();
    assert_eq!(
        (ids(&page).len(), page["next"].as_str()),
        (100, Some(id(1).as_str()))
    );
    let page = server.get(&format!("{PATH}?limit=1000")).await.json();
    assert_eq!((ids(&page).len(), &page["next"]), (101, &Value::Null));
}

#[tokio::test]
async fn filters_and_orders_are_taken_from_the_query() {
    let server = Server::start().await;
    for number in 0..4 {
        let mut it = observation(number);
        it.model = Some(if number < 2 { "a/b c" } else { "other" }.to_owned());
        it.tag = (number == 1).then(|| "math".to_owned());
        it.timing.request_latency_ms = Some([5.0, 9.0, 1.0, 7.0][number as usize]);
        if number == 3 {
            it.outcome = Outcome::Cancelled;
        }
        server.record(it);
    }
    for (query, expected) in [
        ("model=a%2Fb+c", vec![1, 0]),
        ("tag=math", vec![1]),
        ("outcome=cancelled", vec![3]),
        ("acceptance=recorded&outcome=complete", vec![2, 1, 0]),
        ("acceptance=absent", vec![]),
        ("sort=latency", vec![1, 3, 0, 2]),
        ("sort=newest", vec![3, 2, 1, 0]),
        (
            "limit=&after=&model=&tag=&outcome=&acceptance=&sort=",
            vec![3, 2, 1, 0],
        ),
        ("sort=length&limit=2", vec![3, 2]),
    ] {
        let page = server.get(&format!("{PATH}?{query}")).await.json();
        let expected: Vec<_> = expected.into_iter().map(id).collect();
        assert_eq!(ids(&page), expected, "{query}");
    }
}

#[tokio::test]
async fn a_bad_parameter_is_named_with_its_value_and_what_would_be_right() {
    let server = Server::start().await;
    for (query, parts) in [
        ("limit=0", ["'limit'", "'0'", "1 to 1000"]),
        ("limit=1001", ["'limit'", "'1001'", "1 to 1000"]),
        ("limit=ten", ["'limit'", "'ten'", "1 to 1000"]),
        ("after=xyz", ["'after'", "'xyz'", "'next'"]),
        (
            "outcome=done",
            [
                "'outcome'",
                "'done'",
                "complete, error_status, error_event, truncated, cancelled",
            ],
        ),
        (
            "acceptance=yes",
            ["'acceptance'", "'yes'", "recorded, zero_step, absent"],
        ),
        (
            "sort=oldest",
            ["'sort'", "'oldest'", "newest, latency, length"],
        ),
        ("page=2", ["'page'", "limit, after", "sort"]),
        ("model=a&model=b", ["'model'", "given", "twice"]),
    ] {
        let (code, message) = server.get(&format!("{PATH}?{query}")).await.error(400);
        assert_eq!(code, "bad_parameter", "{query}");
        for part in parts {
            assert!(message.contains(part), "{query}: {message}");
        }
    }
}

#[tokio::test]
async fn a_sorted_page_after_something_that_is_gone_says_so() {
    let server = Server::start().await;
    server.record(observation(1));
    let gone = id(99);
    let (code, message) = server
        .get(&format!("{PATH}?sort=latency&after={gone}"))
        .await
        .error(410);
    assert_eq!(code, "gone");
    assert!(message.contains("after"), "{message}");
    let page = server.get(&format!("{PATH}?after={gone}")).await.json();
    assert!(ids(&page).is_empty());
}
