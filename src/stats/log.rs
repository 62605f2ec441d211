//! The log: the newest exchanges as rows, so that any window, run or facet can be counted from the exchanges themselves.
//!
//! Rows stand in blocks. A full block is never written again and is shared with whoever reads, so that reading holds
//! nobody up. Memory is bounded in bytes; what has to go is handed back, oldest first.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::keys::SharedKeys;
use super::row;
use crate::observation::Observation;

/// Bytes of a block, in a log that has room for many.
const LARGEST_BLOCK: usize = 64 << 10;

/// Blocks that a smaller log has.
const FEWEST_BLOCKS: usize = 8;

/// What is known of a row without reading it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Head {
    /// When the exchange ended, in nanoseconds since 1970 (in a block: since the block's first).
    pub(super) ended: i64,
    /// Number of its group.
    pub(super) group: u32,
    /// Number of the run in which it arrived.
    pub(super) run: Option<u32>,
    length: u32,
}

#[derive(Clone, Debug)]
struct Block {
    /// End of the first exchange: the others are kept as distances from it.
    base: i64,
    /// The earliest and the latest end.
    earliest: i64,
    latest: i64,
    bytes: Vec<u8>,
}

/// The newest exchanges.
#[derive(Debug)]
pub(super) struct Log {
    full: VecDeque<Arc<Block>>,
    open: Option<Block>,
    /// How far the oldest block is read away.
    gone: usize,
    bytes: usize,
    most_bytes: usize,
    block_bytes: usize,
    /// The latest end among the exchanges that are gone.
    gone_until: Option<i64>,
}

/// Rows to read, shared with the log.
pub(super) struct Rows {
    blocks: Vec<(Arc<Block>, usize)>,
    ended: Range<i64>,
}

impl Log {
    /// An empty log that keeps so many bytes of rows, and a block more.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self {
            full: VecDeque::new(),
            open: None,
            gone: 0,
            bytes: 0,
            most_bytes,
            block_bytes: (most_bytes / FEWEST_BLOCKS).min(LARGEST_BLOCK),
            gone_until: None,
        }
    }

    /// Adds an exchange.
    pub(super) fn push(&mut self, group: u32, run: Option<u32>, observation: &Observation) {
        let ended = row::nanoseconds(observation.ended_at);
        let body = row::write(observation);
        let Ok(length) = u32::try_from(body.len()) else {
            return;
        };
        let block = self.open.get_or_insert_with(|| Block {
            base: ended,
            earliest: ended,
            latest: ended,
            bytes: Vec::with_capacity(self.block_bytes),
        });
        let head = Head {
            ended: ended.saturating_sub(block.base),
            group,
            run,
            length,
        };
        let Ok(head) = postcard::to_stdvec(&head) else {
            return;
        };
        block.earliest = block.earliest.min(ended);
        block.latest = block.latest.max(ended);
        block.bytes.extend_from_slice(&head);
        block.bytes.extend_from_slice(&body);
        self.bytes += head.len() + body.len();
        if block.bytes.len() >= self.block_bytes
            && let Some(mut block) = self.open.take()
        {
            block.bytes.shrink_to_fit();
            self.full.push_back(Arc::new(block));
        }
    }

    /// Takes the oldest exchange out if there are more than the log may keep.
    pub(super) fn pop_surplus(&mut self, keys: &SharedKeys) -> Option<(Head, Observation)> {
        if self.bytes <= self.most_bytes {
            return None;
        }
        let block = self.full.front()?;
        let (head, body, next) = row_at(block, self.gone)?;
        let taken = read(&head, body, keys);
        self.bytes -= next - self.gone;
        self.gone = next;
        self.gone_until = self.gone_until.max(Some(head.ended));
        if self.gone >= block.bytes.len() {
            self.full.pop_front();
            self.gone = 0;
        }
        taken.map(|observation| (head, observation))
    }

    /// The latest end among the exchanges that are gone.
    pub(super) fn gone_until(&self) -> Option<i64> {
        self.gone_until
    }

    /// The rows of the exchanges that ended in a range.
    pub(super) fn rows(&self, ended: Range<i64>) -> Rows {
        let overlaps = |block: &Block| block.earliest < ended.end && block.latest >= ended.start;
        let mut blocks: Vec<(Arc<Block>, usize)> = self
            .full
            .iter()
            .enumerate()
            .filter(|(_, block)| overlaps(block))
            .map(|(index, block)| (Arc::clone(block), if index == 0 { self.gone } else { 0 }))
            .collect();
        if let Some(open) = self.open.as_ref().filter(|block| overlaps(block)) {
            blocks.push((Arc::new(open.clone()), 0));
        }
        Rows { blocks, ended }
    }
}

impl Rows {
    /// Reads the rows whose head is wanted, oldest first.
    pub(super) fn each(
        &self,
        keys: &SharedKeys,
        wanted: impl Fn(&Head) -> bool,
        mut take: impl FnMut(&Head, Observation),
    ) {
        for (block, start) in &self.blocks {
            let mut at = *start;
            while let Some((head, body, next)) = row_at(block, at) {
                at = next;
                if self.ended.contains(&head.ended)
                    && wanted(&head)
                    && let Some(observation) = read(&head, body, keys)
                {
                    take(&head, observation);
                }
            }
        }
    }
}

fn row_at(block: &Block, at: usize) -> Option<(Head, &[u8], usize)> {
    let bytes = block.bytes.get(at..).filter(|bytes| !bytes.is_empty())?;
    let (mut head, rest): (Head, _) = postcard::take_from_bytes(bytes).ok()?;
    head.ended = head.ended.saturating_add(block.base);
    let body = rest.get(..head.length as usize)?;
    let next = block.bytes.len() - rest.len() + body.len();
    Some((head, body, next))
}

fn read(head: &Head, body: &[u8], keys: &SharedKeys) -> Option<Observation> {
    row::read(body, keys.get(head.group)?.route, head.ended)
}
