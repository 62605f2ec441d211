//! What the view shows: the newest answer, and what a person chose.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::ValueEnum;

use super::Filter;
use super::ask::Answer;
use super::engine::Movement;
use crate::export::summary::{Metric, Metrics};
use crate::export::{By, Query, Summary};
use crate::observation::Observation;
use crate::record::AcceptanceHistogram;
use crate::stats::Window;

/// What the category table tells apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Grouping {
    /// The client's own label
    #[default]
    Tag,
    /// Model name
    Model,
    /// Whose wire shape the records had
    Engine,
    /// Prompt and completion tokens together
    Context,
    /// Prompt tokens
    Prompt,
    /// Share of the prompt that came from the prefix cache
    Cached,
    /// Sampling temperature
    Temperature,
    /// What shape the reply must have
    Format,
    /// Share of the completion that was reasoning
    Reasoning,
    /// Whether the client asked for a stream
    Stream,
    /// Requests in flight at the tap
    Concurrency,
}

impl Grouping {
    pub(super) fn by(self) -> By {
        match self {
            Grouping::Tag => By::Tag,
            Grouping::Model => By::Model,
            Grouping::Engine => By::Engine,
            Grouping::Context => By::Context,
            Grouping::Prompt => By::Prompt,
            Grouping::Cached => By::Cached,
            Grouping::Temperature => By::Temperature,
            Grouping::Format => By::Format,
            Grouping::Reasoning => By::Reasoning,
            Grouping::Stream => By::Stream,
            Grouping::Concurrency => By::Concurrency,
        }
    }
}

/// The order of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Order {
    /// The last to end comes first.
    #[default]
    Newest,
    /// The shortest acceptance length comes first.
    Length,
    /// The longest latency comes first.
    Latency,
    /// The most verify steps come first.
    Steps,
}

/// What fills the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Screen {
    /// Everything in short.
    #[default]
    Overview,
    /// One request with every field; lines above its first one that are scrolled away.
    Detail(u16),
    /// The keys.
    Help,
}

/// Figures that are kept to be held against later ones.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    metrics: Metrics,
    groups: BTreeMap<BTreeMap<By, Option<String>>, Metrics>,
}

/// What is shown and what was chosen.
#[derive(Debug)]
pub struct Model {
    pub(super) answer: Option<Answer>,
    pub(super) window: Window,
    pub(super) grouping: Grouping,
    pub(super) filter: Filter,
    /// The filter while it is written, and why it can't be used.
    pub(super) editing: Option<(String, Option<String>)>,
    pub(super) order: Order,
    /// Whether answers are put aside.
    pub(super) is_paused: bool,
    pub(super) mark: Option<Mark>,
    pub(super) screen: Screen,
    /// Id of the selected request; the first one where there is none.
    pub(super) selected: Option<String>,
}

impl Model {
    /// Nothing is known yet.
    pub fn new(window: Window, grouping: Grouping, filter: Filter) -> Self {
        Self {
            answer: None,
            window,
            grouping,
            filter,
            editing: None,
            order: Order::default(),
            is_paused: false,
            mark: None,
            screen: Screen::default(),
            selected: None,
        }
    }

    /// What the taps are asked.
    pub fn query(&self) -> Query {
        Query {
            window: self.window,
            by: vec![self.grouping.by()],
            ..self.filter.query()
        }
    }

    /// Takes what the taps said, unless the view is paused.
    pub fn take(&mut self, answer: Answer) {
        if !self.is_paused || self.answer.is_none() {
            self.answer = Some(answer);
        }
    }

    pub(super) fn summary(&self) -> Option<&Summary> {
        self.answer.as_ref()?.summary.as_ref()
    }

    /// What the engines' own counters moved by.
    pub(super) fn engine(&self) -> Option<&Movement> {
        self.answer.as_ref()?.engine.as_ref()
    }

    pub(super) fn engine_columns(&self) -> &[(SystemTime, AcceptanceHistogram)] {
        self.engine().map_or(&[], |engine| &engine.columns)
    }

