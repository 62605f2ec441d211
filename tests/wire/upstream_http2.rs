//! HTTP/2 with the engine: what gRPC needs passes, and resets pass both ways.

use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Version};
use serde_json::Value;

use crate::support::DEADLINE;
use crate::support::certificates::{Authority, When};
use crate::support::client::{Client, post};
use crate::support::http2::Http2;
use crate::support::http2_engine::{Http2Engine, head, read_all};
use crate::support::tap::Tap;
use crate::support::tls::Front;

const GRPC: (&str, &str) = ("content-type", "application/grpc");

fn in_front_of(engine: &Http2Engine) -> Tap {
    Tap::with(engine.address, &["--upstream-http2"])
}

fn call() -> Request<()> {
    Request::post("http://engine.example/package.Service/Method")
        .version(Version::HTTP_2)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", "5S")
        .body(())
        .unwrap()
}

fn trailers(status: &str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    trailers.insert("grpc-message", "as%20said".parse().unwrap());
    trailers
}

/// Waits for room and sends; false when the stream is gone.
async fn send(stream: &mut h2::SendStream<Bytes>, mut data: Bytes) -> bool {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
        let Some(Ok(room)) = room else {
            return false;
        };
        if stream
            .send_data(data.split_to(room.min(data.len())), false)
            .is_err()
        {
            return false;
        }
    }
    true
}

