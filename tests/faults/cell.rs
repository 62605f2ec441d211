//! One cell of the matrix: an exchange with one fault, played between raw sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::relay::{After, Fault, FaultProxy, Kind, Way};
use crate::support::client::{Client, dechunk, post};
use crate::support::origin::{Origin, Then, chunk};
use crate::support::tap::Tap;
use crate::support::until;

/// Whose connection has the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Client,
    Engine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum Moment {
    Connect,
    RequestHead,
    RequestBody,
    ResponseHead,
    BeforeFirstEvent,
    MidEvent,
    BetweenEvents,
    BeforeDone,
    BeforeFinalChunk,
    IdleKept,
}

/// What all sides show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The client has every byte and a proper end.
    Whole,
    /// The client has every byte that came, and a cut.
    Cut,
    /// The client has spectap's own 502.
    Refused,
    /// The engine's connection closes.
    Left,
    /// The client left before its request was whole: the engine hears nothing of it.
    LeftAsking,
    /// The client left before there was a request.
    Unborn,
    /// The client left with everything but the framing's end.
    LeftDone,
}

const REQUEST_BODIES: [&str; 2] = [
    r#"{"stream":true,"stream_options":{"include_usage":true},"max_tokens":77}"#,
    r#"{"stream":true,"max_tokens":77}"#,
];
const SECOND_SENT: &[u8] = b"second\"},\"finish_reason\":null}]}\n\n";
const FINISH_SENT: &[u8] = b"\"finish_reason\":\"stop\"}]}\n\n";
const PATH: &str = "/v1/chat/completions";
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENTS: [&[u8]; 4] = [
    b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"first\"},\"finish_reason\":null}]}\n\n",
    b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"second\"},\"finish_reason\":null}]}\n\n",
    b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    b"data: [DONE]\n\n",
];
const FINAL_CHUNK: &[u8] = b"0\r\n\r\n";

/// The whole answer.
fn answer() -> Vec<u8> {
    let mut answer = HEAD.to_vec();
    for event in EVENTS {
        answer.extend(chunk(event));
    }
    answer.extend_from_slice(FINAL_CHUNK);
    answer
}

/// What the client has when it has everything.
fn whole_body() -> Vec<u8> {
    EVENTS.concat()
}

impl Moment {
    /// Where it is: on which way, behind which text.
    fn place(self, peer: Peer) -> (Way, &'static [u8]) {
        match self {
            Moment::Connect => (Way::Up, b""),
            Moment::RequestHead => (Way::Up, b"Host: engine"),
            Moment::RequestBody => (Way::Up, b"{\"stream"),
            // A client has nothing of a head that is not whole: it waits.
            Moment::ResponseHead if peer == Peer::Client => (Way::Up, b"77}"),
            Moment::ResponseHead => (Way::Down, b"HTTP/1.1 200 OK\r\nconten"),
            Moment::BeforeFirstEvent => (Way::Down, b"\r\n\r\n"),
            Moment::MidEvent => (Way::Down, b"\"delta\":{\"content\":\"sec"),
            Moment::BetweenEvents => (Way::Down, SECOND_SENT),
            // Where spectap strips, the finish event comes with its successor.
            Moment::BeforeDone if peer == Peer::Client => (Way::Down, SECOND_SENT),
            Moment::BeforeDone => (Way::Down, FINISH_SENT),
            Moment::BeforeFinalChunk => (Way::Down, b"data: [DONE]\n\n"),
            Moment::IdleKept => (Way::Down, b"\r\n0\r\n\r\n"),
        }
    }

    /// How much of the answer the engine sends before it waits for the client's fault to have happened.
    fn sent_before(self, answer: &[u8]) -> usize {
        let text = match self {
            Moment::ResponseHead => return 0,
            // The event's own end, so that it is not held back; the client still has half of it only.
            Moment::MidEvent => SECOND_SENT,
            Moment::BeforeDone => FINISH_SENT,
            moment => moment.place(Peer::Client).1,
        };
        memchr::memmem::find(answer, text).unwrap() + text.len()
    }
}

