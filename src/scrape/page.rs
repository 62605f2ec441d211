//! One reading of a metrics page: the counts that it tells, by engine, model and rank.

use std::collections::BTreeMap;

use super::counts::{Counts, MOST_POSITIONS, Source};
use super::exposition::{self, Sample};
use super::figures::Gauge;
use super::schema::{Meaning, Schema, meaning};

/// Labels that tell copies of an engine apart; where several are there, all of them do.
const RANKS: [&str; 6] = [
    "instance",
    "pod",
    "dynamo_component",
    "worker_id",
    "engine",
    "dp_rank",
];

/// Ranks inside one copy, which all show the same: only the first counts.
const COPIES: [&str; 2] = ["tp_rank", "pp_rank"];

/// Sources that are told apart; further ones fold into one.
const MOST_SOURCES: usize = 64;

/// Gauges that are kept.
const MOST_GAUGES: usize = 64;

/// Longest name in bytes.
const LONGEST_NAME: usize = 128;

/// Above this a double does not hold every integer.
const LARGEST_COUNT: f64 = 9_007_199_254_740_992.0;

/// What a page tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The counters.
    pub counts: BTreeMap<Source, Counts>,
    /// What the engine computed itself.
    pub gauges: Vec<Gauge>,
    /// Requests under way, where told.
    pub running: Option<u64>,
    /// Most drafts of a step, where told.
    pub k: Option<u64>,
    /// Samples of any kind on the page.
    pub samples: usize,
    /// Whether Dynamo shows: by series of its own, or by its labels on the engine's.
    pub behind_dynamo: bool,
    /// When the counters of a source began, in seconds since 1970.
    pub(super) created: BTreeMap<Source, f64>,
    /// When the process began, likewise.
    pub(super) process_start: Option<f64>,
}

impl Page {
    /// Reads a page. Whatever is on it that no engine's table names is left out.
    pub fn read(text: &[u8]) -> Self {
        let mut reader = Reader::default();
        let samples = exposition::read(text, |sample| reader.take(&sample));
        reader.finish(samples)
    }

    /// Whether any engine's series is on it.
    pub fn speaks(&self) -> bool {
        !self.counts.is_empty() || !self.gauges.is_empty() || self.running.is_some()
    }

    /// Whether any of the engines counts speculation, or shows it in a gauge.
    pub fn speculates(&self) -> bool {
        self.counts.values().any(Counts::speculates)
    }

    /// The engine, where there is one: of several the one with the most sources.
    pub fn engine(&self) -> Option<&str> {
        let mut sources: BTreeMap<&str, usize> = BTreeMap::new();
        for source in self.counts.keys() {
            *sources.entry(&source.engine).or_default() += 1;
        }
        let most = sources.into_iter().max_by_key(|(_, sources)| *sources);
        most.map(|(engine, _)| engine)
            .or_else(|| self.gauges.first().map(|gauge| gauge.engine.as_str()))
    }

    /// Adds the page of another copy of the engine, whose ranks get its name.
    pub(super) fn absorb(&mut self, other: Page, name: &str) {
        let named = |rank: Option<String>| {
            Some(match rank {
                Some(rank) => format!("{name}/{rank}"),
                None => name.to_owned(),
            })
        };
        for (source, counts) in other.counts {
            let created = other.created.get(&source).copied().or(other.process_start);
            let source = Source {
                rank: named(source.rank),
                ..source
            };
            self.created.extend(created.map(|at| (source.clone(), at)));
            self.counts.insert(source, counts);
        }
        self.gauges
            .extend(other.gauges.into_iter().map(|gauge| Gauge {
                rank: named(gauge.rank),
                ..gauge
            }));
        self.running = match (self.running, other.running) {
            (Some(own), Some(others)) => Some(own.saturating_add(others)),
            (own, others) => own.or(others),
        };
        self.k = self.k.max(other.k);
        self.samples += other.samples;
        self.behind_dynamo |= other.behind_dynamo;
    }

    /// All sources together.
    pub fn sum(&self) -> Counts {
        let mut sum = Counts::default();
        self.counts.values().for_each(|counts| sum.add(counts));
        sum
    }
}

#[derive(Default)]
struct Reader {
    page: Page,
    /// A histogram's buckets: steps that accepted at most so many.
    up_to: BTreeMap<Source, BTreeMap<u32, u64>>,
}

