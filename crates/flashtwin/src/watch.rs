//! Progress reports of work that takes no simulated time. Preconditioning, for example, may take minutes of real
//! time.

/// Observer of work that takes no simulated time. For the members of an array, several threads report to it at once.
pub trait Watch: Sync {
    /// Announces work on `pages` pages in addition to those announced before.
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

/// Number of pages between two reports. Work on them takes a few milliseconds.
const PORTION: u64 = 64 * 1024;

/// Calls `work` for each of `pages` pages, and reports to `watch`. Stops and returns false if `work` or `watch`
/// returns false.
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
