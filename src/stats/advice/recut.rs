//! The re-cut: what ordered steps at depth k would have been at a smaller depth.
//!
//! Whether a draft would be accepted is taken to belong to its place in the text. A step that accepted j < k drafts shows
//! j places that accept and one that does not; at a smaller depth the same places are walked in more steps. Behind a full
//! step one place is unseen, the one that its bonus token took: it accepts with the share that the deepest position has.

use super::stretches::{Stretch, StretchesOfWidth};

/// Steps and tokens at one depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recut {
    /// Expected number of steps.
    pub(super) steps: f64,
    /// Tokens that they produce, one bonus token each included.
    pub(super) tokens: f64,
}

impl Recut {
    pub(super) fn length(&self) -> f64 {
        self.tokens / self.steps
    }
}

/// Share of the full steps among those that accepted all but the last draft; 0 where there are none.
pub(super) fn deepest_conditional(k: u32, stretches: &StretchesOfWidth) -> f64 {
    let (mut full, mut all_but_one) = (0.0, 0.0);
    for (&row, endings) in &stretches.counts {
        for (&ending, &count) in endings {
            full += f64::from(row) * count as f64;
            if ending + 1 == k {
                all_but_one += count as f64;
            }
        }
    }
    if full > 0.0 {
        full / (full + all_but_one)
    } else {
        0.0
    }
}

/// How many steps each stretch of depth k is expected to take at a depth of 1 to k.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Walk {
    /// `steps[r][j]`: of r full steps and one that accepted j < k; j = k stands for the end of the reply.
    steps: Vec<Vec<f64>>,
}

impl Walk {
    /// Walks over stretches of up to so many full steps. `unseen_accepts`: how likely an unseen place accepts.
    pub(super) fn new(k: u32, depth: u32, longest: u32, unseen_accepts: f64) -> Self {
        // How likely the open step has accepted so many drafts when a full step begins; 0: none is open.
        let mut open = vec![0.0; depth as usize + 1];
        open[0] = 1.0;
        let mut steps_so_far = 0.0;
        let mut steps = Vec::new();
        for _ in 0..=longest {
            let of_ending = |ending: u32| {
                let behind = open.iter().zip(0..).map(|(&likely, accepted)| {
                    likely * steps_of_ending(k, depth, accepted, ending)
                });
                steps_so_far + behind.sum::<f64>()
            };
            steps.push((0..=k).map(of_ending).collect());
            let mut next = vec![0.0; open.len()];
            for (&likely, accepted) in open.iter().zip(0..) {
                let (finished, accepted) = walk(depth, accepted, k);
                steps_so_far += likely * f64::from(finished);
                if accepted == depth {
                    // The unseen place is the bonus token of this step.
                    steps_so_far += likely;
                    next[0] += likely;
                } else {
                    steps_so_far += likely * (1.0 - unseen_accepts);
                    next[0] += likely * (1.0 - unseen_accepts);
                    next[accepted as usize + 1] += likely * unseen_accepts;
                }
            }
            open = next;
        }
        Self { steps }
    }

    /// Steps of so many such stretches.
    pub(super) fn steps(&self, stretch: Stretch) -> f64 {
        let of_row = self.steps.get(stretch.full as usize);
        let steps = of_row.and_then(|of_row| of_row.get(stretch.ending as usize));
        stretch.count as f64 * steps.copied().unwrap_or(0.0)
    }
}

/// The tokens of so many such stretches of depth k, one bonus token for each step included.
pub(super) fn tokens(k: u32, stretch: Stretch) -> f64 {
    let last = if stretch.ending < k {
        f64::from(stretch.ending) + 1.0
    } else {
        0.0
    };
    stretch.count as f64 * (f64::from(stretch.full) * (f64::from(k) + 1.0) + last)
}

/// Re-cuts the stretches of depth k at a depth of 1 to k.
pub(super) fn recut(k: u32, stretches: &StretchesOfWidth, depth: u32) -> Recut {
    let walk = Walk::new(
        k,
        depth,
        stretches.longest(),
        deepest_conditional(k, stretches),
    );
    let mut whole = Recut {
        steps: 0.0,
        tokens: 0.0,
    };
    for stretch in stretches.iter() {
        whole.steps += walk.steps(stretch);
        whole.tokens += tokens(k, stretch);
    }
    whole
}

/// Steps to the end of a stretch, from a step that has accepted so many drafts.
fn steps_of_ending(k: u32, depth: u32, accepted: u32, ending: u32) -> f64 {
    if ending < k {
        // The place that does not accept ends a step in any case.
        let (steps, _) = walk(depth, accepted, ending);
        return f64::from(steps) + 1.0;
    }
    // The reply is over: an open step is one, too.
    if accepted > 0 { 1.0 } else { 0.0 }
}

/// Walks over places that accept: steps finished, and what the open step has accepted then.
fn walk(depth: u32, mut accepted: u32, places: u32) -> (u32, u32) {
    let mut steps = 0;
    for _ in 0..places {
        if accepted < depth {
            accepted += 1;
        } else {
            // The step carried no more drafts: this place is its bonus token.
            steps += 1;
            accepted = 0;
        }
    }
    (steps, accepted)
}
