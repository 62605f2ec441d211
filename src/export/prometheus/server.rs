//! The engine's own counters as `spectap_server_*`, how much of them the records hold, and what engine it is.
//!
//! Counters go on over restarts of the engine. The label `engine` is the data-parallel rank, as in vLLM; `backend` is whose
//! series they are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use super::UNKNOWN;
use super::series::{Samples, Series};
use crate::scrape::{Counts, Server, Source, Stretch};
use crate::stats::OTHER;

const STEPS: Series = Series {
    name: "spectap_server_spec_decode_num_drafts_total",
    help: "Verify steps of the whole server, as the engine counts them.",
};
const DRAFTED: Series = Series {
    name: "spectap_server_spec_decode_num_draft_tokens_total",
    help: "Drafts put before the verifier on the whole server, as the engine counts them.",
};
const ACCEPTED: Series = Series {
    name: "spectap_server_spec_decode_num_accepted_tokens_total",
    help: "Drafts that the verifier kept on the whole server, as the engine counts them.",
};
const PER_POSITION: Series = Series {
    name: "spectap_server_spec_decode_num_accepted_tokens_per_pos_total",
    help: "Verify steps of the whole server that accepted the draft at a position, counted from 0.",
};
const GAUGES: Series = Series {
    name: "spectap_server_spec_decode_engine_gauge",
    help: "What the engine computed itself over a stretch that only it knows; name is its own series.",
};
const READINGS: Series = Series {
    name: "spectap_server_scrapes_total",
    help: "Readings of the engine's metrics page, by result.",
};
const RESETS: Series = Series {
    name: "spectap_server_resets_total",
    help: "Restarts of the engine that its counters showed.",
};
const COVERAGE: Series = Series {
    name: "spectap_coverage_ratio",
    help: "Verify steps of the records / movement of the engine's own counter, over the last fifteen minutes.",
};
const INFO: Series = Series {
    name: "spectap_engine_info",
    help: "Always 1; the labels say what the engine showed of itself.",
};

const ALL: [Series; 9] = [
    STEPS,
    DRAFTED,
    ACCEPTED,
    PER_POSITION,
    GAUGES,
    READINGS,
    RESETS,
    COVERAGE,
    INFO,
];

/// The window of the coverage: long enough that a quiet moment is likely in it, short enough for an alert.
const COVERAGE_WINDOW: Duration = Duration::from_secs(900);

/// Series of the counters at most. With more, ranks are added up, then models.
const MOST_SERIES: usize = 120;

/// Gauges at most.
const MOST_GAUGES: usize = 16;

/// Tells the fingerprint that the engine's responses carried last.
type Fingerprint = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Registers what is read from the engine's page.
///
/// # Errors
///
/// Only if the registry already holds a series of one of these names.
pub fn register(
    registry: &Registry,
    server: Server,
    fingerprint: Fingerprint,
) -> Result<(), prometheus::Error> {
    let descriptions = ALL.iter().map(|series| {
        let (name, help) = (series.name.to_owned(), series.help.to_owned());
        Desc::new(name, help, Vec::new(), HashMap::new())
    });
    registry.register(Box::new(ServerCollector {
        server,
        fingerprint,
        descriptions: descriptions.collect::<Result<_, _>>()?,
    }))
}

struct ServerCollector {
    server: Server,
    fingerprint: Fingerprint,
    descriptions: Vec<Desc>,
}

impl Collector for ServerCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some((readings, failures)) = self.server.readings() else {
            return Vec::new();
        };
        let counted = self.server.whole();
        let counted = counted.into_iter().map(|it| (it.source, it.counts));
        let mut families = counters(&bounded(counted.collect()));
        families.push(self.gauges());
        let mut scrapes = Samples::counter(&READINGS);
        scrapes.add(&[("result", "ok")], readings);
        scrapes.add(&[("result", "failed")], failures);
        families.push(scrapes.family());
        let mut resets = Samples::counter(&RESETS);
        resets.add(&[], self.server.resets());
        families.push(resets.family());
        families.push(self.coverage());
        families.push(self.info());
        families.retain(|family| !family.get_metric().is_empty());
        families
    }
}

impl ServerCollector {
    fn gauges(&self) -> MetricFamily {
        let mut samples = Samples::gauge(&GAUGES);
        for gauge in self.server.gauges().iter().take(MOST_GAUGES) {
            let labels = [
                ("backend", gauge.engine.as_str()),
                ("engine", gauge.rank.as_deref().unwrap_or_default()),
                ("model_name", gauge.model.as_deref().unwrap_or(UNKNOWN)),
                ("name", &gauge.name),
            ];
            samples.show(&labels, gauge.value);
        }
        samples.family()
    }

    fn coverage(&self) -> MetricFamily {
        let mut samples = Samples::gauge(&COVERAGE);
        let stretch = Stretch::Since(SystemTime::now() - COVERAGE_WINDOW);
        let coverage = self.server.coverage(&stretch);
        if let Some(ratio) = coverage.and_then(|coverage| coverage.ratio()) {
            samples.show(&[], ratio);
        }
        samples.family()
    }

    fn info(&self) -> MetricFamily {
        let mut samples = Samples::gauge(&INFO);
        let k = self.server.k().map(|k| k.to_string()).unwrap_or_default();
        let labels = [
            ("backend", &*self.server.engine().unwrap_or_default()),
            ("fingerprint", &*(self.fingerprint)().unwrap_or_default()),
            ("k", &*k),
            ("version", &*self.server.version().unwrap_or_default()),
        ];
        samples.show(&labels, 1.0);
        samples.family()
    }
}

type BySource = BTreeMap<Source, Counts>;

/// The counts with as many names as there is room for.
fn bounded(counts: BySource) -> BySource {
    let folds: [fn(Source) -> Source; 3] = [
        |source| source,
        |source| Source {
            rank: Some(OTHER.to_owned()),
            ..source
        },
        |source| Source {
            rank: Some(OTHER.to_owned()),
            model: Some(OTHER.to_owned()),
            ..source
        },
    ];
    let mut folded = BySource::new();
    for fold in folds {
        folded.clear();
        for (source, counts) in &counts {
            folded.entry(fold(source.clone())).or_default().add(counts);
        }
        let series = folded.values().map(|counts| 3 + counts.accepted_at.len());
        if series.sum::<usize>() <= MOST_SERIES {
            break;
        }
    }
    folded
}

fn counters(counts: &BySource) -> Vec<MetricFamily> {
    let mut steps = Samples::counter(&STEPS);
    let mut drafted = Samples::counter(&DRAFTED);
    let mut accepted = Samples::counter(&ACCEPTED);
    let mut per_position = Samples::counter(&PER_POSITION);
    for (source, counts) in counts {
        let labels = [
            ("backend", source.engine.as_str()),
            ("engine", source.rank.as_deref().unwrap_or_default()),
            ("model_name", source.model.as_deref().unwrap_or(UNKNOWN)),
        ];
        for (samples, count) in [
            (&mut steps, counts.steps),
            (&mut drafted, counts.drafted),
            (&mut accepted, counts.accepted),
        ] {
            if let Some(count) = count {
                samples.add(&labels, count);
            }
        }
        for (position, count) in &counts.accepted_at {
            let position = position.to_string();
            let [backend, engine, model] = labels;
            per_position.add(&[backend, engine, model, ("position", &position)], *count);
        }
    }
    [steps, drafted, accepted, per_position]
        .map(Samples::family)
        .into()
}
