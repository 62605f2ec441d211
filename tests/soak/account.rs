//! The books: what clients sent and saw, what the tap wrote down, and what the engines sent, held against each other.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use spectap::observation::{Acceptance, Observation, Outcome};
use spectap::simulate::{Entry, Outcome as Sending};

use crate::traffic::{Seen, Sent};
use crate::vitals::sum;

pub(crate) struct Books {
    /// What the tap wrote down, by the client's id.
    observed: HashMap<String, Observation>,
    /// What each engine sent, by the engine's id.
    sent: Vec<HashMap<String, Entry>>,
    lanes: Vec<String>,
}

/// Sums over what both sides know.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    steps: u64,
    drafted: u64,
    accepted: u64,
}

impl Books {
    pub(crate) fn open(records: &Path, data: &[SocketAddr], logs: Vec<Vec<Entry>>) -> Self {
        let mut observed = HashMap::new();
        for line in fs::read_to_string(records).unwrap().lines().skip(1) {
            let observation: Observation = serde_json::from_str(line).unwrap();
            let id = observation.x_request_id.clone().unwrap();
            let before = observed.insert(id.clone(), observation);
            assert!(before.is_none(), "{id} was observed twice");
        }
        let by_id = |log: Vec<Entry>| {
            log.into_iter()
                .map(|entry| (entry.id.clone(), entry))
                .collect()
        };
        Self {
            observed,
            sent: logs.into_iter().map(by_id).collect(),
            lanes: data.iter().map(SocketAddr::to_string).collect(),
        }
    }

    /// Holds everything against each other, and tells in a line.
    pub(crate) fn balance(&self, sent: &[Sent], counters: &BTreeMap<String, f64>) -> String {
        let asked: Vec<&Sent> = sent.iter().filter(|sent| sent.observed).collect();
        for sent in &asked {
            let observation = self.observed.get(&sent.id);
            let observation = observation.unwrap_or_else(|| panic!("{sent:?} was never observed"));
            assert_eq!(observation.lane, self.lanes[sent.lane], "{sent:?}");
            agree(sent, observation);
        }
        assert_eq!(
            self.observed.len(),
            asked.len(),
            "observed what nobody sent"
        );
        let requests = sum(counters, "spectap_requests_total");
        assert_eq!(requests, sent.len() as f64, "spectap_requests_total");
        let outcomes = sum(counters, "spectap_exchange_outcomes_total");
        assert_eq!(
            outcomes,
            asked.len() as f64,
            "spectap_exchange_outcomes_total"
        );
        self.balance_reasons(counters);
        let compared = self.balance_acceptance(counters);
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for observation in self.observed.values() {
            *ends
                .entry(format!("{:?}", observation.outcome))
                .or_default() += 1;
        }
        let retries = sum(counters, "spectap_upstream_retries_total");
        let replays = sum(counters, "spectap_replays_total");
        format!(
            "{ends:?}; {retries} retries, {replays} replays; {compared} records equal what the engines sent"
        )
    }

    /// What is not recorded says why.
    fn balance_reasons(&self, counters: &BTreeMap<String, f64>) {
        let mut successes = 0.0;
        for (id, observation) in &self.observed {
            let success = observation
                .status
                .is_some_and(|status| (200..300).contains(&status));
            assert_eq!(
                observation.acceptance.is_some(),
                success,
                "{id}: {observation:?}"
            );
            successes += f64::from(u8::from(success));
            let told = matches!(
                observation.acceptance,
                None | Some(Acceptance::Recorded | Acceptance::ZeroStep)
            );
            assert!(
                told || observation.reason.is_some(),
                "{id}: no reason in {observation:?}"
            );
        }
        let counted = sum(counters, "spectap_spec_decode_requests_total");
        assert_eq!(counted, successes, "spectap_spec_decode_requests_total");
    }

    /// The records of what completed are what the engines sent, one by one; the counters are the sums of all records.
    fn balance_acceptance(&self, counters: &BTreeMap<String, f64>) -> usize {
        let (mut all, mut compared) = (Totals::default(), 0);
        for (id, observation) in &self.observed {
            let records = &observation.spec_decode_acceptance;
            let mut seen = Totals::default();
            for record in records {
                seen.steps += record.num_spec_steps.unwrap_or(0);
                seen.drafted += record.num_draft_tokens;
                seen.accepted += record.num_accepted_draft_tokens;
            }
            all.drafted += seen.drafted;
            all.accepted += seen.accepted;
            let lane = self.lanes.iter().position(|lane| *lane == observation.lane);
            let entry = observation
                .request_id
                .as_ref()
                .and_then(|id| self.sent[lane.unwrap()].get(id));
            let (Some(entry), Outcome::Complete) = (entry, observation.outcome) else {
                continue;
            };
            // The engine wrote all of it; a request whose end did not reach the tap is not complete there.
            assert_eq!(entry.outcome, Sending::Complete, "{id}");
            assert_eq!(
                entry.payload_on_the_wire,
                !records.is_empty(),
                "{id}: {entry:?} {observation:?}"
            );
            let mut sent = Totals::default();
            for sequence in entry.sequences.iter().filter(|sequence| sequence.told) {
                sent.steps += sequence.accepted.len() as u64;
                sent.drafted += sequence.drafted.iter().map(|n| u64::from(*n)).sum::<u64>();
                sent.accepted += sequence.accepted.iter().map(|n| u64::from(*n)).sum::<u64>();
            }
            if records.iter().any(|record| record.num_spec_steps.is_none()) {
                // llama.cpp tells no steps.
                sent.steps = seen.steps;
            }
            assert_eq!(seen, sent, "{id}: {observation:?}");
            compared += records.len();
        }
        for (name, total) in [
            ("spectap_spec_decode_num_draft_tokens_total", all.drafted),
            (
                "spectap_spec_decode_num_accepted_tokens_total",
                all.accepted,
            ),
        ] {
            assert_eq!(sum(counters, name), total as f64, "{name}");
        }
        compared
    }
}

/// What the client saw of the end is what the tap wrote down.
fn agree(sent: &Sent, observation: &Observation) {
    let fits = match (sent.seen, observation.outcome) {
        (Seen::Whole(status), Outcome::Complete | Outcome::ErrorEvent) => {
            status < 300 && observation.status == Some(status)
        }
        (Seen::Whole(status), Outcome::ErrorStatus) => {
            status >= 400 && observation.status == Some(status)
        }
        (Seen::Cut, Outcome::Truncated) => true,
        // The end may have come first.
        (Seen::Left, _) => true,
        _ => false,
    };
    assert!(fits, "{sent:?} was written down as {observation:?}");
}
