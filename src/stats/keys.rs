//! The keys of the groups by number: a row of the log names its group by one or two bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{GroupKey, OTHER};
use crate::observation::Route;

/// The number of the key under which everything can count.
pub(super) const CATCH_ALL: u32 = 0;

/// Keys in the order in which they came. Copies share them.
#[derive(Clone, Debug)]
pub(super) struct Keys(Arc<Vec<Numbered>>);

#[derive(Clone, Debug)]
struct Numbered {
    key: Arc<GroupKey>,
    /// The number of the key that it folds into.
    coarser: u32,
}

/// The keys with their numbers, in their own order.
pub(super) type Numbers = BTreeMap<Arc<GroupKey>, u32>;

impl Keys {
    /// No key but the one under which everything can count.
    pub(super) fn new() -> Self {
        let catch_all = Numbered {
            key: Arc::new(GroupKey {
                engine: None,
                model: Some(OTHER.to_owned()),
                tag: None,
                route: Route::Other,
            }),
            coarser: CATCH_ALL,
        };
        Self(Arc::new(vec![catch_all]))
    }

    /// The number of a key, a new one where it has none yet; so that counting needs no new ones, the key that it folds
    /// into gets one, too.
    pub(super) fn number(&mut self, key: &GroupKey, numbers: &mut Numbers) -> u32 {
        if let Some(&number) = numbers.get(key) {
            return number;
        }
        let folded = folded(key);
        let coarser = if folded == *key {
            CATCH_ALL
        } else {
            self.number(&folded, numbers)
        };
        let keys = Arc::make_mut(&mut self.0);
        let number = u32::try_from(keys.len()).unwrap_or(CATCH_ALL);
        let key = Arc::new(key.clone());
        keys.push(Numbered {
            key: Arc::clone(&key),
            coarser,
        });
        numbers.insert(key, number);
        number
    }

    /// The key of a number.
    pub(super) fn get(&self, number: u32) -> Option<&GroupKey> {
        self.0.get(number as usize).map(|numbered| &*numbered.key)
    }

    /// The number of the key that a key folds into.
    pub(super) fn coarser(&self, number: u32) -> u32 {
        let numbered = self.0.get(number as usize);
        numbered.map_or(CATCH_ALL, |numbered| numbered.coarser)
    }
}

/// The key that counts for a key where there are too many: models and tags fold together.
pub(super) fn folded(key: &GroupKey) -> GroupKey {
    let other = Some(OTHER.to_owned());
    GroupKey {
        engine: key.engine,
        tag: key.tag.as_ref().and(other.clone()),
        model: other,
        route: key.route,
    }
}
