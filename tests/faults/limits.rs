//! How many clients there may be, and what a client that takes its time gets: nobody else is harmed, and nothing spins.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::program::{Running, spectap};
use crate::support::client::{Client, exchange};
use crate::support::origin::{Origin, json};
use crate::support::tap::Tap;
use crate::support::until;

const GET: &str = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_AND_CLOSE: &str = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const PAUSES: &str = "spectap_accept_pauses_total{reason=\"max_connections\"}";

fn healthy() -> Origin {
    Origin::answering(vec![json("200 OK", "{}")])
}

#[test]
fn clients_beyond_the_limit_wait_until_one_leaves() {
    for workers in ["--workers=1", "--workers=2"] {
        let origin = healthy();
        let tap = Tap::with(origin.address, &["--max-connections=2", workers]);
        let mut first = Client::connect(tap.data);
        let mut second = Client::connect(tap.data);
        for client in [&mut first, &mut second] {
            client.send(GET);
            assert_eq!(client.response().status(), 200);
        }
        let mut third = Client::connect(tap.data);
        third.send(GET);
        until("a pause", || (tap.metric(PAUSES) >= 1.0).then_some(()));
        assert_eq!(tap.metric("spectap_client_connections"), 2.0);
        assert_eq!(origin.requests().len(), 2, "{workers}");
        drop(first);
        assert_eq!(third.response().status(), 200, "{workers}");
        assert_eq!(origin.requests().len(), 3, "{workers}");
    }
}

#[test]
fn a_connection_that_switched_its_protocol_still_counts_as_a_client() {
    let origin = Origin::start(|_, request, stream| {
        if request.head.contains("Upgrade") {
            let head =
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
            stream.write_all(head).unwrap();
            crate::support::origin::wait_for_close(stream);
            return crate::support::origin::Then::Close;
        }
        stream.write_all(&json("200 OK", "{}")).unwrap();
        crate::support::origin::Then::KeepAlive
    });
    let tap = Tap::with(origin.address, &["--max-connections=1"]);
    let mut switched = Client::connect(tap.data);
    switched.send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
    switched.read_until(b"\r\n\r\n");
    let mut other = Client::connect(tap.data);
    other.send(GET);
    until("a pause", || (tap.metric(PAUSES) >= 1.0).then_some(()));
    assert_eq!(tap.metric("spectap_client_connections"), 1.0);
    drop(switched);
    assert_eq!(other.response().status(), 200);
}

/// Whether the other side has closed.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 256];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

#[test]
fn clients_that_drip_their_head_are_closed_and_harm_nobody() {
    let head = format!(
        "GET /slow HTTP/1.1\r\nHost: a\r\nX: {}",
        "x".repeat(100_000)
    );
    // Nothing at all, half of HTTP/2's beginning, and a head byte by byte.
    let beginnings: [&[u8]; 3] = [b"", b"PRI * HTT", head.as_bytes()];
    let origin = healthy();
    let tap = Tap::with(origin.address, &["--head-timeout=400ms"]);
    let mut slow: Vec<(TcpStream, &[u8])> = (0..150)
        .map(|number| {
            let stream = TcpStream::connect(tap.data).unwrap();
            stream.set_nonblocking(true).unwrap();
            (stream, beginnings[number % 3])
        })
        .collect();
    let begun = Instant::now();
    let mut served = 0;
    while !slow.is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{} are still open",
            slow.len()
        );
        slow.retain_mut(|(stream, rest)| {
            if let Some((byte, after)) = rest.split_first() {
                let _ = stream.write(&[*byte]);
                *rest = after;
            }
            !is_closed(stream)
        });
        // In between, somebody who is not slow.
        let answer = exchange(tap.data, GET_AND_CLOSE);
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
        served += 1;
    }
    assert!(served > 1);
    assert_eq!(
        origin.requests().len(),
        served,
        "a slow head reached the engine"
    );
    tap.until_metric("spectap_client_connections", 0.0);
}

/// `serve` with so many files at most; `S` in front lowers what it may raise again.
fn serve_with_files(
    files: &str,
    engine: SocketAddr,
    flags: &[&str],
) -> (Running, SocketAddr, SocketAddr) {
    let upstream = format!("http://{engine}");
    let base = [
        "serve",
        "--no-scrape",
        "--listen=127.0.0.1:0",
        "--admin-listen=127.0.0.1:0",
        "--upstream",
        &upstream,
    ];
    let program = spectap(&[&base, flags].concat());
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("ulimit -{files}; exec \"$0\" \"$@\""))
        .arg(program.get_program())
        .args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Running::start_serving(&mut command)
}

/// User and system time of a process so far, in ticks of a hundredth of a second.
fn processor_time(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn without_files_clients_wait_nothing_spins_and_it_goes_on_by_itself() {
    let origin = healthy();
    let (tap, data, admin) = serve_with_files("n 48", origin.address, &["--max-connections=1000"]);
    let waiting: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(data).unwrap())
        .collect();
    tap.until("a word about it", |line| {
        line.contains("can not accept a connection").then_some(())
    });
    let (begun, before) = (Instant::now(), processor_time(tap.id()));
    // What is measured is this time, which nothing ends.
    std::thread::sleep(Duration::from_secs(2));
    let used = processor_time(tap.id()) - before;
    // A loop that spins takes all of a core, or what others leave of it.
    let share = used as f64 / 100.0 / begun.elapsed().as_secs_f64();
    assert!(share < 0.25, "waiting took {share:.2} of a core");
    let told = tap.errors().matches("can not accept").count();
    assert_eq!(told, 1, "told again and again: {}", tap.errors());
    drop(waiting);
    tap.until("a word about the end", |line| {
        line.contains("accepted again").then_some(())
    });
    assert!(exchange(data, GET_AND_CLOSE).starts_with(b"HTTP/1.1 200 "));
    let page = String::from_utf8(exchange(
        admin,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ));
    let pauses: u64 = page
        .unwrap()
        .lines()
        .find_map(|line| line.strip_prefix("spectap_accept_pauses_total{reason=\"file_limit\"} "))
        .map_or(0, |count| count.trim().parse().unwrap());
    assert!(pauses >= 1);
}

#[test]
fn the_limit_of_files_is_raised_as_far_as_it_may_be_and_told() {
    let (tap, _, _) = serve_with_files("Sn 200", healthy().address, &[]);
    tap.until("a word about it", |line| {
        line.contains("open files, raised from 200").then_some(())
    });
}
