//! Code that the fuzz targets share: it reads bytes as a trace of one format. Only a panic is a failure.

use flashtwin_workload::{read_bytes, Addresses, BlkEvent, Format, TraceOptions};

/// Reads `data` as `format` or, without one, as the detected format. The first byte chooses the options.
pub fn read(format: Option<Format>, data: &[u8]) {
    let Some((&pick, data)) = data.split_first() else {
        return;
    };
    let opts = TraceOptions {
        format,
        event: if pick & 1 == 0 {
            BlkEvent::D
        } else {
            BlkEvent::Q
        },
        addresses: Addresses::ALL[usize::from(pick >> 7)],
        max_bad_lines: u64::from(pick >> 1 & 7),
        reorder_window: usize::from(pick >> 4) * 16,
        // A few compressed bytes can decompress to gigabytes.
        limit: Some(100_000),
        ..TraceOptions::default()
    };
    let _ = read_bytes(data, &opts);
}
