//! The work for one channel: finished exchanges as they come, and once a second what the filter shows.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use strum::VariantArray;

use super::channel::Channel;
use super::outbox::{Lost, Message};
use crate::admin::numbers;
use crate::admin::router::AdminState;
use crate::admin::runs::ShownRuns;
use crate::export::summary::of_snapshot;
use crate::observation::{Observation, Route};
use crate::stats::Moment;
use crate::stats::history::History;

/// Time between two states. A little less than a second, so that every fourth look finds it passed.
const BETWEEN_STATES: Duration = Duration::from_millis(950);

/// The share of a processor that one channel takes at most: a state that takes long comes less often.
const REST_PER_WORK: u32 = 9;

/// Exchanges that are told of at one look; a table takes no more in.
const MOST_AT_ONCE: usize = 100;

/// Bytes of an event with exchanges, about.
const MOST_BYTES: usize = 128 << 10;

/// After so long the figures are computed although nothing came: exchanges leave a window by and by.
const STEP: Duration = Duration::from_secs(5);

pub(super) struct Work {
    channel: Arc<Channel>,
    state: AdminState,
    history: History,
    /// Where the exchanges begin that are not told of yet.
    place: u64,
    next_state: Instant,
    /// The place up to which the figures are computed, and when they were.
    computed: Option<(u64, Instant)>,
    figures: Value,
}

impl Work {
    pub(super) fn new(channel: Arc<Channel>, state: AdminState) -> Self {
        Self {
            history: History::new(channel.query.window, channel.query.run.clone()),
            place: state.ring.end(),
            next_state: Instant::now(),
            computed: None,
            figures: Value::Null,
            channel,
            state,
        }
    }

    /// Whether there is anything to do.
    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.next_state || self.state.ring.end() > self.place
    }

    /// Does what is due, and tells what subscribers lost.
    pub(super) fn turn(&mut self) -> Lost {
        let mut lost = self.tell_requests();
        let began = Instant::now();
        if began >= self.next_state {
            let state = self.look();
            lost += self.channel.state(state);
            let took = began.elapsed();
            self.next_state = began + BETWEEN_STATES.max(took * (REST_PER_WORK + 1));
        }
        lost
    }

    fn tell_requests(&mut self) -> Lost {
        let end = self.state.ring.end();
        // The newest are the ones to tell of.
        let mut seen = 0;
        let mut rows: Vec<String> = Vec::new();
        let mut bytes = 0;
        let mut before = end;
        while before > self.place {
            let chunk = self.state.ring.chunk_back(before, self.place);
            if chunk.is_empty() {
                break;
            }
            for (place, observation) in chunk {
                before = place;
                if !self.wants(&observation) {
                    continue;
                }
                seen += 1;
                if rows.len() < MOST_AT_ONCE && bytes < MOST_BYTES {
                    let row = row(&observation);
                    bytes += row.len();
                    rows.push(row);
                }
            }
        }
        self.place = end;
        if seen == 0 {
            return Lost::default();
        }
        let data = format!(
            "{{\"requests\":[{}],\"skipped\":{}}}",
            rows.join(","),
            seen - rows.len()
        );
        self.channel
            .requests(&Message::new("requests", &data, seen as u64))
    }

    fn wants(&self, observation: &Observation) -> bool {
        let query = &self.channel.query;
        let is = |asked: &Option<String>, has: &Option<String>| asked.is_none() || asked == has;
        let engine = observation.spec_decode_acceptance.first();
        is(&query.model, &observation.model)
            && is(&query.tag, &observation.tag)
            && is(&query.run, &observation.run)
            && (query.engine.is_none() || query.engine == engine.map(|record| record.engine))
    }

    /// All that the channel shows, as it is now.
    fn look(&mut self) -> Value {
        let end = self.state.ring.end();
        let is_new = |(place, at): (u64, Instant)| place != end || at.elapsed() >= STEP;
        if self.computed.is_none_or(is_new) {
            self.figures = self.compute();
            self.computed = Some((end, Instant::now()));
        }
        let mut state = self.figures.clone();
        let in_flight = Route::VARIANTS.iter().map(|route| {
            let gauge = &self.state.counters.requests_in_flight;
            gauge.with_label_values(&[route.as_str()]).get()
        });
        state["now"] = json!(Moment(SystemTime::now()));
        state["runs"] = json!(ShownRuns::of(&self.state.runs).runs);
        state["tap"] = json!({
            "in_flight": in_flight.sum::<i64>(),
            "inject": self.state.inject.is_on(),
            "kept": self.state.ring.len(),
            "dropped": self.state.ring.dropped(),
            "per_step_dropped": self.state.ring.per_step_dropped(),
        });
        state
    }

    fn compute(&mut self) -> Value {
        let query = &self.channel.query;
        let statistics = &self.state.statistics;
        self.history.update(statistics, |key| query.wants(key));
        let summary = of_snapshot(&numbers::take(&self.state, query), &query.by);
        let (mut models, mut tags, mut engines) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let groups = statistics.shared_groups();
        for (key, _) in &groups {
            models.extend(key.model.as_deref());
            tags.extend(key.tag.as_deref());
            engines.extend(key.engine.map(|engine| engine.as_str()));
        }
        json!({
            "summary": summary,
            "history": self.history.shown(),
            "known": {"models": models, "tags": tags, "engines": engines},
        })
    }
}

/// An observation without its per-step arrays, which are most of it; `/api/v1/requests/{id}` has them.
fn row(observation: &Observation) -> String {
    let has_steps = observation
        .spec_decode_acceptance
        .iter()
        .any(|record| record.per_step_accepted.is_some() || record.per_step_drafted.is_some());
    let written = if has_steps {
        let mut lean = observation.clone();
        for record in &mut lean.spec_decode_acceptance {
            record.per_step_accepted = None;
            record.per_step_drafted = None;
        }
        serde_json::to_string(&lean)
    } else {
        serde_json::to_string(observation)
    };
    // An observation is numbers and names: it can always be written.
    written.unwrap_or_else(|_| "null".to_owned())
}
