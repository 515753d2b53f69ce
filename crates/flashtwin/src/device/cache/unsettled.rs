//! Pages whose unit (the chip, for example, that holds the flash copy) may have changed without a report to the policy.
//! Such pages exist only if a page can be written to several units.
//!
//! There are two reasons for such a change:
//!
//! - The program of a page can move it to another unit. The map changes when the program starts, or earlier, but the
//!   policy is notified only when the program ends. Until then, the page is *unsettled*.
//! - The back end moves pages on its own, for example when it collects ([`Work::take_moved`]).
//!
//! All such pages are reported to the policy before it chooses a victim.

use super::page::{Page, Pool};
use super::view::{with_view, View};
use super::Cache;
use crate::buffer::PageId;
#[cfg(doc)]
use crate::device::Work;
use crate::device::{Backend, Device, NO_HOME};

impl Page {
    /// Whether the page is cached, and a program of the page or of an older copy has not ended.
    fn is_unsettled(&self) -> bool {
        !self.has_left() && (self.is_programming() || self.older.is_some())
    }
}

impl Cache {
    /// Adds the page to the list of unsettled pages, because a program of the page or of an older copy has not ended.
    #[inline(always)]
    pub(super) fn note_unsettled(&mut self, id: u32) {
        if self.pages[id as usize].home == NO_HOME {
            self.add_unsettled(id);
        }
    }

    #[inline(never)]
    fn add_unsettled(&mut self, id: u32) {
        if self.unsettled.len() >= 2 * self.pages.len() {
            self.drop_settled();
            self.unsettled.sort_unstable();
            self.unsettled.dedup();
        }
        self.unsettled.push(id);
    }

    fn drop_settled(&mut self) {
        let pages = &self.pages;
        (self.unsettled).retain(|&id| pages[id as usize].is_unsettled());
    }
}

impl<B: Backend> Device<B> {
    /// Reports to the policy the units of all pages whose unit may have changed. Policies that do not use units receive
    /// no reports.
    #[inline(always)]
    pub(super) fn report_units(&mut self) {
        if !self.cache.unsettled.is_empty() || self.backend.has_moved() {
            self.report_changed_units();
        }
    }

    #[inline(never)]
    fn report_changed_units(&mut self) {
        self.cache.drop_settled();
        let moved = self.backend.take_moved();
        if !self.cache.room.heeds_chips() {
            return;
        }
        if moved.any {
            return (0..self.cache.pages.len() as u32).for_each(|id| self.report_unit(id));
        }
        for lpn in moved.pages {
            if let Some(PageId(id)) = self.cache.find(lpn) {
                self.report_unit(id);
            }
        }
        for i in 0..self.cache.unsettled.len() {
            self.report_unit(self.cache.unsettled[i]);
        }
    }

