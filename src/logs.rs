//! Logs: to standard error, quiet unless asked, as text or as one JSON object a line.
//!
//! Never a header value, a prompt or a completion: [`exchange`] is the only line that speaks of a request.

use std::fmt::Display;
use std::io::IsTerminal;

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::observation::Observation;

/// What is logged when nothing else is asked for.
pub const DEFAULT_FILTER: &str = "warn,spectap=info";

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why logging could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter can't be read.
    #[error(
        "invalid value '{filter}' for '--log': {reason}; write a level, or directives such as '{DEFAULT_FILTER}'"
    )]
    BadFilter {
        /// The filter as given.
        filter: String,
        /// What the parser says.
        reason: String,
    },
    /// This process already logs.
    #[error("logging was already started")]
    AlreadyStarted,
}

/// Starts logging to standard error for the whole process; `filter` as [`EnvFilter`] reads it.
///
/// # Errors
///
/// When the filter can't be read, or logging was started before.
pub fn start(format: LogFormat, filter: &str) -> Result<(), LogError> {
    // https://no-color.org: set and not empty turns colour off.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = std::io::stderr().is_terminal() && !no_color;
    subscriber(format, filter, colour, std::io::stderr)?
        .try_init()
        .map_err(|_| LogError::AlreadyStarted)
}

fn subscriber<W>(
    format: LogFormat,
    filter: &str,
    colour: bool,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, LogError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let bad_filter = |reason: &dyn Display| LogError::BadFilter {
        filter: filter.to_owned(),
        reason: reason.to_string(),
    };
    let filter = EnvFilter::try_new(filter).map_err(|reason| bad_filter(&reason))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colour)
        .with_writer(writer);
    Ok(match format {
        LogFormat::Text => Box::new(builder.finish()),
        LogFormat::Json => Box::new(builder.json().flatten_event(true).finish()),
    })
}

/// Writes the one line of an exchange, at debug.
pub fn exchange(observation: &Observation) {
    tracing::debug!(
        target: "spectap::exchange",
        id = observation.id,
        route = observation.route.as_str(),
        status = observation.status,
        outcome = observation.outcome.as_str(),
        acceptance = observation.acceptance.map(|acceptance| acceptance.as_str()),
        reason = observation.reason.map(|reason| reason.as_str()),
        model = observation.model.as_deref(),
        latency_ms = observation.timing.request_latency_ms,
        "exchange"
    );
}

#[cfg(test)]
mod tests;
/// A panic writes one line to the log, without a stack trace; the observer's are caught and counted.
pub fn panics_as_lines() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map(ToString::to_string)
            .unwrap_or_default();
        tracing::error!(place, "a part of spectap panicked");
    }));
}