#[test]
fn a_call_passes_with_its_trailers_both_ways() {
    let (tell, told) = mpsc::channel();
    let engine = Http2Engine::start(move |request, mut respond| {
        let tell = tell.clone();
        async move {
            let mut body = request.into_body();
            let _ = tell.send(read_all(&mut body).await);
            let mut stream = respond.send_response(head(&[GRPC]), false).unwrap();
            assert!(send(&mut stream, Bytes::from_static(b"\0\0\0\0\x02hi")).await);
            stream.send_trailers(trailers("0")).unwrap();
        }
    });
    let tap = in_front_of(&engine);
    let mut client = Http2::connect(tap.data);
    let (response, mut stream) = client.sender.send_request(call(), false).unwrap();
    stream
        .send_data(Bytes::from_static(b"\0\0\0\0\x03ask"), false)
        .unwrap();
    stream.send_trailers(trailers("9")).unwrap();
    let response = client.head(response);
    assert_eq!(response.headers()["content-type"], "application/grpc");
    let mut body = response.into_body();
    assert_eq!(client.rest(&mut body), (b"\0\0\0\0\x02hi".to_vec(), None));
    let got = client.wait(body.trailers()).unwrap().expect("trailers");
    assert_eq!(got, trailers("0"));

    let (sent, sent_trailers) = told.recv_timeout(DEADLINE).unwrap();
    assert_eq!(sent, b"\0\0\0\0\x03ask");
    assert_eq!(sent_trailers, Some(trailers("9")));
    let seen = engine.request(0);
    assert_eq!(seen.uri(), "http://engine.example/package.Service/Method");
    let fields: Vec<(&str, &[u8])> = seen
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    let expected: [(&str, &[u8]); 3] = [
        ("content-type", b"application/grpc"),
        ("te", b"trailers"),
        ("grpc-timeout", b"5S"),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn a_status_without_a_body_stays_one_head() {
    let engine = Http2Engine::start(|_, mut respond| async move {
        let only = head(&[GRPC, ("grpc-status", "12")]);
        respond.send_response(only, true).unwrap();
    });
    let tap = in_front_of(&engine);
    let mut client = Http2::connect(tap.data);
    let response = client.send(call(), "");
    let response = client.head(response);
    assert_eq!(response.headers()["grpc-status"], "12");
    assert!(response.body().is_end_stream());
}

#[test]
fn both_sides_talk_at_the_same_time() {
    let engine = Http2Engine::start(|request, mut respond| async move {
        let mut stream = respond.send_response(head(&[GRPC]), false).unwrap();
        let mut body = request.into_body();
        while let Some(Ok(data)) = body.data().await {
            body.flow_control().release_capacity(data.len()).unwrap();
            assert!(send(&mut stream, data).await);
        }
        stream.send_trailers(trailers("0")).unwrap();
    });
    let tap = in_front_of(&engine);
    let mut client = Http2::connect(tap.data);
    let (response, mut stream) = client.sender.send_request(call(), false).unwrap();
    let mut body = client.head(response).into_body();
    for word in ["one\n\n", "two\n\n", "three\n\n"] {
        stream.send_data(Bytes::from(word), false).unwrap();
        assert_eq!(client.event(&mut body), word.as_bytes());
    }
    stream.send_data(Bytes::new(), true).unwrap();
    assert_eq!(client.rest(&mut body), (Vec::new(), None));
    assert!(client.wait(body.trailers()).unwrap().is_some());
}

/// An engine that answers or not, and tells how its stream was reset.
fn waiting_engine(answers: bool) -> (Http2Engine, mpsc::Receiver<Reason>) {
    let (tell, told) = mpsc::channel();
    let engine = Http2Engine::start(move |request, mut respond| {
        let tell = tell.clone();
        async move {
            let reason = if answers {
                let mut stream = respond.send_response(head(&[GRPC]), false).unwrap();
                assert!(send(&mut stream, Bytes::from_static(b"first\n\n")).await);
                std::future::poll_fn(|context| stream.poll_reset(context)).await
            } else {
                std::future::poll_fn(|context| respond.poll_reset(context)).await
            };
            drop(request);
            let _ = tell.send(reason.unwrap());
        }
    });
    (engine, told)
}

#[test]
fn a_reset_of_the_client_reaches_the_engine_as_a_cancellation() {
    for (answers, request_ends) in [(false, true), (false, false), (true, true), (true, false)] {
        let (engine, told) = waiting_engine(answers);
        let tap = in_front_of(&engine);
        let mut client = Http2::connect(tap.data);
        let (response, mut stream) = client.sender.send_request(call(), false).unwrap();
        stream
            .send_data(Bytes::from_static(b"ask"), request_ends)
            .unwrap();
        engine.request(0);
        let body = answers.then(|| {
            let mut body = client.head(response).into_body();
            assert_eq!(client.event(&mut body), b"first\n\n");
            body
        });
        stream.send_reset(Reason::CANCEL);
        let reason = told.recv_timeout(DEADLINE).expect("never noticed");
        assert_eq!(reason, Reason::CANCEL, "{answers} {request_ends}");
        // The connection carries on.
        engine.until_open(1);
        drop(body);
    }
}

#[test]
fn a_client_of_http_1_that_leaves_cancels_its_request() {
    for answers in [false, true] {
        let (engine, told) = waiting_engine(answers);
        let tap = in_front_of(&engine);
        let mut client = Client::connect(tap.data);
        client.send(post("/x", "{}", ""));
        engine.request(0);
        if answers {
            client.read_until(b"first\n\n");
        }
        drop(client);
        let reason = told.recv_timeout(DEADLINE).expect("never noticed");
        assert_eq!(reason, Reason::CANCEL, "{answers}");
    }
}

#[test]
fn a_reset_of_the_engine_reaches_the_client_with_its_reason() {
    for reason in [
        Reason::CANCEL,
        Reason::ENHANCE_YOUR_CALM,
        Reason::REFUSED_STREAM,
        Reason::INTERNAL_ERROR,
    ] {
        for answers in [false, true] {
            let engine = Http2Engine::start(move |_, mut respond| async move {
                if answers {
                    let mut stream = respond.send_response(head(&[GRPC]), false).unwrap();
                    assert!(send(&mut stream, Bytes::from_static(b"first\n\n")).await);
                    // A reset takes back what has not left; the connection has its turn first.
                    for _ in 0..3 {
                        tokio::task::yield_now().await;
                    }
                    stream.send_reset(reason);
                } else {
                    respond.send_reset(reason);
                }
            });
            let tap = in_front_of(&engine);
            let mut client = Http2::connect(tap.data);
            let response = client.send(call(), "ask");
            if answers {
                let mut body = client.head(response).into_body();
                let (got, reset) = client.rest(&mut body);
                assert_eq!(got, b"first\n\n", "{reason}");
                assert_eq!(reset, Some(Some(reason)));
                continue;
            }
            let error = client.wait(response).unwrap_err();
            assert_eq!(error.reason(), Some(reason));
            assert!(error.is_reset(), "{error}");
            // HTTP/1.1 has no resets.
            let mut old = Client::connect(tap.data);
            old.send(post("/x", "{}", ""));
            let response = old.response();
            assert_eq!(response.status(), 502);
            let kind = "x-spectap-error: reset";
            assert!(response.head.to_ascii_lowercase().contains(kind));
            let body: Value = serde_json::from_slice(&response.body()).unwrap();
            assert_eq!(body["error"]["code"], 502);
        }
    }
}

#[test]
fn http_1_requests_are_put_into_the_terms_of_http_2_and_back() {
    let (tell, told) = mpsc::channel();
    let engine = Http2Engine::start(move |request, mut respond| {
        let tell = tell.clone();
        async move {
            let mut body = request.into_body();
            let _ = tell.send(read_all(&mut body).await.0);
            let fields = [
                ("content-type", "text/plain"),
                ("x-order", "1"),
                ("x-order", "2"),
            ];
            let mut stream = respond.send_response(head(&fields), false).unwrap();
            assert!(send(&mut stream, Bytes::from_static(b"answer")).await);
            stream.send_data(Bytes::new(), true).unwrap();
        }
    });
    let tap = in_front_of(&engine);
    let mut client = Client::connect(tap.data);
    let plain = post(
        "/a%20b?c=",
        "{}",
        "X-First: 1\r\nConnection: x-hop\r\nX-Hop: 1\r\nCookie: a=1\r\n",
    );
    client.send(plain);
    let response = client.response();
    assert!(
        response.head.starts_with("HTTP/1.1 200"),
        "{}",
        response.head
    );
    assert_eq!(response.body(), b"answer");
    let lower = response.head.to_ascii_lowercase();
    assert!(lower.contains("transfer-encoding: chunked\r\n"));
    assert!(lower.contains("x-order: 1\r\nx-order: 2\r\n"));
    assert_eq!(told.recv_timeout(DEADLINE).unwrap(), b"{}");
    let seen = engine.request(0);
    assert_eq!(seen.uri(), "http://engine.example/a%20b?c=");
    let names: Vec<&str> = seen.headers().keys().map(|name| name.as_str()).collect();
    assert_eq!(
        names,
        ["content-type", "x-first", "cookie", "content-length"]
    );

    // In chunks, on the same connection; nobody there names a host.
    let chunked =
        "POST /b HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
    client.send(chunked);
    assert_eq!(client.response().body(), b"answer");
    assert_eq!(told.recv_timeout(DEADLINE).unwrap(), b"hi");
    let seen = engine.request(1);
    let own = format!("http://{}/b", engine.address);
    assert_eq!(seen.uri(), own.as_str());
    assert!(seen.headers().is_empty(), "{:?}", seen.headers());

    // Before HTTP/1.1 there are no chunks, and the end of the answer is that of the connection.
    let old = tap.exchange("GET /c HTTP/1.0\r\n\r\n");
    assert!(old.ends_with(b"\r\n\r\nanswer"), "{old:?}");
}

#[test]
fn an_engine_that_allows_few_streams_gets_no_more_on_a_connection() {
    let (tell, told) = mpsc::channel();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let opens = Arc::clone(&gate);
    let engine = Http2Engine::allowing(Some(2), move |_, mut respond| {
        let (tell, gate) = (tell.clone(), Arc::clone(&gate));
        async move {
            let _ = tell.send(());
            let _permit = gate.acquire().await.unwrap();
            respond.send_response(head(&[]), true).unwrap();
        }
    });
    let tap = in_front_of(&engine);
    let mut client = Http2::connect(tap.data);
    let mut answers = Vec::new();
    for _ in 0..6 {
        answers.push(client.send(call(), ""));
        told.recv_timeout(DEADLINE)
            .expect("a request waits although another connection has room");
    }
    assert_eq!(engine.opened(), 3);
    opens.add_permits(6);
    for answer in answers {
        assert_eq!(client.head(answer).status(), 200);
    }
}

#[test]
fn streams_share_a_connection_and_a_second_one_takes_what_is_too_many() {
    let (tell, told) = mpsc::channel();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let opens = Arc::clone(&gate);
    let engine = Http2Engine::start(move |_, mut respond| {
        let (tell, gate) = (tell.clone(), Arc::clone(&gate));
        async move {
            let _ = tell.send(());
            let _permit = gate.acquire().await.unwrap();
            respond.send_response(head(&[]), true).unwrap();
        }
    });
    let tap = in_front_of(&engine);
    let mut client = Http2::connect(tap.data);
    let mut answers = Vec::new();
    for number in 1..=65 {
        answers.push(client.send(call(), ""));
        told.recv_timeout(DEADLINE)
            .expect("a request at the engine");
        assert_eq!(
            engine.opened(),
            if number <= 64 { 1 } else { 2 },
            "{number}"
        );
    }
    let active = "spectap_upstream_connections{state=\"active\"}";
    tap.until_metric(active, 2.0);
    opens.add_permits(65);
    for answer in answers {
        assert_eq!(client.head(answer).status(), 200);
    }
    tap.until_metric(active, 0.0);
    // What is idle is closed in time.
    engine.until_open(0);
    tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 0.0);
}

#[test]
fn a_farewell_of_the_engine_lets_streams_finish_and_sends_others_elsewhere() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let engine = Http2Engine::start(move |request, mut respond| {
        let wait = Arc::clone(&wait);
        async move {
            let mut stream = respond.send_response(head(&[]), false).unwrap();
            assert!(send(&mut stream, Bytes::from_static(b"first\n\n")).await);
            if request.uri().path() == "/package.Service/Method" {
                let waited = tokio::task::spawn_blocking(move || wait.lock().unwrap().recv());
                waited.await.unwrap().unwrap();
            }
            stream
                .send_data(Bytes::from_static(b"last\n\n"), true)
                .unwrap();
        }
    });
    let tap = in_front_of(&engine);
    let mut client = Http2::connect(tap.data);
    let response = client.send(call(), "");
    let mut body = client.head(response).into_body();
    assert_eq!(client.event(&mut body), b"first\n\n");
    engine.say_farewell();
    let mut second = Client::connect(tap.data);
    crate::support::until("a second connection", || {
        second.send(post("/other", "", ""));
        assert_eq!(second.response().body(), b"first\n\nlast\n\n");
        (engine.opened() == 2).then_some(())
    });
    go.send(()).unwrap();
    assert_eq!(client.rest(&mut body), (b"last\n\n".to_vec(), None));
}

