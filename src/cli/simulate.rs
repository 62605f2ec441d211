//! `spectap simulate`: the simulated engine alone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::value::parse_switch;
use crate::simulate::{self, Acceptance, EngineKind, Level, Log, Model, Settings};

/// Start a simulated inference server that speculates: no GPU, no model, the same bytes on the wire.
#[derive(Args, Clone, Debug)]
pub struct SimulateArgs {
    /// Which server to be
    #[arg(long, value_enum, env = "SPECTAP_SIMULATE_ENGINE", default_value_t = EngineName::Vllm)]
    pub engine: EngineName,

    /// Where to listen; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "SPECTAP_SIMULATE_LISTEN",
        default_value = "127.0.0.1:8000"
    )]
    pub listen: String,

    /// A model to serve, NAME or NAME=P1,P2,… with its own acceptance; repeat it, or separate by ';', for several models
    #[arg(
        long = "model",
        value_name = "NAME[=LIST]",
        env = "SPECTAP_SIMULATE_MODEL",
        value_delimiter = ';',
        default_value = "demo-model"
    )]
    pub models: Vec<String>,

    /// How likely the draft at each position is kept, given that all before it were; as many numbers as drafts per
    /// step (k). "none" switches speculation off. A request may bring its own as "simulate_acceptance":[…], as many
    /// numbers as its model has
    #[arg(
        long,
        value_name = "LIST",
        env = "SPECTAP_SIMULATE_ACCEPTANCE",
        default_value = "0.8,0.7,0.6,0.5"
    )]
    pub acceptance: String,

    /// Seed: the same seed and the same order of requests give the same responses
    #[arg(
        long,
        value_name = "NUMBER",
        env = "SPECTAP_SIMULATE_SEED",
        default_value_t = 0
    )]
    pub seed: u64,

    /// Milliseconds from a request to its first token
    #[arg(
        long,
        value_name = "MS",
        env = "SPECTAP_SIMULATE_PREFILL_TIME",
        default_value_t = 30.0
    )]
    pub prefill_time: f64,

    /// Milliseconds per verify step; 0 is as fast as possible
    #[arg(
        long,
        value_name = "MS",
        env = "SPECTAP_SIMULATE_STEP_TIME",
        default_value_t = 12.0
    )]
    pub step_time: f64,

    /// What a response tells of speculation, as vLLM's --per-request-spec-decode-metrics
    #[arg(long, value_enum, env = "SPECTAP_SIMULATE_LEVEL", default_value_t = LevelName::Summary)]
    pub level: LevelName,

    /// The system_fingerprint of vllm and llamacpp, if not the simulated version's own; "none" leaves vLLM's out, as
    /// --fingerprint-mode none does
    #[arg(long, value_name = "TEXT", env = "SPECTAP_SIMULATE_FINGERPRINT")]
    pub fingerprint: Option<String>,

    /// Send usage on every stream, asked for or not: vLLM's --enable-force-include-usage (then on every event), SGLang's
    /// --stream-response-default-include-usage
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_SIMULATE_FORCE_INCLUDE_USAGE")]
    pub force_include_usage: bool,

    /// Ask for this key on the routes that generate, as "Authorization: Bearer KEY"
    #[arg(
        long,
        value_name = "KEY",
        env = "SPECTAP_SIMULATE_API_KEY",
        hide_env_values = true
    )]
    pub api_key: Option<String>,

    /// Send an X-Request-Id header with every response (vLLM's --enable-request-id-headers)
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_SIMULATE_REQUEST_ID_HEADERS")]
    pub request_id_headers: bool,

    /// Seconds after which an idle stream gets a comment: vLLM's --sse-keep-alive-interval (0 is never, which is its
    /// default), llama.cpp's --sse-ping-interval (default 30)
    #[arg(
        long,
        value_name = "SECONDS",
        env = "SPECTAP_SIMULATE_SSE_KEEP_ALIVE_INTERVAL"
    )]
    pub sse_keep_alive_interval: Option<f64>,

    /// Tell times beside the acceptance numbers (vLLM's --enable-per-request-metrics)
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_SIMULATE_PER_REQUEST_METRICS")]
    pub per_request_metrics: bool,

    /// Tell cached prompt tokens in usage (vLLM's --enable-prompt-tokens-details)
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_SIMULATE_PROMPT_TOKENS_DETAILS")]
    pub prompt_tokens_details: bool,

    /// Let the number of drafts per step move: trtllm does not tell k then, sglang tells the drafts of full steps
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_SIMULATE_ADAPTIVE")]
    pub adaptive: bool,

    /// Write one JSON line per request to this file: the truth that measurements can be compared with
    #[arg(long, value_name = "FILE", env = "SPECTAP_SIMULATE_SENT")]
    pub sent: Option<PathBuf>,
}