    /// All requests that the filter lets through, newest first.
    pub(super) fn wanted(&self) -> impl Iterator<Item = &Arc<Observation>> + Clone {
        let all = self.answer.iter().flat_map(|answer| &answer.exchanges);
        all.filter(|exchange| self.filter.wants(exchange))
    }

    /// The same, in the chosen order.
    pub(super) fn requests(&self) -> Vec<Arc<Observation>> {
        let mut requests: Vec<Arc<Observation>> = self.wanted().cloned().collect();
        // Those without the figure come last.
        match self.order {
            Order::Newest => {}
            Order::Length => requests.sort_by(|one, other| {
                let of = |it| length_of(it).unwrap_or(f64::INFINITY);
                of(one).total_cmp(&of(other))
            }),
            Order::Latency => requests.sort_by(|one, other| {
                let of = |it: &Observation| it.timing.request_latency_ms.unwrap_or(-1.0);
                of(other).total_cmp(&of(one))
            }),
            Order::Steps => requests.sort_by_key(|it| std::cmp::Reverse(steps_of(it))),
        }
        requests
    }

    /// Where the selected request stands; the first one when it is not there.
    pub(super) fn position(&self, requests: &[Arc<Observation>]) -> usize {
        let selected = self.selected.as_deref();
        let position = requests
            .iter()
            .position(|it| Some(it.id.as_str()) == selected);
        position.unwrap_or(0)
    }

    /// Keeps the figures of now.
    pub(super) fn set_mark(&mut self) {
        let mark = self.summary().map(|summary| Mark {
            metrics: all_figures(&summary.metrics, &summary.gain),
            groups: summary
                .groups
                .iter()
                .map(|group| (group.key.clone(), group.metrics.clone()))
                .collect(),
        });
        self.mark = mark;
    }

    /// How far a figure of all has moved since the mark.
    pub(super) fn moved(&self, tag: &str, now: f64) -> Option<f64> {
        let then = self.mark.as_ref()?.metrics.get(tag)?;
        Some(now - then.avg)
    }

    /// How far a figure of a group has moved since the mark.
    pub(super) fn moved_in(
        &self,
        key: &BTreeMap<By, Option<String>>,
        tag: &str,
        now: f64,
    ) -> Option<f64> {
        let then = self.mark.as_ref()?.groups.get(key)?.get(tag)?;
        Some(now - then.avg)
    }
}

fn all_figures(metrics: &Metrics, gain: &Metrics) -> Metrics {
    let both = metrics.iter().chain(gain);
    both.map(|(tag, metric)| (tag.clone(), Metric::clone(metric)))
        .collect()
}

/// How far a window reaches back; none: to the first exchange.
pub(super) fn span(window: Window) -> Option<Duration> {
    let minutes = match window {
        Window::Minute => 1,
        Window::FiveMinutes => 5,
        Window::Quarter => 15,
        Window::Hour => 60,
        Window::All => return None,
    };
    Some(Duration::from_secs(60 * minutes))
}

/// Verify steps of all sequences of a request.
pub(super) fn steps_of(exchange: &Observation) -> u64 {
    let steps = exchange
        .spec_decode_acceptance
        .iter()
        .filter_map(|it| it.num_spec_steps);
    steps.fold(0, u64::saturating_add)
}

/// Accepted drafts of all sequences of a request.
fn accepted_of(exchange: &Observation) -> u64 {
    let records = exchange.spec_decode_acceptance.iter();
    records.fold(0, |sum, it| {
        sum.saturating_add(it.num_accepted_draft_tokens)
    })
}

/// Tokens per verify step over all sequences of a request.
pub(super) fn length_of(exchange: &Observation) -> Option<f64> {
    let steps = steps_of(exchange);
    (steps > 0).then(|| 1.0 + accepted_of(exchange) as f64 / steps as f64)
}

/// Accepted / drafted over all sequences of a request.
pub(super) fn rate_of(exchange: &Observation) -> Option<f64> {
    let records = exchange.spec_decode_acceptance.iter();
    let drafted = records.fold(0_u64, |sum, it| sum.saturating_add(it.num_draft_tokens));
    (drafted > 0).then(|| accepted_of(exchange) as f64 / drafted as f64)
}
