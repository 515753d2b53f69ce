//! Reading a trace on another thread gives the same result as reading it on the calling thread, even if the consumer
//! takes only a part of the trace.

use flashtwin::Request;
use flashtwin_workload::{open_trace, read_ahead, TraceOptions, Workload};
use std::path::PathBuf;

/// Creates a trace of 20 000 requests and three unreadable lines: one near the start and two near the end. If only two
/// unreadable lines are permitted, the third is an error.
fn trace() -> PathBuf {
    let mut lines: Vec<String> = (0..20_000)
        .map(|i| format!("{i},W,{},4096\n", i * 4096))
        .collect();
    for bad in [100, 19_900, 20_000] {
        lines.insert(bad, "oops\n".into());
    }
    let name = format!("flashtwin_ahead_{}.csv", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, lines.concat()).unwrap();
    path
}

/// Returns the requests, warnings and error that a consumer receives if it takes at most `most` batches.
fn taken(mut workload: Box<dyn Workload>, most: usize) -> (Vec<Request>, Vec<String>, String) {
    let mut requests = Vec::new();
    for _ in 0..most {
        match workload.next_batch(&mut requests) {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) => return (requests, workload.warnings(), e.to_string()),
        }
    }
    let end = format!("{:?}, {}", workload.requests_total(), workload.describe());
    (requests, workload.warnings(), end)
}

#[test]
fn reading_ahead_changes_nothing() {
    let path = trace();
    let mut ends = Vec::new();
    for max_bad_lines in [2, 3] {
        let opts = TraceOptions {
            max_bad_lines,
            reorder_window: 64,
            ..TraceOptions::default()
        };
        for most in [0, 1, 2, usize::MAX] {
            let direct = taken(open_trace(&path, &opts).unwrap(), most);
            let ahead = taken(read_ahead(open_trace(&path, &opts).unwrap()), most);
            assert_eq!(ahead, direct, "{most} batches");
            ends.push(direct);
        }
    }
    std::fs::remove_file(&path).unwrap();
    assert!(ends[1].1[0].starts_with("1 unreadable"), "{:?}", ends[1].1);
    assert!(
        ends[3].2.contains("more than the 2 bad lines"),
        "{}",
        ends[3].2
    );
    assert_eq!(ends[7].0.len(), 20_000);
    assert!(ends[7].1[0].starts_with("3 unreadable"), "{:?}", ends[7].1);
}
