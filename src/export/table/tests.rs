//! Cells, lines and sentences beyond what AIPerf's own output shows.

use super::absence;
use super::*;
use crate::export::summary::{Counts, Reasons};
use crate::observation::{Acceptance, Reason};

#[test]
fn cells_have_two_decimals_and_commas_between_thousands() {
    for (value, cell) in [
        (0.0, "0.00"),
        (999.994, "999.99"),
        (999.995, "1,000.00"),
        (1234567.891, "1,234,567.89"),
        (-1234.5, "-1,234.50"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(grid::number(value), cell);
    }
}

#[test]
fn buckets_from_8_on_stand_together_and_empty_ones_are_shown() {
    assert_eq!(
        histogram_line(&[(0, 5), (2, 3), (8, 1), (11, 1)].into()).unwrap(),
        "  Accepted drafts per step (% of steps):  0: 50%   1: 0%   2: 30%   3: 0%   4: 0%   5: 0%   6: 0%   7: 0%   >=8: 20%"
    );
    assert_eq!(histogram_line(&AcceptanceHistogram::new()), None);
}

#[test]
fn shares_are_rounded_half_to_even_as_python_does() {
    // 1/8 is 12.5 %, 3/8 is 37.5 %, both exact in binary.
    assert_eq!(
        histogram_line(&[(0, 1), (1, 3), (2, 4)].into()).unwrap(),
        "  Accepted drafts per step (% of steps):  0: 12%   1: 38%   2: 50%"
    );
}

#[test]
fn the_sentence_names_reasons_by_frequency_and_what_to_do() {
    let n = Counts {
        exchanges: 12,
        absent: 12,
        ..Counts::default()
    };
    let reasons = |list: &[(Reason, u64)]| {
        Reasons::from([(Acceptance::Absent, list.iter().copied().collect())])
    };
    assert_eq!(
        absence::sentence(&n, &reasons(&[(Reason::LevelOff, 12)])),
        "No acceptance numbers: 12 exchanges, 12 absent (level_off): \
         the engine has sent none so far; is speculation on, and are its numbers \
         (vLLM: --per-request-spec-decode-metrics summary)? docs/engines.md says how, engine by engine"
    );
    assert_eq!(
        absence::sentence(
            &n,
            &reasons(&[(Reason::StopString, 2), (Reason::MultiPrompt, 10)])
        ),
        "No acceptance numbers: 12 exchanges, 12 absent (multi_prompt 10, stop_string 2): \
         vLLM sends none for several prompts in one request; send one prompt"
    );
    assert_eq!(
        absence::sentence(&Counts::default(), &Reasons::new()),
        "No acceptance numbers: no inference request has been answered with success yet; \
         are the clients pointed at spectap's data port?"
    );
}

#[test]
fn the_counts_name_what_the_figures_leave_out() {
    let n = Counts {
        exchanges: 1_204,
        recorded: 1_180,
        zero_step: 4,
        absent: 20,
        ..Counts::default()
    };
    let reasons = Reasons::from([(
        Acceptance::Absent,
        [(Reason::NGt1, 15), (Reason::StopString, 5)].into(),
    )]);
    assert_eq!(
        absence::counts(&n, &reasons),
        "1204 exchanges, 1180 recorded, 4 zero_step, 20 absent (n_gt_1 15, stop_string 5)"
    );
}

#[test]
fn numbers_that_only_the_view_of_all_sequences_has_are_pointed_to() {
    let n = Counts {
        exchanges: 1,
        recorded: 1,
        ..Counts::default()
    };
    assert_eq!(
        absence::sentence(&n, &Reasons::new()),
        "No acceptance numbers: 1 exchange, 1 recorded: none is complete, has content and asks for one sequence; \
         the view of all sequences has them"
    );
}
