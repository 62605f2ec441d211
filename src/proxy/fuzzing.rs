//! Entry for a fuzz target: raw bytes of a client, through the hop, to a server that reads strictly. It panics when what
//! it promises does not hold. Only the feature `fuzzing` opens this door, and no release has it.
//!
//! Nothing here needs a socket, a clock or a thread, so that an input always does the same.

mod client;
mod message;

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header, request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prometheus::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::client_http1::roomy as server;
use super::connection::client;
use super::exchange::{Hop, Outgoing};
use super::headers::wants_switch;
use super::pool::Pool;
use super::request_body::HoldBudget;
use super::timeouts::Timeouts;
use super::{Transport, Upstream, UpstreamAddress};
use crate::counters::TapCounters;
use crate::tap::fuzzing::{Input, tap};
use client::{Script, run};
use message::{Message, Read, read_message};

/// Room between the hop and the server: more than any input needs.
const ROOM: usize = 1 << 22;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Fields that must go on even if the client lists them in `Connection`.
const NEVER_LISTED: [&str; 4] = ["host", "authorization", "content-type", "content-encoding"];

thread_local! {
    static HOPS: Option<[Hop; 2]> = hops();
}

/// Two hops: one that leaves requests alone, and one that alters them where it may.
fn hops() -> Option<[Hop; 2]> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
    let _entered = runtime.enter();
    let counters = TapCounters::register(&Registry::new()).ok()?;
    let address = UpstreamAddress::parse("http://127.0.0.1:1").ok()?;
    let timeouts = Timeouts::default();
    let upstream = Upstream::new(address, &Transport::default()).ok()?;
    let pool = Pool::new(upstream, &counters);
    Some([false, true].map(|alters| {
        let tap = tap(counters.clone(), alters);
        Hop::new(
            tap,
            pool.clone(),
            true,
            timeouts,
            HoldBudget::default(),
            counters.clone(),
        )
    }))
}

/// Serves one client. Promises: no panic on any bytes; the server gets each request as one message and not a byte more,
/// framed in one way; with the client's method, target, end-to-end fields and, unless it is altered, body; the fields
/// of one hop stay on it.
///
/// The text is what the client sends. Bit 0 of `how`: requests are altered where they may be. `cuts` decides how they
/// arrive.
pub fn heads(data: &[u8]) {
    let Some(input) = Input::read(data) else {
        return;
    };
    let alters = input.has(0);
    HOPS.with(|hops| {
        let Some([leaves_alone, altering]) = hops else {
            panic!("no hop");
        };
        let hop = if alters { altering } else { leaves_alone };
        let passed = serve(hop, &input);
        compare_bodies(input.text, &passed, alters);
    });
}

/// What became of one request: what hyper read of it, and what the server got, if it got all of it.
struct Passed {
    received: request::Parts,
    forwarded: Option<Message>,
}

fn serve(hop: &Hop, input: &Input<'_>) -> Vec<Passed> {
    let passed = Rc::new(RefCell::new(Vec::new()));
    let script = Script::new(input.pieces());
    let end = script.end();
    let service = service_fn(|request| {
        let passed = Rc::clone(&passed);
        async move { Ok::<_, Infallible>(exchange(hop, request, &passed).await) }
    });
    let connection = server().serve_connection(TokioIo::new(script), service);
    // Its error is the client's own doing.
    run(async { drop(connection.await) }, &end);
    passed.take()
}

async fn exchange(
    hop: &Hop,
    request: Request<Incoming>,
    passed: &RefCell<Vec<Passed>>,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let received = parts.clone();
    let mut outgoing = match hop.outgoing_for_fuzzing(parts, body).await {
        Ok(outgoing) => outgoing,
        Err(refusal) => return refusal.response(),
    };
    let got = send(&mut outgoing).await;
    let forwarded = match read_message(&got) {
        Read::Whole(message, length) => {
            assert_eq!(length, got.len(), "more than one message for one request");
            check(&received, &message);
            Some(message)
        }
        Read::Unfinished => None,
        Read::Wrong(why) => panic!("{why}: {}", String::from_utf8_lossy(&got)),
    };
    passed.borrow_mut().push(Passed {
        received,
        forwarded,
    });
    Response::new(Full::default())
}

