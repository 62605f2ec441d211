//! `/api/v1/export`: what is kept, as a file.

use serde_json::Value;
use spectap::store::records::{Line, read_line};

use crate::server::{Answer, Server, observation};

/// In HTTP/1.0, so that the body comes without chunks.
async fn export(server: &Server, query: &str) -> Answer {
    let host = server.address;
    server
        .raw(&format!(
            "GET /api/v1/export{query} HTTP/1.0\r\nHost: {host}\r\n\r\n"
        ))
        .await
}

#[tokio::test]
async fn every_form_has_all_that_is_kept_oldest_first_as_an_attachment() {
    let server = Server::start().await;
    // More than one piece.
    (0..600).for_each(|number| server.record(observation(number)));
    let answer = export(&server, "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(
        answer.header("content-disposition"),
        Some("attachment; filename=\"spectap.jsonl\"")
    );
    assert_eq!(answer.header("x-spectap-dropped"), Some("0"));
    let mut ids = Vec::new();
    for (number, line) in answer.body.lines().enumerate() {
        match read_line(line.as_bytes()).unwrap() {
            Line::Head(head) => assert_eq!((number, head.dropped), (0, 0)),
            Line::Observation(observation) => ids.push(observation.id),
        }
    }
    assert_eq!(ids.len(), 600);
    assert!(ids.is_sorted());

    let answer = export(&server, "?format=json").await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let json: Value = serde_json::from_str(&answer.body).unwrap();
    let of_json: Vec<&str> = json["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!(of_json, ids);
    assert_eq!(
        (&json["dropped"], &json["manifest"]["form"]),
        (&0.into(), &1.into())
    );

    let answer = export(&server, "?format=csv").await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/csv; charset=utf-8")
    );
    let mut lines = answer.body.split("\r\n");
    let columns = lines.next().unwrap().split(',').count();
    let rows: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 600);
    for (row, id) in rows.iter().zip(&ids) {
        assert!(row.starts_with(id.as_str()), "{row}");
        assert_eq!(row.split(',').count(), columns, "{row}");
    }
}

#[tokio::test]
async fn without_exchanges_each_form_is_still_whole() {
    let server = Server::start().await;
    let jsonl = export(&server, "?format=jsonl").await.body;
    assert_eq!(jsonl.lines().count(), 1);
    let json: Value = serde_json::from_str(&export(&server, "?format=json").await.body).unwrap();
    assert_eq!(json["requests"], serde_json::json!([]));
    assert_eq!(export(&server, "?format=csv").await.body.lines().count(), 1);
}

#[tokio::test]
async fn a_wrong_parameter_is_named_with_what_would_be_right() {
    let server = Server::start().await;
    for (query, parts) in [
        ("format=xml", ["xml", "jsonl, json, csv"]),
        ("limit=1", ["limit", "expected format"]),
        ("format=csv&format=csv", ["format", "twice"]),
    ] {
        let answer = export(&server, &format!("?{query}")).await;
        assert_eq!(answer.status, 400);
        for part in parts {
            assert!(answer.body.contains(part), "{}", answer.body);
        }
    }
}
