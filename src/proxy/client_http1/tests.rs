use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

/// Longer than a test lasts.
const LONG: Duration = Duration::from_secs(600);

/// Says what it got: the target, how many fields, and the body.
async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return Ok(Response::new(Full::from("broken off"))),
    };
    let seen = format!("{} {} {body:?}\n", parts.uri, parts.headers.len());
    Ok(Response::new(Full::from(seen)))
}

fn client(head_limit: Duration, drain: CancellationToken) -> DuplexStream {
    let (client, server) = duplex(1 << 16);
    tokio::spawn(async move {
        let outlet = Arc::new(Outlet::default());
        converse(server, service_fn(echo), outlet, head_limit, drain).await;
    });
    client
}

fn block_on<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().unwrap().block_on(test)
}

/// What a client gets that sends these pieces one by one, until the server closes.
async fn answers(mut client: DuplexStream, pieces: &[&[u8]]) -> String {
    let (mut from, mut to) = tokio::io::split(&mut client);
    let send = async {
        for piece in pieces {
            if to.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    let mut got = Vec::new();
    let (_, read) = tokio::join!(send, from.read_to_end(&mut got));
    read.unwrap();
    String::from_utf8(got).unwrap()
}

/// What the same client gets of a server that has room for everything from the start.
async fn answers_with_room(pieces: &[&[u8]]) -> String {
    let (client, server) = duplex(1 << 16);
    tokio::spawn(async move {
        let connection = roomy().serve_connection(TokioIo::new(server), service_fn(echo));
        let _ = connection.await;
    });
    answers(client, pieces).await
}

/// A request of so many fields, `Host` among them. After the last one the server closes.
fn request(fields: usize, body: &Option<(String, bool)>, is_last: bool) -> String {
    let connection = if is_last { "close" } else { "keep-alive" };
    let mut text = format!("POST /x HTTP/1.1\r\nHost: a\r\nConnection: {connection}\r\n");
    for number in 2..fields.saturating_sub(usize::from(body.is_some())) {
        text.push_str(&format!("X-{number}: v\r\n"));
    }
    match body {
        None => text.push_str("\r\n"),
        Some((body, true)) => {
            text.push_str("Transfer-Encoding: chunked\r\n\r\n");
            for piece in body.as_bytes().chunks(700) {
                let piece = String::from_utf8_lossy(piece);
                text.push_str(&format!("{:x}\r\n{piece}\r\n", piece.len()));
            }
            text.push_str("0\r\n\r\n");
        }
        Some((body, false)) => {
            text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        }
    }
    text
}

fn some_fields() -> impl Strategy<Value = usize> {
    prop_oneof![2..6usize, 94..106usize, Just(300), Just(2047), Just(2050)]
}

fn some_body() -> impl Strategy<Value = Option<(String, bool)>> {
    let text = prop_oneof!["[a-z\n]{1,40}", "[a-z\n]{150,900}", "\n{90,230}"];
    prop::option::of((text, any::<bool>()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nobody_can_tell_that_the_room_grows(
        requests in prop::collection::vec((some_fields(), some_body()), 1..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let last = requests.len() - 1;
        let text: String = requests
            .iter()
            .enumerate()
            .map(|(number, (fields, body))| request(*fields, body, number == last))
            .collect();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
        ends.push(text.len());
        ends.sort_unstable();
        let mut begin = 0;
        let pieces: Vec<&[u8]> = ends
            .into_iter()
            .map(|end| &text.as_bytes()[std::mem::replace(&mut begin, end)..end])
            .collect();
        let (got, expected) = block_on(async {
            let client = client(LONG, CancellationToken::new());
            (answers(client, &pieces).await, answers_with_room(&pieces).await)
        });
        prop_assert_eq!(got, expected);
    }
}

#[test]
fn a_large_head_byte_by_byte_is_served() {
    let text = request(500, &None, true);
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    let got = block_on(async {
        let client = client(LONG, CancellationToken::new());
        answers(client, &pieces).await
    });
    assert!(got.ends_with("/x 500 b\"\"\n"), "{got}");
}

#[test]
fn a_client_that_never_ends_its_head_is_closed_and_one_that_takes_its_time_is_not() {
    let limit = Duration::from_millis(300);
    for fields in [3, 500] {
        let text = request(fields, &None, false);
        let (some, rest) = text.split_at(text.len() - 5);
        block_on(async {
            let mut client = client(limit, CancellationToken::new());
            let mut seen = [0; 1 << 10];
            // The limit begins anew with each head, and an exchange before it takes nothing from it.
            for _ in 0..2 {
                client.write_all(some.as_bytes()).await.unwrap();
                tokio::time::sleep(limit / 3).await;
                client.write_all(rest.as_bytes()).await.unwrap();
                let length = client.read(&mut seen).await.unwrap();
                assert!(seen[..length].starts_with(b"HTTP/1.1 200 OK"));
                tokio::time::sleep(limit / 2).await;
            }
            client.write_all(some.as_bytes()).await.unwrap();
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.unwrap();
            let rest = String::from_utf8_lossy(&rest);
            assert!(!rest.contains("200 OK"), "{rest}");
        });
    }
}

#[test]
fn a_drain_lets_a_large_head_that_has_begun_be_answered() {
    let text = request(500, &None, false);
    let (some, rest) = text.split_at(text.len() - 5);
    let got = block_on(async {
        let drain = CancellationToken::new();
        let mut client = client(LONG, drain.clone());
        client.write_all(some.as_bytes()).await.unwrap();
        tokio::task::yield_now().await;
        drain.cancel();
        tokio::task::yield_now().await;
        answers(client, &[rest.as_bytes()]).await
    });
    assert!(got.ends_with("/x 500 b\"\"\n"), "{got}");
    assert!(got.contains("connection: close"), "{got}");
}
