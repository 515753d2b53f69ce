//! Co-Active: evicts clean pages first, and writes cold dirty pages back while a channel is idle. This is a
//! reconstruction from CDA-GC sections 4.3 and 5, and from MQSim's advanced cache.
//!
//! There is a clean list CL and a dirty list DL. A filter records the written pages. A write makes its page hot if the
//! page was already written since the last reset of the filter, otherwise cold. The victim is the least recent clean
//! page. Without clean pages, it is the least recent cold page; without cold pages, the least recent page. When a
//! channel becomes idle, the least recent cold page of that channel is written back. The page stays in the buffer as a
//! clean page. Its position in CL follows from its last access (D-9).
//!
//! The channel of a page is the channel of its flash copy. A page without a flash copy is not written back in idle
//! time.

use crate::buffer::age_index::{AgeIndex, Shelf};
use crate::buffer::bloom::{Filter, FilterParameters};
use crate::buffer::entry::{cost, example_with, Entry, Family, Make};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Skip};
use crate::buffer::{PageId, Setup};
use crate::component::{parameters, words, Kind};
use crate::component::{source, Provenance};
use crate::units::ChipId;

words! {
    /// Part of the device that must be idle before its pages are written back.
    enum IdleUnit {
        /// A channel must be idle, with all its chips.
        Channel = "channel",
        /// A single chip must be idle.
        Chip = "chip",
    }
}

parameters! {
    /// Parameters of Co-Active.
    struct Parameters {
        /// Active write-backs in flight (MWT).
        write_backs: u32 = Kind::Count(1, 65_535), "8", "D-9: our decision";
        /// Part of the device that must be idle before its cold pages are written back.
        idle_unit: IdleUnit = Kind::Choice(IdleUnit::WORDS), "\"channel\"", "printed: CDA-GC section 5 has channel";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "co-active",
    title: "Co-Active",
    line: "A clean and a dirty list; cold dirty pages are written back when their channel is idle.",
    family: Family::Chips,
    source: source(
        "H. Sun, S. Dai, J. Huang, X. Qin",
        "Co-Active: A Workload-Aware Collaborative Cache Management Scheme for NVMe SSDs",
        "IEEE Transactions on Parallel and Distributed Systems 32(6)",
        2021,
    ),
    provenance: Provenance::Reconstruction,
    rule: &[
        "Clean pages are in the list CL and dirty pages in the list DL, each in LRU order.",
        "Write: the page moves to the most recent end of DL. It is hot if it was written since \
         the filter's last reset, otherwise cold.",
        "Read: on a hit, the page moves to the most recent end of its list; on a miss, it enters \
         at the most recent end of CL.",
        "Victim: the least recent clean page. If no page is clean, the least recent cold dirty \
         page. If all pages are hot and dirty, the least recent page.",
        "Active write-back: when a channel (`idle_unit`) is idle, the least recent cold dirty \
         page of this channel is written to flash. At most `write_backs` of these writes are in \
         flight. The page stays in the buffer. Unless it is written again meanwhile, it becomes a \
         clean page, in CL at the position of its last access.",
    ],
    drawing: "
CL [ 3c ] -> victim first
DL [ 5c  1h  2c ]          h hot, c cold
             ^ its channel idle: written to flash, then into CL",
    state: "`CL[3] DL[5c 1h 2c]`: here h is hot and c cold.",
    cost: cost("O(k) hashes", "O(1); write-back O(n)", "O(1)"),
    example: example_with(4, &[("filter", "exact")], 2, "W1 W2 W3 W1 idle1 W5 W7 W9"),
    parameters: &[FilterParameters::ROWS, Parameters::ROWS],
    make: Make::Base(|setup| CoActive::new(setup).into()),
    ..Entry::PLAIN
}];

const CLEAN: usize = 0;
const COLD: usize = 1;
/// Class of hot dirty pages. The list DL of the paper consists of this class and the class of cold dirty pages.
const HOT: usize = 2;