/// What the engine does with its first request while the client's fault happens.
#[derive(Default)]
struct Hold {
    go_on: AtomicBool,
    closed: Mutex<Option<Instant>>,
}

impl Hold {
    /// Waits for the word to go on; false when the peer closes first.
    fn wait(&self, stream: &mut TcpStream) -> bool {
        stream
            .set_read_timeout(Some(Duration::from_millis(5)))
            .unwrap();
        let mut buffer = [0; 64];
        while !self.go_on.load(Ordering::SeqCst) {
            match stream.read(&mut buffer) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Ok(count) if count > 0 => {}
                _ => {
                    *self.closed.lock().unwrap() = Some(Instant::now());
                    return false;
                }
            }
        }
        stream.set_read_timeout(None).unwrap();
        true
    }
}

/// Plays a cell with both kinds of requests and holds everybody to the outcome. Gives the longest time from a client's
/// end to the end of the engine's connection.
pub(crate) fn play(peer: Peer, moment: Moment, kind: Kind, outcome: Outcome) -> Duration {
    let times = REQUEST_BODIES.map(|body| play_one(peer, moment, kind, outcome, body));
    times.into_iter().flatten().max().unwrap_or_default()
}

fn play_one(
    peer: Peer,
    moment: Moment,
    kind: Kind,
    outcome: Outcome,
    body: &str,
) -> Option<Duration> {
    let name = format!("{peer:?} {moment:?} {kind:?} {body}");
    let hold = Arc::new(Hold::default());
    let holds =
        peer == Peer::Client && moment >= Moment::ResponseHead && moment != Moment::IdleKept;
    let origin = {
        let hold = Arc::clone(&hold);
        Origin::start(move |number, _, stream| {
            let answer = answer();
            let first = if holds && number == 0 {
                moment.sent_before(&answer)
            } else {
                answer.len()
            };
            // A peer that is gone is what some cells are about.
            let _ = stream.write_all(&answer[..first]);
            if first < answer.len() {
                if !hold.wait(stream) {
                    return Then::Close;
                }
                let _ = stream.write_all(&answer[first..]);
            }
            Then::KeepAlive
        })
    };
    let (way, text) = moment.place(peer);
    let fault = Some(Fault {
        way,
        after: After::Text(text),
        kind,
        // A client that leaves too soon may leave before the engine was asked.
        waits: peer == Peer::Client && moment == Moment::ResponseHead,
    });
    let before_engine = FaultProxy::once(origin.address, fault.filter(|_| peer == Peer::Engine));
    let tap = Tap::before(before_engine.address);
    let before_tap = FaultProxy::once(tap.data, fault.filter(|_| peer == Peer::Client));
    let faulty = match peer {
        Peer::Client => &before_tap,
        Peer::Engine => &before_engine,
    };

    let mut client = Client::connect(before_tap.address);
    let _ = client.stream.write_all(post(PATH, body, "").as_bytes());
    if fault.is_some_and(|fault| fault.waits) {
        origin.request(0);
        faulty.release();
    }
    let mut took = None;
    if kind == Kind::Stall || holds {
        if moment != Moment::IdleKept {
            faulty.wait_reached();
        }
        let left = Instant::now();
        if holds && kind.breaks() {
            let closed = until(&format!("{name}: the engine's connection closed"), || {
                *hold.closed.lock().unwrap()
            });
            took = Some(closed.saturating_duration_since(left));
        }
        hold.go_on.store(true, Ordering::SeqCst);
        if moment != Moment::IdleKept {
            faulty.release();
        }
    }
    match outcome {
        Outcome::Whole => {
            let response = client.response();
            assert_eq!(response.status(), 200, "{name}");
            assert_eq!(text_of(&response.body()), text_of(&whole_body()), "{name}");
        }
        Outcome::Refused => {
            let response = client.response();
            assert_eq!(response.status(), 502, "{name}");
            let head = response.head;
            let kinds = ["closed-early", "connect-failed"];
            let named = kinds.map(|kind| head.contains(&format!("x-spectap-error: {kind}\r\n")));
            // A reset may come before the system has told that the connection is open.
            assert!(
                named[0] || named[1] && moment == Moment::Connect,
                "{name}: {head}"
            );
        }
        Outcome::Cut => {
            let got = client.read_to_end();
            let head_end = memchr::memmem::find(&got, b"\r\n\r\n").unwrap() + 4;
            let got_body = text_of(&dechunk(&got[head_end..]));
            assert!(!got.ends_with(FINAL_CHUNK), "{name}: a proper end");
            let sent = sent_until(text);
            // A reset throws away what its receiver has not read yet.
            let fits = match kind {
                Kind::Reset => text_of(&sent).starts_with(&got_body),
                _ => text_of(&sent) == got_body,
            };
            assert!(fits, "{name}: {got_body:?} of {:?}", text_of(&sent));
        }
        Outcome::Left | Outcome::LeftAsking | Outcome::Unborn | Outcome::LeftDone => {
            drop(client.read_to_end());
        }
    }
    if moment == Moment::IdleKept {
        faulty.wait_reached();
        faulty.release();
        second_exchange(peer, kind, &mut client, &before_tap, &name);
    }
    drop(client);
    counters(&tap, &origin, moment, outcome, &name);
    took
}

