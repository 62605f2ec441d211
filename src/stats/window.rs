//! Windows: the last minute, five, fifteen, the last hour, or all.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Windows begin and end at multiples of this, in nanoseconds.
pub(super) const BUCKET: i64 = 5 * SECOND;
const SECOND: i64 = 1_000_000_000;

/// How far back to look.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantArray,
)]
pub enum Window {
    /// The last minute.
    #[serde(rename = "1m")]
    #[strum(serialize = "1m")]
    Minute,
    /// The last five minutes.
    #[serde(rename = "5m")]
    #[strum(serialize = "5m")]
    FiveMinutes,
    /// The last fifteen minutes.
    #[serde(rename = "15m")]
    #[strum(serialize = "15m")]
    Quarter,
    /// The last hour.
    #[serde(rename = "1h")]
    #[strum(serialize = "1h")]
    Hour,
    /// Since the tap started.
    #[default]
    #[serde(rename = "all")]
    #[strum(serialize = "all")]
    All,
}

impl Window {
    /// The name in a query.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    fn seconds(self) -> Option<i64> {
        match self {
            Window::Minute => Some(60),
            Window::FiveMinutes => Some(300),
            Window::Quarter => Some(900),
            Window::Hour => Some(3_600),
            Window::All => None,
        }
    }

    /// From where to where the window reaches, in nanoseconds since 1970; none for all. The end is that of the bucket
    /// that is filling now. The start comes later where exchanges that late are no longer kept.
    pub(super) fn edges(self, now: i64, gone_until: Option<i64>) -> Option<Range<i64>> {
        let end = end_of_bucket(now);
        let start = end.saturating_sub(self.seconds()? * SECOND);
        let kept = gone_until.map_or(start, |gone| end_of_bucket(gone.min(now)));
        Some(start.max(kept)..end)
    }
}

fn end_of_bucket(time: i64) -> i64 {
    time.div_euclid(BUCKET)
        .saturating_add(1)
        .saturating_mul(BUCKET)
}
