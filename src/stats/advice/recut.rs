//! The re-cut: what ordered steps at depth k would have been at a smaller depth.
//!
//! Whether a draft would be accepted is taken to belong to its place in the text. A step that accepted j < k drafts shows
//! j places that accept and one that does not; at a smaller depth the same places are walked in more steps. Behind a full
//! step one place is unseen, the one that its bonus token took: it accepts with the share that the deepest position has.

use super::stretches::{LONGEST, StretchesOfWidth};

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

/// Re-cuts the stretches of depth k at a depth of 1 to k.
pub(super) fn recut(k: u32, stretches: &StretchesOfWidth, depth: u32) -> Recut {
    let unseen_accepts = deepest_conditional(k, stretches);
    // How likely the open step has accepted so many drafts when a full step begins; 0: none is open.
    let mut open = vec![0.0; depth as usize + 1];
    open[0] = 1.0;
    let mut steps_so_far = 0.0;
    let mut whole = Recut {
        steps: 0.0,
        tokens: 0.0,
    };
    let longest = stretches
        .counts
        .keys()
        .next_back()
        .map_or(0, |&row| row.min(LONGEST));
    for row in 0..=longest {
        for (&ending, &count) in stretches.counts.get(&row).into_iter().flatten() {
            let count = count as f64;
            let behind = open
                .iter()
                .zip(0..)
                .map(|(&likely, accepted)| likely * steps_of_ending(k, depth, accepted, ending));
            whole.steps += count * (steps_so_far + behind.sum::<f64>());
            let last = if ending < k {
                f64::from(ending) + 1.0
            } else {
                0.0
            };
            whole.tokens += count * (f64::from(row) * (f64::from(k) + 1.0) + last);
        }
        let mut next = vec![0.0; open.len()];
        for (&likely, accepted) in open.iter().zip(0..) {
            let (steps, accepted) = walk(depth, accepted, k);
            steps_so_far += likely * f64::from(steps);
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
