//! The drain: asked for over the admin port, and how far it is.

use serde_json::json;

use crate::server::Server;

const PATH: &str = "/api/v1/drain";

#[tokio::test]
async fn a_drain_is_asked_for_once_and_told_to_its_end() {
    let server = Server::start().await;
    let state = async || server.get(PATH).await.json();
    assert_eq!(state().await, json!({"state": "serving"}));
    assert_eq!(server.get("/readyz").await.status, 200);
    for _ in 0..2 {
        let answer = server.post_json(PATH, "{}").await;
        assert_eq!(answer.status, 202);
        assert_eq!(answer.json(), json!({"state": "draining"}));
        assert!(server.drain.asked().is_cancelled());
    }
    assert_eq!(server.get("/readyz").await.status, 503);
    server.drain.is_over(true);
    assert_eq!(state().await, json!({"state": "over", "cut": true}));
    // The first word is the last.
    server.drain.is_over(false);
    assert_eq!(state().await, json!({"state": "over", "cut": true}));
}

#[tokio::test]
async fn a_drain_of_a_signal_shows_too() {
    let server = Server::start().await;
    server.readiness.start_draining();
    assert_eq!(server.get(PATH).await.json(), json!({"state": "draining"}));
    assert!(!server.drain.asked().is_cancelled());
}

#[tokio::test]
async fn a_drain_is_asked_for_in_json_and_by_nobody_elses_page() {
    let server = Server::start().await;
    for body in ["", "[]", "true", r#"{"now":true}"#] {
        let (code, message) = server.post_json(PATH, body).await.error(400);
        assert_eq!(code, "bad_body", "{body}");
        assert!(message.contains("{}"), "{message}");
    }
    let answer = server.send("POST", PATH, "", "{}").await;
    assert_eq!(answer.error(415).0, "unsupported_media_type");
    let foreign = "Content-Type: application/json\r\nOrigin: http://evil.example\r\n";
    let answer = server.send("POST", PATH, foreign, "{}").await;
    assert_eq!(answer.error(403).0, "origin_refused");
    assert!(!server.drain.asked().is_cancelled());
}
