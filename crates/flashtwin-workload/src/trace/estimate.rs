//! Estimates the number of lines in a text trace from its beginning. A progress bar uses the estimate as its total.

use std::path::Path;

use memchr::{memchr, memchr_iter};

use super::input::Input;

/// Number of bytes of the file that are examined.
const LOOKED_AT_BYTES: u64 = 1 << 20;

/// Estimates the number of lines in a text trace from the first megabyte of the file, which may be compressed. Returns
/// `None` if the trace is not text.
pub fn estimate_lines(path: &Path) -> Option<u64> {
    let file_bytes = path.metadata().ok()?.len();
    let mut source = Input::File(path.to_path_buf()).open().ok()?;
    let mut lines = 0;
    while source.fill().ok()? {
        let data = source.data();
        if memchr(0, data).is_some() {
            return None;
        }
        lines += memchr_iter(b'\n', data).count() as u64;
        let looked_at = data.len();
        source.consume(looked_at);
        // The estimate needs the position in the file that corresponds to the lines counted. Before the end of the
        // file, this is the current position, so counting may stop. At the end of the file, the decompressor may still
        // hold text, so counting continues.
        if (LOOKED_AT_BYTES..file_bytes).contains(&source.packed_position()) {
            break;
        }
    }
    (lines > 0).then(|| {
        (lines as u128 * u128::from(file_bytes) / u128::from(source.packed_position())) as u64
    })
}
