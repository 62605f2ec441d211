//! What an engine that can't be trusted looks like in the log.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::program::{Running, spectap};

#[test]
fn an_engine_that_does_not_speak_tls_is_one_line_in_the_log_however_many_ask() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let tap = Running::start(&mut spectap(&[
        "serve",
        "--listen=127.0.0.1:0",
        "--admin-listen=127.0.0.1:0",
        "--upstream",
        &upstream,
    ]));
    let data = tap.address_before(" passes to https://");
    for _ in 0..5 {
        let mut client = TcpStream::connect(data).unwrap();
        client
            .write_all(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("x-spectap-error: tls-failed"), "{answer}");
    }
    tap.signal("TERM");
    tap.until("the end", |line| line.contains("stopping").then_some(()));
    let errors = tap.errors();
    let lines: Vec<&str> = errors
        .lines()
        .filter(|line| line.contains("does not speak TLS"))
        .collect();
    assert_eq!(lines.len(), 1, "{errors}");
    assert!(
        lines[0].contains("WARN") && lines[0].contains("http://"),
        "{errors}"
    );
}