/// The servers that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// vLLM 0.32.0
    Vllm,
    /// TensorRT-LLM with per-request speculation numbers
    #[value(alias = "tensorrt_llm")]
    Trtllm,
    /// SGLang 0.5.23
    Sglang,
    /// llama.cpp's server, build 11434
    #[value(alias = "llama.cpp")]
    Llamacpp,
}

/// How much a response tells of speculation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelName {
    /// Nothing
    None,
    /// Counts and histogram
    Summary,
    /// Also the numbers of every step
    Detailed,
}

/// In seconds.
const MILLISECOND: f64 = 0.001;

/// Why a simulated engine can't start.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// A flag has a value that can't be used.
    #[error("--{flag} '{value}' can't be used: {wanted}")]
    Flag {
        /// The flag, without its dashes.
        flag: &'static str,
        /// What was given.
        value: String,
        /// What would be right.
        wanted: String,
    },
    /// The address can't be listened on.
    #[error(
        "--listen '{address}' can't be listened on: {source}; choose a free port, or 0 for any"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The log file can't be written.
    #[error("--sent '{}' can't be written: {source}", path.display())]
    LogFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

impl SimulateArgs {
    /// Checks all flags; returns where to listen and what the engine is told.
    pub fn check(&self) -> Result<(SocketAddr, Settings), SimulateError> {
        let listen = self.listen.parse().map_err(|_| {
            wrong(
                "listen",
                &self.listen,
                "it must be an IP address and a port, such as 127.0.0.1:8000",
            )
        })?;
        let shared = Acceptance::parse(&self.acceptance)
            .map_err(|error| wrong("acceptance", &self.acceptance, error.to_string()))?;
        let models = self
            .models
            .iter()
            .map(|text| model(text, &shared))
            .collect::<Result<Vec<_>, _>>()?;
        for (index, model) in models.iter().enumerate() {
            if models[..index].iter().any(|other| other.name == model.name) {
                return Err(wrong("model", &model.name, "each name may be given once"));
            }
        }
        let engine = match self.engine {
            EngineName::Vllm => EngineKind::Vllm,
            EngineName::Trtllm => EngineKind::TensorrtLlm,
            EngineName::Sglang => EngineKind::Sglang,
            EngineName::Llamacpp => EngineKind::LlamaCpp,
        };
        if self.adaptive && engine == EngineKind::Vllm {
            return Err(wrong(
                "adaptive",
                "true",
                "vLLM's draft length does not move; take --engine trtllm, sglang or llamacpp",
            ));
        }
        let keep_alive = match self.sse_keep_alive_interval {
            Some(seconds) => Some(duration("sse-keep-alive-interval", seconds, 1.0, 3_600.0)?),
            None => None,
        };
        let settings = Settings::new(engine, models);
        let fingerprint = match self.fingerprint.as_deref() {
            Some("none") => None,
            Some(given) => Some(given.to_owned()),
            None => settings.fingerprint.clone(),
        };
        let settings = Settings {
            seed: self.seed,
            prefill_time: duration("prefill-time", self.prefill_time, MILLISECOND, 600_000.0)?,
            step_time: duration("step-time", self.step_time, MILLISECOND, 60_000.0)?,
            level: match self.level {
                LevelName::None => Level::None,
                LevelName::Summary => Level::Summary,
                LevelName::Detailed => Level::Detailed,
            },
            fingerprint,
            force_include_usage: self.force_include_usage,
            api_key: self.api_key.clone(),
            request_id_headers: self.request_id_headers,
            sse_keep_alive_interval: keep_alive,
            per_request_metrics: self.per_request_metrics,
            prompt_tokens_details: self.prompt_tokens_details,
            adaptive: self.adaptive,
            log_file: self.sent.clone(),
            ..settings
        };
        Ok((listen, settings))
    }
}

fn wrong(flag: &'static str, value: &str, wanted: impl Into<String>) -> SimulateError {
    SimulateError::Flag {
        flag,
        value: value.to_owned(),
        wanted: wanted.into(),
    }
}

fn model(text: &str, shared: &Acceptance) -> Result<Model, SimulateError> {
    let (name, acceptance) = match text.split_once('=') {
        Some((name, list)) => (
            name,
            Acceptance::parse(list).map_err(|error| wrong("model", text, error.to_string()))?,
        ),
        None => (text, shared.clone()),
    };
    if name.trim().is_empty() {
        return Err(wrong("model", text, "it must be NAME or NAME=0.8,0.7,…"));
    }
    Ok(Model::new(name.trim(), acceptance))
}