impl Reader {
    fn take(&mut self, sample: &Sample<'_>) {
        if sample.name == "process_start_time_seconds" {
            self.page.process_start = Some(sample.value);
        }
        self.page.behind_dynamo |= sample.name.starts_with("dynamo_");
        let Some((schema, meaning)) = meaning(&sample.name) else {
            return;
        };
        let is_copy = |label: &str| sample.label(label).is_some_and(|rank| rank != "0");
        if COPIES.iter().any(|label| is_copy(label)) {
            return;
        }
        let is_dynamo = |(name, _): &(std::borrow::Cow<'_, str>, _)| name.starts_with("dynamo_");
        self.page.behind_dynamo |= sample.labels.iter().any(is_dynamo);
        let source = self.source(schema, sample);
        if let Meaning::Gauge { about, k } = meaning {
            return self.take_gauge(source, sample, about, k);
        }
        if meaning == Meaning::Created {
            let created = self.page.created.entry(source).or_default();
            *created = created.max(sample.value);
            return;
        }
        let Some(count) = count(sample.value) else {
            return;
        };
        if meaning == Meaning::Running {
            let running = self.page.running.unwrap_or(0);
            self.page.running = Some(running.saturating_add(count));
            return;
        }
        self.take_count(schema, source, sample, meaning, count);
    }

    fn take_count(
        &mut self,
        schema: &Schema,
        source: Source,
        sample: &Sample<'_>,
        meaning: Meaning,
        count: u64,
    ) {
        let counts = self.page.counts.entry(source.clone()).or_default();
        let add = |sum: &mut Option<u64>| *sum = Some(sum.unwrap_or(0).saturating_add(count));
        match meaning {
            Meaning::Steps => add(&mut counts.steps),
            Meaning::Drafted => add(&mut counts.drafted),
            Meaning::Accepted => add(&mut counts.accepted),
            Meaning::GenerationTokens => add(&mut counts.generation_tokens),
            Meaning::Requests => add(&mut counts.requests),
            Meaning::AcceptedAt(label) => {
                if let Some(position) = position(sample, label) {
                    add_at(&mut counts.accepted_at, position, count);
                    if schema.positions_tell_k {
                        self.page.k = self.page.k.max(Some(u64::from(position) + 1));
                    }
                }
            }
            Meaning::DraftedAt(label) => {
                if let Some(position) = position(sample, label) {
                    add_at(&mut counts.drafted_at, position, count);
                }
            }
            Meaning::StepsUpTo => {
                if let Some(bound) = position(sample, "le") {
                    add_at(self.up_to.entry(source).or_default(), bound, count);
                }
            }
            Meaning::Running | Meaning::Created | Meaning::Gauge { .. } => {}
        }
    }

    fn take_gauge(&mut self, source: Source, sample: &Sample<'_>, about: &str, k: Option<u64>) {
        if !sample.value.is_finite() || self.page.gauges.len() >= MOST_GAUGES {
            return;
        }
        if let (Some(more), Some(width)) = (k, count(sample.value)) {
            let k = width.checked_sub(more).filter(|&k| k > 0);
            self.page.k = self.page.k.max(k);
        }
        self.page.gauges.push(Gauge {
            name: sample.name.to_string(),
            engine: source.engine,
            model: source.model,
            rank: source.rank,
            value: sample.value,
            about: about.to_owned(),
        });
    }

    fn source(&self, schema: &Schema, sample: &Sample<'_>) -> Source {
        let ranks: Vec<&str> = RANKS.iter().filter_map(|it| sample.label(it)).collect();
        let source = Source {
            engine: schema.engine.to_owned(),
            model: sample.label("model_name").map(cut),
            rank: (!ranks.is_empty()).then(|| cut(&ranks.join("/"))),
        };
        if self.page.counts.len() < MOST_SOURCES || self.page.counts.contains_key(&source) {
            return source;
        }
        Source {
            engine: schema.engine.to_owned(),
            model: Some("other".to_owned()),
            rank: Some("other".to_owned()),
        }
    }

    fn finish(mut self, samples: usize) -> Page {
        for (source, up_to) in self.up_to {
            if let Some(counts) = self.page.counts.get_mut(&source)
                && let Some(steps) = counts.steps
            {
                // Only bounds without a gap tell how many steps accepted exactly so many.
                let bounds = up_to.into_iter().zip(0..);
                for ((bound, up_to), _) in bounds.take_while(|((bound, _), next)| bound == next) {
                    counts
                        .accepted_at
                        .insert(bound, steps.saturating_sub(up_to));
                }
            }
        }
        for counts in self.page.counts.values_mut() {
            if counts.steps.is_none() {
                counts.steps = counts.drafted_at.get(&0).copied();
            }
        }
        self.page.samples = samples;
        self.page
    }
}

fn add_at(counts: &mut BTreeMap<u32, u64>, position: u32, count: u64) {
    let sum = counts.entry(position).or_default();
    *sum = sum.saturating_add(count);
}

fn count(value: f64) -> Option<u64> {
    (0.0..=LARGEST_COUNT)
        .contains(&value)
        .then_some(value as u64)
}

fn position(sample: &Sample<'_>, label: &str) -> Option<u32> {
    let value: f64 = sample.label(label)?.parse().ok()?;
    let is_position = value.fract() == 0.0 && (0.0..f64::from(MOST_POSITIONS)).contains(&value);
    is_position.then_some(value as u32)
}

fn cut(name: &str) -> String {
    name[..name.floor_char_boundary(LONGEST_NAME)].to_owned()
}

#[cfg(test)]
mod tests;
