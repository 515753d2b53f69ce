//! Progress of work that takes no virtual time, such as preconditioning, which may take minutes of real time.

/// Observer of untimed work. The members of an array report from the threads that work on them.
pub trait Watch: Sync {
    /// Announces work on `pages` pages in addition to those announced before.
    fn expect(&self, pages: u64);
    /// Reports work on `pages` of the announced pages as done; returns false if the work is to stop.
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

/// Pages between two reports: a few milliseconds of work.
const PORTION: u64 = 64 * 1024;

/// Calls `work` for each of `pages` pages and reports to `watch`; returns false if `work` did, or if `watch` stops it.
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
