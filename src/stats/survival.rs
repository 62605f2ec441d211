//! Survival and conditional acceptance by position.
//!
//! A step that accepted all it carried says nothing about the positions behind: it is censored there. So a position is
//! judged by the steps that drafted that deep. Where a step's width is unknown, it counts as if it had drafted deep
//! enough, and the curve is a lower bound.

use serde::{Deserialize, Serialize};

use super::compare::PositionSpread;
use super::interval::Interval;
use super::pooled::steps_in;
use crate::record::AcceptanceHistogram;

mod widths;

pub use widths::Widths;

pub(super) use widths::{StepsOfWidth, equal_width, steps_by_width};

/// Positions that a curve names at most; drafts are far shorter.
pub const MOST_POSITIONS: u32 = 256;

/// How many steps got past a position.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survival {
    /// Counted from 0.
    pub position: u32,
    /// Share of steps that accepted at least position + 1 drafts, of those that drafted so many.
    pub share: f64,
    /// Steps it is a share of.
    pub n: u64,
    /// The same share among the steps that accepted every draft before; absent where there are none. It often rises
    /// with depth, since only steps in easy text come so far: that is selection, not a better drafter.
    pub conditional: Option<f64>,
    /// Steps that `conditional` is a share of.
    pub conditional_n: u64,
    /// Where the true share lies, as far as chance between requests decides it; absent where only a part of the steps
    /// drafted so deep, and with fewer than two requests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval: Option<Interval>,
    /// Whether some of these steps may not have drafted so deep, so that the true shares are at least these.
    pub lower_bound: bool,
}

/// The curve of all steps in the histogram; `widths` are those of them whose width is known.
pub fn curve(histogram: &AcceptanceHistogram, widths: &Widths) -> Vec<Survival> {
    let mut unknown = histogram.clone();
    for known in widths.steps.values() {
        for (accepted, &steps) in known {
            if let Some(left) = unknown.get_mut(accepted) {
                *left = left.saturating_sub(steps);
            }
        }
    }
    let unknown_steps = steps_in(&unknown, ..);
    let deepest = histogram.keys().next_back().copied().unwrap_or(0);
    (0..deepest.max(widths.widest()).min(MOST_POSITIONS))
        .map(|position| {
            let past = |least: u32| {
                let known = widths.steps.range(position + 1..).map(|(_, known)| known);
                known.fold(steps_in(&unknown, least..), |sum, known| {
                    sum.saturating_add(steps_in(known, least..))
                })
            };
            let (all, reached, accepted) = (past(0), past(position), past(position + 1));
            Survival {
                position,
                share: if all > 0 {
                    accepted as f64 / all as f64
                } else {
                    0.0
                },
                n: all,
                conditional: (reached > 0).then(|| accepted as f64 / reached as f64),
                conditional_n: reached,
                interval: None,
                lower_bound: unknown_steps > 0,
            }
        })
        .collect()
}

/// The curve with intervals, where its shares are of all steps of these requests.
pub fn with_intervals(mut curve: Vec<Survival>, spread: &PositionSpread) -> Vec<Survival> {
    for point in &mut curve {
        let known = spread.interval(point.position as usize);
        point.interval = known
            .filter(|(share, _)| (share - point.share).abs() < 1e-9)
            .map(|(_, interval)| interval);
    }
    curve
}

#[cfg(test)]
mod tests;