/// `value` times `unit` seconds; from 0 to `most`, as the flag counts.
fn duration(
    flag: &'static str,
    value: f64,
    unit: f64,
    most: f64,
) -> Result<Duration, SimulateError> {
    if (0.0..=most).contains(&value) {
        Ok(Duration::from_secs_f64(value * unit))
    } else {
        Err(wrong(
            flag,
            &value.to_string(),
            format!("it must be a number from 0 to {most}"),
        ))
    }
}

/// Runs the simulated engine until Ctrl-C.
pub async fn run(args: SimulateArgs) -> Result<(), SimulateError> {
    let (address, settings) = args.check()?;
    let log = match &settings.log_file {
        Some(path) => Log::with_file(path).map_err(|source| SimulateError::LogFile {
            path: path.clone(),
            source,
        })?,
        None => Log::new(),
    };
    let refused = |source| SimulateError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    eprintln!(
        "simulated {} on http://{bound} (Ctrl-C stops)",
        settings.engine.name()
    );
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        // Without a signal handler Ctrl-C ends the process by itself, which is as good.
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    simulate::run(listener, settings, log, shutdown).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SimulateArgs,
    }

    fn check(flags: &[&str]) -> Result<(SocketAddr, Settings), SimulateError> {
        Line::try_parse_from([&["simulate"], flags].concat())
            .unwrap()
            .args
            .check()
    }

    #[test]
    fn without_flags_it_is_a_vllm_on_port_8000() {
        let (listen, settings) = check(&[]).unwrap();
        assert_eq!(listen.to_string(), "127.0.0.1:8000");
        assert_eq!(settings.engine, EngineKind::Vllm);
        assert_eq!(settings.models[0].acceptance.k(), 4);
        assert_eq!(settings.step_time, Duration::from_millis(12));
        assert_eq!(settings.sse_keep_alive_interval, None);
    }

    #[test]
    fn each_engine_has_its_names_and_its_own_fingerprint() {
        let cases = [
            ("vllm", EngineKind::Vllm, true),
            ("trtllm", EngineKind::TensorrtLlm, false),
            ("tensorrt_llm", EngineKind::TensorrtLlm, false),
            ("sglang", EngineKind::Sglang, false),
            ("llamacpp", EngineKind::LlamaCpp, true),
        ];
        for (name, engine, has_fingerprint) in cases {
            let (_, settings) = check(&["--engine", name]).unwrap();
            assert_eq!(settings.engine, engine);
            assert_eq!(settings.fingerprint.is_some(), has_fingerprint, "{name}");
        }
        let (_, settings) = check(&["--fingerprint", "none"]).unwrap();
        assert_eq!(settings.fingerprint, None);
        let (_, settings) = check(&["--engine", "sglang", "--adaptive"]).unwrap();
        assert!(settings.adaptive);
    }

    #[test]
    fn each_model_may_have_its_own_acceptance() {
        let (_, settings) = check(&[
            "--model",
            "a",
            "--model",
            "b=0.9,0.8",
            "--acceptance",
            "0.5",
        ])
        .unwrap();
        let widths: Vec<_> = settings
            .models
            .iter()
            .map(|m| (m.name.as_str(), m.acceptance.k()))
            .collect();
        assert_eq!(widths, [("a", 1), ("b", 2)]);
    }

    #[tokio::test]
    async fn a_port_in_use_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let args = Line::try_parse_from(["simulate", "--listen", &address])
            .unwrap()
            .args;
        let error = run(args).await.unwrap_err().to_string();
        assert!(
            error.contains(&address) && error.contains("choose a free port"),
            "{error}"
        );
    }

    #[test]
    fn a_wrong_value_is_refused_with_flag_value_and_what_would_be_right() {
        let cases: [(&[&str], [&str; 3]); 7] = [
            (
                &["--listen", "8000"],
                ["--listen", "'8000'", "127.0.0.1:8000"],
            ),
            (
                &["--acceptance", "0.8,2"],
                ["--acceptance", "'0.8,2'", "from 0 to 1"],
            ),
            (&["--model", "m=x"], ["--model", "'m=x'", "from 0 to 1"]),
            (&["--model", "=0.5"], ["--model", "'=0.5'", "NAME"]),
            (
                &["--model", "m", "--model", "m=0.5"],
                ["--model", "'m'", "once"],
            ),
            (&["--step-time=-1"], ["--step-time", "'-1'", "from 0"]),
            (&["--adaptive"], ["--adaptive", "'true'", "trtllm"]),
        ];
        for (flags, wanted) in cases {
            let error = check(flags).unwrap_err().to_string();
            assert!(wanted.iter().all(|part| error.contains(part)), "{error}");
        }
    }
}
