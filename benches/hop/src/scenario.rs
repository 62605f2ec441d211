//! What hops are measured under.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::load::Until;
use crate::order::Order;
use crate::peers::Peer;

/// A situation.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Scenario {
    /// 256 streams of 50 token events per second each
    Paced256,
    /// 1000 streams of 20 token events per second each
    Paced1000,
    /// 256 streams as above, while somebody looks at the hop
    Watched,
    /// 64 streams as fast as they go, each token event written by itself
    Flood1,
    /// 64 streams as fast as they go, 32 token events per write
    Flood32,
    /// Replies of 2 KB on 64 kept connections
    Unary2k,
    /// Replies of 1 MB on 16 kept connections
    Unary1m,
    /// 1000 streams that bring an event now and then, and are then cut at once
    Open1000,
    /// The start of the hop
    Start,
}

/// How a scenario is measured.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// CPU time and what came through under a load.
    Load(Shape),
    /// Memory with this number of open streams.
    Open(usize),
    /// Time to the first answer.
    Start,
}

/// What a load consists of.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What each request asks for.
    pub order: Order,
    /// Connections, each with one request at a time.
    pub connections: usize,
    /// Time over which they begin.
    pub spread: Duration,
    /// When they end.
    pub until: Until,
}

impl Scenario {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 9] = [
        Self::Paced256,
        Self::Paced1000,
        Self::Watched,
        Self::Flood1,
        Self::Flood32,
        Self::Unary2k,
        Self::Unary1m,
        Self::Open1000,
        Self::Start,
    ];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paced256 => "paced256",
            Self::Paced1000 => "paced1000",
            Self::Watched => "watched",
            Self::Flood1 => "flood1",
            Self::Flood32 => "flood32",
            Self::Unary2k => "unary2k",
            Self::Unary1m => "unary1m",
            Self::Open1000 => "open1000",
            Self::Start => "start",
        }
    }

    /// Heading of its part of the page.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Paced256 => "256 streams of 50 events per second",
            Self::Paced1000 => "1000 streams of 20 events per second",
            Self::Watched => "256 streams of 50 events per second, watched",
            Self::Flood1 => "64 streams as fast as they go, one event per write",
            Self::Flood32 => "64 streams as fast as they go, 32 events per write",
            Self::Unary2k => "Replies of 2 KB",
            Self::Unary1m => "Replies of 1 MB",
            Self::Open1000 => "1000 open streams",
            Self::Start => "Start",
        }
    }

    /// How it is measured, for about so many seconds where it is a load.
    pub fn kind(self, seconds: f64) -> Kind {
        match self {
            Self::Paced256 | Self::Watched => paced(256, 50, seconds),
            Self::Paced1000 => paced(1000, 20, seconds),
            Self::Flood1 => flood(1, seconds),
            Self::Flood32 => flood(32, seconds),
            Self::Unary2k => unary(2048, 64, seconds),
            Self::Unary1m => unary(1 << 20, 16, seconds),
            Self::Open1000 => Kind::Open(1000),
            Self::Start => Kind::Start,
        }
    }

    /// Whether it makes sense for a hop.
    pub fn applies_to(self, peer: Peer) -> bool {
        match self {
            // Only spectap has an admin port to look at.
            Self::Watched => peer == Peer::Spectap,
            Self::Start => peer != Peer::Direct,
            _ => true,
        }
    }

    /// The columns of its table.
    pub fn figures(self) -> &'static [Figure] {
        match self {
            Self::Paced256 | Self::Paced1000 => &[
                Figure::CpuPerEvent,
                Figure::AddedP50,
                Figure::AddedP90,
                Figure::AddedP99,
                Figure::Busy,
            ],
            Self::Watched => &[
                Figure::CpuPerEvent,
                Figure::Busy,
                Figure::Scrapes,
                Figure::Subscribers,
            ],
            Self::Flood1 | Self::Flood32 => {
                &[Figure::CpuPerEvent, Figure::EventsPerSecond, Figure::Busy]
            }
            Self::Unary2k | Self::Unary1m => &[
                Figure::RequestsPerSecond,
                Figure::CpuPerRequest,
                Figure::Busy,
            ],
            Self::Open1000 => &[
                Figure::MemoryPerStream,
                Figure::MemoryWithoutStreams,
                Figure::MemoryWithStreams,
                Figure::AfterCut,
            ],
            Self::Start => &[Figure::Start],
        }
    }
}

/// Token events of a paced stream: an answer of usual length, over which the cost of its request is spread.
const ANSWER: u32 = 200;

/// Token events of a stream that goes as fast as it can: so many that a request's own cost hardly shows.
const FLOOD: u32 = 4_000;

fn paced(connections: usize, rate: u32, seconds: f64) -> Kind {
    let streams = (seconds * f64::from(rate) / f64::from(ANSWER)).ceil();
    Kind::Load(Shape {
        order: Order::Stream {
            events: ANSWER,
            batch: 1,
            interval: Duration::from_secs(1) / rate,
        },
        connections,
        // A thousand requests at once would be a load of its own.
        spread: Duration::from_secs(1),
        until: Until::Requests((streams as u32).max(1)),
    })
}

fn flood(batch: u32, seconds: f64) -> Kind {
    let order = Order::Stream {
        events: FLOOD,
        batch,
        interval: Duration::ZERO,
    };
    at_once(order, 64, seconds)
}

fn unary(size: usize, connections: usize, seconds: f64) -> Kind {
    at_once(Order::Unary { size }, connections, seconds)
}

fn at_once(order: Order, connections: usize, seconds: f64) -> Kind {
    Kind::Load(Shape {
        order,
        connections,
        spread: Duration::ZERO,
        until: Until::Elapsed(Duration::from_secs_f64(seconds)),
    })
}
