//! Flags of `spectap serve`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use http::HeaderName;
use strum::VariantArray;

use super::value::{parse_address, parse_duration, parse_switch};
use crate::proxy::UpstreamAddress;
use crate::record::EngineName;
use crate::stats::Facet;
use crate::tap::tag::{self, TagMember};
use crate::tap::{AskSglang, ExposeUsage};

/// More threads than any machine gains from.
const MOST_WORKERS: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Stand between clients and an engine, pass everything through, and keep the numbers.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// The engine behind the tap, host and port only; paths pass through as clients send them.
    #[arg(long, value_name = "URL", value_parser = UpstreamAddress::parse, env = "SPECTAP_UPSTREAM",
          required_unless_present_any = ["lane", "scrape"])]
    pub upstream: Option<UpstreamAddress>,

    /// Where clients connect. Loopback unless told.
    #[arg(
        long,
        value_name = "ADDRESS",
        value_parser = parse_address,
        default_value = "127.0.0.1:8090",
        env = "SPECTAP_LISTEN"
    )]
    pub listen: SocketAddr,

    /// One more listen address with its own upstream, for pods with one port per data-parallel rank; may repeat.
    #[arg(long, value_name = "ADDRESS=URL", value_parser = parse_lane, env = "SPECTAP_LANE", value_delimiter = ',')]
    pub lane: Vec<(SocketAddr, UpstreamAddress)>,

    /// Threads that serve clients: a number, or auto for one per core that the process may use. One carries thousands of
    /// streams.
    #[arg(long, value_name = "N|auto", value_parser = parse_workers, default_value = "1", env = "SPECTAP_WORKERS")]
    pub workers: NonZeroUsize,

    /// Where spectap's own endpoints are: /metrics, /livez, /readyz, /api/v1.
    #[arg(
        long,
        value_name = "ADDRESS",
        value_parser = parse_address,
        default_value = "127.0.0.1:8091",
        env = "SPECTAP_ADMIN_LISTEN"
    )]
    pub admin_listen: SocketAddr,

    /// The engine's kind. Without it, it is learned from what the engine sends.
    #[arg(long, value_enum, env = "SPECTAP_ENGINE")]
    pub engine: Option<Engine>,

    /// auto: add stream_options.include_usage to streamed requests that lack it, so that vLLM reports at all.
    /// off: change no byte. Can be switched while running by POST /api/v1/inject.
    #[arg(long, value_enum, default_value_t = Inject::Auto, env = "SPECTAP_INJECT")]
    pub inject: Inject,

    /// What clients that did not ask for usage get of it: nothing more than they would have had without spectap, or
    /// always the usage event.
    #[arg(long, value_enum, default_value_t = ExposeUsage::AsRequested, env = "SPECTAP_EXPOSE_USAGE")]
    pub expose_usage: ExposeUsage,

    /// Ask SGLang for its numbers (return_spec_tokens_details), and take them out again for clients that did not ask.
    /// auto: once the engine is known as SGLang. on: always. off: never.
    #[arg(
        long,
        value_enum,
        default_value_t = AskSglang::Auto,
        env = "SPECTAP_INJECT_SGLANG"
    )]
    pub inject_sglang: AskSglang,

    /// Ask SGLang on requests that are not streamed, too. Their replies are then held, up to 8 MiB, until they are
    /// whole.
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_INJECT_SGLANG_UNARY")]
    pub inject_sglang_unary: bool,

    /// Read usage.completion_tokens_details (accepted and rejected prediction tokens) as acceptance: TabbyAPI, GenieX and
    /// the smg gateway report there. Off by default, since OpenAI uses the same fields for Predicted Outputs.
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_USAGE_DETAILS")]
    pub usage_details: bool,

    /// Request header that labels a request, for grouping (report --by tag, the label tag). The default is taken off
    /// before the engine sees it; any other stays in place. Headers that hold secrets are refused.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = tag::parse_header,
        default_value = "x-spectap-tag",
        env = "SPECTAP_TAG_HEADER"
    )]
    pub tag_header: HeaderName,

    /// Member of the request's body that labels a request without that header: user, or metadata.NAME.
    #[arg(long, value_name = "MEMBER", value_parser = TagMember::parse, env = "SPECTAP_TAG_BODY")]
    pub tag_body: Option<TagMember>,

    /// Never send an inference request twice. Without it, one that meets a kept connection which the engine has just closed
    /// is sent once more on a new one, if no byte of an answer had come.
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_NO_REPLAY")]
    pub no_replay: bool,

    /// How long running exchanges may take to finish after SIGTERM or Ctrl-C; a second signal ends at once.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "25s", env = "SPECTAP_GRACE")]
    pub grace: Duration,

    /// How long new connections are still accepted after SIGTERM, while /readyz already says no.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "0s",
          env = "SPECTAP_DRAIN_DELAY")]
    pub drain_delay: Duration,

    /// What /readyz means: the engine accepts connections, or only that spectap itself serves.
    #[arg(long, value_enum, default_value_t = Ready::Upstream, env = "SPECTAP_READY")]
    pub ready: Ready,

    /// Most series of /metrics; label sets beyond count as other. At least 1000.
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = parse_series, env = "SPECTAP_MAX_SERIES")]
    pub max_series: usize,

    /// Facet that the acceptance counters of /metrics carry as a label of its name: context, prompt, cached, temperature,
    /// format, reasoning, stream or concurrency. It multiplies their series by its values, within --max-series.
    #[arg(long, value_name = "NAME", value_parser = parse_facet, env = "SPECTAP_METRIC_FACET")]
    pub metric_facet: Option<Facet>,

    /// File with a token that the admin port then asks for (Authorization: Bearer). Needed for more than /metrics and
    /// the probes when --admin-listen is not a loopback address.
    #[arg(long, value_name = "FILE", env = "SPECTAP_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,

    /// Ask for the token on /metrics as well. Needs --admin-token-file.
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_PROTECT_METRICS")]
    pub protect_metrics: bool,

    /// What the engine counts itself.
    #[command(flatten)]
    pub scrape: super::scrape::ScrapeArgs,

    /// The records file.
    #[command(flatten)]
    pub records: super::records::RecordsArgs,
}

