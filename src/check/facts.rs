//! What was found out about an engine.

use std::time::Duration;

use crate::observation::Acceptance;
use crate::scrape::Counts;

/// What the metrics page told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PageFact {
    /// There is none, and why.
    None(String),
    /// There is one, without the series of an engine that is known.
    #[default]
    Unknown,
    /// The engine's series are there, and none of speculation.
    Silent,
    /// It counts speculation, or shows it.
    Speculates,
}

/// One answer to a short request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyFact {
    /// Its status; absent where no answer came.
    pub status: Option<u16>,
    /// Why no answer came, or what the refusal said.
    pub problem: Option<String>,
    /// What became of the numbers.
    pub acceptance: Option<Acceptance>,
    /// Whose shape they had.
    pub engine: Option<&'static str>,
    /// How much of them the engine said: `per_step`, `histogram`, `counts`.
    pub provenance: Option<String>,
    /// Whether a usage object came.
    pub has_usage: bool,
    /// Events of a stream.
    pub events: u64,
    /// From the request to the head of the answer.
    pub to_head: Duration,
    /// From the request to its end.
    pub to_end: Duration,
}

impl ReplyFact {
    /// Whether it was answered with success.
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|it| (200..300).contains(&it))
    }

    /// Whether it carried numbers, be they zero.
    pub fn has_numbers(&self) -> bool {
        matches!(
            self.acceptance,
            Some(Acceptance::Recorded | Acceptance::ZeroStep)
        )
    }
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Why the engine can't be reached; absent where it can.
    pub unreachable: Option<String>,
    /// Whether it asks for a key that was not given, or refuses it.
    pub wants_key: bool,
    /// The engine, by the names of records.
    pub engine: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its models.
    pub models: Vec<String>,
    /// The model that was asked.
    pub model: Option<String>,
    /// Whether Dynamo stands before it.
    pub behind_dynamo: bool,
    /// Its metrics page.
    pub page: PageFact,
    /// Where that is.
    pub page_url: Option<String>,
    /// Requests of others under way, as the page tells.
    pub others_running: Option<u64>,
    /// Whether its settings say that it speculates, where they can be read and tell the truth.
    pub configured: Option<bool>,
    /// How far its clock is from ours in seconds, where it tells the time.
    pub clock_offset: Option<i64>,
    /// What its counters moved by while the requests ran.
    pub moved: Option<Counts>,
    /// The answer that was not streamed.
    pub unary: ReplyFact,
    /// The streamed answer as spectap would ask for it.
    pub stream: ReplyFact,
    /// The streamed answer as a client would have asked.
    pub plain: ReplyFact,
}

impl Facts {
    /// Whether there is anybody to ask.
    pub fn is_reachable(&self) -> bool {
        self.unreachable.is_none() && !self.wants_key
    }

    /// Whether drafts were verified while the requests ran; absent where the counters don't tell.
    pub fn drafted(&self) -> Option<bool> {
        let moved = self.moved.as_ref()?;
        let count = moved.drafted.or(moved.steps)?;
        Some(count > 0)
    }
}
