//! Points in time as the JSON shows them (RFC 3339, UTC), and the period between two.

use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::Group;

/// A point in time; RFC 3339 with microseconds in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub SystemTime);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_rfc3339_micros(self.0))
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_rfc3339(&text)
            .map(Moment)
            .map_err(D::Error::custom)
    }
}

/// From the first start to the last end of the exchanges that were counted; both absent while there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// When the first exchange began.
    pub from: Option<Moment>,
    /// When the last one ended.
    pub to: Option<Moment>,
}

impl Period {
    /// The period of groups together.
    pub fn of<'a>(groups: impl Iterator<Item = &'a Group>) -> Self {
        let mut period = Self::default();
        groups.for_each(|group| period.stretch(&group.period));
        period
    }

    /// Stretches the period so that it holds the other one.
    pub fn stretch(&mut self, other: &Period) {
        // `None` orders before any moment, which is right for the end but not for the start.
        self.from = match (self.from, other.from) {
            (Some(own), Some(others)) => Some(own.min(others)),
            (own, others) => own.or(others),
        };
        self.to = self.to.max(other.to);
    }
}
