//! Reading the option `columns`, and reading a table with it, never panics. The option is the first line of the input.
#![no_main]

use flashtwin_workload::{read_bytes, TraceOptions};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|&b| b == b'\n').unwrap_or(0);
    let Ok(columns) = std::str::from_utf8(&data[..end]) else {
        return;
    };
    let opts = TraceOptions {
        columns: Some(columns.to_string()),
        max_bad_lines: 4,
        limit: Some(100_000),
        ..TraceOptions::default()
    };
    let _ = read_bytes(&data[end..], &opts);
});
