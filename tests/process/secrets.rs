//! No secret of a client, an engine or an operator shows in anything that the program says, at any level of its log.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::program::{Running, output, spectap};

/// In every planted value, and nowhere else.
const SECRET: &str = "s3cr3t";

/// An engine that answers with secrets of its own, in the way that the path asks for.
fn engine() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || while answer(&stream).is_some() {});
        }
    });
    address
}

fn answer(mut stream: &TcpStream) -> Option<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.ends_with(b"}") && !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
    let text = String::from_utf8_lossy(&request);
    let event = |content: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{content}\"}},\"finish_reason\":null}}]}}\n\n"
        )
    };
    let json = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\nset-cookie: engine-{SECRET}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let whole = if text.contains("want-error") {
        json(
            "400 Bad Request",
            &format!("{{\"error\":{{\"message\":\"bad {SECRET}\"}}}}"),
        )
    } else if text.contains("want-nonsense") {
        format!("no http, {SECRET}\r\n\r\n")
    } else if text.contains("want-broken-json") {
        json("200 OK", &format!("{{\"choices\": [{SECRET}"))
    } else if text.contains("want-cut") {
        let cut = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{SECRET}"
        );
        let _ = stream.write_all(cut.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Both);
        return None;
    } else if text.contains("want-stream") {
        // The first word makes an observer panic where faults can be asked for.
        let body = event(&format!("spectap-fault {SECRET}")) + &event(SECRET) + "data: [DONE]\n\n";
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    } else {
        json(
            "200 OK",
            &format!(
                "{{\"model\":\"m\",\"choices\":[{{\"index\":0,\"message\":{{\"content\":\"{SECRET}\"}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":1}}}}"
            ),
        )
    };
    stream.write_all(whole.as_bytes()).ok()
}

/// A request with a secret in every place that can hold one.
fn request(line: &str, body: &str) -> String {
    let mut fields = String::new();
    for name in [
        "Authorization: Bearer",
        "Proxy-Authorization: Basic",
        "Cookie: session=",
        "api-key:",
        "x-api-key:",
        "X-Custom:",
        "X-Tag:",
        "Referer: http://x/",
        "X-Forwarded-For:",
    ] {
        write!(fields, "{name} {SECRET}\r\n").unwrap();
    }
    format!(
        "{line} HTTP/1.1\r\nHost: {SECRET}.example\r\n{fields}Content-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

fn exchange(address: SocketAddr, request: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The paths of the admin port, from the router itself.
fn admin_paths() -> Vec<&'static str> {
    let router = include_str!("../../src/admin/router.rs");
    let routes = router.split(".route(").skip(1);
    routes
        .map(|route| route.split('"').nth(1).unwrap())
        .collect()
}

fn assert_clean(place: &str, text: &str) {
    if let Some(at) = text.find(SECRET) {
        let from = text[..at].rfind('\n').map_or(0, |line| line + 1);
        let to = text[at..].find('\n').map_or(text.len(), |end| at + end);
        panic!("{place}: {}", &text[from..to]);
    }
}

#[test]
fn no_secret_shows_in_any_output_at_any_level() {
    let folder = tempfile::tempdir().unwrap();
    let (token, records) = (
        folder.path().join("token"),
        folder.path().join("records.jsonl"),
    );
    fs::write(&token, format!("token-{SECRET}\n")).unwrap();
    let flags = [
        "--log=trace".to_owned(),
        format!("--admin-token-file={}", token.display()),
        format!("--records={}", records.display()),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let (tap, data, admin) = Running::serve(engine(), &flags);

    let body = |more: &str| {
        format!(
            "{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{SECRET}\"}}],\"user\":\"{SECRET}\"{more}}}"
        )
    };
    let query = format!("?key={SECRET}");
    for want in ["ok", "error", "nonsense", "broken-json", "cut", "stream"] {
        for stream in ["", ",\"stream\":true"] {
            let line = format!("POST /v1/chat/completions{query}&want-{want}");
            let answer = exchange(data, &request(&line, &body(stream)));
            assert!(answer.starts_with("HTTP/1.1 "), "{want}: {answer}");
        }
    }
    // Paths with secrets, a body that is no JSON, and requests that are refused here.
    for line in [
        format!("POST /{SECRET}/v1/chat/completions"),
        format!("GET /{SECRET}"),
        format!("CONNECT {SECRET}:1"),
        format!("GET http://{SECRET}:{SECRET}@x/"),
        format!("GET \\{SECRET}"),
        "POST /v1/chat/completions".to_owned(),
    ] {
        exchange(data, &request(&line, &format!("{{\"a\": {SECRET}}}")));
    }
    exchange(data, &request("GET /", "").replace("Host:", "X-Host:"));
    exchange(data, &format!("{SECRET}\r\n\r\n"));
    over_http2(data);
    no_upstream();

    // The admin port, with a wrong token and with the right one.
    let ask = |path: &str, token: &str, accept: &str| {
        exchange(
            admin,
            &format!(
                "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
            ),
        )
    };
    let (wrong, right) = (format!("wrong-{SECRET}"), format!("token-{SECRET}"));
    until_observed(|| ask("/api/v1/requests", &right, "*/*"));
    // It never ends: the first of it is read.
    let mut feed = TcpStream::connect(admin).unwrap();
    let asked = format!(
        "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {right}\r\n\r\n"
    );
    feed.write_all(asked.as_bytes()).unwrap();
    let mut beginning = Vec::new();
    while !String::from_utf8_lossy(&beginning).contains("\ndata: ") {
        let mut part = [0; 65_536];
        let read = feed.read(&mut part).unwrap();
        assert!(
            read > 0,
            "it ended: {}",
            String::from_utf8_lossy(&beginning)
        );
        beginning.extend_from_slice(&part[..read]);
    }
    assert_clean("/api/v1/stream", &String::from_utf8_lossy(&beginning));
    drop(feed);
    for path in admin_paths()
        .into_iter()
        .filter(|path| *path != "/api/v1/stream")
    {
        let path = match path {
            "/api/v1/compare" => "/api/v1/compare?base=model%3Da&other=model%3Db",
            path => path,
        };
        for accept in ["*/*", "application/openmetrics-text"] {
            assert_clean(path, &ask(path, &wrong, accept));
            let answer = ask(path, &right, accept);
            let is_known = path.contains('{') || answer.starts_with("HTTP/1.1 200 ");
            assert!(is_known, "{path}: {answer}");
            assert_clean(path, &answer);
        }
    }
    assert_clean("an id", &ask("/api/v1/requests/01J", &right, "*/*"));
    tap.signal("TERM");
    let errors = tap.until("the end", |line| {
        line.contains("stopping").then(|| tap.errors())
    });
    let (code, out) = tap.end();
    assert_eq!(code, Some(0));
    assert_clean("standard output", &out);
    assert_clean("the log", &errors);
    // The log was told at all, and a panic is in it where one can be asked for.
    assert!(
        errors.contains("TRACE") && errors.contains("DEBUG"),
        "{errors}"
    );
    if cfg!(feature = "fault-injection") {
        assert!(errors.contains("a part of spectap panicked"), "{errors}");
    }
    let written = fs::read_to_string(&records).unwrap();
    assert!(written.lines().count() > 10, "{written}");
    assert_clean("the records file", &written);
}

/// A log at trace level writes what the HTTP/2 library says.
fn over_http2(data: SocketAddr) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(data).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        let driver = tokio::spawn(connection);
        let request = http::Request::post(format!("http://x/v1/chat/completions?key={SECRET}"))
            .header("authorization", format!("Bearer {SECRET}"))
            .header("cookie", format!("a={SECRET}"))
            .body(())
            .unwrap();
        let (response, mut body) = sender.send_request(request, false).unwrap();
        body.send_data(format!("{{\"a\":\"{SECRET}\"}}").into_bytes().into(), true)
            .unwrap();
        let _ = tokio::time::timeout(Duration::from_secs(20), response)
            .await
            .unwrap();
        driver.abort();
    });
}

