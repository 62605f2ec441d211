//! What a simulated engine does wrong on purpose, so that tests can see how others bear it.

use std::time::Duration;

use serde_json::Value;

use super::http::Request;

/// What goes wrong on purpose; nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Cuts the connection of a stream after so many events.
    pub cut_after_events: Option<usize>,
    /// Reports an error in a stream after so many pieces of text, in the engine's own way.
    pub fail_after_pieces: Option<usize>,
    /// Refuses requests that have a certain member.
    pub refuse: Option<RefusedMember>,
    /// Waits so long before the last piece of each sequence.
    pub finish_delay: Duration,
    /// Waits so long before what a stream sends behind its last piece, such as the usage event. llama.cpp writes its
    /// finish event together with that.
    pub trailer_delay: Duration,
}

/// A member of a request's root object that makes the engine refuse it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedMember {
    /// The member's name, such as `stream_options`.
    pub name: String,
    /// The status line of the refusal, such as `400 Bad Request`.
    pub status: String,
}

impl Faults {
    /// The status and the body of the refusal that a request gets on purpose.
    pub(super) fn refusal(&self, request: &Request) -> Option<(&str, String)> {
        let refused = self.refuse.as_ref()?;
        let body: Value = serde_json::from_slice(&request.body).ok()?;
        body.get(&refused.name)?;
        let message = format!("Unknown member: {}", refused.name);
        let error =
            serde_json::json!({"error": {"message": message, "type": "invalid_request_error"}});
        Some((&refused.status, error.to_string()))
    }
}