/// Co-Active: writes cold dirty pages back while a channel is idle.
#[derive(Clone, Debug)]
pub struct CoActive {
    chips: u32,
    /// Number of channels. Chip c is on channel c mod `channels`. If `idle_unit` is a chip, each chip counts as a
    /// channel.
    channels: u32,
    write_backs: u32,
    filter: Filter,
    order: AgeIndex<3>,
    hot_writes: u64,
    written_back: u64,
}

impl CoActive {
    /// Creates the policy with two empty lists.
    pub fn new(setup: &Setup) -> CoActive {
        let parameters = Parameters::of(&setup.settings);
        let channels = match parameters.idle_unit {
            IdleUnit::Channel => setup.channels.max(1),
            IdleUnit::Chip => setup.chips.max(1),
        };
        let listed = [setup.filtered, true, setup.filtered];
        CoActive {
            chips: setup.chips,
            channels,
            write_backs: parameters.write_backs,
            filter: Filter::new(setup),
            order: AgeIndex::new(setup.capacity, setup.chips, listed),
            hot_writes: 0,
            written_back: 0,
        }
    }

    /// Returns the class of a page after an access. `was` is its class before the access; `None` if the page was not
    /// cached.
    fn class(&mut self, device: &dyn DeviceView, access: &Access, was: usize) -> usize {
        if access.write {
            let hot = self.filter.write(device.now(), access.lpn);
            self.hot_writes += u64::from(hot);
            return if hot { HOT } else { COLD };
        }
        match (access.dirty, was) {
            (false, _) => CLEAN,
            (true, HOT) => HOT,
            (true, _) => COLD,
        }
    }
}

impl Policy for CoActive {
    #[inline]
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        let class = self.class(device, access, CLEAN);
        self.order.insert(page, class, Shelf::of(device, page));
    }

    #[inline]
    fn hit(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        let class = self.class(device, access, self.order.class(page));
        self.order.renew(page, class);
    }

    fn forget(&mut self, page: PageId) {
        self.order.remove(page);
    }

    fn cleaned(&mut self, _device: &dyn DeviceView, page: PageId) {
        self.order.change(page, CLEAN);
    }

    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        self.order.moved(page, Shelf::of(device, page));
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        for class in [CLEAN, COLD, HOT] {
            let (found, looked) = self.order.oldest_not(class, device, skip);
            out.inspected += looked;
            out.skipped |= looked > u64::from(found.is_some());
            if let Some(page) = found {
                self.order.remove(page);
                out.victims.push(page);
                return true;
            }
        }
        false
    }

    fn wants_idle(&self) -> bool {
        true
    }

    fn idle(
        &mut self,
        device: &dyn DeviceView,
        chip: ChipId,
        in_flight: u32,
        busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        if in_flight >= self.write_backs {
            return None;
        }
        let channel = u32::from(chip.0) % self.channels;
        let mut oldest: Option<(u32, PageId)> = None;
        for chip in (channel..self.chips).step_by(self.channels as usize) {
            let mut pages = self.order.iter_chip(COLD, chip as usize);
            let page = pages.find(|&page| !busy(page));
            if !device.chip_idle(ChipId(chip as u16)) {
                return None;
            }
            let candidate = page.map(|page| (self.order.age(page), page));
            oldest = [oldest, candidate].into_iter().flatten().min();
        }
        let (_, page) = oldest?;
        self.written_back += 1;
        Some(page)
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let list = |classes: &[(usize, &str)]| {
            let mut pages: Vec<(u32, String)> = Vec::new();
            for &(class, letter) in classes {
                for page in self.order.iter_oldest_first(class) {
                    let text = format!("{}{letter}", device.lpn(page).0);
                    pages.push((self.order.age(page), text));
                }
            }
            pages.sort_unstable_by(|a, b| b.cmp(a));
            let texts: Vec<String> = pages.into_iter().map(|(_, text)| text).collect();
            texts.join(" ")
        };
        let clean = list(&[(CLEAN, "")]);
        let dirty = list(&[(COLD, "c"), (HOT, "h")]);
        format!("CL[{clean}] DL[{dirty}]")
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("co_active_hot_writes", self.hot_writes),
            ("co_active_write_backs", self.written_back),
        ]
    }

    fn reset_counters(&mut self) {
        (self.hot_writes, self.written_back) = (0, 0);
    }
}
