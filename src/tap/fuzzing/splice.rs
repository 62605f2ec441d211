//! The splice of a request's body, against the table of what each client's wish calls for.

use serde_json::Value;

use super::{Input, reference};
use crate::tap::details;
use crate::tap::inject::{self, Edit, ExposeUsage, Plan};
use crate::tap::members::{Member, members};
use crate::tap::request;
use crate::tap::skip::Skip;

const OPTIONS: &str = "stream_options";
const DETAILS: &str = "return_spec_tokens_details";

/// Splices a body. Promises: the result is JSON that asks for what it should; every other member is what it was, byte
/// for byte; without the edits the body is the client's again; a client's own wish is respected.
///
/// Bits of `how`: 0 usage is shown to everybody; 1 the engine is vLLM; 2 SGLang's numbers are asked for too; 3 usage is
/// not asked for.
pub fn splice(data: &[u8]) {
    let Some(input) = Input::read(data) else {
        return;
    };
    let body = input.text;
    let Some(root) = members(body) else {
        return;
    };
    let expose = if input.has(0) {
        ExposeUsage::Always
    } else {
        ExposeUsage::AsRequested
    };
    let mut edits = Vec::new();
    let mut asks_usage = false;
    // Nobody asks for the usage of a reply that is not streamed.
    if !input.has(3) && request::read(&root).stream {
        let plan = inject::plan(body, &root, expose, input.has(1));
        check_plan(&plan, body, expose, input.has(1));
        if let Plan::Inject { edits: own, strip } = plan {
            assert_eq!(strip, expose == ExposeUsage::AsRequested);
            edits = own;
            asks_usage = true;
        }
    }
    let mut asks_details = false;
    if input.has(2)
        && let Ok(Some(edit)) = details::plan(body, &root)
    {
        edits.push(edit);
        asks_details = true;
    }
    let spliced = inject::splice(body, copies(&edits));
    assert_eq!(without(&spliced, body, edits), body, "edits taken back");
    let Some(result) = members(&spliced) else {
        panic!("no JSON: {}", String::from_utf8_lossy(&spliced));
    };
    let is_ours = |name: &str| (asks_usage && name == OPTIONS) || (asks_details && name == DETAILS);
    assert_eq!(others(&root, is_ours), others(&result, is_ours));
    if asks_usage {
        let options =
            |root: &[Member<'_>]| -> String { last(root, OPTIONS).unwrap_or("{}").to_owned() };
        check_options(&options(&root), &options(&result));
    }
    if asks_details {
        assert_eq!(last(&result, DETAILS), Some("true"));
    }
}

fn copies(edits: &[Edit]) -> Vec<Edit> {
    edits
        .iter()
        .map(|edit| Edit {
            place: edit.place.clone(),
            text: edit.text,
        })
        .collect()
}

/// The spliced body with each inserted text taken out and what it replaced put back.
fn without(spliced: &[u8], body: &[u8], mut edits: Vec<Edit>) -> Vec<u8> {
    edits.sort_by_key(|edit| edit.place.start);
    let mut back = Vec::new();
    let (mut at, mut copied) = (0, 0);
    for edit in edits {
        let kept = edit.place.start - copied;
        back.extend_from_slice(&spliced[at..at + kept]);
        at += kept;
        assert!(spliced[at..].starts_with(edit.text.as_bytes()));
        at += edit.text.len();
        back.extend_from_slice(&body[edit.place.clone()]);
        copied = edit.place.end;
    }
    back.extend_from_slice(&spliced[at..]);
    back
}

fn others<'a>(root: &'a [Member<'_>], is_ours: impl Fn(&str) -> bool) -> Vec<(&'a str, &'a str)> {
    root.iter()
        .map(|member| (&*member.name, member.value))
        .filter(|(name, _)| !is_ours(name))
        .collect()
}

fn last<'a>(root: &[Member<'a>], name: &str) -> Option<&'a str> {
    root.iter()
        .rev()
        .find(|member| member.name == name)
        .map(|member| member.value)
}

fn check_options(before: &str, after: &str) {
    let before = members(before.as_bytes()).unwrap_or_default();
    let Some(after) = members(after.as_bytes()) else {
        panic!("{OPTIONS} is no object");
    };
    assert_eq!(last(&after, "include_usage"), Some("true"));
    assert_ne!(last(&after, "continuous_usage_stats"), Some("true"));
    let is_ours = |name: &str| matches!(name, "include_usage" | "continuous_usage_stats");
    assert_eq!(others(&before, is_ours), others(&after, is_ours));
}

/// Holds a plan to what a parser finds in the body.
fn check_plan(plan: &Plan, body: &[u8], expose: ExposeUsage, is_vllm: bool) {
    let text = std::str::from_utf8(body).unwrap_or_default().trim_ascii();
    if reference::has_duplicates(text) {
        return;
    }
    let Ok(parsed) = serde_json::from_str::<Value>(text) else {
        return;
    };
    let shown = expose == ExposeUsage::Always;
    let options = &parsed[OPTIONS];
    let (usage, continuous) = (
        &options["include_usage"],
        &options["continuous_usage_stats"],
    );
    let is_switch = |value: &Value| value.is_null() || value.is_boolean();
    let fits = if !options.is_null() && !options.is_object() {
        *plan == Plan::Skip(Skip::OptionsShape)
    } else if *usage == true || (shown && *usage == false) {
        *plan == Plan::Leave
    } else if !is_switch(usage) || !is_switch(continuous) {
        *plan == Plan::Skip(Skip::OptionsShape)
    } else if *continuous == true && shown {
        *plan == Plan::Leave
    } else if *continuous == true && !is_vllm {
        *plan == Plan::Skip(Skip::ContinuousUsage)
    } else {
        matches!(plan, Plan::Inject { .. })
    };
    assert!(fits, "{plan:?} for {options}");
}
