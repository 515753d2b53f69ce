//! Progress reports of work that takes no simulated time, such as preconditioning. It may take minutes of real time.

/// Observer of work that takes no simulated time. If the device is an array, several threads report to it at once.
pub trait Watch: Sync {
    /// Announces work on `pages` further pages.
    fn expect(&self, pages: u64);
    /// Reports that work on `pages` of the announced pages is done. Returns false if the work must stop.
    fn done(&self, pages: u64) -> bool;
}

/// Observer that ignores reports and never stops the work.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn expect(&self, _pages: u64) {}
    fn done(&self, _pages: u64) -> bool {
        true
    }
}

/// Number of pages between two reports. The work on this number of pages takes a few milliseconds.
const PORTION: u64 = 64 * 1024;

/// Calls `work` for each page from 0 to `pages` - 1, and reports progress to `watch`. Stops and returns false as
/// soon as `work` or `watch` returns false.
pub(crate) fn each_page(watch: &dyn Watch, pages: u64, mut work: impl FnMut(u64) -> bool) -> bool {
    let mut begin = 0;
    while begin < pages {
        let end = pages.min(begin + PORTION);
        if !(begin..end).all(&mut work) || !watch.done(end - begin) {
            return false;
        }
        begin = end;
    }
    true
}
