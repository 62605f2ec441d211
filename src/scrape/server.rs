//! What is known of the engine's counters: written by the scraper, read by the admin port.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};

use super::counts::Source;
use super::coverage::Coverage;
use super::figures::{Counted, Gauge, ServerFigures};
use super::marks::{Marks, Stretch};
use super::page::Page;
use super::schema;
use super::scraper::TapSums;
use super::totals::{Totals, between};

/// How long whoever wants a reading at once waits for it.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The engine's counters, as far as they were read. Cheap to clone: all clones share them. The default reads nothing.
#[derive(Clone, Debug, Default)]
pub struct Server(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Mutex<Option<mpsc::Sender<oneshot::Sender<()>>>>,
}

#[derive(Debug, Default)]
struct State {
    url: Option<String>,
    version: Option<String>,
    trouble: Option<String>,
    page: Option<Page>,
    read_at: Option<SystemTime>,
    totals: Totals,
    marks: Marks,
    readings: u64,
    failures: u64,
}

impl Server {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the scraper is woken by.
    pub(super) fn wake_by(&self, wake: mpsc::Sender<oneshot::Sender<()>>) {
        *self.0.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(wake);
    }

    /// Reads the page now, and waits until that is done, at most three seconds. Without a scraper it returns at once.
    pub async fn read_now(&self) {
        let wake = self.wake();
        let Some(wake) = wake else { return };
        let (done, is_done) = oneshot::channel();
        let reading = async {
            if wake.send(done).await.is_ok() {
                // Whatever became of it: it was a wish.
                let _ = is_done.await;
            }
        };
        let _ = tokio::time::timeout(LONGEST_WAIT, reading).await;
    }

    fn wake(&self) -> Option<mpsc::Sender<oneshot::Sender<()>>> {
        let wake = self.0.wake.lock().unwrap_or_else(PoisonError::into_inner);
        wake.clone()
    }

    pub(super) fn found(&self, url: &str) {
        self.lock().url = Some(url.to_owned());
    }

    pub(super) fn set_version(&self, version: Option<String>) {
        self.lock().version = version;
    }

    /// Takes a page; says whether the engine was restarted since the last one.
    pub(super) fn take(&self, at: SystemTime, page: Page, tap: TapSums, was_quiet: bool) -> bool {
        let mut state = self.lock();
        let resets = state.totals.resets;
        state.totals.take(&page);
        let (moved, now) = (Arc::clone(state.totals.moved()), state.totals.resets);
        state.marks.add(at, &moved, now, tap, was_quiet);
        state.page = Some(page);
        state.read_at = Some(at);
        state.trouble = None;
        state.readings += 1;
        now > resets
    }

    /// Whether engine and tap were at rest at the last reading.
    pub(super) fn is_settled(&self) -> bool {
        self.lock().marks.is_settled()
    }

    /// Whether nothing was under way at the tap at the last reading.
    pub(super) fn is_quiet(&self) -> bool {
        self.lock().marks.is_quiet()
    }

    pub(super) fn failed(&self, why: String) {
        let mut state = self.lock();
        state.trouble = Some(why);
        state.failures += 1;
    }

    /// The version that the engine told.
    pub fn version(&self) -> Option<String> {
        self.lock().version.clone()
    }

    /// Most drafts of a step, where the page tells it.
    pub fn k(&self) -> Option<u64> {
        self.lock().page.as_ref()?.k
    }

    /// Whose series the page has.
    pub fn engine(&self) -> Option<String> {
        let state = self.lock();
        state.page.as_ref()?.engine().map(str::to_owned)
    }

    /// How often the page was read, and how often that failed; none where there is none to read.
    pub fn readings(&self) -> Option<(u64, u64)> {
        let state = self.lock();
        state.url.as_ref()?;
        Some((state.readings, state.failures))
    }

    /// Restarts of the engine that its counters showed.
    pub fn resets(&self) -> u64 {
        self.lock().totals.resets
    }

    /// What the engine's own counters would say, had it never been restarted.
    pub fn whole(&self) -> Vec<Counted> {
        counted(self.lock().totals.whole(), None)
    }

    /// The engine's own gauges at the last reading.
    pub fn gauges(&self) -> Vec<Gauge> {
        let state = self.lock();
        let page = state.page.as_ref();
        page.map(|page| page.gauges.clone()).unwrap_or_default()
    }

    /// What the counters moved by in a stretch of time; of one model, where one is named. None while nothing was read.
    pub fn figures(&self, stretch: &Stretch, model: Option<&str>) -> Option<ServerFigures> {
        let state = self.lock();
        let (begin, end) = state.marks.ends(stretch)?;
        let counted = counted(between(&begin.moved, &end.moved), model);
        let (from, to) = (Some(begin.at), end.at);
        let resets = end.resets.saturating_sub(begin.resets);
        let mut figures = of_page(state.page.as_ref()?, state.url.as_deref()?, model);
        figures.version.clone_from(&state.version);
        figures.trouble.clone_from(&state.trouble);
        Some(ServerFigures {
            from,
            to,
            resets,
            counted,
            ..figures
        })
    }

    /// The share of a stretch's counts that the records hold; none where that can't be told.
    pub fn coverage(&self, stretch: &Stretch) -> Option<Coverage> {
        Coverage::of(&self.lock().marks, stretch)
    }
}

fn counted(
    counts: impl IntoIterator<Item = (Source, super::Counts)>,
    model: Option<&str>,
) -> Vec<Counted> {
    let counts = counts.into_iter();
    counts
        .map(|(source, counts)| Counted { source, counts })
        .filter(|it| model.is_none() || it.source.model.as_deref() == model)
        .collect()
}

/// All that one page says, since whenever the engine began to count.
fn of_page(page: &Page, url: &str, model: Option<&str>) -> ServerFigures {
    let engines: std::collections::BTreeSet<&str> = page
        .counts
        .keys()
        .map(|source| source.engine.as_str())
        .collect();
    let schemas = engines.into_iter().filter_map(schema::of_engine);
    let catch = schemas.filter_map(|schema| schema.catch.map(str::to_owned));
    let gauges = page.gauges.iter().cloned();
    let is_wanted = |it: &Gauge| model.is_none() || it.model.as_deref() == model;
    ServerFigures {
        url: url.to_owned(),
        engine: page.engine().map(str::to_owned),
        version: None,
        k: page.k,
        from: None,
        to: SystemTime::now(),
        resets: 0,
        trouble: None,
        speculates: page.speculates(),
        catch: catch.collect(),
        counted: counted(page.counts.clone(), model),
        gauges: gauges.filter(is_wanted).collect(),
    }
}

impl ServerFigures {
    /// All that one page says, since whenever the engine began to count.
    pub fn of_page(page: &Page, url: &str) -> Self {
        of_page(page, url, None)
    }
}
