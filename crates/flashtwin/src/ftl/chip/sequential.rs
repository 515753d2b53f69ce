//! The log block for sequential writes (SW block) of FAST and FASTER. It receives the pages of one logical block in
//! order, so that it can replace the data block of this logical block.

use std::io::{self, Read, Write};

use super::blocks::Blocks;
use super::saved::{read_list, write_list, wrong, Roles};
use super::{FlashOp, Why};
use crate::ftl::StateError;

/// State of an SW block that is in use.
#[derive(Clone, Copy, Debug)]
struct Open {
    block: u32,
    /// The logical block that the pages in the SW block belong to.
    owner: u32,
    /// Number of offsets that were written or skipped. The SW block has the pages 0 to `count - 1` of the logical
    /// block. A page that was already trimmed when it was to be copied is missing.
    count: u32,
}

/// The SW block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequential {
    open: Option<Open>,
}

impl Sequential {
    /// Returns the number of free blocks to reserve for the SW block: 0 if it is in use, otherwise 1.
    pub fn claims(&self) -> u32 {
        1 - self.len()
    }

    /// Returns the number of blocks in use: 0 or 1.
    pub fn len(&self) -> u32 {
        u32::from(self.open.is_some())
    }

    /// Whether the SW block belongs to this logical block and its next page is beyond this offset. If so, the place
    /// at this offset in the data block must not be written any more, even if the place is unwritten.
    pub fn has_passed(&self, block: u32, offset: u32) -> bool {
        self.open
            .is_some_and(|open| open.owner == block && offset < open.count)
    }

    /// Writes the page to the SW block in two cases: the page is the first one of its logical block, or the SW block
    /// belongs to its logical block. In the second case, a page out of order causes a merge. Returns whether the page
    /// was written.
    pub fn write(&mut self, blocks: &mut Blocks, page: u32, ops: &mut Vec<FlashOp>) -> bool {
        let (block, offset) = blocks.split(page);
        if offset == 0 {
            self.begin(blocks, page, ops);
            return true;
        }
        let Some(open) = self.open.filter(|open| open.owner == block) else {
            return false;
        };
        if offset == open.count {
            let ppn = blocks.store.ppn(open.block, offset);
            blocks.write_at(page, ppn, ops);
            self.open = Some(Open {
                count: open.count + 1,
                ..open
            });
            return true;
        }
        self.open = None;
        if offset < open.count {
            blocks.merge_full(block, Some(page), ops);
            blocks.store.erase(open.block, Why::Merge, ops);
        } else {
            blocks.adopt_with(block, open.block, open.count, page, ops);
        }
        true
    }

    /// Closes the SW block and starts a new one for the logical block of `page`. First copies all pages of the
    /// logical block that precede `page` to the new SW block, then writes `page`.
    pub fn begin(&mut self, blocks: &mut Blocks, page: u32, ops: &mut Vec<FlashOp>) {
        self.close(blocks, ops);
        let (owner, offset) = blocks.split(page);
        let block = blocks.store.take();
        blocks.gather(owner, 0..offset, block, None, ops);
        let ppn = blocks.store.ppn(block, offset);
        blocks.write_at(page, ppn, ops);
        let count = offset + 1;
        self.open = Some(Open {
            block,
            owner,
            count,
        });
    }

    /// Makes the SW block the data block of its logical block. This is a switch merge if the SW block is full,
    /// otherwise a partial merge.
    pub fn close(&mut self, blocks: &mut Blocks, ops: &mut Vec<FlashOp>) {
        if let Some(open) = self.open.take() {
            blocks.adopt(open.owner, open.block, open.count, ops);
        }
    }

    /// Merges a logical block. If the SW block belongs to it, closes the SW block. Otherwise executes a full merge.
    pub fn merge(&mut self, blocks: &mut Blocks, block: u32, ops: &mut Vec<FlashOp>) {
        match self.open {
            Some(open) if open.owner == block => self.close(blocks, ops),
            _ => blocks.merge_full(block, None, ops),
        }
    }

    /// Writes the state of the SW block.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let numbers = self.open.map(|open| [open.block, open.owner, open.count]);
        write_list(out, numbers.into_iter().flatten())
    }

    /// Reads a state into an unused SW block.
    pub fn load(
        &mut self,
        roles: &mut Roles,
        blocks: &Blocks,
        input: &mut dyn Read,
    ) -> Result<(), StateError> {
        self.open = match read_list(input, 3)?[..] {
            [] => None,
            [block, owner, count] => {
                roles.take(block)?;
                if owner >= blocks.logical_blocks() || !blocks.may_adopt(owner, block, count) {
                    return wrong("the log block for sequential writes is not in order");
                }
                Some(Open {
                    block,
                    owner,
                    count,
                })
            }
            _ => return wrong("the log block for sequential writes is cut off"),
        };
        Ok(())
    }

    /// Formats the SW block, such as `SW0[0 1]`: the number of the logical block, then the pages written.
    pub fn text(&self, blocks: &Blocks) -> String {
        match self.open {
            Some(open) => {
                let pages = blocks.store.text(open.block, open.count, |_| "");
                format!("SW{}{pages}", open.owner)
            }
            None => "SW[]".to_owned(),
        }
    }
}
