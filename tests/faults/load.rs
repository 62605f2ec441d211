//! Many streams and slow readers: memory stays flat, and what is open at once is all served.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::program::Running;
use crate::support::client::exchange;
use crate::support::until;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const STREAMS: usize = 2000;

/// The longest that so many may take, all together.
const PATIENCE: Duration = Duration::from_secs(50);

fn request(path: &str) -> String {
    crate::support::client::post(path, "{\"stream\":true}", "")
}

/// Resident memory of a process, in bytes.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().next().unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

fn chunk(data: &[u8]) -> Vec<u8> {
    crate::support::origin::chunk(data)
}

/// Reads such a request: its head and a body that ends in a brace.
async fn read_request(stream: &mut TcpStream) -> bool {
    let mut read = Vec::new();
    while !read.ends_with(b"}") {
        match stream.read_buf(&mut read).await {
            Ok(count) if count > 0 => {}
            _ => return false,
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_stream_to_a_slow_reader_takes_no_memory() {
    let mebibytes = std::env::var("SOAK_STREAM_MIB").map_or(200, |text| text.parse().unwrap());
    let total: u64 = mebibytes << 20;
    // One that is observed and stripped, which takes an unoptimised build its time, and one that only passes.
    slow_reader("/v1/chat/completions", total / 4).await;
    slow_reader("/raw", total).await;
}

async fn slow_reader(path: &str, total: u64) {
    const BOUND: u64 = 16 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let engine = listener.local_addr().unwrap();
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(read_request(&mut stream).await);
        stream.write_all(HEAD).await.unwrap();
        let text = "x".repeat(4000);
        let event = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
        );
        let piece = chunk(event.repeat(10).as_bytes());
        while counted.load(Ordering::Relaxed) < total {
            stream.write_all(&piece).await.unwrap();
            counted.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        stream.write_all(b"0\r\n\r\n").await.unwrap();
    });
    let (tap, data, _) = Running::serve(engine, &[]);
    let mut client = TcpStream::connect(data).await.unwrap();
    client.write_all(request(path).as_bytes()).await.unwrap();
    let mut buffer = vec![0; 64 << 10];
    let (mut got, mut looked, mut first, mut most) = (0u64, 0u64, 0u64, 0u64);
    let mut end = Vec::new();
    loop {
        let count = client.read(&mut buffer).await.unwrap();
        assert!(count > 0, "cut after {got} bytes");
        end.extend_from_slice(&buffer[..count]);
        end.drain(..end.len().saturating_sub(5));
        got += count as u64;
        if got >= looked + (4 << 20) {
            looked = got;
            // Slower than the engine all the time, and now and then it does not read at all.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = resident(tap.id());
            if first == 0 {
                first = now;
            }
            most = most.max(now);
            let ahead = sent.load(Ordering::Relaxed).saturating_sub(got);
            assert!(ahead < 64 << 20, "{ahead} bytes are on their way");
        }
        if end == b"0\r\n\r\n" {
            break;
        }
    }
    eprintln!("{path}: {got} bytes; {first} bytes resident at the first look, {most} at most");
    assert!(got >= total);
    assert!(most < first + BOUND, "from {first} to {most} bytes");
}

/// An engine whose streams begin at once and end when it is told to.
async fn endless_engine(end: watch::Receiver<bool>) -> SocketAddr {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(4096).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut end = end.clone();
            tokio::spawn(async move {
                if read_request(&mut stream).await {
                    let begin = [HEAD, &chunk(b"data: {}\n\n")].concat();
                    stream.write_all(&begin).await.unwrap();
                    let _ = end.wait_for(|end| *end).await;
                    let _ = stream.write_all(b"0\r\n\r\n").await;
                }
            });
        }
    });
    address
}

async fn read_until(stream: &mut TcpStream, end: &[u8]) {
    let mut read = Vec::new();
    while !read.ends_with(end) {
        let reading = tokio::time::timeout(PATIENCE, stream.read_buf(&mut read));
        assert!(reading.await.unwrap().unwrap() > 0, "cut");
    }
}

fn metric(admin: SocketAddr, series: &str) -> f64 {
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let page = String::from_utf8(exchange(admin, request)).unwrap();
    let value = page.lines().find_map(|line| line.strip_prefix(series));
    value.map_or(0.0, |value| value.trim().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_streams_are_open_at_once() {
    // Both ends of each stream at both of its connections, here and in the process under test.
    let files = rlimit::increase_nofile_limit(3 * STREAMS as u64).unwrap();
    if files < 3 * STREAMS as u64 {
        assert!(std::env::var("CI").is_err(), "only {files} open files");
        eprintln!("skipped: only {files} open files");
        return;
    }
    let (end, told) = watch::channel(false);
    let engine = endless_engine(told).await;
    let (_tap, data, admin) = Running::serve(engine, &[]);
    let begun = Arc::new(AtomicUsize::new(0));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..STREAMS {
        let begun = Arc::clone(&begun);
        clients.spawn(async move {
            let mut stream = TcpStream::connect(data).await.unwrap();
            let request = request("/v1/chat/completions");
            stream.write_all(request.as_bytes()).await.unwrap();
            read_until(&mut stream, b"data: {}\n\n\r\n").await;
            begun.fetch_add(1, Ordering::Relaxed);
            read_until(&mut stream, b"0\r\n\r\n").await;
        });
    }
    let in_flight = "spectap_requests_in_flight{route=\"chat_completions\"} ";
    let asked = Instant::now();
    while begun.load(Ordering::Relaxed) < STREAMS {
        assert!(asked.elapsed() < PATIENCE, "only {begun:?} have begun");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(metric(admin, in_flight), STREAMS as f64);
    assert_eq!(metric(admin, "spectap_client_connections "), STREAMS as f64);
    end.send_replace(true);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    until("the end of all", || {
        let left = metric(admin, in_flight) + metric(admin, "spectap_client_connections ");
        (left == 0.0).then_some(())
    });
}
