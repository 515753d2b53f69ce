//! Tests that refused and failed requests are counted separately and affect no other figure.

use crate::common::{assert_near, device, load, run_all};
use flashtwin::{Op, Ssd, Status};
use flashtwin_sim::{Pacing, RunConfig, RunInfo, Summary};

/// A small device wears out during the run and then refuses writes immediately.
#[test]
fn refused_writes_are_in_no_response_time_and_no_rate() {
    let mut ssd = Ssd::new(&device(&[
        ("geometry.chips", "1"),
        ("geometry.blocks_per_plane", "32"),
        ("geometry.reserve_percent", "15"),
        ("wear.erase_limit", "3"),
        ("buffer", "none"),
        ("link.command_overhead_us", "0"),
    ]));
    ssd.fill_sequential();
    let config = RunConfig {
        pacing: Pacing::Closed { depth: 4 },
        series_interval: Some(flashtwin::Time::from_ms(100)),
        history: true,
        ..RunConfig::default()
    };
    let mut workload = load("uniform:write=0.9,requests=100000", &ssd, 3);
    let (outcome, completions) = run_all(&mut ssd, &mut *workload, &config);
    let s = Summary::new(&ssd, &outcome, &RunInfo::default());

    let refused = completions.iter().filter(|c| c.status == Status::ReadOnly);
    let refused = refused.count() as u64;
    let took: Vec<u64> = completions
        .iter()
        .filter(|c| c.op == Op::Write && c.status == Status::Ok)
        .map(|c| (c.done - c.arrival).0)
        .collect();
    assert!(s.read_only && refused > 50_000, "{refused}");
    assert_eq!(
        (s.requests_refused, s.counts.writes.refused),
        (refused, refused)
    );
    assert_eq!(s.counts.writes.requests, took.len() as u64);
    assert_eq!(s.write.requests, took.len() as u64);
    assert!(s.write.p50_us >= 200.0, "{}", s.write.p50_us);
    let mean_us = took.iter().sum::<u64>() as f64 * 1e-6 / took.len() as f64;
    assert_near("mean of writes", s.write.mean_us, mean_us, 1e-9);

    let done = completions.len() as u64 - refused;
    assert_near("IOPS", s.throughput.iops, done as f64 / s.span_s, 1e-9);
    assert_eq!(s.counts.writes.bytes, took.len() as u64 * 4096);
    let in_series: u64 = s.series.iter().map(|p| p.writes).sum();
    assert_eq!(in_series, took.len() as u64);
    let history = outcome.history.expect("it was asked for");
    let in_history: f64 = history.windows.iter().map(|p| p.iops * p.length_s).sum();
    assert_near("requests in the history", in_history, done as f64, 1e-9);
    assert!(s.inside.little_error < 1e-9, "{:?}", s.inside);
}
