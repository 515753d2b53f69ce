//! Garbage collection: which block goes next, and whether taking it is of use.

mod orders;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use orders::{Force, Orders};
pub(crate) use rules::{foresee, victim, Tie, Victims, GREEDY, RULES};

use crate::ftl::PageMap;

/// Whether a block with `valid` live pages finds room in `pool`, and collecting leads anywhere: some
/// block has a dead page.
///
/// The reference also collects where no block has one: that gains nothing and never ends.
pub(crate) fn worth_collecting(ftl: &PageMap, pool: u32, valid: u32) -> bool {
    let data_pages = ftl.shape.data_pages;
    let p = ftl.pool(pool);
    let free = p.free - ftl.shape.free_count_bias.min(p.free);
    ftl.least_tally(pool) < data_pages as i16
        && valid <= ftl.open_pages_for_moves(pool) + free * data_pages
}
