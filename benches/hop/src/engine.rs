//! A double of a vLLM server that is never the bottleneck: one thread, epoll, bytes prepared beforehand.

pub mod connection;
pub mod counts;
pub mod request;
pub mod response;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::clock;
use crate::order::Order;
use crate::shape;
use connection::Connection;
use counts::Counts;
use request::{Asked, Read};
use response::Stream;

/// Names of the listener and the timer among the sockets.
const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// Bodies up to this size are copied behind their head, so that one write takes both.
const COPIED: usize = 16 << 10;

/// Where the hexadecimal number stands in `{"id":"chatcmpl-…`.
const ID_AT: std::ops::Range<usize> = 16..32;

/// Serves until the process ends.
///
/// # Errors
///
/// Epoll or the timer can't be had or failed.
pub fn serve(listener: &TcpListener) -> Result<()> {
    Engine::new(listener)?.run(listener)
}

struct Engine {
    epoll: Epoll,
    timer: TimerFd,
    armed: Option<u64>,
    connections: HashMap<u64, Connection>,
    /// Connections whose stream goes out as fast as its socket takes it.
    flooding: Vec<u64>,
    /// When paced streams send next: nanoseconds and connection.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    /// Bodies by their size.
    bodies: HashMap<usize, Rc<[u8]>>,
    counts: Counts,
    next_connection: u64,
    next_id: u64,
    buffer: Vec<u8>,
}

