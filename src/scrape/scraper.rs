//! Reads the page again and again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::fetch::Requester;
use super::page::Page;
use super::schema;
use super::server::Server;
use super::target::{NoPage, Target, find, read};

/// How the page is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where it is; of several engines behind one tap, all of them.
    pub targets: Vec<Target>,
    /// Whether somebody named it: then it is told when there is none, and tried on. Else one look is enough.
    pub is_asked_for: bool,
    /// From one reading to the next.
    pub interval: Duration,
    /// How long a reading may take.
    pub timeout: Duration,
}

/// What the tap has counted itself, since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TapSums {
    /// Verify steps of all records.
    pub steps: u64,
    /// Drafted tokens of all records.
    pub drafted: u64,
    /// Accepted tokens of all records.
    pub accepted: u64,
    /// Completion tokens of all exchanges.
    pub generation_tokens: u64,
    /// Exchanges without a record, by reason.
    pub unrecorded: BTreeMap<String, u64>,
    /// Exchanges under way.
    pub in_flight: u64,
    /// Exchanges that are over.
    pub ended: u64,
    /// Name of the run that goes on.
    pub run: Arc<str>,
}

impl TapSums {
    /// Whether nothing came through between the two.
    pub(super) fn is_same_traffic(&self, other: &TapSums) -> bool {
        let of = |it: &TapSums| (it.ended, it.in_flight, it.steps, it.generation_tokens);
        of(self) == of(other)
    }
}

/// Asks the tap for its sums.
#[derive(Clone)]
pub struct Probe(pub Arc<dyn Fn() -> TapSums + Send + Sync>);

impl fmt::Debug for Probe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Probe")
    }
}

/// Readings at most for one that is wished for.
const MOST_TRIES: u32 = 24;

/// Readings after which traffic that goes on is taken for such, and no rest is waited for.
const FEW_TRIES: u32 = 5;

/// From one of them to the next.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Reads until `stop`, or until it is clear that there is no page and none was asked for.
pub async fn run(settings: Settings, server: Server, tap: Probe, stop: CancellationToken) {
    let (wake, mut woken) = mpsc::channel(4);
    server.wake_by(wake);
    let mut scraper = Scraper {
        requester: Requester::new(settings.timeout),
        places: settings
            .targets
            .iter()
            .map(|target| Place {
                target: target.clone(),
                url: None,
            })
            .collect(),
        settings,
        server,
        tap,
        is_told: false,
    };
    let mut ticks = tokio::time::interval(scraper.settings.interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let mut done: Option<oneshot::Sender<()>> = None;
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
            asked = woken.recv() => done = asked,
        }
        let tries = if done.is_some() { MOST_TRIES } else { 1 };
        let goes_on = tokio::select! {
            () = stop.cancelled() => return,
            goes_on = scraper.read_until_settled(tries) => goes_on,
        };
        if let Some(done) = done {
            // Who asked may have gone.
            let _ = done.send(());
        }
        if !goes_on {
            return;
        }
    }
}

struct Scraper {
    settings: Settings,
    requester: Requester,
    server: Server,
    tap: Probe,
    places: Vec<Place>,
    /// Whether the trouble that lasts was told.
    is_told: bool,
}

/// One page.
struct Place {
    target: Target,
    /// Where it is, once found.
    url: Option<String>,
}

