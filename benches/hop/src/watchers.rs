//! Those who look at spectap while it works: a scraper, and subscribers of its live feed.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::fetch;

/// How many subscribe.
const SUBSCRIBERS: usize = 50;

/// Time between scrapes.
const SCRAPE: Duration = Duration::from_secs(1);

/// Time between looks at what the subscribers got.
const LOOK: Duration = Duration::from_millis(50);

/// Watchers at work.
#[derive(Debug)]
pub struct Watchers {
    stop: Sender<()>,
    thread: JoinHandle<Result<u32>>,
    /// Subscribers; none where the feed does not answer.
    pub subscribers: usize,
}

impl Watchers {
    /// Begins to look at an admin port.
    ///
    /// # Errors
    ///
    /// It is not there.
    pub fn begin(admin: SocketAddr) -> Result<Self> {
        let mut sockets = Vec::new();
        while sockets.len() < SUBSCRIBERS {
            match subscribe(admin)? {
                Some(socket) => sockets.push(socket),
                None => break,
            }
        }
        let (stop, stopped) = channel();
        let subscribers = sockets.len();
        let thread = std::thread::spawn(move || {
            let (mut scrapes, mut buffer) = (0, vec![0; 64 << 10]);
            let looks = SCRAPE.as_millis() / LOOK.as_millis();
            for look in 0.. {
                if stopped.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                for socket in &mut sockets {
                    drain(socket, &mut buffer)?;
                }
                if look % looks == 0 {
                    fetch::get(admin, "/metrics")?;
                    scrapes += 1;
                }
            }
            Ok(scrapes)
        });
        Ok(Self {
            stop,
            thread,
            subscribers,
        })
    }

    /// Stops, and says how many scrapes there were.
    ///
    /// # Errors
    ///
    /// A scrape failed, or the feed ended.
    pub fn finish(self) -> Result<u32> {
        // It may have ended by an error of its own, which is told below.
        let _ = self.stop.send(());
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| anyhow::bail!("the watcher panicked"))
    }
}

/// Subscribes, if the feed answers.
fn subscribe(admin: SocketAddr) -> Result<Option<TcpStream>> {
    let mut socket = TcpStream::connect(admin)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(
        socket,
        "GET /api/v1/stream HTTP/1.1\r\nHost: {admin}\r\nAccept: text/event-stream\r\n\r\n"
    )?;
    let mut start = [0; 12];
    socket.read_exact(&mut start)?;
    socket.set_nonblocking(true)?;
    Ok((start == *b"HTTP/1.1 200").then_some(socket))
}

fn drain(socket: &mut TcpStream, buffer: &mut [u8]) -> Result<()> {
    loop {
        match socket.read(buffer) {
            Ok(read) => ensure!(read > 0, "the live feed ended"),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    use super::*;

    /// An admin port that counts scrapes; its feed answers with `feed` and goes on.
    fn admin_port(feed: &'static str) -> (SocketAddr, Arc<AtomicU32>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let scrapes = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&scrapes);
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for socket in listener.incoming() {
                let (mut socket, mut request) = (socket.unwrap(), [0; 1024]);
                let read = socket.read(&mut request).unwrap();
                if request[..read].starts_with(b"GET /metrics ") {
                    count.fetch_add(1, Ordering::SeqCst);
                    write!(socket, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                } else {
                    write!(socket, "{feed}\r\n\r\ndata: 1\n\n").unwrap();
                    open.push(socket);
                }
            }
        });
        (address, scrapes)
    }

    fn watch(feed: &'static str) -> (usize, u32) {
        let (admin, scrapes) = admin_port(feed);
        let (watchers, started) = (Watchers::begin(admin).unwrap(), Instant::now());
        while scrapes.load(Ordering::SeqCst) == 0 {
            assert!(started.elapsed() < Duration::from_secs(10), "no scrape");
            std::thread::yield_now();
        }
        (watchers.subscribers, watchers.finish().unwrap())
    }

    #[test]
    fn the_feed_is_subscribed_to_where_it_answers_and_the_port_is_scraped_anyway() {
        let (subscribers, scrapes) = watch("HTTP/1.1 200 OK");
        assert_eq!(subscribers, SUBSCRIBERS);
        assert!(scrapes > 0);
        let (subscribers, scrapes) = watch("HTTP/1.1 404 Not Found");
        assert_eq!(subscribers, 0);
        assert!(scrapes > 0);
    }
}
