//! The buffer in front of the flash: a directory of the cached pages, and the policies that rank these pages.
//!
//! Each policy is one file in `policies/` and only orders pages. The directory, the pages in flight, the waiting host
//! requests and the statistics are the same code for all policies. This code belongs to the device's front end (host
//! link, processor and buffer).

#[macro_use]
mod policies;

mod age_index;
mod balance;
mod blocks;
mod bloom;
pub mod catalog;
mod chosen;
mod cost_order;
mod directory;
mod entry;
mod ghosts;
mod policy;
mod registry;
mod room;
pub mod sample;
mod second_chance;
mod sketch;
pub mod stack;
pub mod trace;
pub mod untimed;

pub use crate::list::List;
pub use crate::units::{PageId, Stream};
pub use age_index::Aged;
pub(crate) use bloom::Filter;
pub(crate) use chosen::AnyPolicy;
pub use chosen::ChosenPolicy;
pub(crate) use directory::Directory;
pub use policies::min;
pub(crate) use policy::Prefetch;
pub use policy::{page_text, pages_text, Access, DeviceView, Eviction, Policy, Skip};
pub use registry::UserPolicy;
pub(crate) use room::{Room, Way};

use crate::component::{words, Settings};
use crate::divide::Divider;
use crate::units::{Lpn, Time};

/// Properties of the device and buffer for which a policy is created.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Number of pages that the policy may hold.
    pub capacity: u32,
    /// Number of chips behind the buffer.
    pub chips: u32,
    /// Number of channels. Chip c is on channel c mod `channels`.
    pub channels: u32,
    /// Number of consecutive pages that static placement puts on one chip; `None` with dynamic placement.
    pub stride_pages: Option<u32>,
    /// N: pages of an erase block.
    pub pages_per_block: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Programs of the flash.
    pub programs: Programs,
    /// Whether GCaR filters the policy. The policy must then be able to skip pages by their chips.
    pub filtered: bool,
    /// Values of the policy's parameters.
    pub settings: Settings,
}

/// Duration and size of the program operations of the flash behind a buffer. Policies that write pages back ahead of
/// their eviction use these values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Programs {
    /// Longest time for which a write blocks a read of the same chip. This is the time of a program, plus that of an
    /// erase if reads cannot suspend erases. Relocations by GC are not included.
    pub blocked: Time,
    /// Pages that one program writes.
    pub pages: u32,
    /// Pages of one row of cells: the pages of one program times the number of page types (lower, upper, ...).
    pub row_pages: u32,
}

impl Programs {
    /// Programs of single pages, which take no time.
    pub const INSTANT: Programs = Programs {
        blocked: Time::ZERO,
        pages: 1,
        row_pages: 1,
    };
}

words! {
    /// Kinds of logical blocks for the policies that rank blocks (D-7).
    pub enum Blocks {
        /// N consecutive pages of one chip, where N is the number of pages of an erase block. With dynamic placement,
        /// the same as `Host`.
        Element = "element",
        /// N consecutive logical pages as the host numbers them, where N is the number of pages of an erase block.
        Host = "host",
    }
}

/// Maps pages to logical blocks. Its divisors are stored in a form that allows fast division.
#[derive(Clone, Copy, Debug)]
pub struct Blocking {
    pages: Divider,
    chips: Divider,
    /// The stride (consecutive pages on one chip), and the stride times the number of chips, both in pages. `None` if a
    /// block consists of consecutive pages of the host.
    striped: Option<(Divider, Divider)>,
}

impl Blocking {
    /// Creates the mapping to blocks of the kind `blocks`, for the device and buffer that `setup` describes.
    pub fn new(setup: &Setup, blocks: Blocks) -> Blocking {
        let stride = match blocks {
            Blocks::Element if setup.chips > 1 => setup.stride_pages,
            Blocks::Element | Blocks::Host => None,
        };
        Blocking {
            pages: Divider::new(setup.pages_per_block),
            chips: Divider::new(setup.chips),
            striped: stride
                .map(|stride| (Divider::new(stride), Divider::new(stride * setup.chips))),
        }
    }

    /// Returns the logical block of a page, and the page's offset in it (D-7).
    #[inline]
    pub fn block_of(&self, lpn: Lpn) -> (u32, u32) {
        let Some((stride, row)) = self.striped else {
            return self.pages.div_rem(lpn.0);
        };
        let (unit, within) = stride.div_rem(lpn.0);
        let chip = self.chips.div_rem(unit).1;
        let local = row.div(lpn.0) * stride.by() + within;
        let (block, offset) = self.pages.div_rem(local);
        (block * self.chips.by() + chip, offset)
    }

    /// Returns the logical page at an offset of a logical block. The page may be beyond the capacity of the device.
    /// Returns `None` if the page number does not fit in 32 bits.
    pub fn page_of_block(&self, block: u32, offset: u32) -> Option<Lpn> {
        let n = u64::from(self.pages.by());
        let (block, offset) = (u64::from(block), u64::from(offset));
        let lpn = match self.striped {
            None => block * n + offset,
            Some((stride, _)) => {
                let (stride, chips) = (u64::from(stride.by()), u64::from(self.chips.by()));
                let local = block / chips * n + offset;
                local / stride * stride * chips + block % chips * stride + local % stride
            }
        };
        u32::try_from(lpn).ok().map(Lpn)
    }
}

#[cfg(test)]
mod tests;
