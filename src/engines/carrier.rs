//! The objects of a response that carry payloads, and where to find them.

use super::object::{Json, Object, elements};

/// A member that is an object with something in it.
pub(super) fn filled<'a>(object: &'a dyn Object, name: &str) -> Option<&'a dyn Object> {
    object
        .get(name)
        .and_then(Json::as_object)
        .filter(|inner| !inner.is_empty())
}

/// The object at `metrics.speculative_decoding`, empty or not.
pub(super) fn in_metrics(object: &dyn Object) -> Option<&dyn Object> {
    object
        .get("metrics")
        .and_then(|metrics| metrics.get("speculative_decoding"))
        .and_then(Json::as_object)
}

/// The choices that are objects, each with its index; its position where it tells none.
pub(super) fn choices(object: &dyn Object) -> impl Iterator<Item = (u32, &dyn Object)> {
    (0u32..)
        .zip(elements(object.get("choices")))
        .filter_map(|(position, choice)| {
            let choice = choice.as_object()?;
            Some((index(choice).unwrap_or(position), choice))
        })
}

/// Whether there are choices at all.
pub(super) fn has_choices(object: &dyn Object) -> bool {
    elements(object.get("choices")).next().is_some()
}

/// An object's own `index`.
pub(super) fn index(object: &dyn Object) -> Option<u32> {
    u32::try_from(object.get("index")?.as_u64()?).ok()
}

/// The objects of a member that is one object for one sequence, a list for several. Empty ones are nothing.
pub(super) fn one_or_several<'a>(
    object: &'a dyn Object,
    name: &str,
) -> impl Iterator<Item = &'a dyn Object> {
    let member = object.get(name);
    let single = member.and_then(Json::as_object);
    single
        .into_iter()
        .chain(elements(member).filter_map(Json::as_object))
        .filter(|payload| !payload.is_empty())
}
