//! An engine that comes, goes and comes back, and an admin port with people on it when the end comes.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::program::Running;
use crate::support::client::{Client, exchange, post};
use crate::support::origin::json;
use crate::support::tap::Tap;
use crate::support::until;

const PATH: &str = "/v1/chat/completions";

fn ready(admin: SocketAddr) -> String {
    let request = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = String::from_utf8(exchange(admin, request)).unwrap();
    answer.lines().next().unwrap().to_owned()
}

/// A socket with this address, which it may share with one that does not listen and with connections that linger.
fn bound(address: SocketAddr) -> socket2::Socket {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&address.into()).unwrap();
    socket
}

/// An engine that answers each request of each connection, as long as it lives.
struct Engine {
    address: SocketAddr,
    stop: std::sync::mpsc::Sender<()>,
    ended: std::thread::JoinHandle<()>,
}

impl Engine {
    fn at(address: SocketAddr) -> Self {
        let socket = bound(address);
        socket.listen(16).unwrap();
        let listener = TcpListener::from(socket);
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (stop, stopped) = std::sync::mpsc::channel();
        let ended = std::thread::spawn(move || serve(&listener, &stopped));
        Self {
            address,
            stop,
            ended,
        }
    }

    /// Closes everything.
    fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.join().unwrap();
    }
}

fn serve(listener: &TcpListener, stopped: &std::sync::mpsc::Receiver<()>) {
    let mut open: Vec<TcpStream> = Vec::new();
    let mut buffer = [0; 4096];
    while stopped.try_recv().is_err() {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).unwrap();
            open.push(stream);
        }
        for stream in &mut open {
            // A request of these tests comes in one piece.
            if std::io::Read::read(stream, &mut buffer).is_ok_and(|count| count > 0) {
                let _ = stream.write_all(&json("200 OK", "{}"));
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_engine_that_starts_later_and_restarts_is_found_again_by_itself() {
    // A port that nobody else takes while the engine is away.
    let reserved = bound("127.0.0.1:0".parse().unwrap());
    let address = reserved.local_addr().unwrap().as_socket().unwrap();
    let tap = Tap::before(address);
    let mut client = Client::connect(tap.data);
    for round in 0..3 {
        client.send(post(PATH, "{}", ""));
        let response = client.response();
        assert_eq!(response.status(), 502, "{round}: {}", response.head);
        assert!(
            response.head.contains("x-spectap-error: connect-refused"),
            "{}",
            response.head
        );
        until("not ready", || {
            ready(tap.admin).contains(" 503 ").then_some(())
        });
        let engine = Engine::at(address);
        for _ in 0..3 {
            client.send(post(PATH, "{}", ""));
            assert_eq!(client.response().status(), 200, "{round}");
        }
        until("ready", || ready(tap.admin).contains(" 200 ").then_some(()));
        engine.stop();
    }
    assert_eq!(
        tap.metric("spectap_upstream_errors_total{kind=\"connect-refused\"}"),
        3.0
    );
}

#[test]
fn people_on_the_admin_port_do_not_hold_the_end() {
    let engine = Engine::at("127.0.0.1:0".parse().unwrap());
    let (tap, data, admin) = Running::serve(engine.address, &["--grace=1h"]);
    assert!(
        exchange(
            data,
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )
        .starts_with(b"HTTP/1.1 200")
    );
    // One that was answered and stays, one within its request, and one that says nothing.
    let mut stays = Client::connect(admin);
    stays.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(stays.response().status(), 200);
    let mut asking = Client::connect(admin);
    asking.send("GET /metrics HTTP/1.1\r\nHost: loc");
    let _silent = Client::connect(admin);
    tap.signal("TERM");
    assert_eq!(tap.end().0, Some(0));
    engine.stop();
}
