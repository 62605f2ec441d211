//! The keys of the groups by number: a row of the log names its group by one or two bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::GroupKey;

/// Keys in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    keys: Vec<GroupKey>,
    numbers: BTreeMap<GroupKey, u32>,
}

impl Keys {
    /// The number of a key, a new one where it has none yet.
    pub(super) fn number(&mut self, key: &GroupKey) -> u32 {
        if let Some(&number) = self.numbers.get(key) {
            return number;
        }
        let number = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.keys.push(key.clone());
        self.numbers.insert(key.clone(), number);
        number
    }

    /// The number of a key that has one.
    pub(super) fn known(&self, key: &GroupKey) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// The key of a number.
    pub(super) fn get(&self, number: u32) -> Option<&GroupKey> {
        self.keys.get(number as usize)
    }
}

/// Keys that readers may share; they are copied when a new one comes meanwhile.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedKeys(Arc<Keys>);

impl SharedKeys {
    /// The number of a key, a new one where it has none yet.
    pub(super) fn number(&mut self, key: &GroupKey) -> u32 {
        match self.0.known(key) {
            Some(number) => number,
            None => self.as_mut().number(key),
        }
    }

    /// The key of a number.
    pub(super) fn get(&self, number: u32) -> Option<&GroupKey> {
        self.0.get(number)
    }
}

impl AsMut<Keys> for SharedKeys {
    fn as_mut(&mut self) -> &mut Keys {
        Arc::make_mut(&mut self.0)
    }
}
