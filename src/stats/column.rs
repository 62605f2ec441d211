//! The per-request values that have a distribution.

/// Values that a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordColumn {
    /// Tokens per verify step, the bonus token included.
    AcceptanceLength,
    /// Accepted / drafted, 0..1.
    DraftAcceptanceRate,
    /// (accepted + steps) / (drafted + steps).
    AcceptedPerVerified,
    /// Verify steps.
    Steps,
    /// Accepted drafts.
    AcceptedDraftTokens,
    /// Drafts put before the verifier.
    DraftTokens,
}

/// Values that a complete exchange with content has; times in milliseconds, as AIPerf defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficColumn {
    /// Request to first content chunk; streamed only.
    TimeToFirstToken,
    /// Time per output token after the first; streamed only.
    InterTokenLatency,
    /// The mean gap between content chunks (AIPerf pools the single gaps instead).
    InterChunkLatency,
    /// Request to last content chunk.
    RequestLatency,
    /// Completion tokens of the usage object.
    OutputSequenceLength,
    /// Prompt tokens of the usage object.
    InputSequenceLength,
}

/// Columns of either kind.
pub(super) const COLUMNS: usize = 6;

/// The values of one record or exchange, in the order of the columns; absent where undefined.
pub(super) type Values = [Option<f64>; COLUMNS];
