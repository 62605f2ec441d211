//! The log: the newest exchanges as rows, so that any window, run or facet can be counted from the exchanges themselves.
//!
//! Rows stand in blocks. A full block is never written again and is shared with whoever reads, so that reading holds
//! nobody up. Memory is bounded in bytes; what has to go is handed over block by block, the oldest first.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::keys::Keys;
use super::row;
use crate::observation::Observation;

/// Bytes of a block, in a log that has room for many.
const LARGEST_BLOCK: usize = 64 << 10;

/// Blocks that a smaller log has.
const FEWEST_BLOCKS: usize = 8;

/// Bytes that a head takes at most: four numbers of at most ten bytes each, and a mark.
const LARGEST_HEAD: usize = 41;

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

/// Rows one behind the other.
#[derive(Clone, Debug)]
pub(super) struct Block {
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
    bytes: usize,
    most_bytes: usize,
    block_bytes: usize,
    /// The latest end among the exchanges that are gone.
    gone_until: Option<i64>,
}

/// Rows to read, shared with the log.
pub(super) struct Rows {
    blocks: Vec<Arc<Block>>,
    ended: Range<i64>,
}

impl Log {
    /// An empty log that keeps so many bytes of rows, and a block more.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self {
            full: VecDeque::new(),
            open: None,
            bytes: 0,
            most_bytes,
            block_bytes: (most_bytes / FEWEST_BLOCKS).min(LARGEST_BLOCK),
            gone_until: None,
        }
    }

    /// Adds the row of an exchange.
    pub(super) fn push(&mut self, group: u32, run: Option<u32>, ended: i64, body: &[u8]) {
        let Ok(length) = u32::try_from(body.len()) else {
            return;
        };
        let block = self.open.get_or_insert_with(|| Block {
            base: ended,
            earliest: ended,
            latest: ended,
            bytes: Vec::with_capacity(self.block_bytes + self.block_bytes / FEWEST_BLOCKS),
        });
        let head = Head {
            ended: ended.saturating_sub(block.base),
            group,
            run,
            length,
        };
        let mut written = [0; LARGEST_HEAD];
        let Ok(head) = postcard::to_slice(&head, &mut written) else {
            return;
        };
        block.earliest = block.earliest.min(ended);
        block.latest = block.latest.max(ended);
        block.bytes.extend_from_slice(head);
        block.bytes.extend_from_slice(body);
        self.bytes += head.len() + body.len();
        if block.bytes.len() >= self.block_bytes
            && let Some(mut block) = self.open.take()
        {
            block.bytes.shrink_to_fit();
            self.full.push_back(Arc::new(block));
        }
    }

    /// Bytes beyond those that it keeps, as far as they can go.
    pub(super) fn surplus(&self) -> usize {
        match self.full.front() {
            Some(_) => self.bytes.saturating_sub(self.most_bytes),
            None => 0,
        }
    }

    /// The block that has to go first, where one has to.
    pub(super) fn surplus_block(&self) -> Option<Arc<Block>> {
        let first = self.full.front()?;
        (self.surplus() > 0).then(|| Arc::clone(first))
    }

    /// Takes the oldest full block out.
    pub(super) fn pop_block(&mut self) {
        if let Some(block) = self.full.pop_front() {
            self.bytes -= block.bytes.len();
            self.gone_until = self.gone_until.max(Some(block.latest));
        }
    }

    /// The latest end among the exchanges that are gone.
    pub(super) fn gone_until(&self) -> Option<i64> {
        self.gone_until
    }

    /// The rows of the exchanges that ended in a range.
    pub(super) fn rows(&self, ended: Range<i64>) -> Rows {
        let overlaps = |block: &Block| block.earliest < ended.end && block.latest >= ended.start;
        let full = self.full.iter().filter(|block| overlaps(block));
        let mut blocks: Vec<Arc<Block>> = full.map(Arc::clone).collect();
        if let Some(open) = self.open.as_ref().filter(|block| overlaps(block)) {
            blocks.push(Arc::new(open.clone()));
        }
        Rows { blocks, ended }
    }
}

impl Block {
    /// Reads its rows whose head is wanted, oldest first.
    pub(super) fn each(
        &self,
        keys: &Keys,
        wanted: impl Fn(&Head) -> bool,
        mut take: impl FnMut(&Head, Observation),
    ) {
        let mut at = 0;
        while let Some((head, body, next)) = self.row_at(at) {
            at = next;
            if wanted(&head)
                && let Some(key) = keys.get(head.group)
                && let Some(observation) = row::read(body, key.route, head.ended)
            {
                take(&head, observation);
            }
        }
    }

    fn row_at(&self, at: usize) -> Option<(Head, &[u8], usize)> {
        let bytes = self.bytes.get(at..).filter(|bytes| !bytes.is_empty())?;
        let (mut head, rest): (Head, _) = postcard::take_from_bytes(bytes).ok()?;
        head.ended = head.ended.saturating_add(self.base);
        let body = rest.get(..head.length as usize)?;
        let next = self.bytes.len() - rest.len() + body.len();
        Some((head, body, next))
    }
}

impl Rows {
    /// Reads the rows whose head is wanted, oldest first.
    pub(super) fn each(
        &self,
        keys: &Keys,
        wanted: impl Fn(&Head) -> bool,
        mut take: impl FnMut(&Head, Observation),
    ) {
        let in_range = |head: &Head| self.ended.contains(&head.ended) && wanted(head);
        for block in &self.blocks {
            block.each(keys, in_range, &mut take);
        }
    }
}
