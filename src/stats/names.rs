//! Names from outside, bounded: the first ones are told apart, the rest count under one name.

use std::collections::HashMap;

use crate::observation::LONGEST_NAME;

/// Under which name the names beyond the limit count.
pub const OTHER: &str = "other";

/// A name by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name(Option<u16>);

/// A set of names that stops growing.
#[derive(Debug)]
pub(super) struct BoundedNames {
    most: usize,
    numbers: HashMap<String, u16>,
    names: Vec<String>,
}

impl BoundedNames {
    /// A set that takes `most` names.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            numbers: HashMap::new(),
            names: Vec::new(),
        }
    }

    /// The name to count under: the name itself, cut, or [`OTHER`] where the set is full.
    pub(super) fn admit(&mut self, name: &str) -> Name {
        let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
        if let Some(&number) = self.numbers.get(name) {
            return Name(Some(number));
        }
        let has_room = self.names.len() < self.most;
        let number = u16::try_from(self.names.len()).ok().filter(|_| has_room);
        if let Some(number) = number {
            self.numbers.insert(name.to_owned(), number);
            self.names.push(name.to_owned());
        }
        Name(number)
    }

    /// The name of a number.
    pub(super) fn name(&self, name: Name) -> &str {
        let number = name.0.map(usize::from);
        number
            .and_then(|number| self.names.get(number))
            .map_or(OTHER, String::as_str)
    }
}
