//! Garbage collection: selects the victim, and decides whether a collection gains free pages.

mod orders;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use orders::{Force, Orders};
pub(crate) use rules::{foresee, victim, Candidate, Pool, Tie, Victims, GREEDY, RULES};

use crate::ftl::PageMap;

/// Whether a collection gains free pages. This requires that `pool` has room for the `valid` live pages of the victim,
/// and that at least one block has an invalid page.
///
/// The reference (DiskSim with Microsoft's SSD extension) does not check for an invalid page. If no block has one, the
/// reference collects forever without gaining free pages.
pub(crate) fn worth_collecting(ftl: &PageMap, pool: u32, valid: u32) -> bool {
    let data_pages = ftl.shape.data_pages;
    let p = ftl.pool(pool);
    let free = p.free - ftl.shape.free_count_bias.min(p.free);
    ftl.least_tally(pool) < data_pages as i16
        && valid <= ftl.open_pages_for_moves(pool) + free * data_pages
}
