//! Tests of policies that rank pages, in situations that access strings cannot produce: pages become clean in the
//! buffer, and the chip of a page changes or is unknown.

use super::super::entry::Family;
use super::super::policies::ad_lru::AdLru;
use super::super::policies::ccf_lru::CcfLru;
use super::super::policies::clock::Clock;
use super::super::policies::lru_wsr::LruWsr;
use super::super::policy::{Access, DeviceView, Eviction, Policy, Skip};
use super::super::{AnyPolicy, ChosenPolicy, Programs, Setup};
use crate::chips::ChipSet;
use crate::rng::Rng;
use crate::units::PageId;
use crate::units::{ChipId, Lpn, Time};

const PAGES: u32 = 24;
const CHIPS: u32 = 4;

/// A device in which cached page number i is logical page i.
struct Fake {
    in_gc: ChipSet,
    dirty: [bool; PAGES as usize],
    chip: [Option<u16>; PAGES as usize],
}

impl DeviceView for Fake {
    fn now(&self) -> Time {
        Time::ZERO
    }
    fn dirty(&self, page: PageId) -> bool {
        self.dirty[page.0 as usize]
    }
    fn lpn(&self, page: PageId) -> Lpn {
        Lpn(page.0)
    }
    fn chip(&self, page: PageId) -> Option<ChipId> {
        self.chip[page.0 as usize].map(ChipId)
    }
    fn chips_in_gc(&self) -> &ChipSet {
        &self.in_gc
    }
    fn drain_time(&self, _chip: ChipId, _exact: bool) -> Time {
        Time::ZERO
    }
    fn load(&self, _chip: ChipId) -> Time {
        Time::ZERO
    }
    fn chip_idle(&self, _chip: ChipId) -> bool {
        false
    }
    fn free_blocks(&self, _chip: ChipId) -> u32 {
        9
    }
    fn gc_trigger_blocks(&self, _chip: ChipId) -> u32 {
        1
    }
    fn open_pages(&self, _chip: ChipId) -> u32 {
        9
    }
}

impl Fake {
    fn new() -> Fake {
        Fake {
            in_gc: ChipSet::none(CHIPS),
            dirty: [false; PAGES as usize],
            chip: [None; PAGES as usize],
        }
    }

    fn access(&mut self, policy: &mut impl Policy, page: u32, write: bool, hit: bool) {
        let dirty = &mut self.dirty[page as usize];
        *dirty = write || hit && *dirty;
        let access = access(page, write, *dirty);
        match hit {
            true => policy.hit(self, PageId(page), &access),
            false => policy.insert(self, PageId(page), &access),
        }
    }

    fn cleaned(&mut self, policy: &mut impl Policy, page: u32) {
        self.dirty[page as usize] = false;
        policy.cleaned(self, PageId(page));
    }

    /// Returns the victim, and the number of inspected entries.
    fn victim(&self, policy: &mut impl Policy, skip: Skip) -> (Option<u32>, u64) {
        let mut out = Eviction::default();
        let found = policy.evict(self, &access(99, true, true), skip, &mut out);
        assert_eq!(found, out.victims.len() == 1);
        (out.victims.first().map(|page| page.0), out.inspected)
    }
}

fn access(page: u32, write: bool, dirty: bool) -> Access {
    Access {
        lpn: Lpn(page),
        write,
        dirty,
        request: 0,
        request_pages: 1,
    }
}

fn setup(filtered: bool) -> Setup {
    Setup {
        capacity: PAGES,
        chips: CHIPS,
        channels: 1,
        stride_pages: None,
        pages_per_block: 4,
        page_bytes: 4096,
        programs: Programs::INSTANT,
        filtered,
        settings: super::settings("ad-lru", PAGES, &[("min_lc", "3")]),
    }
}

#[test]
fn a_cleaned_page_is_clean_to_the_search() {
    let mut device = Fake::new();
    let mut wsr = LruWsr::new(&setup(false));
    let mut ccf = CcfLru::new(&setup(false));
    for page in [1, 2, 3] {
        device.access(&mut wsr, page, true, false);
        device.access(&mut ccf, page, true, false);
        device.access(&mut ccf, page, true, true);
    }
    device.cleaned(&mut wsr, 2);
    device.cleaned(&mut ccf, 2);
    assert_eq!(device.victim(&mut wsr, Skip::Nothing), (Some(2), 2));
    assert_eq!(wsr.state(&device), "1d1 3d0");
    assert_eq!(device.victim(&mut ccf, Skip::Nothing), (Some(1), 4));
    assert_eq!(ccf.state(&device), "ML[3d1] CCL[2c1]");
}

#[test]
fn a_page_is_skipped_by_its_current_chip() {
    let mut device = Fake::new();
    let mut clock = Clock::new(&setup(true));
    for page in [1, 2, 3] {
        device.chip[page as usize] = Some(0);
        device.access(&mut clock, page, true, false);
    }
    device.in_gc.set(ChipId(0), true);
    assert_eq!(device.victim(&mut clock, Skip::Gc), (None, 3));
    device.chip[2] = Some(1);
    clock.moved(&device, PageId(2));
    assert_eq!(device.victim(&mut clock, Skip::Gc), (Some(2), 2));
    device.access(&mut clock, 4, true, false);
    assert_eq!(
        device.victim(&mut clock, Skip::Gc),
        (Some(4), 3),
        "on no chip"
    );
}

