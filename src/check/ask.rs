//! Asks the engine: first what it says of itself, then, once that is allowed, three short requests.

use std::time::SystemTime;

use bytes::Bytes;
use http::header::DATE;
use serde_json::{Value, json};

use super::facts::{Facts, PageFact};
use super::reply;
use crate::cli::check::CheckArgs;
use crate::scrape::{Fetched, NoPage, Page, Problem, Requester, Target, find, identify, version};

/// Tokens asked for: enough for a drafter to get going.
const MOST_TOKENS: u64 = 32;

/// Repeats itself, so that an n-gram drafter has something to match as well.
const PROMPT: &str = "Repeat this line four times: one two three four five six seven eight. \
                      one two three four five six seven eight. one two three four five six seven eight.";

/// Who is asked.
pub(super) struct Engine<'a> {
    args: &'a CheckArgs,
    base: String,
    requester: Requester,
}

impl<'a> Engine<'a> {
    pub(super) fn new(args: &'a CheckArgs, key: Option<String>) -> Self {
        Self {
            args,
            base: format!("http://{}", args.upstream),
            requester: Requester::new(args.timeout).with_token(key),
        }
    }

    /// What it says of itself; costs nothing.
    pub(super) async fn look(&self) -> Facts {
        let mut facts = Facts::default();
        let identity = match identify(&self.requester, &self.base).await {
            Ok(identity) => identity,
            Err(problem) => {
                facts.unreachable = Some(problem.to_string());
                return facts;
            }
        };
        facts.wants_key = matches!(identity.status, 401 | 403);
        let wanted = self.args.model.clone();
        facts.model = wanted.or_else(|| identity.models.first().cloned());
        facts.models = identity.models.clone();
        facts.engine = engine_name(identity.owned_by.as_deref());
        if facts.engine.is_none() && identity.owned_by.as_deref() == Some("nvidia") {
            facts.behind_dynamo = true;
        }
        let found = self.page().await;
        self.read_page(&mut facts, &found);
        self.read_settings(&mut facts).await;
        facts
    }

    async fn page(&self) -> Result<(String, Page), NoPage> {
        find(&self.requester, &Target::Engine(self.base.clone())).await
    }

    fn read_page(&self, facts: &mut Facts, found: &Result<(String, Page), NoPage>) {
        let (url, page) = match found {
            Ok(found) => found,
            Err(problem) => {
                facts.page = PageFact::None(problem.to_string());
                return;
            }
        };
        facts.page_url = Some(url.clone());
        facts.behind_dynamo |= page.behind_dynamo;
        facts.others_running = page.running;
        facts.engine = facts.engine.take().or(page.engine().map(str::to_owned));
        // A gauge of SGLang is there without speculation too, and 0 then.
        let shows = page.gauges.iter().any(|gauge| gauge.value > 0.0);
        facts.page = if page.speculates() || shows {
            PageFact::Speculates
        } else if page.speaks() {
            PageFact::Silent
        } else {
            PageFact::Unknown
        };
    }

    async fn read_settings(&self, facts: &mut Facts) {
        let engine = facts.engine.clone();
        facts.version = version(&self.requester, &self.base, engine.as_deref()).await;
        let at_hand = self
            .requester
            .get(&format!("{}/v1/models", self.base))
            .await;
        facts.clock_offset = at_hand.ok().as_ref().and_then(clock_offset);
        // llama.cpp's /props says that speculation is off whatever is: not asked.
        if engine.as_deref() == Some("sglang")
            && let Ok(answer) = self
                .requester
                .get(&format!("{}/server_info", self.base))
                .await
            && let Some(settings) = answer.json()
            && let Some(algorithm) = settings.get("speculative_algorithm")
        {
            facts.configured = Some(!algorithm.is_null());
        }
    }

    /// The three requests.
    pub(super) async fn send(&self, facts: &mut Facts) {
        let before = self.page().await;
        let is_sglang = facts.engine.as_deref() == Some("sglang");
        let mut asked = json!({
            "model": facts.model, "messages": [{"role": "user", "content": PROMPT}],
            "max_tokens": MOST_TOKENS, "temperature": 0,
        });
        let mut plain = asked.clone();
        plain["stream"] = json!(true);
        if is_sglang {
            asked["return_spec_tokens_details"] = json!(true);
        }
        facts.unary = reply::fact(self.chat(&asked).await);
        asked["stream"] = json!(true);
        // llama.cpp shows its counters without, and moves them with it: spectap does not ask there.
        if facts.engine.as_deref() != Some("llamacpp") {
            asked["stream_options"] = json!({"include_usage": true});
        }
        facts.stream = reply::fact(self.chat(&asked).await);
        facts.plain = reply::fact(self.chat(&plain).await);
        if facts.unary.status == Some(401) || facts.unary.status == Some(403) {
            facts.wants_key = true;
        }
        if let (Ok((_, before)), Ok((_, after))) = (before, self.page().await) {
            facts.moved = Some(after.sum().since(&before.sum()));
        }
    }

    async fn chat(&self, body: &Value) -> Result<Fetched, Problem> {
        let url = format!("{}/v1/chat/completions", self.base);
        self.requester
            .post(&url, Bytes::from(body.to_string()))
            .await
    }
}

fn engine_name(owned_by: Option<&str>) -> Option<String> {
    let known = ["vllm", "tensorrt_llm", "sglang", "llamacpp"];
    let owned_by = owned_by?;
    known.contains(&owned_by).then(|| owned_by.to_owned())
}

fn clock_offset(answer: &Fetched) -> Option<i64> {
    let date = answer.headers.get(DATE)?.to_str().ok()?;
    let theirs = httpdate::parse_http_date(date).ok()?;
    let ours = SystemTime::now();
    let seconds = |later: SystemTime, earlier| {
        let gap = later.duration_since(earlier).ok()?;
        i64::try_from(gap.as_secs()).ok()
    };
    seconds(theirs, ours).or_else(|| seconds(ours, theirs).map(|gap| -gap))
}