/// The engine's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Engine {
    /// vLLM
    Vllm,
    /// TensorRT-LLM
    #[value(alias = "trtllm")]
    TensorrtLlm,
    /// SGLang
    Sglang,
    /// llama.cpp's server
    #[value(name = "llamacpp")]
    LlamaCpp,
    /// mlx-vlm
    MlxVlm,
    /// vllm-mlx
    VllmMlx,
    /// TokenSpeed
    #[value(name = "tokenspeed")]
    TokenSpeed,
    /// LM Studio
    #[value(name = "lmstudio")]
    LmStudio,
    /// Whoever reports in usage.completion_tokens_details: TabbyAPI, GenieX, the smg gateway
    UsageDetails,
}

impl From<Engine> for EngineName {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Vllm => EngineName::Vllm,
            Engine::TensorrtLlm => EngineName::TensorrtLlm,
            Engine::Sglang => EngineName::Sglang,
            Engine::LlamaCpp => EngineName::LlamaCpp,
            Engine::MlxVlm => EngineName::MlxVlm,
            Engine::VllmMlx => EngineName::VllmMlx,
            Engine::TokenSpeed => EngineName::TokenSpeed,
            Engine::LmStudio => EngineName::LmStudio,
            Engine::UsageDetails => EngineName::UsageDetails,
        }
    }
}

/// Whether requests may be altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Inject {
    /// Where the numbers need it.
    Auto,
    /// Never.
    Off,
}

/// What readiness means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ready {
    /// The engine accepts connections.
    Upstream,
    /// spectap itself serves.
    #[value(name = "self")]
    SelfOnly,
}

fn parse_workers(text: &str) -> Result<NonZeroUsize, String> {
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    match (text, text.parse::<NonZeroUsize>()) {
        ("auto", _) => Ok(cores().min(MOST_WORKERS)),
        (_, Ok(workers)) if workers <= MOST_WORKERS => Ok(workers),
        _ => Err(format!("write auto, or a number from 1 to {MOST_WORKERS}")),
    }
}

fn parse_facet(name: &str) -> Result<Facet, String> {
    let found = Facet::VARIANTS.iter().find(|facet| facet.as_str() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = Facet::VARIANTS.iter().map(|facet| facet.as_str()).collect();
        format!("write one of {}", names.join(", "))
    })
}

fn parse_series(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(series) if series >= 1000 => Ok(series),
        _ => Err("write a number of series, at least 1000".to_owned()),
    }
}

fn parse_lane(text: &str) -> Result<(SocketAddr, UpstreamAddress), String> {
    let (listen, upstream) = text
        .split_once('=')
        .ok_or("needs ADDRESS=URL, like 127.0.0.1:8092=http://127.0.0.1:8001")?;
    let listen =
        parse_address(listen).map_err(|error| format!("'{listen}' is no address; {error}"))?;
    let upstream =
        UpstreamAddress::parse(upstream).map_err(|error| format!("'{upstream}' {error}"))?;
    Ok((listen, upstream))
}
