//! What an upstream has shown so far, as far as it decides what the next request gets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::skip::Skip;
use crate::observation::Route;
use crate::record::EngineName;

/// How long a route is left alone after the engine refused the option there.
const REFUSED_FOR: Duration = Duration::from_secs(600);

/// `system_fingerprint` of an engine process: its value, or that it sends none (vLLM's `--fingerprint-mode none`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fingerprint {
    Absent,
    Value(Arc<str>),
}

impl Fingerprint {
    /// Whether `written`, a JSON value as sent, says the same.
    pub(super) fn is_written(&self, written: &str) -> bool {
        match self {
            Fingerprint::Absent => written == "null",
            Fingerprint::Value(value) => {
                serde_json::from_str::<&str>(written).is_ok_and(|sent| sent == &**value)
            }
        }
    }
}

/// What one connection to the engine showed; one connection is one process behind a balancer. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ConnectionMemory(Arc<Mutex<Option<Fingerprint>>>);

impl ConnectionMemory {
    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn remember(&self, fingerprint: Fingerprint) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(fingerprint);
    }
}

/// What one upstream showed.
#[derive(Debug, Default)]
pub(super) struct Learned(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    engine: Option<EngineName>,
    fingerprint: Option<Fingerprint>,
    compresses: bool,
    payload_seen: bool,
    routes: HashMap<Route, RouteState>,
}

#[derive(Debug, Default)]
struct RouteState {
    sends_usage_unasked: bool,
    refused_at: Option<Instant>,
}

impl Learned {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine, once a record or a fingerprint told it.
    pub(super) fn engine(&self) -> Option<EngineName> {
        self.state().engine
    }

    pub(super) fn engine_seen(&self, engine: EngineName) {
        self.state().engine = Some(engine);
    }

    /// Something beside a payload tells the engine; what is known already stands.
    pub(super) fn engine_hinted(&self, engine: EngineName) {
        self.state().engine.get_or_insert(engine);
    }

    /// The fingerprint last seen, or that there is none; none as long as nothing is known.
    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        self.state().fingerprint.clone()
    }

    /// A fingerprint that was sent; the one last seen where it is the same, as it nearly always is.
    pub(super) fn fingerprint_of(&self, sent: &str) -> Fingerprint {
        match &self.state().fingerprint {
            Some(Fingerprint::Value(known)) if **known == *sent => {
                Fingerprint::Value(Arc::clone(known))
            }
            _ => Fingerprint::Value(sent.into()),
        }
    }

    /// vLLM's fingerprints begin with its name, so that they tell the engine too.
    pub(super) fn fingerprint_seen(&self, fingerprint: Fingerprint) {
        let mut state = self.state();
        if let Fingerprint::Value(value) = &fingerprint
            && value.starts_with("vllm-")
        {
            state.engine.get_or_insert(EngineName::Vllm);
        }
        state.fingerprint = Some(fingerprint);
    }

    /// Whether any acceptance payload ever came.
    pub(super) fn payload_seen(&self) -> bool {
        self.state().payload_seen
    }

    pub(super) fn note_payload(&self) {
        self.state().payload_seen = true;
    }

    /// Why a request on this route is left alone for what the upstream did before; none if it need not be.
    pub(super) fn objection(&self, route: Route, client_takes_coding: bool) -> Option<Skip> {
        let state = self.state();
        if state.compresses && client_takes_coding {
            return Some(Skip::ResponseEncoding);
        }
        let refused_at = state.routes.get(&route)?.refused_at?;
        (refused_at.elapsed() < REFUSED_FOR).then_some(Skip::Refused)
    }

    /// Whether streams of this route carry usage that nobody asked for.
    pub(super) fn sends_usage_unasked(&self, route: Route) -> bool {
        let state = self.state();
        state
            .routes
            .get(&route)
            .is_some_and(|route| route.sends_usage_unasked)
    }

    /// An answer to an altered request came compressed.
    pub(super) fn note_compression(&self) {
        self.state().compresses = true;
    }

    /// Whether streams of this route carry usage that nobody asked for; the last stream tells.
    pub(super) fn usage_unasked(&self, route: Route, unasked: bool) {
        self.state()
            .routes
            .entry(route)
            .or_default()
            .sends_usage_unasked = unasked;
    }

    /// The engine refused an altered request and took the client's own.
    pub(super) fn refused(&self, route: Route) {
        self.state().routes.entry(route).or_default().refused_at = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vllm_fingerprint_tells_the_engine_and_a_record_outranks_it() {
        let learned = Learned::default();
        learned.fingerprint_seen(Fingerprint::Value("vllm-0.32.0-ab".into()));
        assert_eq!(learned.engine(), Some(EngineName::Vllm));
        learned.engine_seen(EngineName::TensorrtLlm);
        learned.fingerprint_seen(Fingerprint::Value("vllm-0.32.0-ab".into()));
        assert_eq!(learned.engine(), Some(EngineName::TensorrtLlm));
    }

    #[test]
    fn a_refusal_is_forgotten_after_ten_minutes() {
        let learned = Learned::default();
        for (ago, expected) in [
            (REFUSED_FOR - Duration::from_secs(60), Some(Skip::Refused)),
            (REFUSED_FOR, None),
        ] {
            let at = Instant::now().checked_sub(ago).unwrap();
            let mut state = learned.state();
            state
                .routes
                .entry(Route::Completions)
                .or_default()
                .refused_at = Some(at);
            drop(state);
            assert_eq!(learned.objection(Route::Completions, false), expected);
        }
    }

    #[test]
    fn objections_are_per_route_and_can_end() {
        let learned = Learned::default();
        learned.usage_unasked(Route::ChatCompletions, true);
        assert!(learned.sends_usage_unasked(Route::ChatCompletions));
        assert!(!learned.sends_usage_unasked(Route::Completions));
        learned.usage_unasked(Route::ChatCompletions, false);
        assert!(!learned.sends_usage_unasked(Route::ChatCompletions));
        learned.refused(Route::Completions);
        assert_eq!(
            learned.objection(Route::Completions, false),
            Some(Skip::Refused)
        );
        learned.note_compression();
        assert_eq!(
            learned.objection(Route::Generate, true),
            Some(Skip::ResponseEncoding)
        );
        assert_eq!(learned.objection(Route::Generate, false), None);
    }
}
