//! How long each side may take. Only what no engine needs long for has a limit unless the user sets one: a prefill may
//! take minutes, and a limit on the whole would cut long streams.
//!
//! A limit that is off costs nothing. One on a body has a single timer, which is set anew when it fires, not at each
//! frame.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use prometheus::IntCounterVec;
use tokio::time::{Sleep, sleep_until};

use crate::counters::TapCounters;

/// The limits of one listener.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a client to send a request's head, from the end of the exchange before; it also closes idle clients.
    pub head: Duration,
    /// From the moment at which a request is sent to the head of its response.
    pub response_head: Option<Duration>,
    /// Between two reads of a response's body.
    pub idle: Option<Duration>,
    /// From the request's head to the last byte of the response.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            response_head: None,
            idle: None,
            total: None,
        }
    }
}

/// Which limit the server has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Late {
    #[error("sent no response within --response-head-timeout")]
    Head,
    #[error("sent nothing more within --idle-timeout")]
    Idle,
    #[error("was not done within --total-timeout")]
    Total,
}

impl Late {
    /// Value of the label `kind` and of the header on spectap's own errors.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Late::Head => "response-head-timeout",
            Late::Idle => "idle-timeout",
            Late::Total => "total-timeout",
        }
    }
}

/// Why an answer's body breaks off.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrokenOff {
    #[error(transparent)]
    Server(#[from] hyper::Error),
    #[error("the server {0}")]
    Late(#[from] Late),
}

/// Waits for `work` until `deadline`; `None` when it is not done by then.
pub(super) async fn within<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = T>,
) -> Option<T> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), work).await.ok(),
        None => Some(work.await),
    }
}

/// Watches one answer's body.
pub(super) struct Watch {
    idle: Option<Duration>,
    total: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
    errors: IntCounterVec,
}

impl Watch {
    /// A watch over the body of an exchange that began at `begun`; none where no limit is set on it.
    pub(super) fn new(
        timeouts: &Timeouts,
        begun: Instant,
        counters: &TapCounters,
    ) -> Option<Box<Self>> {
        let total = timeouts.total.map(|limit| begun + limit);
        let first = deadline(timeouts.idle, total, Instant::now())?;
        Some(Box::new(Self {
            idle: timeouts.idle,
            total,
            alarm: Box::pin(sleep_until(first.into())),
            errors: counters.upstream_errors.clone(),
        }))
    }

    /// Ready once the server is late, where it was last heard at `heard`. To be asked whenever there is nothing to read.
    pub(super) fn poll_late(&mut self, heard: Instant, context: &mut Context<'_>) -> Poll<Late> {
        loop {
            ready!(self.alarm.as_mut().poll(context));
            let next = deadline(self.idle, self.total, heard).unwrap_or(heard);
            let now = Instant::now();
            if next <= now {
                let late = match self.total {
                    Some(total) if total <= now => Late::Total,
                    _ => Late::Idle,
                };
                self.errors.with_label_values(&[late.kind()]).inc();
                return Poll::Ready(late);
            }
            self.alarm.as_mut().reset(next.into());
        }
    }
}

/// The earlier end of both limits.
fn deadline(idle: Option<Duration>, total: Option<Instant>, heard: Instant) -> Option<Instant> {
    let idle = idle.map(|limit| heard + limit);
    [idle, total].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_limit_counts() {
        let heard = Instant::now();
        let idle = Some(Duration::from_secs(2));
        let total = Some(heard + Duration::from_secs(1));
        assert_eq!(deadline(None, None, heard), None);
        assert_eq!(deadline(idle, total, heard), total);
        let later = heard + Duration::from_secs(9);
        assert_eq!(deadline(idle, total, later), total);
        assert_eq!(
            deadline(idle, None, later),
            Some(later + Duration::from_secs(2))
        );
    }
}
