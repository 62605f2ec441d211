//! Where the page is. An engine is asked for its models first: one that says it is TensorRT-LLM is never asked for
//! `/metrics`, whose list of iterations is emptied by reading.

use http::Uri;

use super::fetch::{Fetched, Problem, Requester};
use super::page::Page;

/// Where TensorRT-LLM's series are.
const OF_TENSORRT_LLM: &str = "/prometheus/metrics";

/// Where everybody else's are.
const USUAL: &str = "/metrics";

/// What is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The page of the engine at this base address, wherever it is.
    Engine(String),
    /// This page.
    Page(String),
}

impl Target {
    /// Reads `http://HOST:PORT`, with or without the path of a page.
    ///
    /// # Errors
    ///
    /// A sentence that says what would be right.
    pub fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|_| wanted())?;
        let authority = uri.authority().ok_or_else(wanted)?;
        // A password would stand in every summary.
        if uri.scheme_str() != Some("http") || authority.as_str().contains('@') {
            return Err(wanted());
        }
        // A port that is none would be read as 80.
        if authority.port_u16().is_none() && authority.as_str() != authority.host() {
            return Err(wanted());
        }
        Ok(match uri.path() {
            "/" | "" if uri.query().is_none() => Target::Engine(url.trim_end_matches('/').into()),
            _ => Target::Page(url.to_owned()),
        })
    }
}

fn wanted() -> String {
    "write the address of the engine or of its metrics page, like http://127.0.0.1:8000/metrics; only http:// is read"
        .to_owned()
}

/// What an engine says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `owned_by` of its first model.
    pub owned_by: Option<String>,
    /// Its models.
    pub models: Vec<String>,
    /// The status of `/v1/models`.
    pub status: u16,
}

impl Identity {
    /// Whether it is TensorRT-LLM.
    pub fn is_tensorrt_llm(&self) -> bool {
        self.owned_by.as_deref() == Some("tensorrt_llm")
    }
}

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPage {
    /// Nobody answers; perhaps later.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// An answer that is no metrics page.
    #[error("{url} is no metrics page: {why}")]
    NotOne {
        /// Where.
        url: String,
        /// What it is instead.
        why: String,
    },
}

/// Asks an engine for its models.
///
/// # Errors
///
/// When it does not answer.
pub async fn identify(requester: &Requester, base: &str) -> Result<Identity, Problem> {
    let answer = requester.get(&format!("{base}/v1/models")).await?;
    let list = answer.json().unwrap_or_default();
    let models: Vec<&serde_json::Value> = list["data"].as_array().into_iter().flatten().collect();
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    Ok(Identity {
        owned_by: models.first().and_then(|model| text(&model["owned_by"])),
        models: models
            .iter()
            .filter_map(|model| text(&model["id"]))
            .collect(),
        status: answer.status,
    })
}

/// Finds the page and reads it.
///
/// # Errors
///
/// When there is none, or nobody answers.
pub async fn find(requester: &Requester, target: &Target) -> Result<(String, Page), NoPage> {
    let base = match target {
        Target::Page(url) => return Ok((url.clone(), read(requester, url).await?)),
        Target::Engine(base) => base,
    };
    let identity = identify(requester, base).await?;
    // Who does not say what it is may be a TensorRT-LLM too: its own page first.
    let paths: &[&str] = match &identity.owned_by {
        Some(_) if identity.is_tensorrt_llm() => &[OF_TENSORRT_LLM],
        Some(_) => &[USUAL],
        None => &[OF_TENSORRT_LLM, USUAL],
    };
    let mut found = Err(NoPage::NotOne {
        url: base.clone(),
        why: "nothing was found".to_owned(),
    });
    for path in paths {
        let url = format!("{base}{path}");
        found = read(requester, &url).await.map(|page| (url, page));
        if found.is_ok() {
            break;
        }
    }
    found
}

/// Reads a page.
///
/// # Errors
///
/// When it is none, or nobody answers.
pub(super) async fn read(requester: &Requester, url: &str) -> Result<Page, NoPage> {
    let answer = requester.get(url).await?;
    let not_one = |why: String| NoPage::NotOne {
        url: url.to_owned(),
        why,
    };
    if answer.status != 200 {
        return Err(not_one(format!("it answers with status {}", answer.status)));
    }
    page_of(&answer).map_err(not_one)
}

fn page_of(answer: &Fetched) -> Result<Page, String> {
    if answer.is_json() {
        return Err(format!(
            "it is JSON; TensorRT-LLM has its series at {OF_TENSORRT_LLM} (return_perf_metrics: true)"
        ));
    }
    let page = Page::read(&answer.body);
    if page.samples == 0 && !answer.body.trim_ascii().is_empty() {
        return Err("it holds no samples in Prometheus' text format".to_owned());
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_alone_is_an_engine_and_one_with_a_path_a_page() {
        let engine = Ok(Target::Engine("http://h:1".to_owned()));
        assert_eq!(Target::parse("http://h:1"), engine);
        assert_eq!(Target::parse("http://h:1/"), engine);
        let page = Ok(Target::Page("http://h/metrics".to_owned()));
        assert_eq!(Target::parse("http://h/metrics"), page);
        for wrong in [
            "h:1",
            "https://h/metrics",
            "http://u:p@h/metrics",
            "/metrics",
            "",
        ] {
            let said = Target::parse(wrong).unwrap_err();
            assert!(
                said.contains("http://127.0.0.1:8000/metrics"),
                "{wrong}: {said}"
            );
        }
    }
}
