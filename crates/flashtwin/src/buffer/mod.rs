//! The buffer in front of the flash: one directory of cached pages, and the policies that rank them.
//!
//! A policy fits in one file and only orders pages. The directory, pages in flight, waiting host
//! requests and statistics exist once, in [`crate::device`].

mod ad_lru;
mod aged;
pub mod alone;
mod any;
mod arc;
mod blocks;
mod bloom;
mod bpac;
mod bplru;
pub mod catalog;
mod cbm;
mod ccf_lru;
mod cda_gc;
mod cflru;
mod clock;
mod co_active;
mod directory;
mod ecr;
mod fab;
mod fifo;
mod gcar;
mod ghosts;
mod lb_clock;
mod lirs;
mod list;
mod lru;
mod lru_wsr;
pub mod min;
mod order;
mod passed;
mod policy;
mod pud_lru;
mod req_block;
mod room;
mod s3_fifo;
mod sieve;
mod timeline;
pub mod trace;
mod two_q;

pub use aged::Aged;
pub(crate) use any::AnyPolicy;
pub use any::UserPolicy;
pub(crate) use directory::Directory;
pub use list::List;
pub use policy::{
    page_text, pages_text, Access, DeviceView, Eviction, PageId, Policy, Spare, Stream,
};
pub(crate) use room::{Room, Way};

use crate::divide::Divider;
use crate::spec::{Blocks, DeviceSpec, Placement, PolicyParams};
use crate::units::Lpn;

/// What a policy is made for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Pages it may hold.
    pub capacity: u32,
    /// Chips behind it.
    pub chips: u32,
    /// Channels that the chips share; chip c is on channel c mod channels.
    pub channels: u32,
    /// Consecutive pages on a chip under static placement; `None`: dynamic placement.
    pub stride_pages: Option<u32>,
    /// N: pages of an erase block.
    pub pages_per_block: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// GCaR will ask it to pass over pages by chip.
    pub filtered: bool,
    /// Its parameters.
    pub params: PolicyParams,
}

impl Setup {
    /// For the buffer of a device; one of no pages if it has none.
    pub fn of(spec: &DeviceSpec) -> Setup {
        let g = &spec.geometry;
        let buffer = spec.buffer.as_ref();
        let capacity = buffer.map_or(0, |b| b.capacity_pages);
        Setup {
            capacity,
            chips: g.chips,
            channels: g.channels,
            stride_pages: (spec.ftl.placement == Placement::Static)
                .then_some(spec.ftl.stride_pages),
            pages_per_block: g.pages_per_block,
            page_bytes: g.page_bytes,
            filtered: buffer.is_some_and(|b| b.policy.gcar),
            params: buffer.map_or_else(
                || PolicyParams::defaults(capacity),
                |b| b.policy.params.clone(),
            ),
        }
    }

    /// The logical block of a page, and the page's offset in it (D-7).
    pub fn block_of(&self, lpn: Lpn) -> (u32, u32) {
        Blocking::of(self).block_of(lpn)
    }

    /// The logical page at an offset of a logical block; `None` beyond the last page number.
    pub fn page_of_block(&self, block: u32, offset: u32) -> Option<Lpn> {
        let n = u64::from(self.pages_per_block);
        let (block, offset) = (u64::from(block), u64::from(offset));
        let lpn = match self.element_stride() {
            None => block * n + offset,
            Some(stride) => {
                let (stride, chips) = (u64::from(stride), u64::from(self.chips));
                let local = block / chips * n + offset;
                local / stride * stride * chips + block % chips * stride + local % stride
            }
        };
        u32::try_from(lpn).ok().map(Lpn)
    }

    fn element_stride(&self) -> Option<u32> {
        match self.params.blocks {
            Blocks::Host => None,
            Blocks::Element if self.chips == 1 => None,
            Blocks::Element => self.stride_pages,
        }
    }
}

/// How pages make up logical blocks, with its divisions prepared.
#[derive(Clone, Copy, Debug)]
struct Blocking {
    pages: Divider,
    chips: Divider,
    /// The stride, and the stride times chips; `None`: pages of a block are consecutive.
    striped: Option<(Divider, Divider)>,
}

impl Blocking {
    fn of(setup: &Setup) -> Blocking {
        let stride = setup.element_stride();
        Blocking {
            pages: Divider::new(setup.pages_per_block),
            chips: Divider::new(setup.chips),
            striped: stride
                .map(|stride| (Divider::new(stride), Divider::new(stride * setup.chips))),
        }
    }

    /// The logical block of a page, and the page's offset in it.
    #[inline]
    fn block_of(&self, lpn: Lpn) -> (u32, u32) {
        let Some((stride, row)) = self.striped else {
            return self.pages.div_rem(lpn.0);
        };
        let (unit, within) = stride.div_rem(lpn.0);
        let chip = self.chips.div_rem(unit).1;
        let local = row.div(lpn.0) * stride.by() + within;
        let (block, offset) = self.pages.div_rem(local);
        (block * self.chips.by() + chip, offset)
    }
}

#[cfg(test)]
mod tests;
