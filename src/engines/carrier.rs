//! The objects of a response that carry payloads, and where to find them.

use serde_json::{Map, Value};

/// A member that is an object with something in it.
pub(super) fn filled<'a>(
    object: &'a Map<String, Value>,
    name: &str,
) -> Option<&'a Map<String, Value>> {
    object
        .get(name)
        .and_then(Value::as_object)
        .filter(|inner| !inner.is_empty())
}

/// The object at `metrics.speculative_decoding`, empty or not.
pub(super) fn in_metrics(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    object
        .get("metrics")
        .and_then(|metrics| metrics.get("speculative_decoding"))
        .and_then(Value::as_object)
}

/// The choices that are objects, each with its index; its position where it tells none.
pub(super) fn choices(
    object: &Map<String, Value>,
) -> impl Iterator<Item = (u32, &Map<String, Value>)> {
    let choices = object.get("choices").and_then(Value::as_array);
    (0u32..)
        .zip(choices.into_iter().flatten())
        .filter_map(|(position, choice)| {
            let choice = choice.as_object()?;
            Some((index(choice).unwrap_or(position), choice))
        })
}

/// Whether there are choices at all.
pub(super) fn has_choices(object: &Map<String, Value>) -> bool {
    object
        .get("choices")
        .and_then(Value::as_array)
        .is_some_and(|choices| !choices.is_empty())
}

/// An object's own `index`.
pub(super) fn index(object: &Map<String, Value>) -> Option<u32> {
    u32::try_from(object.get("index")?.as_u64()?).ok()
}

/// The objects of a member that is one object for one sequence, a list for several. Empty ones are nothing.
pub(super) fn one_or_several<'a>(
    object: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    let member = object.get(name);
    let several = member.and_then(Value::as_array).into_iter().flatten();
    member
        .filter(|member| member.is_object())
        .into_iter()
        .chain(several)
        .filter_map(Value::as_object)
        .filter(|payload| !payload.is_empty())
}
