//! Pages whose unit may change before a program ends. They exist only on flash where a page can be written to several
//! units.
//!
//! The map changes when a unit starts a program, but the policy is notified when the program ends. Between these two
//! instants, the policy's record of the page's unit may be out of date. All such pages are therefore reported to the
//! policy before it chooses a victim.

use super::page::Page;
use super::view::{with_view, View};
use super::Cache;
use crate::buffer::PageId;
use crate::device::{Backend, Device, NO_HOME};

impl Page {
    /// Whether the page is cached, and a program of the page or of an older copy has not ended.
    fn is_unsettled(&self) -> bool {
        !self.has_left() && (self.is_programming() || self.older.is_some())
    }
}

impl Cache {
    /// Records that a program of the page, or of an older copy, has not ended.
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
    /// Reports the unit of each unsettled page to the policy, if the policy heeds units.
    #[inline(always)]
    pub(super) fn report_unsettled(&mut self) {
        if !self.cache.unsettled.is_empty() {
            self.report_each_unsettled();
        }
    }

    #[inline(never)]
    fn report_each_unsettled(&mut self) {
        self.cache.drop_settled();
        if !self.cache.room.heeds_chips() {
            return;
        }
        for i in 0..self.cache.unsettled.len() {
            let page = PageId(self.cache.unsettled[i]);
            with_view!(self, |cache, view| cache.room.moved(&view, page));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::request::{Op, Request};
    use crate::rng::{seeds, Rng};
    use crate::spec::builtin;
    use crate::{DeviceSpec, Ssd};

    /// Executes random requests, half of them to an eighth of the device. With `die`, this die fails after half of
    /// the requests.
    fn drive(ssd: &mut Ssd, seed: u64, die: Option<u32>) {
        let mut rng = Rng::new(seed);
        let pages = u64::from(ssd.spec().exported_pages());
        for tag in 0..8_000 {
            if let (4_000, Some(die)) = (tag, die) {
                ssd.kill_die(die).unwrap();
            }
            let range = [pages, pages / 8][rng.below(2) as usize];
            let request = Request {
                arrival: ssd.now(),
                offset: rng.below(range) * 4096,
                bytes: 4096,
                op: match rng.below(3) {
                    0 => Op::Read,
                    _ => Op::Write,
                },
                ..Request::default()
            };
            ssd.submit(ssd.now(), &request, tag).unwrap();
            while ssd.outstanding() > 16 {
                assert!(ssd.step());
            }
            ssd.completions().clear();
        }
        while ssd.step() {}
    }

    /// An assertion at each eviction compares the victim with that of a scan of the list.
    #[test]
    fn gcar_knows_the_chips_of_pages_with_running_programs() {
        let cases: [(&str, &[(&str, &str)], Option<u32>); 4] = [
            ("nvme-tlc", &[("gc.low_percent", "4")], None),
            ("nvme-tlc", &[("gc.low_percent", "4")], Some(1)),
            ("nvme-fdp", &[], None),
            ("nvme-fdp", &[("placement.groups", "2")], None),
        ];
        for (profile, more, die) in cases {
            let mut all = vec![
                ("geometry.chips", "4"),
                ("geometry.channels", "2"),
                ("geometry.planes_per_chip", "1"),
                ("geometry.blocks_per_plane", "64"),
                ("geometry.pages_per_block", "16"),
                ("geometry.reserve_percent", "50"),
                ("buffer.capacity", "256 KiB"),
                ("buffer.policy", "gcar-lru"),
            ];
            all.extend(more);
            let spec = DeviceSpec::with_overrides(builtin(profile).unwrap(), profile, &all);
            let mut fresh = Ssd::new(&spec.unwrap());
            fresh.fill_sequential();
            for seed in seeds(3) {
                drive(&mut fresh.clone(), seed, die);
            }
        }
    }
}
