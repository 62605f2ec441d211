//! Names from outside, bounded: the first ones are kept as they are, the rest count under one name.

use std::collections::BTreeSet;

use crate::observation::cut_name;

/// Under which name the names beyond the limit count.
pub const OTHER: &str = "other";

/// A set of names that stops growing.
#[derive(Debug)]
pub(super) struct BoundedNames {
    most: usize,
    seen: BTreeSet<String>,
}

impl BoundedNames {
    /// A set that takes `most` names.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            seen: BTreeSet::new(),
        }
    }

    /// The name to count under: the name itself, cut, or [`OTHER`] where the set is full.
    pub(super) fn admit(&mut self, name: &str) -> String {
        let name = cut_name(name);
        if self.seen.contains(&name) {
            return name;
        }
        if self.seen.len() < self.most {
            self.seen.insert(name.clone());
            return name;
        }
        OTHER.to_owned()
    }
}
