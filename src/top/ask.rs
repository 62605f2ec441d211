//! Asks taps for their figures and their newest exchanges, and merges what they say. Who is no tap may be an engine, whose own
//! counters are read instead.

use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use tokio::task::JoinSet;

use super::engine::{Movement, Readings};
use crate::export::snapshot::Snapshot;
use crate::export::{Query, Summary, summary};
use crate::observation::Observation;
use crate::report::{FetchError, fetch, narrow, server};
use crate::scrape::ServerFigures;

/// Exchanges of one tap that are kept here, newest first.
const MOST_EXCHANGES: usize = 5_000;

/// Exchanges on one page, and pages at once: the first question wants more than those behind it.
const PAGE: usize = 500;
const MOST_PAGES: usize = 10;

/// What one round of questions brought.
#[derive(Debug)]
pub struct Answer {
    /// Each tap, in the order of the command line.
    pub taps: Vec<TapAnswer>,
    /// All taps that answered together; none: none did.
    pub summary: Option<Summary>,
    /// Their newest exchanges, newest first.
    pub exchanges: Vec<Arc<Observation>>,
    /// What the counters of those that are engines moved by; none: there is no engine among them.
    pub engine: Option<Movement>,
    /// When it was asked.
    pub at: SystemTime,
}

/// Whether one tap answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TapAnswer {
    /// As it stands on the command line.
    pub url: String,
    /// Why it did not answer; null: it did.
    pub problem: Option<String>,
}

/// The taps, with what is already known of them.
#[derive(Debug)]
pub(super) struct Taps {
    taps: Vec<Tap>,
    token: Option<Arc<str>>,
}

#[derive(Debug)]
struct Tap {
    url: Arc<str>,
    /// Newest first.
    exchanges: Vec<Arc<Observation>>,
    /// Of an engine.
    readings: Readings,
}

/// What one of them said.
enum Said {
    Tap(Box<Snapshot>, Newer),
    Engine(Box<ServerFigures>),
}

impl Taps {
    pub(super) fn new(urls: &[String], token: Option<String>) -> Self {
        let taps = urls.iter().map(|url| Tap {
            url: url.as_str().into(),
            exchanges: Vec::new(),
            readings: Readings::default(),
        });
        Self {
            taps: taps.collect(),
            token: token.map(Arc::from),
        }
    }

    /// Asks all of them at once. One that is down is said so, and its earlier figures are gone from the sum.
    pub(super) async fn ask(&mut self, query: &Query) -> Answer {
        let at = SystemTime::now();
        let mut questions = JoinSet::new();
        for (index, tap) in self.taps.iter().enumerate() {
            let newest = tap.exchanges.first().map(|newest| newest.id.clone());
            let (url, token) = (Arc::clone(&tap.url), self.token.clone());
            let query = query.clone();
            questions.spawn(async move {
                (index, ask_one(&url, &query, newest, token.as_deref()).await)
            });
        }
        let mut problems: Vec<Option<String>> = vec![None; self.taps.len()];
        let mut has_answered = vec![false; self.taps.len()];
        let mut snapshots: Vec<Option<Snapshot>> = Vec::new();
        snapshots.resize_with(self.taps.len(), || None);
        while let Some(answer) = questions.join_next().await {
            match answer {
                Ok((index, Ok(Said::Tap(snapshot, newer)))) => {
                    snapshots[index] = Some(*snapshot);
                    self.taps[index].take(newer);
                    has_answered[index] = true;
                }
                Ok((index, Ok(Said::Engine(figures)))) => {
                    self.taps[index].readings.push(at, figures.sum());
                    has_answered[index] = true;
                }
                Ok((index, Err(problem))) => problems[index] = Some(problem),
                // A panic in a question is a fault of spectap; the other taps are still worth showing.
                Err(_) => {}
            }
        }
        let movements: Vec<Movement> = self
            .taps
            .iter()
            .zip(&has_answered)
            .filter(|(_, has_answered)| **has_answered)
            .filter_map(|(tap, _)| tap.readings.movement(at, query.window))
            .collect();
        let taps = self.taps.iter().zip(problems).zip(has_answered);
        let taps = taps.map(|((tap, problem), has_answered)| TapAnswer {
            url: tap.url.to_string(),
            problem: problem
                .or_else(|| (!has_answered).then(|| "the question failed here".to_owned())),
        });
        Answer {
            taps: taps.collect(),
            summary: merged(snapshots.into_iter().flatten())
                .map(|snapshot| summary::of_snapshot(&snapshot, &query.by)),
            exchanges: self.newest(),
            engine: movements.into_iter().reduce(Movement::with),
            at,
        }
    }

