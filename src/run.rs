//! Runs a parsed command to its end.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::serve::ServeArgs;
use crate::cli::{self, Cli, Command};
use crate::config::Config;
use crate::error::{CUT, Error};
use crate::proxy::Stopped;
use crate::serve::Instance;
use crate::{check, compare, demo, logs, report};

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
            Command::Demo(args) => Ok(demo::run(&args, stop_signal()?, &mut std::io::stdout())
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
            Command::Simulate(args) => {
                Ok(cli::simulate::run(args).await.map(|()| ExitCode::SUCCESS)?)
            }
        }
    })
}

async fn serve(args: &ServeArgs) -> Result<ExitCode, Error> {
    let config = Config::check(args)?;
    raise_file_limit();
    let stop = stop_signal()?;
    let upstreams: Vec<String> = config
        .lanes
        .iter()
        .map(|(_, upstream)| format!("http://{upstream}"))
        .collect();
    let is_open =
        config.admin_listen.ip().to_canonical().is_loopback() || config.admin_token.is_some();
    let instance = Instance::start(config).await?;
    for (address, upstream) in instance.addresses().iter().zip(upstreams) {
        tracing::info!("http://{address} passes to {upstream}");
    }
    tracing::info!("numbers on http://{}", instance.admin_address());
    if !is_open {
        tracing::info!(
            "only /metrics, /livez and /readyz answer there: the address is not loopback and no --admin-token-file is given"
        );
    }
    stop.cancelled().await;
    let second = stop_signal()?;
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

/// Fires at the next SIGTERM or Ctrl-C.
fn stop_signal() -> Result<CancellationToken, std::io::Error> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let token = CancellationToken::new();
    let fire = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        fire.cancel();
    });
    Ok(token)
}

/// Each stream needs two file descriptors; the soft limit of most systems allows 500 streams only.
fn raise_file_limit() {
    match rlimit::increase_nofile_limit(rlimit::INFINITY) {
        Ok(limit) => tracing::debug!(limit, "file descriptors"),
        Err(error) => tracing::warn!(%error, "can not raise the limit of file descriptors"),
    }
}