/// The error of an engine that is not there.
fn no_upstream() {
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (tap, data, _) = Running::serve(nobody, &["--log=trace"]);
    let line = format!("POST /{SECRET}/v1/chat/completions?key={SECRET}");
    let answer = exchange(data, &request(&line, &format!("{{\"a\":\"{SECRET}\"}}")));
    assert!(
        answer.contains("x-spectap-error: connect-refused"),
        "{answer}"
    );
    assert_clean("an error answer", &answer);
    tap.signal("TERM");
    let errors = tap.until("the end", |line| {
        line.contains("stopping").then(|| tap.errors())
    });
    assert_clean("the log without an engine", &errors);
    tap.end();
}

fn until_observed(ask: impl Fn() -> String) {
    let begun = Instant::now();
    while ask().matches("\"started_at\"").count() < 14 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", ask());
    }
}

#[test]
fn help_shows_no_value_of_a_secret_in_the_environment() {
    for command in ["serve", "simulate", "report", "compare", "verify", "drain"] {
        let help = spectap(&[command, "--help"])
            .env("SPECTAP_SIMULATE_API_KEY", SECRET)
            .output()
            .unwrap();
        assert!(help.status.success());
        assert_clean(command, &String::from_utf8(help.stdout).unwrap());
    }
    // A key on the command line is not repeated in an error either.
    let key = format!("--api-key={SECRET}");
    let (code, _, errors) = output(&["simulate", &key, "--listen=nonsense"]);
    assert_eq!(code, Some(2));
    assert_clean("an error", &errors);
}

#[test]
fn off_loopback_without_a_token_only_metrics_and_probes_answer() {
    let paths = admin_paths();
    assert!(paths.len() > 8, "{paths:?}");
    let upstream = format!("--upstream=http://{}", engine());
    let tap = Running::start(&mut spectap(&[
        "serve",
        "--listen=127.0.0.1:0",
        "--admin-listen=0.0.0.0:0",
        &upstream,
    ]));
    let bound = tap.address_after("numbers on http://");
    let admin = SocketAddr::from(([127, 0, 0, 1], bound.port()));
    for path in paths {
        for method in ["GET", "POST", "HEAD", "DELETE"] {
            let answer = exchange(
                admin,
                &format!(
                    "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
                ),
            );
            let is_open = path.starts_with("/metrics") || ["/livez", "/readyz"].contains(&path);
            let status: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
            assert_eq!(status != 403, is_open, "{method} {path}: {answer}");
        }
    }
}
