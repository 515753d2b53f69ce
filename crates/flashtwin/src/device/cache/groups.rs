//! Groups: pages that are programmed together because one eviction named them.
//!
//! A group is programmed when all its pages are *complete*, that is, when all their sectors are in the buffer. Victims
//! are programmed in the order in which the policy named them. If other pages are programmed with the victims, the
//! order is ascending by logical page. For example, BPLRU reads the missing pages of a block, then writes the whole
//! block in ascending order (Kim and Ahn, FAST 2008).

use super::page::{Membership, Page, Pool, Rank, Residency, Slot, Want};
use crate::buffer::PageId;
use crate::device::{Backend, Device};
use crate::nand::FlashEvent;
use crate::units::Lpn;

/// A group of pages that are programmed together.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pages: Vec<u32>,
    /// Number of pages that are not complete yet.
    missing: u32,
}

impl<B: Backend> Device<B> {
    /// Forms a group of the pages that the last eviction named, and writes it back.
    #[inline(never)]
    pub(super) fn write_group(&mut self) {
        let out = std::mem::take(&mut self.cache.eviction);
        let mut pages = match self.cache.free_groups.last() {
            Some(&group) => std::mem::take(&mut self.cache.groups[group as usize].pages),
            None => Vec::new(),
        };
        let by =
            (out.victims.first()).map_or(FlashEvent::NO_REQUEST, |victim| self.page(victim.0).by);
        for victim in &out.victims {
            let p = self.page(victim.0);
            if p.dirty {
                pages.push(victim.0);
            } else if out.write_clean {
                p.want = Want::Padding;
                pages.push(victim.0);
            }
        }
        for &lpn in &out.merged {
            let cached = self.cache.find(lpn).map(|page| page.0);
            // Pages in flight do not join the group.
            if let Some(id) = cached.filter(|&id| self.page(id).is_ready()) {
                let p = self.page(id);
                let is_clean = !p.dirty && !p.is_programming();
                if !p.has_left() && is_clean && p.group == Membership::None {
                    p.by = by;
                    p.want = Want::Merge;
                    pages.push(id);
                }
            }
        }
        for &lpn in &out.padding {
            let beyond = u64::from(lpn.0) * self.address.page_bytes >= self.address.exported_bytes;
            // If an access evicts the block that its own page belongs to, this page is not in the group. It is written
            // separately.
            let entered = (self.cache.find(lpn)).is_some_and(|page| !self.page(page.0).has_left());
            if !beyond && !entered {
                pages.push(self.add_padding(lpn, by));
            }
        }
        if !out.padding.is_empty() || !out.merged.is_empty() {
            let cache = &self.cache;
            pages.sort_unstable_by_key(|&id| cache.pages[id as usize].lpn);
        }
        self.open_group(pages);
        // Clean victims that are not in the group are dropped now. The other victims are dropped after the group is
        // written.
        for victim in &out.victims {
            if self.page(victim.0).group == Membership::None {
                self.pump(victim.0);
            }
        }
        self.cache.eviction = out;
    }

    /// Adds a padding page: a page without a slot, which is read from flash and programmed again with its group.
    fn add_padding(&mut self, lpn: Lpn, by: u32) -> u32 {
        let older = self.cache.find(lpn).map(|page| page.0);
        let home = self.backend.home(lpn);
        let id = self.cache.add_page(Page {
            residency: Residency::Ready(Slot::Extra),
            rank: Rank::Left,
            by,
            want: Want::Padding,
            ..Page::new(lpn, Pool::Policy, home)
        });
        self.cache.directory.insert(lpn, PageId(id));
        self.link_older(id, older);
        id
    }

    /// Creates a group of these pages. They are programmed in the given order when all of them are complete.
    fn open_group(&mut self, pages: Vec<u32>) {
        if pages.is_empty() {
            return;
        }
        let cache = &mut self.cache;
        let group = match cache.free_groups.pop() {
            Some(group) => group,
            None => {
                cache.groups.push(Group::default());
                cache.groups.len() as u32 - 1
            }
        };
        for &id in &pages {
            cache.pages[id as usize].group = Membership::Missing(group);
        }
        let count = pages.len() as u32;
        cache.groups[group as usize] = Group {
            pages,
            missing: count,
        };
        for i in 0..count as usize {
            // If the group becomes complete during the loop, its pages are programmed and may be released. The loop
            // must then end.
            let Some(&id) = self.cache.groups[group as usize].pages.get(i) else {
                break;
            };
            self.pump(id);
        }
    }

    /// Records that a page of a group is complete. If it was the last one, starts the programs of all pages of the
    /// group.
    #[inline(never)]
    pub(super) fn whole_in_group(&mut self, id: u32) {
        let p = self.page(id);
        let Membership::Missing(group) = p.group else {
            return;
        };
        p.group = Membership::Whole(group);
        let g = &mut self.cache.groups[group as usize];
        g.missing -= 1;
        if g.missing > 0 {
            return;
        }
        let mut pages = std::mem::take(&mut g.pages);
        for &id in &pages {
            self.page(id).group = Membership::None;
        }
        for &id in &pages {
            self.pump(id);
        }
        pages.clear();
        self.cache.groups[group as usize].pages = pages;
        self.cache.free_groups.push(group);
    }
}
