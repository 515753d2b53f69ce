//! Speed of the MSR csv reader: about a million generated lines from a file, best seen as lines per
//! second (median of five). Prints `msr_csv_lines_per_second: <value>`.

use flashtwin_workload::{open_trace, TraceOptions};
use std::fmt::Write as _;
use std::time::Instant;

const LINES: u64 = 1_000_000;

fn main() {
    let mut text = String::with_capacity(64 * LINES as usize);
    let (mut ticks, mut bits) = (128_166_372_003_061_629u64, 1u64);
    for _ in 0..LINES {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ticks += 1 + (bits >> 50);
        let kind = if bits >> 60 < 9 { "Write" } else { "Read" };
        let (offset, size) = ((bits >> 33) * 512, 4096 << (bits >> 62));
        let _ = writeln!(text, "{ticks},hm,0,{kind},{offset},{size},{}", bits >> 48);
    }
    let path = std::env::temp_dir().join(format!("flashtwin_bench_{}.csv", std::process::id()));
    std::fs::write(&path, text).expect("the temporary directory is writable");
    let mut rates: Vec<f64> = (0..5).map(|_| run(&path)).collect();
    let _ = std::fs::remove_file(&path);
    rates.sort_by(f64::total_cmp);
    println!("msr_csv_lines_per_second: {:.0}", rates[2]);
}

fn run(path: &std::path::Path) -> f64 {
    let began = Instant::now();
    let mut workload =
        open_trace(path, &TraceOptions::default()).expect("the generated trace opens");
    let mut batch = Vec::new();
    let mut count = 0;
    while workload
        .next_batch(&mut batch)
        .expect("the generated trace reads")
        > 0
    {
        count += batch.len() as u64;
        batch.clear();
    }
    assert_eq!(count, LINES);
    LINES as f64 / began.elapsed().as_secs_f64()
}
