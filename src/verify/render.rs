//! The result, for people and for tools.

use std::fmt::Write;

use serde_json::{Value, json};

use super::difference::{Design, Difference};
use super::round::Compared;
use super::{Verdict, VerifyArgs, VerifyError};

/// One kind of difference, and where it was found.
struct Kind {
    name: &'static str,
    by_design: Option<&'static Design>,
    /// What it was, the first time.
    detail: String,
    requests: Vec<&'static str>,
}

/// All that was found.
pub(super) struct Findings {
    upstream: String,
    through: String,
    model: String,
    requests: usize,
    kinds: Vec<Kind>,
    /// Requests whose bodies the engine does not repeat.
    not_repeated: Vec<&'static str>,
    /// Statuses of the requests that generate.
    generated: Vec<Option<u16>>,
}

impl Findings {
    pub(super) fn new(args: &VerifyArgs, model: String) -> Self {
        Self {
            upstream: args.upstream.clone(),
            through: args.through.clone(),
            model,
            requests: 0,
            kinds: Vec::new(),
            not_repeated: Vec::new(),
            generated: Vec::new(),
        }
    }

    /// Takes what was found of one request.
    pub(super) fn take(&mut self, request: &'static str, compared: Compared) {
        self.requests += 1;
        if compared.is_not_repeated {
            self.not_repeated.push(request);
        }
        if compared.generates {
            self.generated.push(compared.status);
        }
        for difference in compared.differences {
            self.add(request, difference);
        }
    }

    fn add(&mut self, request: &'static str, difference: Difference) {
        let known = self
            .kinds
            .iter_mut()
            .find(|kind| kind.name == difference.name);
        match known {
            Some(kind) => {
                if kind.requests.last() != Some(&request) {
                    kind.requests.push(request);
                }
            }
            None => self.kinds.push(Kind {
                name: difference.name,
                by_design: difference.by_design,
                detail: difference.detail,
                requests: vec![request],
            }),
        }
    }

    /// Whether anything differs that should not.
    ///
    /// # Errors
    ///
    /// When the engine generated nothing: then nothing was said about streams.
    pub(super) fn verdict(&self) -> Result<Verdict, VerifyError> {
        if self.kinds.iter().any(|kind| kind.by_design.is_none()) {
            return Ok(Verdict::Different);
        }
        let succeeded = |status: &Option<u16>| status.is_some_and(|it| (200..300).contains(&it));
        match self.generated.first() {
            Some(first) if !self.generated.iter().any(succeeded) => {
                Err(VerifyError::NothingGenerated {
                    model: self.model.clone(),
                    status: first.map_or_else(|| "nothing".to_owned(), |it| it.to_string()),
                })
            }
            _ => Ok(Verdict::Same),
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{} requests, direct to {} and through {}, model {}\n",
            self.requests, self.upstream, self.through, self.model
        );
        for (title, is_design) in [("By design", true), ("By accident", false)] {
            let mut kinds = self
                .kinds
                .iter()
                .filter(|kind| kind.by_design.is_some() == is_design)
                .peekable();
            if kinds.peek().is_none() && is_design {
                continue;
            }
            let none = if kinds.peek().is_none() {
                " nothing"
            } else {
                ""
            };
            // Writing to a text can't fail.
            let _ = writeln!(text, "\n{title}:{none}");
            for kind in kinds {
                let _ = writeln!(text, "  {}", kind.name);
                if let Some(design) = kind.by_design {
                    let _ = writeln!(text, "    {} ({})", design.what, design.docs);
                }
                let _ = writeln!(text, "    in {}", kind.requests.join(", "));
                let _ = writeln!(text, "    {}: {}", kind.requests[0], kind.detail);
            }
        }
        if !self.not_repeated.is_empty() {
            let _ = writeln!(
                text,
                "\nThe engine does not repeat itself, so that these bodies could not be compared:\n  {}",
                self.not_repeated.join(", ")
            );
        }
        text.trim_end().to_owned()
    }

    /// For tools.
    pub(super) fn json(&self) -> String {
        let kinds: Vec<Value> = self.kinds.iter().map(Kind::json).collect();
        let is_same = self.kinds.iter().all(|kind| kind.by_design.is_some());
        let value = json!({
            "upstream": self.upstream, "through": self.through, "model": self.model, "requests": self.requests,
            "verdict": if is_same { "same" } else { "different" },
            "differences": kinds, "not_repeated": self.not_repeated,
        });
        format!("{value:#}")
    }
}

impl Kind {
    fn json(&self) -> Value {
        json!({
            "name": self.name, "by_design": self.by_design.is_some(), "docs": self.by_design.map(|design| design.docs),
            "requests": self.requests, "detail": self.detail,
        })
    }
}
