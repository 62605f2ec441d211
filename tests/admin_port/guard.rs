//! Who may read what: Host and Origin on loopback, the token elsewhere.

use crate::server::{Answer, Choice, Server};

const OPEN: [&str; 3] = ["/metrics", "/livez", "/readyz"];
const GUARDED: [&str; 7] = [
    "/",
    "/api/v1/summary",
    "/api/v1/snapshot",
    "/api/v1/requests",
    "/api/v1/requests/01J",
    "/api/v1/inject",
    "/nothing",
];

async fn with_host(server: &Server, host: &str) -> Answer {
    server
        .raw(&format!(
            "GET /livez HTTP/1.1\r\n{host}Connection: close\r\n\r\n"
        ))
        .await
}

async fn elsewhere(token: Option<&'static str>, protect_metrics: bool) -> Server {
    Server::start_with(Choice {
        believed: Some("0.0.0.0:8091".parse().unwrap()),
        token,
        protect_metrics,
        ..Choice::default()
    })
    .await
}

#[tokio::test]
async fn on_loopback_only_a_loopback_name_or_an_address_is_answered() {
    let server = Server::start().await;
    for host in [
        "localhost",
        "LocalHost:8091",
        "localhost.:1",
        "tap.localhost",
        "127.0.0.1",
        "127.0.0.1:8091",
        "[::1]:8091",
        "10.0.0.7:8091",
    ] {
        let answer = with_host(&server, &format!("Host: {host}\r\n")).await;
        assert_eq!(answer.status, 200, "{host} {answer:?}");
    }
    for host in [
        "evil.example",
        "evil.example:8091",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "notlocalhost",
    ] {
        let (code, message) = with_host(&server, &format!("Host: {host}\r\n"))
            .await
            .error(403);
        assert_eq!(code, "host_refused", "{host}");
        assert!(
            message.contains(host.split(':').next().unwrap()),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_missing_doubled_or_broken_host_is_refused() {
    let server = Server::start().await;
    for host in [
        "",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: evil.example@localhost\r\n",
        "Host: a b\r\n",
        "Host:\r\n",
    ] {
        let answer = with_host(&server, host).await;
        assert_eq!(answer.error(400).0, "bad_request", "{host}");
    }
    let old = server.raw("GET /livez HTTP/1.0\r\n\r\n").await;
    assert_eq!(old.status, 200, "{old:?}");
    let absolute = server
        .raw("GET http://evil.example/livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await;
    assert_eq!(absolute.error(403).0, "host_refused");
}

#[tokio::test]
async fn on_loopback_a_page_of_another_origin_is_refused() {
    let server = Server::start().await;
    let own = format!("Origin: http://{}\r\n", server.address);
    assert_eq!(server.get_with("/api/v1/inject", &own).await.status, 200);
    let other_port = "Origin: http://127.0.0.1:1\r\n";
    for origin in [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        other_port,
        "Origin: file://\r\n",
        "Origin: ?\r\n",
    ] {
        for path in ["/metrics", "/api/v1/inject"] {
            let (code, _) = server.get_with(path, origin).await.error(403);
            assert_eq!(code, "origin_refused", "{origin}");
        }
        let json = format!("{origin}Content-Type: application/json\r\n");
        let answer = server
            .send("POST", "/api/v1/inject", &json, r#"{"enabled":false}"#)
            .await;
        assert_eq!(answer.error(403).0, "origin_refused");
    }
    assert!(server.inject.is_on());
}

#[tokio::test]
async fn elsewhere_without_a_token_only_metrics_and_health_answer() {
    let server = elsewhere(None, false).await;
    for path in OPEN {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    for path in GUARDED {
        let (code, message) = server.get(path).await.error(403);
        assert_eq!(code, "token_required", "{path}");
        assert!(message.contains("--admin-token-file"), "{message}");
    }
    let answer = server
        .post_json("/api/v1/inject", r#"{"enabled":false}"#)
        .await;
    assert_eq!(answer.error(403).0, "token_required");
    assert!(server.inject.is_on());
    let named = server
        .raw("GET /metrics HTTP/1.1\r\nHost: tap.inference.svc:8091\r\nConnection: close\r\n\r\n")
        .await;
    assert_eq!(
        named.status, 200,
        "a service name is fine away from loopback"
    );
}

#[tokio::test]
async fn with_a_token_the_rest_asks_for_it() {
    let on_loopback = Server::start_with(Choice {
        token: Some("s3cret"),
        ..Choice::default()
    })
    .await;
    for server in [elsewhere(Some("s3cret"), false).await, on_loopback] {
        for path in OPEN {
            assert_eq!(server.get(path).await.status, 200, "{path}");
        }
        for path in GUARDED {
            if path == "/" {
                // The page's shell; it has no data.
                assert_eq!(server.get(path).await.status, 200);
                continue;
            }
            for wrong in [
                "",
                "Authorization: Bearer s3cres\r\n",
                "Authorization: Bearer s3cret2\r\n",
                "Authorization: Bearer \r\n",
                "Authorization: Basic s3cret\r\n",
                "Authorization: s3cret\r\n",
            ] {
                let answer = server.get_with(path, wrong).await;
                assert_eq!(answer.error(401).0, "unauthorized", "{path} {wrong}");
                assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
                assert_eq!(answer.header("cache-control"), Some("no-store"));
            }
            let right = server
                .get_with(path, "Authorization: bearer s3cret\r\n")
                .await;
            assert!([200, 404].contains(&right.status), "{path} {right:?}");
        }
    }
}

#[tokio::test]
async fn protected_metrics_ask_for_the_token_and_health_never_does() {
    let server = elsewhere(Some("s3cret"), true).await;
    assert_eq!(server.get("/metrics").await.error(401).0, "unauthorized");
    let right = "Authorization: Bearer s3cret\r\n";
    assert_eq!(server.get_with("/metrics", right).await.status, 200);
    for path in ["/livez", "/readyz"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    let no_token = elsewhere(None, true).await;
    assert_eq!(
        no_token.get("/metrics").await.error(403).0,
        "token_required"
    );
}

#[tokio::test]
async fn an_empty_token_admits_nobody() {
    let server = elsewhere(Some(""), false).await;
    let answer = server
        .get_with("/api/v1/inject", "Authorization: Bearer \r\n")
        .await;
    assert_eq!(answer.error(401).0, "unauthorized");
}
