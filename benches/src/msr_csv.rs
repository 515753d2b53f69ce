//! Speed of the MSR csv reader on a generated trace of a million lines.

use std::fmt::Write as _;
use std::time::Instant;

use flashtwin_workload::{open_trace, TraceOptions};

use crate::Failure;

const LINES: u64 = 1_000_000;

/// Returns the number of lines read per second, from opening the file to the last request.
pub fn lines_per_second() -> Result<f64, Failure> {
    let path = std::env::temp_dir().join(format!("flashtwin_bench_{}.csv", std::process::id()));
    std::fs::write(&path, trace())?;
    let began = Instant::now();
    let mut workload = open_trace(&path, &TraceOptions::default())?;
    let mut batch = Vec::new();
    let mut count = 0;
    while workload.next_batch(&mut batch)? > 0 {
        count += batch.len() as u64;
        batch.clear();
    }
    let seconds = began.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    assert_eq!(count, LINES, "the reader lost requests");
    Ok(LINES as f64 / seconds)
}

fn trace() -> String {
    let mut rng = flashtwin::Rng::new(1);
    let mut text = String::with_capacity(64 * LINES as usize);
    let mut ticks = 128_166_372_003_061_629u64;
    for _ in 0..LINES {
        ticks += 1 + rng.below(16_384);
        let kind = if rng.below(16) < 9 { "Write" } else { "Read" };
        let offset = rng.below(1 << 31) * 512;
        let size = 4096 << rng.below(4);
        let _ = writeln!(
            text,
            "{ticks},hm,0,{kind},{offset},{size},{}",
            rng.below(65_536)
        );
    }
    text
}
