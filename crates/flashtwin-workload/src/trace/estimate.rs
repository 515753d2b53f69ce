//! Estimates the number of lines in a text trace from its beginning, as the total of a progress bar.

use std::path::Path;

use memchr::{memchr, memchr_iter};

use super::input::Input;

/// Number of bytes of the file that are examined.
const LOOKED_AT_BYTES: u64 = 1 << 20;

/// Estimates the number of lines in a text trace from its first megabyte. The file may be compressed. Returns `None`
/// for other files.
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
        // Before the end of the file, its position is a measure of the lines counted, so reading may stop. At the end
        // of the file, reading continues, because some of the text may still be in the decompressor.
        if (LOOKED_AT_BYTES..file_bytes).contains(&source.packed_position()) {
            break;
        }
    }
    (lines > 0).then(|| {
        (lines as u128 * u128::from(file_bytes) / u128::from(source.packed_position())) as u64
    })
}
