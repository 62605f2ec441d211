//! The demo's last table equals what its engine says that it sent.

#![allow(clippy::unwrap_used, reason = "a test that can not go on fails")]

use clap::Parser;
use spectap::cli::{Cli, Command};
use tokio_util::sync::CancellationToken;

#[test]
fn the_last_table_equals_the_engines_own_log() {
    let flags = "spectap demo --requests 60 --concurrency 20 --seed 7 --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0";
    let Command::Demo(args) = Cli::try_parse_from(flags.split(' ')).unwrap().command else {
        unreachable!()
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut out = Vec::new();
    let finished = runtime
        .block_on(spectap::demo::run(
            &args,
            CancellationToken::new(),
            &mut out,
        ))
        .unwrap();
    assert_eq!(finished.outcomes.total(), 60);
    assert_eq!(finished.outcomes.broken, 0);
    assert_eq!(finished.summary.groups.len(), finished.totals.len());
    for group in &finished.summary.groups {
        let model = group.key.values().next().unwrap().clone().unwrap();
        let sent = &finished.totals[&model];
        assert_eq!(group.n.exchanges, sent.all.requests, "{model}: requests");
        let metric = |name: &str| {
            group
                .sequences
                .metrics
                .get(name)
                .map_or(0.0, |metric| metric.avg)
        };
        let wire = &sent.on_the_wire;
        assert_eq!(
            metric("total_spec_decode_steps"),
            wire.steps as f64,
            "{model}: steps"
        );
        assert_eq!(
            metric("total_draft_tokens"),
            wire.drafted as f64,
            "{model}: drafted"
        );
        assert_eq!(
            metric("total_accepted_draft_tokens"),
            wire.accepted as f64,
            "{model}: accepted"
        );
        assert_eq!(group.n.zero_step, wire.zero_step, "{model}: zero-step");
        let shown = &group.sequences.pooled_spec_decode_acceptance_histogram;
        let sent: Vec<(u32, u64)> = (0..)
            .zip(wire.histogram.iter().copied())
            .filter(|&(_, steps)| steps > 0)
            .collect();
        assert_eq!(
            shown.iter().map(|(&j, &n)| (j, n)).collect::<Vec<_>>(),
            sent,
            "{model}: histogram"
        );
    }
}
