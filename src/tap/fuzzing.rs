//! Entries for fuzz targets: each takes one input, and panics when what it promises does not hold.
//!
//! The first byte of an input says how it is run, the second how it is cut; what follows is what an engine or a client
//! could send. Only the feature `fuzzing` opens these doors, and no release has it.

mod adapters;
mod decoder;
mod needle;
mod reference;
mod scanner;
mod splice;
mod splitter;
mod strip;

use std::sync::Arc;

use super::{AskSglang, ExposeUsage, Tap, TapSettings};
use crate::clock::Clock;
use crate::counters::TapCounters;
use crate::observation::{Observation, ObservationSink};
use crate::runs::Runs;
use crate::switch::InjectSwitch;

pub use super::reply::fuzzing::reply;
pub use adapters::{
    adapter_llamacpp, adapter_others, adapter_sglang, adapter_tensorrt_llm, adapter_vllm,
};
pub use decoder::decoder;
pub use needle::needle;
pub use scanner::scanner;
pub use splice::splice;
pub use splitter::splitter;
pub use strip::strip;

/// Longest pieces of a cut text, in bytes.
const PIECES: [u64; 4] = [3, 16, 64, 600];

/// One input of a target.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Switches, with a meaning that each target gives them.
    pub how: u8,
    /// Decides where the text is cut.
    pub cuts: u8,
    /// What comes over the wire.
    pub text: &'a [u8],
}

impl<'a> Input<'a> {
    /// Takes an input apart; none if it is too short to be one.
    pub fn read(data: &'a [u8]) -> Option<Self> {
        match data {
            &[how, cuts, ref text @ ..] => Some(Self { how, cuts, text }),
            _ => None,
        }
    }

    /// Whether this bit of `how` is set.
    pub fn has(&self, bit: u8) -> bool {
        self.how >> bit & 1 == 1
    }

    /// The text byte by byte, and cut into pieces of many lengths.
    pub fn chunkings(&self) -> [Vec<&'a [u8]>; 2] {
        [self.text.chunks(1).collect(), self.pieces()]
    }

    /// The text cut into pieces of many lengths.
    pub fn pieces(&self) -> Vec<&'a [u8]> {
        let longest = PIECES[usize::from(self.cuts) % PIECES.len()];
        let mut random = fastrand::Rng::with_seed(u64::from(self.cuts));
        let mut rest = self.text;
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let length = usize::try_from(random.u64(1..=longest)).unwrap_or(1);
            let (piece, after) = rest.split_at(length.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}

/// A tap that alters requests where it may, and whose observations nobody keeps.
pub fn tap(counters: TapCounters, inject: bool) -> Tap {
    let settings = TapSettings {
        lane: String::new(),
        engine: None,
        inject: InjectSwitch::new(inject),
        expose_usage: ExposeUsage::AsRequested,
        ask_sglang: AskSglang::On,
        ask_sglang_unary: false,
        usage_details: false,
        runs: Runs::new(Clock::system()),
        tag: super::TagSource::default(),
    };
    Tap::new(settings, counters, Arc::new(Nowhere))
}

struct Nowhere;

impl ObservationSink for Nowhere {
    fn record(&self, _: Arc<Observation>) {}
}