#[test]
fn a_connection_that_breaks_is_a_cut_for_all_and_another_takes_its_place() {
    let engine = Http2Engine::start(|request, mut respond| async move {
        let mut stream = respond.send_response(head(&[]), false).unwrap();
        assert!(send(&mut stream, Bytes::from_static(b"first\n\n")).await);
        if request.uri().path() != "/whole" {
            let _ = std::future::poll_fn(|context| stream.poll_reset(context)).await;
        }
        let _ = stream.send_data(Bytes::new(), true);
    });
    let tap = in_front_of(&engine);
    let mut client = Http2::connect(tap.data);
    let response = client.send(call(), "");
    let mut body = client.head(response).into_body();
    assert_eq!(client.event(&mut body), b"first\n\n");
    let mut old = Client::connect(tap.data);
    old.send(post("/x", "", ""));
    old.read_until(b"first\n\n");
    assert_eq!(engine.opened(), 1);
    engine.break_off();
    let reset = Some(Some(Reason::INTERNAL_ERROR));
    assert_eq!(client.rest(&mut body), (Vec::new(), reset));
    assert_eq!(old.read_to_end(), b"\r\n", "no end of the chunks");
    for path in ["/whole", "/whole"] {
        let answer = tap.exchange(post(path, "", "Connection: close\r\n"));
        assert!(answer.ends_with(b"0\r\n\r\n"));
    }
    assert_eq!(engine.opened(), 2);
}

