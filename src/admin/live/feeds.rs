//! The feeds: one channel for each filter that somebody watches, and the task that keeps it going while they do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use super::channel::Channel;
use super::outbox::{Lost, Subscription};
use super::work::Work;
use crate::admin::answer::ApiError;
use crate::admin::router::AdminState;
use crate::export::Query;

/// Filters that are watched at once.
const MOST_CHANNELS: usize = 32;

/// Subscribers of all of them; below the connections that the admin port takes, so that probes and scrapes get through.
const MOST_SUBSCRIBERS: usize = 128;

/// Time between two looks at what is finished.
const PERIOD: Duration = Duration::from_millis(250);

/// Time between two lines about subscribers who do not keep up.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Everybody who watches. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Feeds(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    channels: Mutex<Vec<Arc<Channel>>>,
    trouble: Mutex<Trouble>,
}

/// What subscribers lost and was not told yet.
#[derive(Debug, Default)]
struct Trouble {
    lost: Lost,
    told_at: Option<Instant>,
}

impl Feeds {
    /// Joins the channel of a filter, and begins it where nobody watches it yet.
    pub(super) fn subscribe(
        self,
        query: Query,
        state: AdminState,
    ) -> Result<Subscription, ApiError> {
        let mut channels = self.channels();
        let subscribers: usize = channels.iter().map(|channel| channel.watched_by()).sum();
        if subscribers >= MOST_SUBSCRIBERS {
            return Err(ApiError::unavailable(
                "too_many_subscribers",
                format!("{MOST_SUBSCRIBERS} feeds are open already; close one"),
            ));
        }
        if let Some(channel) = channels.iter().find(|channel| channel.query == query) {
            return Ok(channel.join());
        }
        if channels.len() >= MOST_CHANNELS {
            return Err(ApiError::unavailable(
                "too_many_filters",
                format!("feeds with {MOST_CHANNELS} different filters are open already; close one"),
            ));
        }
        let channel = Arc::new(Channel::new(query));
        let subscription = channel.join();
        channels.push(Arc::clone(&channel));
        drop(channels);
        tokio::spawn(self.run(channel, state));
        Ok(subscription)
    }

    async fn run(self, channel: Arc<Channel>, state: AdminState) {
        let mut work = Work::new(Arc::clone(&channel), state.clone());
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if state.readiness.is_draining() {
                self.remove(&channel);
                channel.end("draining");
                return;
            }
            if !self.keep(&channel) {
                return;
            }
            if !work.is_due() {
                channel.beat();
                continue;
            }
            let mut job = tokio::task::spawn_blocking(move || {
                let lost = work.turn();
                (work, lost)
            });
            // Figures of very many exchanges take a while; whoever waits for them hears that the tap is there.
            let done = loop {
                tokio::select! {
                    done = &mut job => break done,
                    _ = ticks.tick() => {
                        if state.readiness.is_draining() {
                            self.remove(&channel);
                            channel.end("draining");
                            return;
                        }
                        channel.beat();
                    }
                }
            };
            match done {
                Ok((back, lost)) => {
                    work = back;
                    self.complain(lost);
                }
                Err(_) => {
                    self.remove(&channel);
                    channel.end("failed");
                    return;
                }
            }
        }
    }

    /// Whether somebody still watches; the channel is gone where nobody does. Nobody can join in between.
    fn keep(&self, channel: &Arc<Channel>) -> bool {
        let mut channels = self.channels();
        let is_watched = channel.watched_by() > 0;
        if !is_watched {
            channels.retain(|other| !Arc::ptr_eq(other, channel));
        }
        is_watched
    }

    fn remove(&self, channel: &Arc<Channel>) {
        self.channels().retain(|other| !Arc::ptr_eq(other, channel));
    }

    /// Tells in the log what was lost, at most once a minute.
    fn complain(&self, lost: Lost) {
        if lost == Lost::default() {
            return;
        }
        let mut trouble = self
            .0
            .trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        trouble.lost += lost;
        if trouble
            .told_at
            .is_some_and(|at| at.elapsed() < BETWEEN_LINES)
        {
            return;
        }
        trouble.told_at = Some(Instant::now());
        let Lost {
            messages,
            exchanges,
        } = std::mem::take(&mut trouble.lost);
        tracing::warn!(
            events = messages,
            requests = exchanges,
            "subscribers of /api/v1/stream do not keep up; what waited for them was dropped"
        );
    }

    fn channels(&self) -> MutexGuard<'_, Vec<Arc<Channel>>> {
        self.0
            .channels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
