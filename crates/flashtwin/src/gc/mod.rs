//! Garbage collection: which block goes next, and whether taking it is of use.

mod greedy;

pub(crate) use greedy::{victim, Tie};

use crate::ftl::PageMap;

/// Whether collecting a block with `valid` live pages gains a page and finds room in `pool`.
///
/// The reference also collects wholly live blocks: that gains nothing and never ends.
pub(crate) fn worth_collecting(ftl: &PageMap, pool: u32, valid: u32) -> bool {
    let data_pages = ftl.shape.data_pages;
    let p = ftl.pool(pool);
    let free = p.free - ftl.shape.free_count_bias.min(p.free);
    valid < data_pages && valid <= ftl.open_pages(pool) + free * data_pages
}
