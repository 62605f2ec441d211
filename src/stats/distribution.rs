//! A distribution of per-request values: exact while it is small, a sketch beyond, and it says which it is.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::moments::Moments;
use super::sketch::Sketch;
use super::values::Values;

pub use super::sketch::RELATIVE_ERROR;

/// Values of one distribution that are kept exactly; with the next one it becomes a sketch.
pub const MOST_EXACT_VALUES: usize = 100_000;

/// The percentiles that AIPerf reports.
pub const PERCENTILES: [u8; 9] = [1, 5, 10, 25, 50, 75, 90, 95, 99];

/// Values of one metric. Values that are not finite are left out.
///
/// The sketch takes the values piece by piece while they are still kept, so that giving them up costs the data path
/// nothing when it comes, and a distribution that is small needs none.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// All values; absent once they were given up.
    values: Option<Values>,
    /// The values of all full pieces; once they were given up, all values.
    sketch: Option<Box<Sketch>>,
}

/// What AIPerf reports of a distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    /// Mean.
    pub avg: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Population standard deviation.
    pub std: f64,
    /// Values at [`PERCENTILES`], by linear interpolation on rank q/100·(n − 1).
    pub percentiles: [f64; PERCENTILES.len()],
    /// Sum of the values.
    pub sum: f64,
    /// Number of values.
    pub count: u64,
    /// Whether the percentiles are exact; all else always is.
    pub exact: bool,
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            values: Some(Values::default()),
            sketch: None,
        }
    }
}

impl Distribution {
    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.exact_values() >= MOST_EXACT_VALUES {
            self.condense();
        }
        self.take(value);
    }

    fn take(&mut self, value: f64) {
        let full = match &mut self.values {
            Some(values) => values.push(value),
            None => Some(std::slice::from_ref(&value)),
        };
        if let Some(full) = full {
            let sketch = self.sketch.get_or_insert_default();
            full.iter().for_each(|&value| sketch.push(value));
        }
    }

    /// Adds a value that may be unknown.
    pub fn push_known(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.push(value);
        }
    }

    /// Adds all values of another distribution; the result is exact if both are.
    pub fn merge(&mut self, other: &Distribution) {
        if let Some(others) = &other.sketch {
            self.sketch.get_or_insert_default().merge(others);
        }
        match (&mut self.values, &other.values) {
            (Some(own), Some(others)) => {
                own.share_full(others);
            }
            _ => self.give_up(),
        }
        let open = other.values.iter().flat_map(Values::open);
        open.for_each(|&value| self.take(value));
    }

    fn give_up(&mut self) {
        let given_up = self.values.take();
        let open = given_up.iter().flat_map(Values::open);
        open.for_each(|&value| self.take(value));
    }

    /// Gives up the values for the sketch of them; without values there is nothing to give up.
    pub fn condense(&mut self) {
        if self.exact_values() > 0 {
            self.give_up();
        }
    }

    /// How many values are kept exactly.
    pub fn exact_values(&self) -> usize {
        self.values.as_ref().map_or(0, Values::len)
    }

    /// What AIPerf reports of it; absent without values.
    pub fn statistic(&self) -> Option<Statistic> {
        let Some(values) = &self.values else {
            let sketch = self.sketch.as_ref()?;
            let any = sketch.moments.count > 0;
            return any.then(|| statistic(&sketch.moments, |rank| sketch.value_at(rank), false));
        };
        if values.len() == 0 {
            return None;
        }
        let sorted = values.sorted();
        // In sorted order, so that the order of arrival can't change a digit.
        let mut moments = Moments::default();
        for &value in &sorted {
            moments.push(value);
        }
        let at = |rank: u64| {
            usize::try_from(rank)
                .ok()
                .and_then(|rank| sorted.get(rank))
                .copied()
                .unwrap_or(moments.max)
        };
        Some(statistic(&moments, at, true))
    }
}

// Tagged from outside (`{"exact":[…]}`, `{"sketch":{…}}`): serde can't read maps with number keys under its other tags.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Written<'a> {
    Exact(&'a Values),
    Sketch(&'a Sketch),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Read {
    Exact(Vec<f64>),
    Sketch(Box<Sketch>),
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let none = Values::default();
        match (&self.values, &self.sketch) {
            (Some(values), _) => Written::Exact(values),
            (None, Some(sketch)) => Written::Sketch(sketch),
            (None, None) => Written::Exact(&none),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Read::deserialize(deserializer)? {
            Read::Exact(values) => {
                let mut distribution = Self::default();
                values
                    .into_iter()
                    .for_each(|value| distribution.take(value));
                distribution
            }
            Read::Sketch(sketch) => Self {
                values: None,
                sketch: Some(sketch),
            },
        })
    }
}

fn statistic(moments: &Moments, value_at: impl Fn(u64) -> f64, exact: bool) -> Statistic {
    let percentile = |percent: u8| {
        let rank = f64::from(percent) / 100.0 * moments.count.saturating_sub(1) as f64;
        let (below, part) = (rank.floor(), rank.fract());
        let low = value_at(below as u64);
        if part == 0.0 {
            return low;
        }
        low + (value_at((below as u64).saturating_add(1)) - low) * part
    };
    Statistic {
        avg: moments.sum() / moments.count as f64,
        min: moments.min,
        max: moments.max,
        std: moments.deviation(),
        percentiles: PERCENTILES.map(percentile),
        sum: moments.sum(),
        count: moments.count,
        exact,
    }
}

#[cfg(test)]
mod tests;
