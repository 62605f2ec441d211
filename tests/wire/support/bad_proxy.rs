//! A hop that does not keep the promises: it passes requests on as they are, and does one wrong thing to answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// What it does wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Changes heads, given and giving back the lines between the status line and the blank line.
    Head(fn(Vec<String>) -> Vec<String>),
    /// Changes what it reads of a body.
    Body(fn(Vec<u8>) -> Vec<u8>),
    /// Leaves after so many bytes of a body.
    Cuts(usize),
    /// Keeps everything back until the engine has been silent for a while.
    Buffers,
    /// Passes the head on at once and collects the body.
    BuffersBodies,
    /// Writes the end of a chunked body where the engine's connection ends.
    EndsCleanly,
    /// Closes the connection behind each answer.
    Closes,
}

/// Longer than the simulated engine is ever silent within an answer.
const SILENCE: Duration = Duration::from_millis(400);

/// Long enough for the end of an answer, and shorter than a client waits for the end of a connection.
const PAUSE: Duration = Duration::from_millis(25);

/// Starts one in front of an engine.
pub(crate) fn start(engine: SocketAddr, fault: Fault) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let Ok(server) = TcpStream::connect(engine) else {
                    return;
                };
                for stream in [&client, &server] {
                    stream.set_nodelay(true).unwrap();
                }
                let (from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    let mut from = from;
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
                let _ = pass(server, &client, fault);
                let _ = client.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    address
}

fn pass(mut server: TcpStream, mut client: &TcpStream, fault: Fault) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut body_length = 0;
    let mut is_in_head = true;
    let mut is_chunked = false;
    let mut kept = Vec::new();
    let mut buffer = [0; 65536];
    server.set_read_timeout(match fault {
        Fault::Buffers | Fault::BuffersBodies => Some(SILENCE),
        Fault::Closes => Some(PAUSE),
        _ => None,
    })?;
    loop {
        let mut data = match server.read(&mut buffer) {
            Ok(0) if matches!(fault, Fault::EndsCleanly) && is_chunked => {
                return client.write_all(b"0\r\n\r\n");
            }
            Ok(0) => return client.write_all(&kept),
            Ok(count) => buffer[..count].to_vec(),
            // Silent for long enough; the first answer may take a while.
            Err(_) if matches!(fault, Fault::Closes) && body_length == 0 => continue,
            Err(_) if matches!(fault, Fault::Closes) => return Ok(()),
            Err(_) => {
                client.write_all(&std::mem::take(&mut kept))?;
                continue;
            }
        };
        is_in_head = is_in_head || data.starts_with(b"HTTP/1.1 ");
        if is_in_head {
            head.append(&mut data);
            let Some(at) = memchr::memmem::find(&head, b"\r\n\r\n") else {
                continue;
            };
            is_in_head = false;
            data = head.split_off(at + 4);
            is_chunked = String::from_utf8_lossy(&head).contains("chunked");
            let changed = match fault {
                Fault::Head(change) => changed(&head, change),
                _ => head.clone(),
            };
            head.clear();
            match fault {
                Fault::Buffers => kept.extend(changed),
                _ => client.write_all(&changed)?,
            }
        }
        body_length += data.len();
        match fault {
            Fault::Body(change) => client.write_all(&change(data))?,
            Fault::Cuts(most) if body_length > most => {
                client.write_all(&data[..data.len() - (body_length - most)])?;
                return Ok(());
            }
            Fault::Buffers | Fault::BuffersBodies => kept.extend(data),
            _ => client.write_all(&data)?,
        }
    }
}

fn changed(head: &[u8], change: fn(Vec<String>) -> Vec<String>) -> Vec<u8> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.trim_end().split("\r\n").map(str::to_owned);
    let status = lines.next().unwrap();
    let lines = change(lines.collect());
    format!("{status}\r\n{}\r\n\r\n", lines.join("\r\n")).into_bytes()
}
