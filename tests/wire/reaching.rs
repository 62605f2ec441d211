//! How the engine is reached: over a Unix socket, by a name that moves, at any of its addresses; and what is set on the
//! sockets of both sides.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use spectap::proxy::{Resolver, Transport, Upstream, UpstreamAddress};

use crate::support::client::{Client, post};
use crate::support::origin::{Origin, json};
use crate::support::tap::Tap;
use crate::support::{DEADLINE, until};

/// A tap in front of a name, and what the name means, which may be changed.
fn by_name(addresses: Vec<SocketAddr>) -> (Tap, Arc<Mutex<Vec<SocketAddr>>>) {
    let addresses = Arc::new(Mutex::new(addresses));
    let meaning = Arc::clone(&addresses);
    let transport = Transport {
        resolver: Resolver::new(move |host, port| {
            assert_eq!((host, port), ("engine.test", 8000));
            Ok(meaning.lock().unwrap().clone())
        }),
        ..Transport::default()
    };
    let url = "http://engine.test:8000";
    let address = UpstreamAddress::parse(url).unwrap();
    let mut config = Tap::config(url, &[]).unwrap();
    config.lanes[0].1 = Upstream::new(address, &transport).unwrap();
    (Tap::start(config), addresses)
}

/// An address that never answers: its queue is full.
struct Silent {
    address: SocketAddr,
    _held: (socket2::Socket, Vec<socket2::Socket>),
}

impl Silent {
    fn new() -> Self {
        use socket2::{Domain, Socket, Type};
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let listener = socket();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        listener.bind(&any.into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let waiting = (0..4)
            .map(|_| {
                let client = socket();
                client.set_nonblocking(true).unwrap();
                // In progress, as it should be.
                let _ = client.connect(&address.into());
                client
            })
            .collect();
        Self {
            address,
            _held: (listener, waiting),
        }
    }
}

/// An address where nobody listens.
fn refusing() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn closing(body: &str) -> Origin {
    let answer = json("200 OK\r\nConnection: close", body);
    Origin::answering(vec![answer])
}

fn answer(tap: &Tap) -> (u16, String) {
    let mut client = Client::connect(tap.data);
    client.send(post("/x", "{}", ""));
    let response = client.response();
    (
        response.status(),
        String::from_utf8(response.body()).unwrap(),
    )
}

#[test]
fn a_name_that_moves_is_followed_by_the_next_connection() {
    let (first, second) = (closing("first"), closing("second"));
    let (tap, name) = by_name(vec![first.address]);
    assert_eq!(answer(&tap), (200, "first".to_owned()));
    *name.lock().unwrap() = vec![second.address];
    assert_eq!(answer(&tap), (200, "second".to_owned()));
    name.lock().unwrap().clear();
    let (status, body) = answer(&tap);
    assert_eq!(status, 502);
    assert!(body.contains("the name has no address"), "{body}");
}

#[test]
fn every_address_of_a_name_is_tried() {
    let engine = closing("{}");
    let silent = Silent::new();
    let silent_too = Silent::new();
    let (tap, name) = by_name(vec![refusing(), engine.address]);
    assert_eq!(answer(&tap).0, 200);
    *name.lock().unwrap() = vec![
        silent.address,
        silent_too.address,
        refusing(),
        engine.address,
    ];
    assert_eq!(
        answer(&tap).0,
        200,
        "one that is silent must not take all the time"
    );
    assert_eq!(tap.readiness().0, 200);

    *name.lock().unwrap() = vec![refusing(), refusing()];
    let (status, body) = answer(&tap);
    assert_eq!(status, 502);
    assert!(body.contains("engine.test:8000"), "{body}");
    let refused = "spectap_upstream_errors_total{kind=\"connect-refused\"}";
    assert_eq!(tap.metric(refused), 1.0);
}

#[test]
fn addresses_that_are_silent_together_get_the_time_of_one() {
    let silent = [Silent::new(), Silent::new(), Silent::new()];
    let (tap, _) = by_name(silent.iter().map(|one| one.address).collect());
    let begun = Instant::now();
    assert_eq!(answer(&tap).0, 504);
    let timeout = "spectap_upstream_errors_total{kind=\"connect-timeout\"}";
    assert_eq!(tap.metric(timeout), 1.0);
    // Three times five seconds would be more.
    assert!(begun.elapsed().as_secs() < 12);
}

/// An engine at a path; tells of each head that it got.
fn at_socket(path: &Path) -> mpsc::Receiver<String> {
    let listener = UnixListener::bind(path).unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut read = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(count) = stream.read(&mut buffer) {
                read.extend_from_slice(&buffer[..count]);
                if count == 0 {
                    break;
                }
                if read.ends_with(b"{}") {
                    let _ = tell.send(String::from_utf8(std::mem::take(&mut read)).unwrap());
                    stream.write_all(&json("200 OK", "{}")).unwrap();
                }
            }
        }
    });
    told
}

#[test]
fn an_engine_at_a_unix_socket_gets_the_clients_own_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.sock");
    let tap = Tap::of(&format!("unix:{}", path.display()), &[]);
    // It has not started yet.
    let (status, body) = answer(&tap);
    assert_eq!(status, 502);
    assert!(
        body.contains("engine.sock") && body.contains("is it running"),
        "{body}"
    );
    assert_eq!(tap.readiness().0, 503);
    let told = at_socket(&path);
    until("ready", || (tap.readiness().0 == 200).then_some(()));
    let request = post("/v1/x?y=%20", "{}", "X-Case: A\r\n");
    let mut client = Client::connect(tap.data);
    for _ in 0..2 {
        client.send(&request);
        assert_eq!(client.response().body(), b"{}");
        assert_eq!(told.recv_timeout(DEADLINE).unwrap(), request);
    }
    fs::remove_file(&path).unwrap();
}

/// The timer that the system runs for a connection, as /proc/net/tcp tells it; 2 is the one of keepalive.
#[cfg(target_os = "linux")]
fn timer(local: u16, remote: u16) -> Option<String> {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let wanted = [local, remote].map(|port| format!("0100007F:{port:04X}"));
    let row = table.lines().find_map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        (cells[1] == wanted[0] && cells[2] == wanted[1] && cells[3] == "01").then_some(cells)
    });
    row.map(|cells| cells[5].split(':').next().unwrap().to_owned())
}

#[cfg(target_os = "linux")]
#[test]
fn the_system_probes_idle_peers_on_both_sides() {
    let (tell, told) = mpsc::channel();
    let engine = Origin::start(move |_, _, stream| {
        tell.send(stream.peer_addr().unwrap().port()).unwrap();
        stream.write_all(&json("200 OK", "{}")).unwrap();
        crate::support::origin::Then::KeepAlive
    });
    let tap = Tap::before(engine.address);
    let client = TcpStream::connect(tap.data).unwrap();
    (&client).write_all(post("/x", "", "").as_bytes()).unwrap();
    let ours = told.recv_timeout(DEADLINE).unwrap();
    let theirs = client.local_addr().unwrap().port();
    until("keepalive of the client's connection", || {
        (timer(tap.data.port(), theirs)? == "02").then_some(())
    });
    until("keepalive of the engine's connection", || {
        (timer(ours, engine.address.port())? == "02").then_some(())
    });
    // The engine's own end has none, so that the column tells the difference.
    assert_ne!(timer(engine.address.port(), ours).as_deref(), Some("02"));
}