/// Sends a request to a server of its own, which answers when the message is whole. Returns all that the server got.
async fn send(outgoing: &mut Outgoing) -> Vec<u8> {
    let (near, far) = tokio::io::duplex(ROOM);
    let Ok((mut sender, connection)) = client().handshake(TokioIo::new(near)).await else {
        return Vec::new();
    };
    let request = outgoing.request();
    let sent = async move {
        if let Ok(response) = sender.send_request(request).await {
            drop(response.into_body().collect().await);
        }
    };
    let (_, _, got) = tokio::join!(sent, connection, receive(far));
    got
}

async fn receive(mut far: DuplexStream) -> Vec<u8> {
    let mut got = Vec::new();
    let mut answered = false;
    loop {
        match far.read_buf(&mut got).await {
            Ok(0) | Err(_) => return got,
            Ok(_) => {}
        }
        if !answered && !matches!(read_message(&got), Read::Unfinished) {
            answered = true;
            drop(far.write_all(ANSWER).await);
        }
    }
}

/// Holds what the server got to what hyper read.
fn check(received: &request::Parts, got: &Message) {
    assert_eq!(got.method, received.method.as_str());
    let target = received.uri.path_and_query().map_or("/", |it| it.as_str());
    // Of an absolute target without a path (RFC 9112 section 3.2.1).
    let root = if target.starts_with('?') { "/" } else { "" };
    assert_eq!(got.target, format!("{root}{target}"));
    let hosts = got.values("host").count();
    assert!(hosts == 1 || (hosts == 0 && got.is_http10), "{hosts} hosts");
    for hop_by_hop in ["keep-alive", "proxy-connection"] {
        assert_eq!(got.values(hop_by_hop).count(), 0, "{hop_by_hop} passed");
    }
    // A switch of protocol passes as a pair, or not at all.
    assert!(got.values("connection").all(|value| value == b"upgrade"));
    let pair = ["connection", "upgrade"].map(|name| got.values(name).count() > 0);
    assert_eq!(pair, [wants_switch(received); 2]);
    assert!(got.values("te").all(|value| value == b"trailers"));
    let listed = listed(&received.headers);
    for name in received.headers.keys() {
        let is_framing = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(name);
        let is_host = *name == header::HOST && received.uri.authority().is_some();
        let may_go = [header::TE, header::EXPECT].contains(name)
            || listed.iter().any(|listed| listed == name.as_str());
        if is_framing || is_host || may_go || message::HOP_BY_HOP.contains(&name.as_str()) {
            continue;
        }
        let sent: Vec<&[u8]> = received
            .headers
            .get_all(name)
            .iter()
            .map(|value| value.as_bytes())
            .collect();
        let forwarded: Vec<&[u8]> = got.values(name.as_str()).collect();
        assert_eq!(sent, forwarded, "{name}");
    }
}

/// The names that the client lists in `Connection`, those apart that may not be taken away.
fn listed(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| String::from_utf8(name.trim_ascii().to_ascii_lowercase()).ok())
        .filter(|name| !NEVER_LISTED.contains(&name.as_str()))
        .collect()
}

/// Reads the client's bytes with the strict reader, as far as it goes, and compares the bodies.
fn compare_bodies(mut sent: &[u8], passed: &[Passed], alters: bool) {
    for passed in passed {
        let Read::Whole(message, length) = read_message(sent) else {
            return;
        };
        sent = &sent[length..];
        assert_eq!(message.method, passed.received.method.as_str());
        if let Some(forwarded) = &passed.forwarded {
            let is_same = forwarded.body == message.body;
            assert!(is_same || alters, "another body: {forwarded:?}");
            assert!(forwarded.body.len() >= message.body.len(), "a shorter body");
        }
    }
}
