//! `spectap healthcheck` and `spectap drain` beside a tap that runs, as probes and preStop hooks run them.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::program::{Running, output, spectap};
use crate::signals::{endless_engine, open_stream};

fn free_address() -> SocketAddr {
    let probe = TcpListener::bind("127.0.0.1:0").unwrap();
    probe.local_addr().unwrap()
}

fn run(arguments: &[&str], admin: SocketAddr) -> (Option<i32>, String, String) {
    let url = format!("--admin=http://{admin}");
    let all: Vec<&str> = arguments.iter().copied().chain([url.as_str()]).collect();
    output(&all)
}

#[test]
fn healthcheck_tells_by_its_exit_code_whether_the_tap_lives_and_whether_it_is_ready() {
    let (engine, _) = endless_engine();
    let (_tap, _, admin) = Running::serve(engine, &[]);
    for arguments in [&["healthcheck"][..], &["healthcheck", "--ready"]] {
        assert_eq!(run(arguments, admin).0, Some(0), "{arguments:?}");
    }
    let (_lonely, _, admin) = Running::serve(free_address(), &[]);
    assert_eq!(run(&["healthcheck"], admin).0, Some(0));
    let (code, out, errors) = run(&["healthcheck", "--ready"], admin);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(errors.contains("no server answers"), "{errors}");
    let (code, _, errors) = run(&["healthcheck"], free_address());
    assert_eq!(code, Some(1));
    assert!(errors.contains("spectap serve"), "{errors}");
}

#[test]
fn healthcheck_finds_the_tap_by_the_taps_own_setting() {
    let (engine, _) = endless_engine();
    let (_tap, _, admin) = Running::serve(engine, &[]);
    let found = spectap(&["healthcheck"])
        .env("SPECTAP_ADMIN_LISTEN", format!("0.0.0.0:{}", admin.port()))
        .output()
        .unwrap();
    assert!(found.status.success(), "{found:?}");
}

#[test]
fn drain_waits_for_the_streams_and_the_tap_ends_with_success() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let engine = listener.local_addr().unwrap();
    let (finish, finished) = channel::<()>();
    let (begin, begun) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head).unwrap();
        begin.send(()).unwrap();
        finished.recv().unwrap();
        stream.write_all(b"4\r\nlast\r\n0\r\n\r\n").unwrap();
    });
    let (tap, data, admin) = Running::serve(engine, &["--ready=self"]);
    let mut client = open_stream(data, &begun);
    let url = format!("--admin=http://{admin}");
    let drain = Running::start(&mut spectap(&["drain", "--wait", &url]));
    tap.until("a drain", |line| line.contains("stopping").then_some(()));
    let (code, _, errors) = run(&["healthcheck", "--ready"], admin);
    assert_eq!(code, Some(1));
    assert!(errors.contains("draining"), "{errors}");
    finish.send(()).unwrap();
    let mut rest = String::new();
    client
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    client.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("4\r\nlast\r\n0\r\n\r\n"), "{rest}");
    assert_eq!(drain.end().0, Some(0));
    assert_eq!(tap.end(), (Some(0), String::new()));
}

#[test]
fn drain_tells_that_streams_were_cut() {
    let (engine, begun) = endless_engine();
    let (tap, data, admin) = Running::serve(engine, &["--grace=100ms"]);
    let _client = open_stream(data, &begun);
    assert_eq!(run(&["drain", "--wait"], admin).0, Some(3));
    assert_eq!(tap.end().0, Some(3));
}

#[test]
fn the_sigterm_behind_a_drain_does_not_cut_and_one_more_does() {
    let (engine, begun) = endless_engine();
    let (tap, data, admin) = Running::serve(engine, &["--grace=1h"]);
    let mut client = open_stream(data, &begun);
    let (code, _, errors) = run(&["drain", "--wait", "--timeout=50ms"], admin);
    assert_eq!(code, Some(1));
    assert!(errors.contains("still draining"), "{errors}");
    tap.signal("TERM");
    // The stream goes on: nothing but its head comes, and no end.
    client
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let mut read = Vec::new();
    let error = client.read_to_end(&mut read).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    let asked = Instant::now();
    tap.signal("TERM");
    assert_eq!(tap.end().0, Some(3));
    assert!(asked.elapsed() < Duration::from_secs(20));
}

#[test]
fn drain_is_for_those_who_hold_the_token_and_a_rotated_one_holds_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "first\n").unwrap();
    let file_flag = format!("--admin-token-file={}", file.display());
    let (engine, _) = endless_engine();
    let (tap, _, admin) = Running::serve(engine, &[&file_flag]);
    let (code, _, errors) = run(&["drain"], admin);
    assert_eq!(code, Some(1));
    assert!(errors.contains("--admin-token-file"), "{errors}");
    let status = |token: &str| {
        let mut client = TcpStream::connect(admin).unwrap();
        let request = format!(
            "GET /api/v1/drain HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(
        (status("first"), status("second")),
        ("200".into(), "401".into())
    );
    fs::write(&file, "second\n").unwrap();
    assert_eq!(
        (status("first"), status("second")),
        ("401".into(), "200".into())
    );
    // In the middle of a rotation the last one holds.
    fs::remove_file(&file).unwrap();
    assert_eq!(status("second"), "200");
    fs::write(&file, "third\n").unwrap();
    assert_eq!(run(&["drain", "--wait", &file_flag], admin).0, Some(0));
    assert_eq!(tap.end().0, Some(0));
}
