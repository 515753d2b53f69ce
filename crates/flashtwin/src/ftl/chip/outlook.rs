//! Queries about a chip's translation layer: the numbers of pages and blocks that can be written before a
//! collection or merge, and the state of its blocks.

use super::store::Store;
use super::{dispatch, each, layers, ChipFtl, Ftl};
use crate::joined::join;

/// Numbers of pages and blocks that can be written before a chip must collect or merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// Number of free blocks. For a layer with log blocks: number of log blocks that can be opened before a log
    /// block must be reclaimed.
    pub free_blocks: u32,
    /// GC trigger: the layer collects when its open block is full and the number of free blocks is not above this
    /// number.
    pub trigger_blocks: u32,
    /// Free pages of the open block.
    pub open_pages: u32,
    /// Number of pages that the host can write before the next collection or merge. A merge may occur earlier if a
    /// sequential stream ends.
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

    /// Returns the numbers of pages and blocks that can be written before the next collection or merge.
    #[inline]
    pub(crate) fn outlook(&self) -> Outlook {
        each!(self, ftl => ftl.outlook())
    }

    /// Returns the erases of each block.
    pub(crate) fn erases(&self) -> &[u32] {
        self.store().erases()
    }

    /// Resets all erase counts to 0.
    pub(crate) fn reset_wear(&mut self) {
        each!(self, ftl => ftl.store_mut().reset_wear());
    }

    /// Returns the number of erased pages, over all blocks.
    pub(crate) fn erased_pages(&self) -> u64 {
        self.store().erased_pages()
    }

    /// Returns the number of pages that were erased without having been programmed, since the layer was created.
    #[inline]
    pub(crate) fn skipped(&self) -> u64 {
        self.store().skipped()
    }

    /// Moves the large tables of several chips into one allocation ([`crate::joined`]).
    pub(crate) fn join(ftls: &mut [Ftl]) {
        let mut tables = Vec::new();
        for ftl in ftls {
            each!(ftl, ftl => tables.extend(ftl.tables()));
        }
        join(&mut tables);
    }

    /// Prefetches the first data that an access to the page reads.
    #[inline]
    pub(crate) fn prefetch(&self, page: u32) {
        each!(self, ftl => ftl.prefetch(page));
    }

    /// Prefetches the state of the page's copy on flash. The data of [`Ftl::prefetch`] must be in the processor's
    /// cache.
    #[inline]
    pub(crate) fn prefetch_old_copy(&self, page: u32) {
        each!(self, ftl => ftl.prefetch_old_copy(page));
    }

    /// Returns the number of logical pages with a copy on flash. Looks up every page, which is slow.
    pub(crate) fn pages_mapped(&self, logical_pages: u32) -> u64 {
        let mapped = (0..logical_pages).filter(|&page| self.lookup(page).is_some());
        mapped.count() as u64
    }
}