impl Engine {
    fn new(listener: &TcpListener) -> Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK)?;
        epoll.add(listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        Ok(Self {
            epoll,
            timer,
            armed: None,
            connections: HashMap::new(),
            flooding: Vec::new(),
            due: BinaryHeap::new(),
            bodies: HashMap::new(),
            counts: Counts::default(),
            next_connection: 0,
            next_id: 1,
            buffer: vec![0; 64 << 10],
        })
    }

    fn run(&mut self, listener: &TcpListener) -> Result<()> {
        let mut events = [EpollEvent::empty(); 256];
        loop {
            let timeout = if self.flooding.is_empty() {
                EpollTimeout::NONE
            } else {
                EpollTimeout::ZERO
            };
            let ready = match self.epoll.wait(&mut events, timeout) {
                Err(nix::Error::EINTR) => 0,
                ready => ready.context("epoll")?,
            };
            for event in &events[..ready] {
                match event.data() {
                    LISTENER => self.accept(listener)?,
                    TIMER => {
                        self.armed = None;
                        // What it says is how often it fired; the heap knows better.
                        let _ = self.timer.wait();
                    }
                    number => self.serve_one(number, event.events()),
                }
            }
            self.send_due();
            self.flood();
            self.arm()?;
        }
    }

    fn accept(&mut self, listener: &TcpListener) -> Result<()> {
        loop {
            match listener.accept() {
                Ok((socket, _)) => {
                    let connection = Connection::new(socket)?;
                    let number = self.next_connection;
                    self.next_connection += 1;
                    // Edges: no call is needed to ask for the end of a blockade.
                    let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
                    self.epoll
                        .add(&connection.socket, EpollEvent::new(flags, number))?;
                    self.connections.insert(number, connection);
                    self.counts.open += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error).context("accept"),
            }
        }
    }

    fn serve_one(&mut self, number: u64, events: EpollFlags) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        if connection.is_blocked && events.contains(EpollFlags::EPOLLOUT) {
            if !connection.flush(&mut self.counts.bytes) {
                return self.close(number);
            }
            let floods = |stream: &Stream| stream.interval.is_zero();
            if !connection.is_blocked && connection.stream.as_ref().is_some_and(floods) {
                self.flooding.push(number);
            }
        }
        let ends = EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        if events.intersects(ends) && !connection.receive(&mut self.buffer) {
            return self.close(number);
        }
        self.answer(number);
    }

    /// Begins to answer the next request, once the one before is answered.
    fn answer(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        if connection.received.is_empty() || connection.is_busy() {
            return;
        }
        let (asked, length) = match request::read(&connection.received) {
            Read::Incomplete => return,
            Read::Request(asked, length) => (asked, length),
            Read::Refused => {
                self.counts.refused += 1;
                return self.close(number);
            }
        };
        connection.received.drain(..length);
        let mut starts_at = None;
        match asked {
            Asked::Completion {
                order:
                    Order::Stream {
                        events,
                        batch,
                        interval,
                    },
                include_usage,
            } => {
                self.counts.requests += 1;
                let stream = Stream::new(self.next_id, events, batch, interval, include_usage);
                self.next_id += 1;
                stream.begin(&mut connection.out);
                connection.stream = Some(stream);
                starts_at = Some(interval);
            }
            Asked::Completion {
                order: Order::Unary { size },
                ..
            } => {
                self.counts.requests += 1;
                let body = self
                    .bodies
                    .entry(size)
                    .or_insert_with(|| shape::unary_body(0, size).into());
                let out = &mut connection.out;
                if size <= COPIED {
                    response::whole(out, "200 OK", "application/json", body);
                    let at = out.len() - body.len();
                    let id = format!("{:016x}", self.next_id);
                    out[at..][ID_AT].copy_from_slice(id.as_bytes());
                    self.next_id += 1;
                } else {
                    response::whole(out, "200 OK", "application/json", body);
                    out.truncate(out.len() - body.len());
                    connection.body = Some((Rc::clone(body), 0));
                }
                self.counts.reply_ended();
            }
            Asked::Counts => {
                let body = serde_json::to_vec(&self.counts).unwrap_or_default();
                response::whole(&mut connection.out, "200 OK", "application/json", &body);
            }
            Asked::Other => {
                response::whole(&mut connection.out, "200 OK", "text/plain", b"ok\n");
            }
        }
        if !connection.flush(&mut self.counts.bytes) {
            return self.close(number);
        }
        match starts_at {
            Some(interval) if !interval.is_zero() => {
                self.due
                    .push(Reverse((next(clock::now(), interval), number)));
            }
            Some(_) if !connection.is_blocked => self.flooding.push(number),
            _ => {}
        }
    }

    /// Sends the events whose time has come.
    fn send_due(&mut self) {
        while let Some(Reverse((at, number))) = self.due.peek().copied() {
            if at > clock::now() {
                return;
            }
            self.due.pop();
            let Some(connection) = self.connections.get_mut(&number) else {
                continue;
            };
            let Some(stream) = &mut connection.stream else {
                continue;
            };
            let interval = stream.interval;
            let goes_on = stream.next_write(&mut connection.out, &mut self.counts);
            if !goes_on {
                connection.stream = None;
            }
            if !connection.is_blocked && !connection.flush(&mut self.counts.bytes) {
                self.close(number);
            } else if goes_on {
                self.due.push(Reverse((next(at, interval), number)));
            } else {
                self.answer(number);
            }
        }
    }

    /// Gives every stream that goes as fast as it can one write.
    fn flood(&mut self) {
        for number in std::mem::take(&mut self.flooding) {
            let Some(connection) = self.connections.get_mut(&number) else {
                continue;
            };
            let Some(stream) = &mut connection.stream else {
                continue;
            };
            let goes_on = stream.next_write(&mut connection.out, &mut self.counts);
            if !goes_on {
                connection.stream = None;
            }
            if !connection.flush(&mut self.counts.bytes) {
                self.close(number);
            } else if goes_on && !connection.is_blocked {
                self.flooding.push(number);
            } else {
                self.answer(number);
            }
        }
    }

    fn arm(&mut self) -> Result<()> {
        let next = self.due.peek().map(|Reverse((at, _))| *at);
        if next == self.armed {
            return Ok(());
        }
        self.armed = next;
        let Some(at) = next else {
            return Ok(());
        };
        let at = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(at)));
        self.timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        Ok(())
    }

    fn close(&mut self, number: u64) {
        if let Some(connection) = self.connections.remove(&number) {
            self.counts.open -= 1;
            self.counts.cut += u64::from(connection.is_busy());
        }
    }
}

fn next(at: u64, interval: Duration) -> u64 {
    at + interval.as_nanos() as u64
}