/// What the client gets of the body up to the place of a cut.
fn sent_until(text: &[u8]) -> Vec<u8> {
    let answer = answer();
    let end = memchr::memmem::find(&answer, text).unwrap() + text.len();
    dechunk(&answer[HEAD.len()..end])
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The connection that had its fault while it was idle, or another in its place, serves on.
fn second_exchange(peer: Peer, kind: Kind, client: &mut Client, way_in: &FaultProxy, name: &str) {
    let mut fresh;
    let client = if peer == Peer::Client && kind.breaks() {
        fresh = Client::connect(way_in.address);
        &mut fresh
    } else {
        client
    };
    client.send(post(PATH, REQUEST_BODIES[0], ""));
    let body = client.response().body();
    assert_eq!(text_of(&body), text_of(&whole_body()), "{name}: the second");
}

fn counters(tap: &Tap, origin: &Origin, moment: Moment, outcome: Outcome, name: &str) {
    let (count, ended) = match outcome {
        Outcome::Whole if moment == Moment::IdleKept => (2.0, "complete"),
        Outcome::Whole | Outcome::LeftDone => (1.0, "complete"),
        Outcome::Cut => (1.0, "truncated"),
        Outcome::Refused => (1.0, "error_status"),
        Outcome::Left | Outcome::LeftAsking => (1.0, "cancelled"),
        Outcome::Unborn => (0.0, "cancelled"),
    };
    tap.until_metric("spectap_client_connections", 0.0);
    let series = format!("spectap_exchange_outcomes_total{{outcome=\"{ended}\"}}");
    tap.until_metric(&series, count);
    tap.until_metric(
        "spectap_requests_in_flight{route=\"chat_completions\"}",
        0.0,
    );
    tap.until_metric("spectap_upstream_connections{state=\"active\"}", 0.0);
    let refused = f64::from(u8::from(outcome == Outcome::Refused));
    let errors = ["closed-early", "connect-failed"]
        .map(|kind| tap.metric(&format!("spectap_upstream_errors_total{{kind=\"{kind}\"}}")));
    assert_eq!(errors.iter().sum::<f64>(), refused, "{name}");
    // A second try is for kept connections only.
    let most = if moment == Moment::IdleKept { 1.0 } else { 0.0 };
    assert!(
        tap.metric("spectap_upstream_retries_total") <= most,
        "{name}"
    );
    if matches!(outcome, Outcome::Unborn | Outcome::LeftAsking) {
        assert_eq!(origin.requests().len(), 0, "{name}");
    }
}
