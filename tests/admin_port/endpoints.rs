//! What each path answers, and how errors look.

use serde_json::json;

use crate::server::{Server, observation, within};

const PATHS: [&str; 9] = [
    "/",
    "/metrics",
    "/metrics/engine-names",
    "/livez",
    "/readyz",
    "/api/v1/summary",
    "/api/v1/snapshot",
    "/api/v1/requests",
    "/api/v1/inject",
];

#[tokio::test]
async fn every_path_answers_and_no_answer_may_be_stored_or_taken_for_another_type() {
    let server = Server::start().await;
    for path in PATHS.into_iter().chain(["/nothing"]) {
        let answer = server.get(path).await;
        let expected = if path == "/nothing" { 404 } else { 200 };
        assert_eq!(answer.status, expected, "{path} {answer:?}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert!(!answer.body.is_empty(), "{path}");
        if path.starts_with("/api/") {
            assert!(answer.json().is_object(), "{path}");
        }
    }
}

#[tokio::test]
async fn head_has_the_head_of_get_and_no_body() {
    let server = Server::start().await;
    for path in PATHS {
        let get = server.get(path).await;
        let head = server.send("HEAD", path, "", "").await;
        assert_eq!(head.status, 200, "{path}");
        assert_eq!(head.body, "", "{path}");
        assert_eq!(
            head.header("content-type"),
            get.header("content-type"),
            "{path}"
        );
        if path != "/metrics" {
            assert_eq!(
                head.header("content-length"),
                get.header("content-length"),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn the_index_names_every_path() {
    let server = Server::start().await;
    let index = server.get("/").await;
    assert!(
        index
            .header("content-type")
            .unwrap()
            .starts_with("text/plain")
    );
    for path in PATHS {
        assert!(index.body.contains(path), "{path}");
    }
}

#[tokio::test]
async fn an_unknown_path_is_a_json_404_that_names_it() {
    let server = Server::start().await;
    for path in [
        "/v1/models",
        "/api/v1/nothing",
        "/metrics/",
        "/api/v1/requests/",
    ] {
        let (code, message) = server.get(path).await.error(404);
        assert_eq!(code, "not_found");
        assert!(message.contains(path), "{message}");
    }
    let long = format!("/{}", "x".repeat(4000));
    let (_, message) = server.get(&long).await.error(404);
    assert!(message.len() < 300, "{message}");
}

#[tokio::test]
async fn a_wrong_method_is_a_json_405_with_allow() {
    let server = Server::start().await;
    for (method, path, allowed) in [
        ("POST", "/metrics", "GET,HEAD"),
        ("DELETE", "/api/v1/summary", "GET,HEAD"),
        ("POST", "/api/v1/requests/x", "GET,HEAD"),
        ("PUT", "/api/v1/inject", "GET,HEAD,POST"),
        ("OPTIONS", "/api/v1/inject", "GET,HEAD,POST"),
    ] {
        let answer = server.send(method, path, "", "").await;
        let (code, message) = answer.error(405);
        assert_eq!(code, "method_not_allowed");
        assert!(
            message.contains(method) && message.contains(path),
            "{message}"
        );
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
    }
}

#[tokio::test]
async fn the_numbers_are_those_of_what_was_observed_and_take_a_query() {
    let server = Server::start().await;
    (0..3).for_each(|number| server.record(observation(number)));
    let summary = server.get("/api/v1/summary").await.json();
    assert_eq!(summary["n"]["recorded"], 3, "{summary}");
    let histogram = &summary["pooled_spec_decode_acceptance_histogram"];
    assert_eq!(histogram, &json!({"1": 6, "2": 3, "3": 3}));
    let by_model = server.get("/api/v1/summary?by=model").await.json();
    assert_eq!(
        by_model["groups"][0]["key"],
        json!({"model": "m"}),
        "{by_model}"
    );
    let other = server.get("/api/v1/summary?model=a%20b%2Fc").await.json();
    assert_eq!(other["n"]["exchanges"], 0, "{other}");
    assert_eq!(other["scope"]["filter"]["model"], "a b/c", "{other}");
    let snapshot = server.get("/api/v1/snapshot").await;
    assert_eq!(snapshot.status, 200);
    serde_json::from_str::<spectap::export::Snapshot>(&snapshot.body).unwrap();
}

#[tokio::test]
async fn a_bad_parameter_of_the_numbers_is_a_json_400_that_names_it() {
    let server = Server::start().await;
    for path in ["/api/v1/summary", "/api/v1/snapshot"] {
        let (code, message) = server.get(&format!("{path}?modell=x")).await.error(400);
        assert_eq!(code, "bad_parameter");
        assert!(message.contains("modell"), "{message}");
    }
}

#[tokio::test]
async fn a_connection_serves_several_requests() {
    let server = Server::start().await;
    let host = server.address;
    let twice = server
        .raw(&format!(
            "GET /livez HTTP/1.1\r\nHost: {host}\r\n\r\nGET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ))
        .await;
    assert!(
        twice.body.starts_with("alive\nHTTP/1.1 200 OK"),
        "{twice:?}"
    );
    assert!(twice.body.ends_with("ready\n"), "{twice:?}");
}

#[tokio::test]
async fn idle_and_half_sent_clients_do_not_hold_the_end() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    let server = Server::start().await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    let mut half = TcpStream::connect(server.address).await.unwrap();
    half.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        .await
        .unwrap();
    let mut kept = TcpStream::connect(server.address).await.unwrap();
    kept.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 12];
    within(kept.read_exact(&mut first)).await.unwrap();
    let address = server.address;
    server.stop().await;
    for mut client in [silent, half, kept] {
        // End of the stream or a reset, but an end.
        let _ = within(client.read_to_end(&mut Vec::new())).await;
    }
    assert!(
        TcpStream::connect(address).await.is_err(),
        "still listening"
    );
}
