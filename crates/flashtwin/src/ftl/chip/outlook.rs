//! What a device asks of the translation layer of a chip beside its accesses: how near it is to
//! collecting or merging, and how its blocks stand.

use super::store::Store;
use super::{Bast, ChipFtl, Dftl, Fast, Faster, Ftl};
use crate::memory::prefetch;

/// How much can be written before a chip must collect or merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// Blocks that it may begin; of a log, before it must give one back.
    pub free_blocks: u32,
    /// It collects when these are left and the open block is full.
    pub trigger_blocks: u32,
    /// Pages left in the open block.
    pub open_pages: u32,
    /// Writes that need neither collection nor merge, if no sequence ends among them.
    pub writes: u64,
}

impl Outlook {
    fn of_log(free_blocks: u32, open_pages: u32, pages_per_block: u32) -> Outlook {
        Outlook {
            free_blocks,
            trigger_blocks: 0,
            open_pages,
            writes: u64::from(free_blocks) * u64::from(pages_per_block) + u64::from(open_pages),
        }
    }
}

macro_rules! each {
    ($ftl:expr, $inner:ident => $call:expr) => {
        match $ftl {
            Ftl::Dftl($inner) => $call,
            Ftl::Bast($inner) => $call,
            Ftl::Fast($inner) => $call,
            Ftl::Faster($inner) => $call,
        }
    };
}

impl Ftl {
    fn store(&self) -> &Store {
        each!(self, ftl => ftl.store())
    }

    /// How near it is to collecting or merging.
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

    /// Logical pages with a copy on flash: costs a pass over them.
    pub(crate) fn pages_mapped(&self, logical_pages: u32) -> u64 {
        let mapped = (0..logical_pages).filter(|&page| self.lookup(page).is_some());
        mapped.count() as u64
    }
}

impl Dftl {
    #[inline]
    fn prefetch(&self, page: u32) {
        self.cache.prefetch(page);
        prefetch(&self.stored, page as usize);
    }

    fn outlook(&self) -> Outlook {
        let n = self.store.pages_per_block();
        let (free, low) = (self.store.free_blocks(), self.low_blocks);
        let open_pages = n - self.data.next;
        // The write that begins the last block above the watermark still finds it there.
        let begun = match free.checked_sub(low + 1) {
            Some(blocks) => u64::from(blocks) * u64::from(n) + 1,
            None => 0,
        };
        Outlook {
            free_blocks: free,
            trigger_blocks: low,
            open_pages,
            writes: match begun {
                0 => 0,
                begun => begun + u64::from(open_pages),
            },
        }
    }
}

impl Bast {
    #[inline]
    fn prefetch(&self, page: u32) {
        self.blocks.prefetch(page);
    }

    fn outlook(&self) -> Outlook {
        let n = self.store().pages_per_block();
        Outlook::of_log(self.idle_logs(), self.newest_room(), n)
    }
}

impl Fast {
    #[inline]
    fn prefetch(&self, page: u32) {
        self.blocks.prefetch(page);
    }

    fn outlook(&self) -> Outlook {
        let random = &self.random;
        let n = self.store().pages_per_block();
        Outlook::of_log(random.claims(), random.open_pages(), n)
    }
}

impl Faster {
    #[inline]
    fn prefetch(&self, page: u32) {
        self.blocks.prefetch(page);
    }

    fn outlook(&self) -> Outlook {
        let random = &self.random;
        let n = self.store().pages_per_block();
        Outlook::of_log(random.claims(), random.open_pages(), n)
    }
}
