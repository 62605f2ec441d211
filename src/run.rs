//! Runs a parsed command to its end.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::serve::ServeArgs;
use crate::cli::{self, Cli, Command};
use crate::config::Config;
use crate::control::Drained;
use crate::error::{CUT, Error};
use crate::proxy::Stopped;
use crate::serve::Instance;
use crate::verify::Verdict;
use crate::{check, compare, control, demo, logs, report, top, verify};

/// Runs the command.
///
/// # Errors
///
/// What ended it early.
pub fn run(cli: Cli) -> Result<ExitCode, Error> {
    logs::start(cli.log_format, &cli.log)?;
    logs::panics_as_lines();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if matches!(cli.command, Command::Serve(_)) {
        // Clients have threads of their own; these answer the admin port, and a probe even while a summary is made.
        runtime.worker_threads(2);
    }
    let runtime = runtime.enable_all().build()?;
    runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => serve(&args).await,
            Command::Demo(args) => Ok(demo::run(&args, stop_signals()?.0, &mut std::io::stdout())
                .await
                .map(|_| ExitCode::SUCCESS)?),
            Command::Report(args) => match report::run(&args, &mut std::io::stdout()).await {
                Err(error) if !error.is_closed_pipe() => Err(error.into()),
                _ => Ok(ExitCode::SUCCESS),
            },
            Command::Check(args) => Ok(check::run(&args, &mut std::io::stdout()).await?),
            Command::Compare(args) => match compare::run(&args, &mut std::io::stdout()).await {
                Err(error) if !error.is_closed_pipe() => Err(error.into()),
                _ => Ok(ExitCode::SUCCESS),
            },
            Command::Top(args) => {
                Ok(top::run(&args, stop_signals()?.0, &mut std::io::stdout()).await?)
                    .map(|()| ExitCode::SUCCESS)
            }
            Command::Healthcheck(args) => Ok(control::healthcheck(&args)
                .await
                .map(|()| ExitCode::SUCCESS)?),
            Command::Drain(args) => Ok(match control::drain(&args).await? {
                Drained::Cut => CUT.into(),
                Drained::Begun | Drained::Whole => ExitCode::SUCCESS,
            }),
            // It talks to raw sockets, one after the other: nothing else wants this thread.
            Command::Verify(args) => Ok(match verify::run(&args, &mut std::io::stdout())? {
                Verdict::Same => ExitCode::SUCCESS,
                Verdict::Different => ExitCode::FAILURE,
            }),
            Command::Simulate(args) => {
                Ok(cli::simulate::run(args).await.map(|()| ExitCode::SUCCESS)?)
            }
        }
    })
}

async fn serve(args: &ServeArgs) -> Result<ExitCode, Error> {
    let config = Config::check(args)?;
    raise_file_limit();
    let (stop, second) = stop_signals()?;
    let upstreams: Vec<String> = config
        .lanes
        .iter()
        .map(|(_, upstream)| upstream.address().url())
        .collect();
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let is_open =
        config.admin_listen.ip().to_canonical().is_loopback() || config.admin_token.is_some();
    let instance = Instance::start(config).await?;
    for (address, upstream) in instance.addresses().iter().zip(upstreams) {
        tracing::info!("{scheme}://{address} passes to {upstream}");
    }
    tracing::info!("numbers on http://{}", instance.admin_address());
    if !is_open {
        tracing::info!(
            "only /metrics, /livez and /readyz answer there: the address is not loopback and no --admin-token-file is given"
        );
    }
    let asked = instance.drain_asked();
    tokio::select! {
        () = stop.cancelled() => {}
        () = asked.cancelled() => tracing::info!("the drain was asked for over the admin port"),
    }
    instance.start_draining();
    // Said when it is true: whoever reads the line may probe or signal at once.
    tracing::info!("stopping; running exchanges may finish, a second signal ends at once");
    let cut = instance.cut();
    tokio::spawn(async move {
        second.cancelled().await;
        cut.cancel();
    });
    Ok(match instance.stop().await {
        Stopped::Drained => ExitCode::SUCCESS,
        Stopped::Cut => {
            tracing::warn!("streams were cut");
            CUT.into()
        }
    })
}

/// Fire at the first and at the second SIGTERM or Ctrl-C. A drain that was asked for otherwise takes none of the two: the
/// SIGTERM that Kubernetes sends after a preStop hook must not cut what is still draining.
fn stop_signals() -> Result<(CancellationToken, CancellationToken), std::io::Error> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let tokens = (CancellationToken::new(), CancellationToken::new());
    let (first, second) = tokens.clone();
    tokio::spawn(async move {
        for token in [first, second] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            token.cancel();
        }
    });
    Ok(tokens)
}

/// Each stream needs two file descriptors; the soft limit of most systems allows 500 streams only.
fn raise_file_limit() {
    let before = rlimit::Resource::NOFILE.get_soft().unwrap_or_default();
    match rlimit::increase_nofile_limit(rlimit::INFINITY) {
        Ok(limit) if limit > before => {
            tracing::info!("up to {limit} open files, raised from {before}");
        }
        Ok(limit) => tracing::debug!(limit, "open files"),
        Err(error) => tracing::warn!(%error, "can not raise the limit of file descriptors"),
    }
}
