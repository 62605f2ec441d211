//! The loads that hops are measured under.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::load::Until;
use crate::order::Order;

/// A load.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Scenario {
    /// 256 streams of 50 token events per second each.
    Paced256,
    /// 1000 streams of 20 token events per second each.
    Paced1000,
    /// 64 streams as fast as they go, each token event written by itself.
    Flood1,
    /// 64 streams as fast as they go, 32 token events per write.
    Flood32,
    /// Replies of 2 KB on 64 kept connections.
    Unary2k,
    /// Replies of 1 MB on 16 kept connections.
    Unary1m,
}

/// What a scenario's load consists of.
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
    pub const ALL: [Self; 6] = [
        Self::Paced256,
        Self::Paced1000,
        Self::Flood1,
        Self::Flood32,
        Self::Unary2k,
        Self::Unary1m,
    ];

    /// The load, for about so many seconds.
    pub fn shape(self, seconds: f64) -> Shape {
        match self {
            Self::Paced256 => paced(256, 50, seconds),
            Self::Paced1000 => paced(1000, 20, seconds),
            // Streams so long that a request's own cost does not show.
            Self::Flood1 => flood(1, 4_000, seconds),
            Self::Flood32 => flood(32, 4_000, seconds),
            Self::Unary2k => unary(2048, 64, seconds),
            Self::Unary1m => unary(1 << 20, 16, seconds),
        }
    }
}

/// Token events of a paced stream: a short answer.
const ANSWER: u32 = 100;

fn paced(connections: usize, rate: u32, seconds: f64) -> Shape {
    let streams = (seconds * f64::from(rate) / f64::from(ANSWER)).round();
    Shape {
        order: Order::Stream {
            events: ANSWER,
            batch: 1,
            interval: Duration::from_secs(1) / rate,
        },
        connections,
        // A thousand requests at once would be a load of its own.
        spread: Duration::from_secs(1),
        until: Until::Requests((streams as u32).max(1)),
    }
}

fn flood(batch: u32, events: u32, seconds: f64) -> Shape {
    Shape {
        order: Order::Stream {
            events,
            batch,
            interval: Duration::ZERO,
        },
        connections: 64,
        spread: Duration::ZERO,
        until: Until::Elapsed(Duration::from_secs_f64(seconds)),
    }
}

fn unary(size: usize, connections: usize, seconds: f64) -> Shape {
    Shape {
        order: Order::Unary { size },
        connections,
        spread: Duration::ZERO,
        until: Until::Elapsed(Duration::from_secs_f64(seconds)),
    }
}
