//! The switch for injection.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Server, within};

const PATH: &str = "/api/v1/inject";

#[tokio::test]
async fn the_switch_is_read_and_moved() {
    let server = Server::start().await;
    assert_eq!(server.get(PATH).await.json(), json!({"enabled": true}));
    for enabled in [false, false, true] {
        let body = json!({"enabled": enabled});
        let answer = server.post_json(PATH, &body.to_string()).await;
        assert_eq!((answer.status, answer.json()), (200, body.clone()));
        assert_eq!(server.inject.is_on(), enabled);
        assert_eq!(server.get(PATH).await.json(), body);
    }
}

#[tokio::test]
async fn a_bad_body_shows_what_would_be_right_and_moves_nothing() {
    let server = Server::start().await;
    for body in [
        "",
        "nonsense",
        "false",
        r#"{"enabled":"false"}"#,
        r#"{"enabled":0}"#,
        "{}",
        r#"{"enabled":false,"x":1}"#,
        "\u{0}",
    ] {
        let (code, message) = server.post_json(PATH, body).await.error(400);
        assert_eq!(code, "bad_body", "{body}");
        assert!(message.contains(r#"{"enabled":true}"#), "{message}");
    }
    assert!(server.inject.is_on());
}

#[tokio::test]
async fn only_json_is_taken() {
    let server = Server::start().await;
    let body = r#"{"enabled":false}"#;
    for kind in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
    ] {
        let (code, message) = server.send("POST", PATH, kind, body).await.error(415);
        assert_eq!(code, "unsupported_media_type");
        assert!(message.contains("application/json"), "{message}");
    }
    assert!(server.inject.is_on());
    let with_charset = "Content-Type: Application/JSON; charset=utf-8\r\n";
    assert_eq!(
        server.send("POST", PATH, with_charset, body).await.status,
        200
    );
    assert!(!server.inject.is_on());
}

#[tokio::test]
async fn a_body_above_64_kib_is_refused() {
    let server = Server::start().await;
    let fits = format!("{}{{\"enabled\":false}}", " ".repeat(64 * 1024 - 17));
    assert_eq!(server.post_json(PATH, &fits).await.status, 200);
    assert!(!server.inject.is_on());
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        64 * 1024 + 1
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; 64 * 1024 + 1]).await.unwrap();
    let mut start = [0; 12];
    within(stream.read_exact(&mut start)).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 413");
    assert!(!server.inject.is_on());
}

#[tokio::test]
async fn a_body_that_is_broken_off_moves_nothing() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{{\"enabled\":false}}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let _ = within(stream.read_to_end(&mut Vec::new())).await;
    assert!(server.inject.is_on());
}