#[test]
fn what_the_engine_refused_to_take_up_is_sent_again_where_that_does_no_harm() {
    let count = AtomicUsize::new(0);
    let engine = Http2Engine::start(move |_, mut respond| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        async move {
            // The second and the fourth.
            if number % 2 == 1 {
                respond.send_reset(Reason::REFUSED_STREAM);
            } else {
                respond.send_response(head(&[]), true).unwrap();
            }
        }
    });
    let tap = in_front_of(&engine);
    let mut client = Client::connect(tap.data);
    for path in ["/x", "/v1/completions"] {
        client.send(post(path, "{}", ""));
        assert_eq!(client.response().status(), 200, "{path}");
    }
    assert_eq!(tap.metric("spectap_upstream_retries_total"), 1.0);
    // Not a route where it does none.
    client.send(post("/x", "{}", ""));
    assert_eq!(client.response().status(), 502);
}

#[test]
fn streams_of_an_engine_that_speaks_http_2_are_observed_and_filtered() {
    let usage = "data: {\"id\":\"i\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n";
    let finish = "data: {\"id\":\"i\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let done = "data: [DONE]\n\n";
    let engine = Http2Engine::start(move |_, mut respond| async move {
        let fields = [("content-type", "text/event-stream")];
        let mut stream = respond.send_response(head(&fields), false).unwrap();
        for event in [finish, usage, done] {
            assert!(send(&mut stream, Bytes::from(event)).await);
        }
        let _ = stream.send_data(Bytes::new(), true);
    });
    let tap = in_front_of(&engine);
    let mut client = Client::connect(tap.data);
    client.send(post("/v1/chat/completions", "{\"stream\":true}", ""));
    let body = client.response().body();
    assert_eq!(body, [finish, done].concat().into_bytes());
    let observation = tap.observations(1)[0].clone();
    assert_eq!(observation["outcome"], "complete");
    assert_eq!(observation["usage"]["completion_tokens"], 1);
}