/// All pages are on a chip in GC, then one page moves to another chip. Every policy that ranks pages must evict this
/// page if GCaR filters it.
#[test]
fn every_policy_of_pages_follows_one_to_another_chip() {
    for base in ChosenPolicy::base_names() {
        let name = format!("gcar-{base}");
        let settings = super::settings(&name, PAGES, &[]);
        let chosen = ChosenPolicy::new(&name, settings.clone()).unwrap();
        if chosen.entry().family == Family::Blocks {
            continue;
        }
        let setup = Setup {
            settings,
            ..setup(true)
        };
        let mut policy = AnyPolicy::of(&chosen, &setup);
        let mut device = Fake::new();
        device.in_gc.set(ChipId(0), true);
        for page in 0..PAGES {
            device.chip[page as usize] = Some(0);
            device.access(&mut policy, page, true, false);
        }
        for page in (0..PAGES).step_by(3) {
            device.access(&mut policy, page, true, true);
        }
        for page in 0..PAGES {
            device.chip[page as usize] = Some(1);
            policy.moved(&device, PageId(page));
            let (victim, _) = device.victim(&mut policy, Skip::Nothing);
            assert_eq!(victim, Some(page), "{name}");
            device.chip[page as usize] = Some(0);
            device.access(&mut policy, page, true, false);
        }
    }
}

/// Lists of AD-LRU. In each list, the oldest page is first, and each page has its cold flag.
#[derive(Default)]
struct Plain {
    lists: [Vec<(u32, bool)>; 2],
}

impl Plain {
    fn remove(&mut self, page: u32) {
        self.lists
            .iter_mut()
            .for_each(|list| list.retain(|p| p.0 != page));
    }

    fn victim(&mut self, device: &Fake, skip: Skip) -> (Option<u32>, u64) {
        let mut looked = 0;
        let from_lc = self.lists[0].len() > 3 || self.lists[1].is_empty();
        for list in if from_lc { [0, 1] } else { [1, 0] } {
            let list = &mut self.lists[list];
            let clean = |p: u32| !device.dirty[p as usize];
            let skipped = |p: u32| skip.page(device, PageId(p));
            let fc = list.iter().position(|p| clean(p.0));
            for at in fc.unwrap_or(list.len())..list.len() {
                looked += 1;
                if clean(list[at].0) && !skipped(list[at].0) {
                    return (Some(list.remove(at).0), looked);
                }
            }
            let mut at = 0;
            while at < list.len() {
                looked += 1;
                if skipped(list[at].0) {
                    at += 1;
                } else if list[at].1 {
                    return (Some(list.remove(at).0), looked);
                } else {
                    let (page, _) = list.remove(at);
                    list.push((page, true));
                }
            }
        }
        (None, looked)
    }
}

#[test]
fn ad_lru_with_cleaned_and_moved_pages_equals_plain_lists() {
    for seed in crate::seeds(2) {
        let mut rng = Rng::new(seed);
        for round in 0..400 {
            let filtered = round % 2 == 0;
            let mut device = Fake::new();
            let mut fast = AdLru::new(&setup(filtered));
            let mut plain = Plain::default();
            for _ in 0..300 {
                let page = rng.below(PAGES.into()) as u32;
                let place = (0..2).find(|&i| plain.lists[i].iter().any(|p| p.0 == page));
                match (rng.below(12), place) {
                    (0..5, None) => {
                        device.access(&mut fast, page, rng.below(2) == 0, false);
                        plain.lists[0].push((page, false));
                    }
                    (0..3, Some(_)) => {
                        device.access(&mut fast, page, rng.below(3) == 0, true);
                        plain.remove(page);
                        plain.lists[1].push((page, false));
                    }
                    (3..5, Some(_)) => device.cleaned(&mut fast, page),
                    (5, Some(_)) => {
                        device.chip[page as usize] =
                            (rng.below(4) > 0).then(|| rng.below(CHIPS.into()) as u16);
                        fast.moved(&device, PageId(page));
                    }
                    (6, Some(_)) => {
                        fast.forget(PageId(page));
                        plain.remove(page);
                    }
                    (7, _) => {
                        let chip = ChipId(rng.below(CHIPS.into()) as u16);
                        device.in_gc.set(chip, !device.in_gc.contains(chip));
                    }
                    (8.., _) if plain.lists.iter().any(|list| !list.is_empty()) => {
                        let skip = if filtered { Skip::Gc } else { Skip::Nothing };
                        let wanted = plain.victim(&device, skip);
                        assert_eq!(device.victim(&mut fast, skip), wanted);
                    }
                    _ => {}
                }
                let texts = plain.lists.each_ref().map(|list| {
                    let text = |p: &(u32, bool)| {
                        let letter = if device.dirty[p.0 as usize] { 'd' } else { 'c' };
                        format!("{}{letter}{}", p.0, u8::from(p.1))
                    };
                    list.iter().rev().map(text).collect::<Vec<_>>().join(" ")
                });
                let wanted = format!("Lc[{}] Lh[{}]", texts[0], texts[1]);
                assert_eq!(fast.state(&device), wanted);
            }
        }
    }
}
