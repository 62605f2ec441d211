//! What changed between two JSON values, as a merge patch (RFC 7396): members that changed, and null for those that went.

use serde_json::{Map, Value};

/// What makes `old` into `new`; none where they are equal. A member that is null counts as one that is not there, as the
/// patch can't tell the two apart.
pub(super) fn between(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut changed = Map::new();
            for (name, value) in new {
                let patch = match old.get(name) {
                    Some(before) => between(before, value),
                    None => Some(value.clone()).filter(|value| !value.is_null()),
                };
                if let Some(patch) = patch {
                    changed.insert(name.clone(), patch);
                }
            }
            for (name, before) in old {
                if !new.contains_key(name) && !before.is_null() {
                    changed.insert(name.clone(), Value::Null);
                }
            }
            (!changed.is_empty()).then_some(Value::Object(changed))
        }
        _ => (old != new).then(|| new.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// RFC 7396, section 2.
    fn apply(target: &mut Value, patch: &Value) {
        let Value::Object(members) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        let Value::Object(object) = target else {
            unreachable!("it was just made one")
        };
        for (name, value) in members {
            if value.is_null() {
                object.remove(name);
            } else {
                apply(object.entry(name).or_insert(Value::Null), value);
            }
        }
    }

    /// Without members that are null.
    fn lean(value: &Value) -> Value {
        match value {
            Value::Object(object) => object
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), lean(value)))
                .collect(),
            other => other.clone(),
        }
    }

    #[test]
    fn a_patch_makes_the_old_value_the_new_one() {
        let values = [
            json!({}),
            json!({"a": 1, "b": {"c": [1, 2], "d": null}}),
            json!({"a": 2, "b": {"c": [1, 2]}}),
            json!({"b": {"c": [1], "e": {"f": 1}}}),
            json!({"a": null, "b": 3}),
        ];
        for old in &values {
            for new in &values {
                let mut patched = lean(old);
                match between(old, new) {
                    Some(patch) => apply(&mut patched, &patch),
                    None => assert_eq!(lean(old), lean(new)),
                }
                assert_eq!(lean(&patched), lean(new), "{old} to {new}");
            }
        }
    }

    #[test]
    fn only_what_changed_is_in_it() {
        let old = json!({"a": 1, "b": {"c": 1, "d": 2}, "gone": 1});
        let new = json!({"a": 1, "b": {"c": 1, "d": 3}, "come": [1]});
        assert_eq!(
            between(&old, &new),
            Some(json!({"b": {"d": 3}, "come": [1], "gone": null}))
        );
        assert_eq!(between(&new, &new), None);
    }
}
