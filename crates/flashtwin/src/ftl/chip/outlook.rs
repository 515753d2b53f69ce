//! Queries of a device to the translation layer of a chip: how near it is to collecting or merging, and the state of
//! its blocks.

use super::store::Store;
use super::{dispatch, each, layers, ChipFtl, Ftl};

/// Room for writes before a chip must collect or merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// Blocks that the layer may begin; for a log, before a block must be reclaimed.
    pub free_blocks: u32,
    /// The layer collects when this many blocks are free and the open block is full.
    pub trigger_blocks: u32,
    /// Free pages of the open block.
    pub open_pages: u32,
    /// Writes that need neither collection nor merge, if no sequence ends among them.
    pub writes: u64,
}

impl Outlook {
    pub(super) fn of_log(free_blocks: u32, open_pages: u32, pages_per_block: u32) -> Outlook {
        Outlook {
            free_blocks,
            trigger_blocks: 0,
            open_pages,
            writes: u64::from(free_blocks) * u64::from(pages_per_block) + u64::from(open_pages),
        }
    }
}

impl Ftl {
    fn store(&self) -> &Store {
        each!(self, ftl => ftl.store())
    }

    /// Distance to collecting or merging.
    #[inline]
    pub(crate) fn outlook(&self) -> Outlook {
        each!(self, ftl => ftl.outlook())
    }

    /// Erases of each block.
    pub(crate) fn erases(&self) -> &[u32] {
        self.store().erases()
    }

    /// Counts all blocks as new.
    pub(crate) fn reset_wear(&mut self) {
        each!(self, ftl => ftl.store_mut().reset_wear());
    }

    /// Pages that can be programmed without an erase, in whatever block.
    pub(crate) fn erased_pages(&self) -> u64 {
        self.store().erased_pages()
    }

    /// Pages that were erased without having been programmed, ever.
    #[inline]
    pub(crate) fn skipped(&self) -> u64 {
        self.store().skipped()
    }

    /// Starts loading what an access to the page will touch first.
    #[inline]
    pub(crate) fn prefetch(&self, page: u32) {
        each!(self, ftl => ftl.prefetch(page));
    }

    /// Returns the number of logical pages with a copy on flash; looks up every page.
    pub(crate) fn pages_mapped(&self, logical_pages: u32) -> u64 {
        let mapped = (0..logical_pages).filter(|&page| self.lookup(page).is_some());
        mapped.count() as u64
    }
}