#[test]
fn clients_that_do_not_read_keep_no_other_waiting() {
    let engine = Http2Engine::start(|request, mut respond| async move {
        let mut stream = respond.send_response(head(&[]), false).unwrap();
        let size = if request.uri().path() == "/large" {
            64 << 20
        } else {
            2
        };
        let piece = Bytes::from(vec![b'x'; size.min(1 << 20)]);
        for _ in 0..(size >> 20).max(1) {
            if !send(&mut stream, piece.clone()).await {
                return;
            }
        }
        let _ = stream.send_data(Bytes::new(), true);
    });
    let tap = in_front_of(&engine);
    let mut slow: Vec<Client> = (0..32).map(|_| Client::connect(tap.data)).collect();
    for client in &mut slow {
        client.send(post("/large", "", ""));
        client.read_until(b"\r\n\r\n");
    }
    let mut quick = Client::connect(tap.data);
    for _ in 0..20 {
        quick.send(post("/small", "", ""));
        assert_eq!(quick.response().body(), b"xx");
    }
    assert_eq!(engine.opened(), 1);
}

#[test]
fn an_engine_without_http_2_is_refused_by_name() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 11\r\n\r\nBad Request");
            crate::support::origin::wait_for_close(&mut stream);
        }
    });
    let tap = Tap::with(address, &["--upstream-http2"]);
    let mut client = Client::connect(tap.data);
    client.send(post("/x", "{}", ""));
    let response = client.response();
    assert_eq!(response.status(), 502);
    let lower = response.head.to_ascii_lowercase();
    assert!(lower.contains("x-spectap-error: not-http\r\n"), "{lower}");
}

#[test]
fn http_2_is_agreed_on_in_tls_or_refused() {
    async fn echo(request: Request<RecvStream>, mut respond: h2::server::SendResponse<Bytes>) {
        let mut body = request.into_body();
        read_all(&mut body).await;
        let mut stream = respond.send_response(head(&[GRPC]), false).unwrap();
        stream.send_trailers(trailers("0")).unwrap();
    }
    let engine = Http2Engine::start(echo);
    let authority = Authority::new();
    let pair = authority.server("engine", &["localhost"], When::Now);
    let ca = format!("--upstream-ca={}", authority.file.display());
    let through = |protocols: &[&str]| {
        let front = Front::before(engine.address, &pair, protocols, None);
        let url = format!("https://localhost:{}", front.address.port());
        (Tap::of(&url, &[&ca, "--upstream-http2"]), front)
    };
    let (tap, front) = through(&["h2", "http/1.1"]);
    let mut client = Http2::connect(tap.data);
    let response = client.send(call(), "ask");
    let mut body = client.head(response).into_body();
    assert_eq!(client.rest(&mut body), (Vec::new(), None));
    assert_eq!(client.wait(body.trailers()).unwrap(), Some(trailers("0")));
    assert_eq!(front.hellos()[0].protocol.as_deref(), Some("h2"));
    assert_eq!(engine.request(0).uri().scheme_str(), Some("https"));

    for (protocols, kind) in [(&["http/1.1"][..], "tls-failed"), (&[], "not-http")] {
        let (tap, _front) = through(protocols);
        let mut client = Client::connect(tap.data);
        client.send(post("/x", "{}", ""));
        let head = client.response().head.to_ascii_lowercase();
        assert!(
            head.contains(&format!("x-spectap-error: {kind}\r\n")),
            "{head}"
        );
    }
}
