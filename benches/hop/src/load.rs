//! The load client: many connections on one thread, each sending its next request once the last is answered.

pub mod events;
pub mod latencies;
pub mod reply;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::clock;
use crate::order::{HEADER, Order};
use crate::shape;
use events::Events;
use latencies::Latencies;
use reply::Reply;

/// What to send, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Where to.
    pub target: SocketAddr,
    /// Connections, each with one request at a time.
    pub connections: usize,
    /// What each request asks for.
    pub order: Order,
    /// Time over which the connections are opened, one after the other.
    pub spread: Duration,
    /// When connections stop to send another request.
    pub until: Until,
}

/// When a connection has sent its last request.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After so many.
    Requests(u32),
    /// After this time from the start.
    Elapsed(Duration),
}

/// What came back.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Responses that came whole.
    pub responses: u64,
    /// Token events.
    pub events: u64,
    /// Bytes received.
    pub bytes: u64,
    /// From sending to receiving, of each token event of a paced stream.
    pub latencies: Latencies,
}

/// Connections at work.
#[derive(Debug)]
pub struct Load {
    work: Work,
    epoll: Epoll,
    request: Vec<u8>,
    started: Instant,
    lines: Vec<Line>,
    /// Connections that have sent all they should.
    finished: usize,
    /// What came so far.
    pub tally: Tally,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Line {
    socket: TcpStream,
    reply: Reply,
    events: Events,
    sent: u32,
}

impl Load {
    /// Gets ready; nothing is sent before [`Load::drive`].
    ///
    /// # Errors
    ///
    /// No epoll.
    pub fn new(work: Work) -> Result<Self> {
        Ok(Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            request: request(work.target, work.order),
            started: Instant::now(),
            lines: Vec::with_capacity(work.connections),
            finished: 0,
            tally: Tally::default(),
            buffer: vec![0; 256 << 10],
            work,
        })
    }

    /// Sends all requests and waits for all responses.
    ///
    /// # Errors
    ///
    /// A response is not what was ordered, or none came for 30 s.
    pub fn run(work: Work) -> Result<Tally> {
        let mut load = Self::new(work)?;
        load.drive(|_| false)?;
        Ok(load.tally)
    }

    /// Works until everything is answered or `enough` says so, which is asked after every round.
    ///
    /// # Errors
    ///
    /// As [`Load::run`].
    pub fn drive(&mut self, mut enough: impl FnMut(&Self) -> bool) -> Result<()> {
        let mut ready = [EpollEvent::empty(); 256];
        let mut last = Instant::now();
        while self.finished < self.work.connections && !enough(self) {
            self.open_due()?;
            let timeout = if self.lines.len() < self.work.connections {
                EpollTimeout::from(1_u8)
            } else {
                EpollTimeout::from(100_u8)
            };
            let count = match self.epoll.wait(&mut ready, timeout) {
                Err(nix::Error::EINTR) => 0,
                count => count.context("epoll")?,
            };
            for event in &ready[..count] {
                let number = event.data() as usize;
                self.receive(number)
                    .with_context(|| format!("connection {number}"))?;
            }
            if count > 0 {
                last = Instant::now();
            }
            ensure!(
                last.elapsed() < Duration::from_secs(30),
                "nothing came for 30 s, {} of {} connections have finished",
                self.finished,
                self.work.connections
            );
        }
        Ok(())
    }

    /// Streams that are under way: a token event has come, the last one has not.
    pub fn flowing(&self) -> usize {
        let flows = |line: &&Line| line.events.seen() > 0;
        self.lines.iter().filter(flows).count()
    }

    fn open_due(&mut self) -> Result<()> {
        let opened = self.lines.len();
        if opened == self.work.connections {
            return Ok(());
        }
        let part = self.started.elapsed().as_secs_f64() / self.work.spread.as_secs_f64();
        let due = (part * self.work.connections as f64).ceil();
        let due = if part < 1.0 { due as usize } else { usize::MAX };
        for number in opened..due.min(self.work.connections) {
            let socket = TcpStream::connect(self.work.target).context("connect")?;
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
            let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
            self.epoll
                .add(&socket, EpollEvent::new(flags, number as u64))?;
            let expected = match self.work.order {
                Order::Stream { events, .. } => events,
                Order::Unary { .. } => 0,
            };
            self.lines.push(Line {
                socket,
                reply: Reply::default(),
                events: Events::new(expected),
                sent: 0,
            });
            self.send(number)?;
        }
        Ok(())
    }

    fn send(&mut self, number: usize) -> Result<()> {
        let line = &mut self.lines[number];
        line.sent += 1;
        let written = line.socket.write(&self.request).context("send")?;
        // A few hundred bytes into an empty socket.
        ensure!(written == self.request.len(), "half a request was taken");
        Ok(())
    }

    fn receive(&mut self, number: usize) -> Result<()> {
        loop {
            let line = &mut self.lines[number];
            let read = match line.socket.read(&mut self.buffer) {
                Ok(0) if line.reply.has_head() => bail!("cut in the middle of a response"),
                // An idle connection may be closed, but only one that will not be used again.
                Ok(0) if self.is_over(number) => return Ok(()),
                Ok(0) => bail!("closed instead of answered"),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("receive"),
            };
            self.tally.bytes += read as u64;
            self.take(number, read)?;
            if read < self.buffer.len() {
                return Ok(());
            }
        }
    }

    fn is_over(&self, number: usize) -> bool {
        match self.work.until {
            Until::Requests(requests) => self.lines[number].sent >= requests,
            Until::Elapsed(time) => self.started.elapsed() >= time,
        }
    }

    fn take(&mut self, number: usize, read: usize) -> Result<()> {
        let now = clock::now();
        let line = &mut self.lines[number];
        let (is_stream, is_paced) = match self.work.order {
            Order::Stream { interval, .. } => (true, !interval.is_zero()),
            Order::Unary { .. } => (false, false),
        };
        let before = line.events.seen();
        let (events, latencies) = (&mut line.events, &mut self.tally.latencies);
        let mut body = |data: &[u8]| {
            if !is_stream {
                return Ok(());
            }
            events.feed(data, |sent| {
                if is_paced {
                    latencies.record(now.saturating_sub(sent));
                }
            })
        };
        let taken = line.reply.feed(&self.buffer[..read], &mut body)?;
        self.tally.events += u64::from(line.events.seen() - before);
        if !line.reply.is_complete() {
            return Ok(());
        }
        ensure!(taken == read, "bytes behind a response");
        if is_stream {
            line.events.check_end()?;
        }
        line.reply.reset();
        line.events.reset();
        self.tally.responses += 1;
        if self.is_over(number) {
            self.finished += 1;
            return Ok(());
        }
        self.send(number)
    }
}

/// The request for a chat completion.
pub fn request(target: SocketAddr, order: Order) -> Vec<u8> {
    let body = shape::request_body(matches!(order, Order::Stream { .. }));
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {target}\r\nUser-Agent: bench\r\nAccept: */*\r\n\
Content-Type: application/json\r\n{HEADER}: {order}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    request.into_bytes()
}