    /// Reports the unit of a page to the policy, if the policy has the page.
    #[inline(always)]
    pub(super) fn report_unit(&mut self, id: u32) {
        let p = self.page(id);
        if !p.has_left() && p.pool == Pool::Policy {
            with_view!(self, |cache, view| cache.room.moved(&view, PageId(id)));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::buffer::Policy;
    use crate::device::{Backend, Device};
    use crate::request::{Op, Request};
    use crate::rng::{seeds, Rng};
    use crate::spec::{builtin, builtin_array};
    use crate::{Array, ArraySpec, DeviceSpec, Ssd};

    type Keys<'a> = [(&'a str, &'a str)];

    /// Executes random requests, half of them to an eighth of the device. Calls `midway` after half of the requests. At
    /// each eviction, a debug assertion compares the victim with the one that a scan of the list finds. In the end,
    /// checks that GCaR has skipped pages.
    fn drive<B: Backend>(device: &mut Device<B>, seed: u64, midway: impl Fn(&mut Device<B>)) {
        let mut rng = Rng::new(seed);
        let pages = device.exported_bytes() / 4096;
        for tag in 0..8_000 {
            if tag == 4_000 {
                midway(device);
            }
            let range = [pages, pages / 8][rng.below(2) as usize];
            let request = Request {
                arrival: device.now(),
                offset: rng.below(range) * 4096,
                bytes: 4096,
                op: match rng.below(40) {
                    0 => Op::Trim,
                    1..=13 => Op::Read,
                    _ => Op::Write,
                },
                ..Request::default()
            };
            device.submit(device.now(), &request, tag).unwrap();
            while device.outstanding() > 16 {
                assert!(device.step());
            }
            device.completions().clear();
        }
        while device.step() {}
        let counters = device.cache.room.policy.counters();
        let protected = counters.iter().find(|of| of.0 == "gcar_protected");
        assert!(protected.is_some_and(|of| of.1 > 0), "{counters:?}");
    }

    fn ssd(profile: &str, more: &Keys) -> Ssd {
        let keys = [
            ("geometry.chips", "4"),
            ("geometry.channels", "2"),
            ("geometry.planes_per_chip", "1"),
            ("geometry.blocks_per_plane", "64"),
            ("geometry.pages_per_block", "32"),
            ("geometry.reserve_percent", "50"),
            ("buffer.capacity", "256 KiB"),
            ("buffer.policy", "gcar-lru"),
        ];
        let keys = [&keys, more].concat();
        let spec = DeviceSpec::with_overrides(builtin(profile).unwrap(), profile, &keys);
        let mut ssd = Ssd::new(&spec.unwrap());
        ssd.fill_sequential();
        ssd
    }

    fn array(more: &Keys) -> Array {
        let keys = [
            ("array.members", "nvme-tlc*4"),
            ("member.geometry.chips", "4"),
            ("member.geometry.channels", "2"),
            ("member.geometry.planes_per_chip", "1"),
            ("member.geometry.blocks_per_plane", "64"),
            ("member.geometry.pages_per_block", "32"),
            ("member.geometry.reserve_percent", "30"),
            ("member.gc.low_percent", "4"),
            ("buffer.capacity", "256 KiB"),
            ("buffer.policy", "gcar-lru"),
        ];
        let keys = [&keys, more].concat();
        let text = builtin_array("harmonia-array").unwrap();
        let spec = ArraySpec::with_overrides(text, "harmonia-array", &keys);
        let mut array = Array::new(&spec.unwrap());
        array.fill_steady(1);
        array
    }

    const SUPERBLOCKS: (&str, &str) = ("gc.granularity", "superblock");
    const LOOKAHEAD: (&str, &str) = ("buffer.gc_lookahead", "true");

    #[test]
    fn gcar_knows_the_chips_of_all_pages() {
        let cases: [(&str, &Keys); 5] = [
            ("nvme-tlc", &[("gc.low_percent", "4")]),
            ("nvme-tlc", &[SUPERBLOCKS, LOOKAHEAD]),
            ("nvme-fdp", &[]),
            ("nvme-fdp", &[("placement.groups", "2")]),
            ("nvme-fdp", &[("placement.groups", "2"), LOOKAHEAD]),
        ];
        for (profile, more) in cases {
            let fresh = ssd(profile, more);
            for seed in seeds(3) {
                drive(&mut fresh.clone(), seed, |_| ());
            }
        }
    }

    #[test]
    fn gcar_knows_the_chips_of_pages_after_a_die_failed() {
        let fresh = ssd("nvme-tlc", &[("gc.low_percent", "4")]);
        for seed in seeds(3) {
            drive(&mut fresh.clone(), seed, |ssd| {
                ssd.kill_die(1).unwrap();
            });
        }
    }

    #[test]
    fn gcar_knows_the_chips_of_pages_after_a_change_without_time() {
        let fresh = ssd("nvme-tlc", &[("gc.low_percent", "4")]);
        for seed in seeds(3) {
            drive(&mut fresh.clone(), seed, |ssd| {
                while ssd.step() {}
                ssd.fill_steady(seed);
            });
        }
    }

    #[test]
    fn gcar_knows_the_units_of_all_pages_of_an_array() {
        const CHIPS: (&str, &str) = ("array.member_in_gc", "chip");
        const STATIC: (&str, &str) = ("member.ftl.placement", "static");
        let cases: [&Keys; 5] = [
            &[("array.level", "swan")],
            &[("array.level", "swan"), CHIPS],
            &[("array.level", "swan"), CHIPS, STATIC],
            &[("array.level", "raid5"), CHIPS],
            &[("array.level", "raid5"), CHIPS, STATIC],
        ];
        for more in cases {
            let fresh = array(more);
            for seed in seeds(3) {
                drive(&mut fresh.clone(), seed, |array| {
                    if more[0].1 == "raid5" {
                        array.fail_member(2).unwrap();
                        array.replace_member(2).unwrap();
                    }
                });
            }
        }
    }
}
