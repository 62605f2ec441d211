//! The page's shell: what it is made of, how it is sent, and that it holds no data.

use std::io::Read;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Choice, Server, observation, within};

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";

/// The names of the files that the shell and its modules name.
async fn names(server: &Server) -> Vec<String> {
    let shell = server.get_with("/", BROWSER).await;
    let mut names: Vec<String> = shell
        .body
        .split("\"page/")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    let mut at = 0;
    while at < names.len() {
        let text = server.get(&format!("/page/{}", names[at])).await.body;
        for rest in text.split("from './").skip(1) {
            let name = rest.split('\'').next().unwrap().to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        at += 1;
    }
    names
}

#[tokio::test]
async fn a_browser_gets_the_page_and_everybody_else_the_list_of_paths() {
    let server = Server::start().await;
    let page = server.get_with("/", BROWSER).await;
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(page.body.starts_with("<!doctype html>"), "{page:?}");
    let list = server.get("/").await;
    assert!(list.body.starts_with("spectap, admin port"), "{list:?}");
}

#[tokio::test]
async fn every_file_comes_with_a_strict_policy_and_a_tag_that_saves_the_next_time() {
    let server = Server::start().await;
    let names = names(&server).await;
    assert!(names.len() > 15, "{names:?}");
    let paths = names.iter().map(|name| format!("/page/{name}"));
    for path in paths.chain(["/".to_owned()]) {
        let answer = server.get_with(&path, BROWSER).await;
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("cache-control"), Some("no-cache"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let tag = answer.header("etag").unwrap();
        let again = format!("{BROWSER}If-None-Match: \"x\", W/{tag}\r\n");
        let again = server.get_with(&path, &again).await;
        assert_eq!((again.status, again.body.as_str()), (304, ""), "{path}");
        assert_eq!(again.header("etag"), Some(tag));
        let inline = ["<style", "style=\"", " onclick=", "<script>", "javascript:"];
        let found = inline.iter().find(|it| answer.body.contains(**it));
        assert_eq!(found, None, "{path}");
        let elsewhere = answer.body.replace("http://www.w3.org/2000/svg", "");
        let elsewhere = elsewhere.replace("http://HOST", "");
        assert!(!elsewhere.contains("://"), "{path} names another place");
    }
    assert_eq!(server.get("/page/../Cargo.toml").await.status, 404);
    assert_eq!(
        server.get("/page/nothing.js").await.error(404).0,
        "not_found"
    );
}

#[tokio::test]
async fn gzip_is_the_same_file() {
    let server = Server::start().await;
    let plain = server.get("/page/main.js").await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "GET /page/main.js HTTP/1.1\r\nHost: {}\r\nAccept-Encoding: br, gzip\r\nConnection: close\r\n\r\n",
        server.address
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    within(stream.read_to_end(&mut bytes)).await.unwrap();
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    assert!(head.contains("content-encoding: gzip"), "{head}");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[end + 4..])
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, plain.body);
    assert!(bytes.len() < plain.body.len());
}

#[tokio::test]
async fn the_shell_needs_no_token_and_holds_no_data_and_elsewhere_without_one_it_is_shut() {
    let server = Server::start_with(Choice {
        token: Some("s3cret"),
        ..Choice::default()
    })
    .await;
    let mut named = observation(1);
    named.model = Some("a-secret-model".to_owned());
    server.record(named);
    for path in ["/", "/page/main.js"] {
        let answer = server.get_with(path, BROWSER).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.body.contains("a-secret-model"));
    }
    assert_eq!(server.get("/api/v1/summary").await.status, 401);
    let shut = Server::start_with(Choice {
        believed: Some("0.0.0.0:8091".parse().unwrap()),
        ..Choice::default()
    })
    .await;
    for path in ["/", "/page/main.js"] {
        let answer = shut.get_with(path, BROWSER).await;
        assert_eq!(answer.error(403).0, "token_required", "{path}");
    }
}

#[tokio::test]
async fn two_parts_are_compared_as_the_command_does() {
    let server = Server::start().await;
    for (number, tag) in (0..80).zip(["a b", "c&d"].into_iter().cycle()) {
        let mut tagged = observation(number);
        tagged.tag = Some(tag.to_owned());
        server.record(tagged);
    }
    let path = "/api/v1/compare?base=tag%3Da%2520b&other=tag%3Dc%2526d";
    let answer = server.get(path).await.json();
    assert_eq!(answer["base"]["n"], 40, "{answer}");
    assert_eq!(answer["others"][0]["run"]["n"], 40);
    let length = &answer["others"][0]["differences"][0];
    assert_eq!(length["difference"], json!(0.0), "{length}");
    assert_eq!(length["verdict"], "no_evidence");
    for (query, names) in [
        ("", "base and other"),
        ("?base=run%3Dx&other=", "no such run"),
        ("?base=&other=&third=", "third"),
        ("?base=&base=&other=", "twice"),
        ("?base=modell%3Dx&other=", "modell"),
    ] {
        let refused = server.get(&format!("/api/v1/compare{query}")).await;
        let (code, message) = refused.error(400);
        assert_eq!(code, "bad_parameter");
        assert!(message.contains(names), "{message}");
    }
}
