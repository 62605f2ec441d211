//! Runs: named stretches of the traffic, one after the other. Nothing is reset when one begins.
//!
//! The first begins with the process. A further one begins when somebody asks for it, or by itself when the engine
//! behind the tap has become another one. An exchange belongs to the run in which its request arrived.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::clock::Clock;
use crate::observation::Observation;

mod watch;

use watch::Watch;

/// Runs that are kept; the oldest go.
pub const MOST_RUNS: usize = 100;

/// Models of a lane whose k is watched.
const MOST_WATCHED: usize = 128;

/// Longest name of a run in bytes.
pub const LONGEST_RUN_NAME: usize = 64;

/// The runs of one instance. Cheap to clone: all clones share them.
#[derive(Clone, Debug)]
pub struct Runs(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Oldest first; never empty.
    runs: VecDeque<Run>,
    current: Arc<str>,
    /// By lane.
    watches: BTreeMap<String, OfLane>,
}

/// What the engine behind one lane shows of itself.
#[derive(Debug, Default)]
struct OfLane {
    fingerprint: Option<Watch>,
    /// By model: one engine may draft a different number of tokens for each of its models.
    k: BTreeMap<String, Watch>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its name, unlike those of all other runs that are kept.
    pub name: Arc<str>,
    /// When it began.
    pub started_at: SystemTime,
    /// When the next one began; absent for the last.
    pub ended_at: Option<SystemTime>,
    /// Why it began.
    pub why: Why,
    /// What changed in the engine, where that is why.
    pub change: Option<String>,
    /// Exchanges that arrived in it, are over, and had a 2xx status.
    pub n: u64,
}

/// Why a run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Why {
    /// The process started.
    Started,
    /// Somebody asked for it.
    Asked,
    /// The engine shows another value than before, and the old one no more.
    EngineChanged,
}

/// What an engine shows of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Property {
    /// `system_fingerprint`; vLLM's has its version and its parallelism in it.
    Fingerprint,
    /// Most drafts a step may carry.
    K,
}

/// Two values of one property that come by turns: several engines behind one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternation {
    /// Listen address of the lane.
    pub lane: String,
    /// Which property.
    pub property: Property,
    /// The two values.
    pub values: [String; 2],
    /// How often the first came back after the second.
    pub n: u64,
}

/// Why a run can't begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The name is empty, too long, or has control characters.
    #[error("the name must have 1 to {LONGEST_RUN_NAME} bytes and no control characters")]
    Name,
    /// There is such a run.
    #[error("there is a run of this name already; choose another, or leave the name out")]
    Taken,
}

impl Runs {
    /// Begins the first run.
    pub fn new(clock: Clock) -> Self {
        let now = clock.now();
        let mut state = State {
            runs: VecDeque::new(),
            current: Arc::default(),
            watches: BTreeMap::new(),
        };
        let name = state.free_name(now);
        state.begin(name, now, Why::Started, None);
        Self(Arc::new(Shared {
            clock,
            state: Mutex::new(state),
        }))
    }

    /// The name of the run that a request arriving now belongs to.
    pub fn current(&self) -> Arc<str> {
        Arc::clone(&self.lock().current)
    }

    /// Begins a run and ends the one before. Without a name it gets the time as its name.
    ///
    /// # Errors
    ///
    /// When the name can't be one, or is taken.
    pub fn begin(&self, name: Option<&str>) -> Result<Run, RunError> {
        let now = self.0.clock.now();
        let mut state = self.lock();
        let name = match name {
            None => state.free_name(now),
            Some(name) if !is_name(name) => return Err(RunError::Name),
            Some(name) if state.has(name) => return Err(RunError::Taken),
            Some(name) => name.into(),
        };
        Ok(state.begin(name, now, Why::Asked, None))
    }

    /// The runs that are kept, newest first.
    pub fn list(&self) -> Vec<Run> {
        self.lock().runs.iter().rev().cloned().collect()
    }

    /// Whether a run of this name is kept.
    pub fn has(&self, name: &str) -> bool {
        self.lock().has(name)
    }