    fn newest(&self) -> Vec<Arc<Observation>> {
        let mut all: Vec<Arc<Observation>> = self
            .taps
            .iter()
            .flat_map(|tap| tap.exchanges.iter().cloned())
            .collect();
        all.sort_by_key(|exchange| std::cmp::Reverse(exchange.ended_at));
        all
    }
}

impl Tap {
    fn take(&mut self, newer: Newer) {
        let kept = if newer.reaches_known {
            std::mem::take(&mut self.exchanges)
        } else {
            Vec::new()
        };
        self.exchanges = newer.exchanges.into_iter().chain(kept).collect();
        self.exchanges.truncate(MOST_EXCHANGES);
    }
}

/// Exchanges that were not known yet.
struct Newer {
    exchanges: Vec<Arc<Observation>>,
    /// Whether they reach back to those that were known. If not, the tap began anew, or more came than are kept.
    reaches_known: bool,
}

async fn ask_one(
    url: &str,
    query: &Query,
    newest: Option<String>,
    token: Option<&str>,
) -> Result<Said, String> {
    let asked = match server::names_page(url) {
        true => None,
        false => Some(fetch::snapshot(url, query, token).await),
    };
    let snapshot = match asked {
        Some(Ok(mut snapshot)) => {
            narrow(&mut snapshot, query);
            Box::new(snapshot)
        }
        // Somebody answers who is no tap.
        None
        | Some(Err(
            FetchError::Status { .. } | FetchError::NotThat { .. } | FetchError::Answer { .. },
        )) => {
            let figures = server::of_engine(url).await;
            let figures = figures.map_err(|error| error.to_string())?;
            return Ok(Said::Engine(Box::new(figures)));
        }
        Some(Err(error)) => return Err(error.to_string()),
    };
    let mut newer = Newer {
        exchanges: Vec::new(),
        reaches_known: false,
    };
    let mut after = None;
    for _ in 0..MOST_PAGES {
        let (page, next) = match fetch::requests(url, PAGE, after.as_deref(), token).await {
            Ok(page) => page,
            // The exchange behind which the page begins is gone meanwhile: the table ends here.
            Err(_) if after.is_some() => break,
            Err(error) => return Err(error.to_string()),
        };
        for exchange in page {
            if newest.as_deref() == Some(exchange.id.as_str()) {
                newer.reaches_known = true;
                return Ok(Said::Tap(snapshot, newer));
            }
            newer.exchanges.push(Arc::new(exchange));
        }
        match next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    Ok(Said::Tap(snapshot, newer))
}

/// All of them as one: groups add up when the summary is made.
fn merged(snapshots: impl Iterator<Item = Snapshot>) -> Option<Snapshot> {
    snapshots.reduce(|mut whole, other| {
        whole.period.stretch(&other.period);
        whole.groups.extend(other.groups);
        whole.findings.extend(other.findings);
        whole.manifests.extend(other.manifests);
        // Each tap has engines of its own. Shares of them can't be added up.
        match (&mut whole.server, other.server) {
            (Some(server), Some(others)) => server.counted.extend(others.counted),
            (server, others) => *server = server.take().or(others),
        }
        whole.coverage = None;
        whole
    })
}
