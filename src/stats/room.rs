//! The room that the exchanges of many groups share.

/// How far below its bound the room is brought, as a part of the bound, so that it is not full again at once.
const SPARE: usize = 8;

/// How much more there has to be before one looks again for what could go, where nothing could.
const PATIENCE: usize = 1 << 20;

/// Bytes that are taken, and how many may be.
#[derive(Debug)]
pub(super) struct Room {
    taken: usize,
    most: usize,
    /// Above this something has to go.
    limit: usize,
}

impl Room {
    pub(super) fn new(most: usize) -> Self {
        Self {
            taken: 0,
            most,
            limit: most,
        }
    }

    /// What took `before` bytes takes `after`.
    pub(super) fn change(&mut self, before: usize, after: usize) {
        self.taken = (self.taken + after).saturating_sub(before);
    }

    /// Whether something has to go.
    pub(super) fn is_over(&self) -> bool {
        self.taken > self.limit
    }

    /// Bytes that are taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// By how much.
    pub(super) fn surplus(&self) -> usize {
        self.taken.saturating_sub(self.limit)
    }

    /// Whether enough has gone once so much more goes.
    pub(super) fn is_enough(&self, more: usize) -> bool {
        self.taken.saturating_sub(more) <= self.most - self.most / SPARE
    }

    /// All that could go has gone: where that was not enough, it is no use to look again at once.
    pub(super) fn settle(&mut self) {
        self.limit = if self.taken > self.most {
            self.taken + PATIENCE
        } else {
            self.most
        };
    }
}