    /// An exchange is over: counts it, and looks at what its engine showed.
    pub fn ended(&self, observation: &Observation, fingerprint: Option<&str>) {
        let k = observation
            .spec_decode_acceptance
            .iter()
            .find_map(|record| record.num_spec_tokens)
            .map(|k| k.to_string());
        let model = observation.model.as_deref().unwrap_or_default();
        let mut state = self.lock();
        if observation.is_success() {
            state.count(observation);
        }
        for (property, value) in [
            (Property::Fingerprint, fingerprint),
            (Property::K, k.as_deref()),
        ] {
            if let Some(value) = value
                && let Some(change) = state.watch(&observation.lane, model, property, value)
            {
                let now = self.0.clock.now();
                tracing::info!(change, "the engine has changed: a run begins");
                let name = state.free_name(now);
                state.begin(name, now, Why::EngineChanged, Some(change));
            }
        }
    }

    /// The fingerprint that holds now; of the first lane that showed one.
    pub fn fingerprint(&self) -> Option<String> {
        let state = self.lock();
        let mut lanes = state.watches.values();
        lanes.find_map(|lane| Some(lane.fingerprint.as_ref()?.holds().to_owned()))
    }

    /// Values that come by turns.
    pub fn alternations(&self) -> Vec<Alternation> {
        let state = self.lock();
        let watches = state.watches.iter().flat_map(|(lane, watches)| {
            let fingerprint = watches.fingerprint.iter();
            let fingerprint = fingerprint.map(|watch| (Property::Fingerprint, watch));
            let k = watches.k.values().map(|watch| (Property::K, watch));
            let watches = fingerprint.chain(k);
            watches.map(move |(property, watch)| (lane, property, watch))
        });
        let found = watches.filter_map(|(lane, property, watch)| {
            let (values, n) = watch.alternation()?;
            Some(Alternation {
                lane: lane.clone(),
                property,
                values,
                n,
            })
        });
        found.collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn begin(&mut self, name: Arc<str>, now: SystemTime, why: Why, change: Option<String>) -> Run {
        if let Some(last) = self.runs.back_mut() {
            last.ended_at = Some(now);
        }
        if self.runs.len() >= MOST_RUNS {
            self.runs.pop_front();
        }
        let run = Run {
            name,
            started_at: now,
            ended_at: None,
            why,
            change,
            n: 0,
        };
        self.current = Arc::clone(&run.name);
        self.runs.push_back(run.clone());
        run
    }

    fn has(&self, name: &str) -> bool {
        self.runs.iter().any(|run| &*run.name == name)
    }

    fn free_name(&self, now: SystemTime) -> Arc<str> {
        let time = humantime::format_rfc3339_seconds(now).to_string();
        let mut name = time.clone();
        let mut count = 1;
        while self.has(&name) {
            count += 1;
            name = format!("{time}-{count}");
        }
        name.into()
    }

    fn count(&mut self, observation: &Observation) {
        let name = observation.run.as_deref();
        // From the back: nearly always the last.
        let run = self.runs.iter_mut().rev();
        if let Some(run) = run.into_iter().find(|run| Some(&*run.name) == name) {
            run.n += 1;
        }
    }

    /// What changed, once it has.
    fn watch(
        &mut self,
        lane: &str,
        model: &str,
        property: Property,
        value: &str,
    ) -> Option<String> {
        let watches = match self.watches.get_mut(lane) {
            Some(watches) => watches,
            None => self.watches.entry(lane.to_owned()).or_default(),
        };
        let watch = match property {
            Property::Fingerprint => watches.fingerprint.get_or_insert_with(|| Watch::new(value)),
            Property::K => {
                // Names are copied once; there are few.
                if !watches.k.contains_key(model) {
                    if watches.k.len() >= MOST_WATCHED {
                        return None;
                    }
                    watches.k.insert(model.to_owned(), Watch::new(value));
                }
                watches.k.get_mut(model)?
            }
        };
        let before = watch.see(value)?;
        let name: &str = property.into();
        Some(format!("{name} from {before} to {value} on {lane}"))
    }
}

fn is_name(name: &str) -> bool {
    (1..=LONGEST_RUN_NAME).contains(&name.len()) && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests;
