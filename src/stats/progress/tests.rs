//! Hand-computed stretches of a reply.

use super::*;
use crate::record::{EngineName, Provenance};

fn ordered(accepted: &[u64]) -> AcceptanceRecord {
    let total = accepted.iter().sum();
    AcceptanceRecord {
        provenance: Provenance::PerStep,
        num_spec_steps: Some(accepted.len() as u64),
        per_step_accepted: Some(accepted.to_vec()),
        ..AcceptanceRecord::of_counts(EngineName::Vllm, total, 4 * accepted.len() as u64)
    }
}

#[test]
fn a_step_belongs_to_the_token_at_which_it_begins() {
    let mut progress = Progress::default();
    // Steps begin behind tokens 1, 3, 4 and 8.
    progress.add(&PartOfRecord::all_of(&ordered(&[1, 0, 3, 2])));
    progress.add(&PartOfRecord::all_of(&ordered(&[0])));
    let parts: Vec<(u64, u64, f64, u64, u64)> = progress
        .parts()
        .iter()
        .map(|part| {
            let ends = (part.from_token, part.to_token);
            (ends.0, ends.1, part.accepted_per_step, part.steps, part.n)
        })
        .collect();
    assert_eq!(
        parts,
        [
            (1, 1, 0.5, 2, 2),
            (2, 3, 0.0, 1, 1),
            (4, 7, 3.0, 1, 1),
            (8, 15, 2.0, 1, 1)
        ]
    );
}

#[test]
fn absurd_counts_do_no_harm() {
    let mut progress = Progress::default();
    progress.add(&PartOfRecord::all_of(&AcceptanceRecord {
        per_step_accepted: Some(vec![u64::MAX, u64::MAX, 1]),
        ..ordered(&[1, 1, 1])
    }));
    assert!(progress.parts().len() <= 64);
}
