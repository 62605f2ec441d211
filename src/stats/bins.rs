//! Counts by bin number, small while the counts are: thousands of sketches may stand side by side.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Counts of the bins that have any, by rising number.
#[derive(Clone, Debug, Default)]
pub(super) struct Bins {
    numbers: Vec<i16>,
    counts: Counts,
}

/// Narrow until one of them needs more.
#[derive(Clone, Debug, Default)]
struct Counts {
    narrow: Vec<u16>,
    wide: Option<Vec<u64>>,
}

impl Counts {
    fn at(&self, place: usize) -> u64 {
        match &self.wide {
            Some(wide) => wide[place],
            None => u64::from(self.narrow[place]),
        }
    }

    fn set(&mut self, place: usize, count: u64) {
        match self.as_narrow(count) {
            Some(count) => self.narrow[place] = count,
            None => self.widen()[place] = count,
        }
    }

    fn insert(&mut self, place: usize, count: u64) {
        match self.as_narrow(count) {
            Some(count) => {
                make_room(&mut self.narrow);
                self.narrow.insert(place, count);
            }
            None => {
                let wide = self.widen();
                make_room(wide);
                wide.insert(place, count);
            }
        }
    }

    fn as_narrow(&self, count: u64) -> Option<u16> {
        u16::try_from(count).ok().filter(|_| self.wide.is_none())
    }

    fn widen(&mut self) -> &mut Vec<u64> {
        let narrow = &mut self.narrow;
        self.wide
            .get_or_insert_with(|| std::mem::take(narrow).into_iter().map(u64::from).collect())
    }
}

impl Bins {
    /// Adds to a bin; the count stops at the largest integer. A number that is too large counts in the last bin there
    /// can be.
    pub(super) fn add(&mut self, number: i32, count: u64) {
        let number = i16::try_from(number).unwrap_or(if number < 0 { i16::MIN } else { i16::MAX });
        match self.numbers.binary_search(&number) {
            Ok(place) => self
                .counts
                .set(place, self.counts.at(place).saturating_add(count)),
            Err(place) => {
                make_room(&mut self.numbers);
                self.numbers.insert(place, number);
                self.counts.insert(place, count);
            }
        }
    }

    /// The bins with their counts, by rising number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i32, u64)> {
        self.numbers
            .iter()
            .enumerate()
            .map(|(place, &number)| (i32::from(number), self.counts.at(place)))
    }
}

/// Makes room for one more, by a quarter at a time: what thousands of small vectors leave empty adds up.
fn make_room<T>(values: &mut Vec<T>) {
    if values.len() == values.capacity() {
        values.reserve_exact(4 + values.len() / 4);
    }
}

impl Serialize for Bins {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Bins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut bins = Bins::default();
        for (number, count) in BTreeMap::<i32, u64>::deserialize(deserializer)? {
            bins.add(number, count);
        }
        Ok(bins)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_count_as_a_map_does(
            added in prop::collection::vec((-50..50_i32, prop_oneof![0..9_u64, 60_000..70_000_u64, any::<u64>()]), 0..60)
        ) {
            let (mut bins, mut map) = (Bins::default(), BTreeMap::new());
            for (number, count) in added {
                bins.add(number, count);
                let sum: &mut u64 = map.entry(number).or_default();
                *sum = sum.saturating_add(count);
            }
            prop_assert_eq!(bins.iter().collect::<BTreeMap<_, _>>(), map);
            let text = serde_json::to_string(&bins).unwrap();
            let read: Bins = serde_json::from_str(&text).unwrap();
            prop_assert!(read.iter().eq(bins.iter()));
        }
    }

    #[test]
    fn foreign_numbers_stop_at_the_ends() {
        let bins: Bins = serde_json::from_str(r#"{"-2000000000":1,"2000000000":2}"#).unwrap();
        assert_eq!(bins.iter().collect::<Vec<_>>(), [(-32_768, 1), (32_767, 2)]);
    }
}