impl Scraper {
    /// Reads so often, or until engine and tap have come to rest: who wants a reading now has often just had the last byte
    /// of a reply that neither has quite counted yet.
    async fn read_until_settled(&mut self, tries: u32) -> bool {
        for last in 1..=tries {
            if !self.read().await {
                return false;
            }
            let is_busy = last >= FEW_TRIES && !self.server.is_quiet();
            if last == tries || is_busy || self.server.is_settled() {
                break;
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
        true
    }

    /// Reads every page once; says whether it makes sense to go on.
    async fn read(&mut self) -> bool {
        let before = (self.tap.0)();
        let mut pages = Vec::new();
        let mut problem = None;
        let mut silent = Vec::new();
        for (index, place) in self.places.iter_mut().enumerate() {
            match place.read(&self.requester).await {
                Ok(page) => pages.push((index, page)),
                Err(NoPage::NotOne { url, why }) if !self.settings.is_asked_for => {
                    tracing::debug!("{url} is no metrics page: {why}");
                    if place.url.is_none() {
                        silent.push(index);
                    }
                    problem = Some(NoPage::NotOne { url, why });
                }
                Err(found) => problem = Some(found),
            }
        }
        let after = (self.tap.0)();
        let was_quiet = before.in_flight == 0 && before.is_same_traffic(&after);
        if self.server.readings().is_none() && !self.settings.is_asked_for {
            // One look was enough.
            let mute = pages.extract_if(.., |(_, page)| !page.speaks());
            silent.extend(mute.map(|(index, _)| index));
            let mut index = 0;
            self.places.retain(|_| {
                index += 1;
                !silent.contains(&(index - 1))
            });
            if self.places.is_empty() {
                return false;
            }
        }
        let wanted = self.places.len();
        match problem {
            // A sum without one of its parts would tell of a gap that is none.
            _ if pages.len() == wanted => self.take(pages, after, was_quiet).await,
            Some(problem) => self.fail(&problem),
            None => {}
        }
        true
    }

    async fn take(&mut self, pages: Vec<(usize, Page)>, tap: TapSums, was_quiet: bool) {
        let urls: Vec<&str> = self
            .places
            .iter()
            .filter_map(|it| it.url.as_deref())
            .collect();
        let (url, first) = (urls.join(" "), urls.first().map(|url| (*url).to_owned()));
        let is_first = self.server.readings().is_none();
        if is_first {
            let interval = humantime::format_duration(self.settings.interval);
            if self.settings.is_asked_for {
                tracing::info!("reading {url} every {interval}");
            } else {
                tracing::debug!("reading {url} every {interval}");
            }
        } else if self.is_told {
            tracing::info!("{url} can be read again");
        }
        self.is_told = false;
        self.server.found(&url);
        let page = merged(pages.into_iter().map(|(_, page)| page).zip(&urls).collect());
        let engine = page.engine().map(str::to_owned);
        let restarted = self.server.take(SystemTime::now(), page, tap, was_quiet);
        if restarted {
            tracing::warn!("the engine behind {url} was restarted: its counters began anew");
        }
        if (is_first || restarted)
            && let Some(first) = first
            && let Some(version) = version(&self.requester, &first, engine.as_deref()).await
        {
            self.server.set_version(Some(version));
        }
    }

    fn fail(&mut self, problem: &NoPage) {
        let was_read = self.server.readings().is_some();
        if (was_read || self.settings.is_asked_for) && !self.is_told {
            tracing::warn!("the engine's series can't be read: {problem}");
            self.is_told = true;
        }
        self.server.failed(problem.to_string());
    }
}

impl Place {
    async fn read(&mut self, requester: &Requester) -> Result<Page, NoPage> {
        if let Some(url) = &self.url {
            return read(requester, url).await;
        }
        let (url, page) = find(requester, &self.target).await?;
        self.url = Some(url);
        Ok(page)
    }
}

/// One page out of those of several engines, whose address tells them apart.
fn merged(mut pages: Vec<(Page, &&str)>) -> Page {
    if pages.len() == 1
        && let Some((page, _)) = pages.pop()
    {
        return page;
    }
    let mut all = Page::default();
    for (page, url) in pages {
        let uri: Option<http::Uri> = url.parse().ok();
        let name = uri.and_then(|uri| uri.authority().map(ToString::to_string));
        all.absorb(page, &name.unwrap_or_default());
    }
    all
}

/// The version, where this engine is known to tell it.
pub async fn version(requester: &Requester, page: &str, engine: Option<&str>) -> Option<String> {
    let (path, member) = schema::of_engine(engine?)?.version?;
    let base: http::Uri = page.parse().ok()?;
    let url = format!("http://{}{path}", base.authority()?);
    let answer = requester.get(&url).await.ok()?;
    let version = answer.json()?.get(member)?.as_str()?.to_owned();
    Some(version[..version.floor_char_boundary(64)].to_owned())
}
