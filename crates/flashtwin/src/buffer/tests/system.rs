//! Tests of policies that use the state of the chips, in situations that access strings cannot produce: placements
//! change, channels are idle, chips are close to GC.

use super::super::policies::cda_gc::CdaGc;
use super::super::policies::co_active::CoActive;
use super::super::policies::coop::Coop;
use super::super::policies::ecr::Ecr;
use super::super::policy::{Access, DeviceView, Eviction, Policy, Skip};
use super::super::{Filter, Programs, Setup};
use crate::chips::ChipSet;
use crate::units::{ChipId, Lpn, Time};
use crate::units::{PageId, Stream};

#[derive(Clone, Default)]
struct Chip {
    drain: u64,
    exact_drain: u64,
    load: u64,
    idle: bool,
    free_blocks: u32,
    open_pages: u32,
}

/// A device in which cached page number i is logical page i. A chip collects garbage when it has 2 free blocks.
struct Fake {
    chips: Vec<Chip>,
    in_gc: ChipSet,
    /// For each page, whether it is dirty.
    dirty: Vec<bool>,
    programming: Vec<bool>,
    chip_of: Vec<Option<u16>>,
    now: Time,
}

impl Fake {
    fn new(chips: usize) -> Fake {
        let chip = Chip {
            free_blocks: 10,
            ..Chip::default()
        };
        Fake {
            chips: vec![chip; chips],
            in_gc: ChipSet::none(chips as u32),
            dirty: vec![false; 100],
            programming: vec![false; 100],
            now: Time::ZERO,
            chip_of: vec![None; 100],
        }
    }

    fn at(&self, chip: ChipId) -> &Chip {
        &self.chips[chip.0 as usize]
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

    fn insert(&mut self, policy: &mut impl Policy, pages: &[u32], write: bool) {
        for &page in pages {
            self.access(policy, page, write, false);
        }
    }

    fn cleaned(&mut self, policy: &mut impl Policy, page: u32) {
        self.dirty[page as usize] = false;
        policy.cleaned(self, PageId(page));
    }

    fn victim(&self, policy: &mut impl Policy, skip: Skip) -> Option<u32> {
        let mut out = Eviction::default();
        let found = policy.evict(self, &access(99, true, true), skip, &mut out);
        assert_eq!(found, out.victims.len() == 1);
        out.victims.first().map(|page| page.0)
    }

    /// Evicts `N` pages, one after the other. Returns them in the order of eviction.
    fn victims<const N: usize>(&self, policy: &mut impl Policy) -> [u32; N] {
        std::array::from_fn(|_| self.victim(policy, Skip::Nothing).unwrap())
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

impl DeviceView for Fake {
    fn now(&self) -> Time {
        self.now
    }
    fn programming(&self, page: PageId) -> bool {
        self.programming[page.0 as usize]
    }
    fn dirty(&self, page: PageId) -> bool {
        self.dirty[page.0 as usize]
    }
    fn lpn(&self, page: PageId) -> Lpn {
        Lpn(page.0)
    }
    fn chip(&self, page: PageId) -> Option<ChipId> {
        self.chip_of[page.0 as usize].map(ChipId)
    }
    fn chips_in_gc(&self) -> &ChipSet {
        &self.in_gc
    }
    fn drain_time(&self, chip: ChipId, exact: bool) -> Time {
        match exact {
            true => Time(self.at(chip).exact_drain),
            false => Time(self.at(chip).drain),
        }
    }
    fn load(&self, chip: ChipId) -> Time {
        Time(self.at(chip).load)
    }
    fn chip_idle(&self, chip: ChipId) -> bool {
        self.at(chip).idle
    }
    fn free_blocks(&self, chip: ChipId) -> u32 {
        self.at(chip).free_blocks
    }
    fn gc_trigger_blocks(&self, _chip: ChipId) -> u32 {
        2
    }
    fn open_pages(&self, chip: ChipId) -> u32 {
        self.at(chip).open_pages
    }
}

/// Hot pages are known exactly.
const EXACT: (&str, &str) = ("filter", "exact");

fn setup(policy: &str, chips: u32, set: &[(&str, &str)]) -> Setup {
    Setup {
        capacity: 16,
        chips,
        channels: 2,
        stride_pages: None,
        pages_per_block: 16,
        page_bytes: 4096,
        programs: Programs::INSTANT,
        filtered: false,
        settings: super::settings(policy, 16, set),
    }
}

#[test]
fn ecr_takes_pages_without_a_chip_for_a_last_chip_that_waits_for_nothing() {
    let mut device = Fake::new(2);
    device.chip_of[1] = Some(1);
    device.chip_of[2] = Some(0);
    for (tie, drains, order) in [
        ("oldest", [5, 5], [3, 4, 1, 2]),
        ("oldest", [0, 0], [1, 2, 3, 4]),
        ("lowest", [0, 0], [2, 1, 3, 4]),
        ("round-robin", [0, 0], [2, 1, 3, 4]),
        ("round-robin", [5, 0], [1, 3, 4, 2]),
    ] {
        for (chip, drain) in device.chips.iter_mut().zip(drains) {
            chip.drain = drain;
        }
        let mut ecr = Ecr::new(&setup("ecr", 2, &[("tie", tie)]));
        device.insert(&mut ecr, &[1, 2, 3, 4], true);
        assert_eq!(ecr.state(&device), "Clean[] D0[2] D1[1] D-[4 3]");
        assert_eq!(device.victims(&mut ecr), order, "{tie:?} {drains:?}");
    }
    (0..device.in_gc.of()).for_each(|chip| device.in_gc.set(ChipId(chip as u16), true));
    let mut ecr = Ecr::new(&setup("ecr", 2, &[]));
    device.insert(&mut ecr, &[1, 2, 3, 4], true);
    let victims = [(); 3].map(|()| device.victim(&mut ecr, Skip::Gc));
    assert_eq!(victims, [Some(3), Some(4), None], "they are never skipped");
}

#[test]
fn ecr_asks_for_the_time_of_its_kind() {
    let mut device = Fake::new(3);
    device.chip_of[..3].copy_from_slice(&[Some(0), Some(1), Some(2)]);
    let times = [(1, 3, 2), (2, 2, 0), (3, 0, 1)];
    for (chip, times) in device.chips.iter_mut().zip(times) {
        (chip.drain, chip.exact_drain, chip.load) = times;
    }
    let paper = setup("ecr", 3, &[]);
    let exact = setup("ecr", 3, &[("cqct", "exact")]);
    for (mut policy, order) in [
        (Ecr::new(&paper), [0, 1, 2]),
        (Ecr::new(&exact), [2, 1, 0]),
        (Ecr::epsilon(&exact), [2, 1, 0]),
        (Ecr::lcr(&paper), [1, 2, 0]),
    ] {
        device.insert(&mut policy, &[0, 1, 2], true);
        assert_eq!(device.victims(&mut policy), order);
    }
}

#[test]
fn ecr_keeps_the_order_of_pages_that_are_cleaned_or_moved_to_another_chip() {
    let mut device = Fake::new(2);
    let mut ecr = Ecr::new(&setup("ecr", 2, &[]));
    device.chip_of[..7].fill(Some(0));
    device.chip_of[3] = Some(1);
    device.insert(&mut ecr, &[1, 2, 3, 4], true);
    device.insert(&mut ecr, &[5], false);
    device.insert(&mut ecr, &[6], true);
    assert_eq!(ecr.state(&device), "Clean[5] D0[6 4 2 1] D1[3]");
    device.chip_of[3] = Some(0);
    ecr.moved(&device, PageId(3));
    assert_eq!(ecr.state(&device), "Clean[5] D0[6 4 3 2 1]");
    for page in [3, 6, 1] {
        device.cleaned(&mut ecr, page);
    }
    assert_eq!(ecr.state(&device), "Clean[6 5 3 1] D0[4 2]");
    device.chip_of[1] = Some(1);
    ecr.moved(&device, PageId(1));
    device.access(&mut ecr, 1, true, true);
    assert_eq!(ecr.state(&device), "Clean[6 5 3] D0[4 2] D1[1]");
    assert_eq!(device.victims(&mut ecr), [3, 5, 6, 2, 4, 1]);

    let mut epsilon = Ecr::epsilon(&setup("ecr-eps", 2, &[]));
    device.chip_of[1..5].copy_from_slice(&[None, Some(0), Some(1), Some(0)]);
    device.insert(&mut epsilon, &[1, 2, 3, 4], true);
    device.cleaned(&mut epsilon, 1);
    device.chip_of[1] = Some(0);
    epsilon.moved(&device, PageId(1));
    assert_eq!(epsilon.state(&device), "L0[4d 2d 1c] L1[3d]");
}

#[test]
fn co_active_waits_for_the_whole_channel() {
    let idle = |policy: &mut CoActive, device: &Fake, chip, in_flight, busy: &[u32]| {
        let busy = |page: PageId| busy.contains(&page.0);
        let page = policy.idle(device, ChipId(chip), in_flight, &busy);
        page.map(|page| page.0)
    };
    // Chips 0 and 2 are on channel 0, chips 1 and 3 on channel 1. Page 4 has no flash copy.
    let mut device = Fake::new(4);
    device.chip_of[..4].copy_from_slice(&[Some(0), Some(1), Some(2), Some(3)]);
    let mut channel = CoActive::new(&setup("co-active", 4, &[EXACT, ("write_backs", "2")]));
    let mut chip = CoActive::new(&setup("co-active", 4, &[EXACT, ("idle_unit", "chip")]));
    for policy in [&mut channel, &mut chip] {
        device.insert(policy, &[4, 2, 0, 1, 3], true);
        device.access(policy, 3, true, true);
        assert_eq!(policy.state(&device), "CL[] DL[3h 1c 0c 2c 4c]");
    }
    device.chips[0].idle = true;
    assert_eq!(idle(&mut channel, &device, 0, 0, &[]), None, "chip 2 works");
    assert_eq!(idle(&mut chip, &device, 0, 0, &[]), Some(0));
    device.chips[2].idle = true;
    assert_eq!(idle(&mut channel, &device, 0, 0, &[]), Some(2));
    assert_eq!(idle(&mut channel, &device, 2, 1, &[2]), Some(0));
    assert_eq!(idle(&mut channel, &device, 2, 1, &[0, 2]), None);
    assert_eq!(idle(&mut channel, &device, 2, 2, &[2]), None, "two now");
    device.cleaned(&mut channel, 2);
    assert_eq!(channel.state(&device), "CL[2] DL[3h 1c 0c 4c]");
    device.chips.iter_mut().for_each(|chip| chip.idle = true);
    assert_eq!(idle(&mut chip, &device, 3, 0, &[]), None, "page 3 is hot");
    assert_eq!(idle(&mut chip, &device, 1, 7, &[]), Some(1));
    assert_eq!(idle(&mut chip, &device, 1, 8, &[]), None, "eight now");
    // Page 1 moves to channel 0, where it is more recent than page 0. Page 4 gets a flash copy on channel 0.
    for (page, chip) in [(1, 0), (4, 2)] {
        device.chip_of[page as usize] = Some(chip);
        channel.moved(&device, PageId(page));
    }
    assert_eq!(idle(&mut channel, &device, 0, 0, &[]), Some(4));
    assert_eq!(idle(&mut channel, &device, 0, 0, &[4]), Some(0));
    assert_eq!(idle(&mut channel, &device, 0, 0, &[0, 4]), Some(1));
    assert_eq!(device.victims(&mut channel), [2, 4, 0, 1, 3]);
    assert_eq!(channel.counters()[1], ("co_active_write_backs", 5));
}

/// Creates COOP for dynamic placement, with programs of two pages and rows of four pages.
fn coop(set: &[(&str, &str)]) -> Coop {
    Coop::new(&Setup {
        programs: Programs {
            blocked: Time(100),
            pages: 2,
            row_pages: 4,
        },
        ..setup("coop", 4, set)
    })
}

#[test]
fn coop_passes_over_pages_that_are_programmed() {
    let mut device = Fake::new(4);
    let mut policy = coop(&[]);
    device.insert(&mut policy, &[1, 2, 3, 4, 5], true);
    device.access(&mut policy, 5, true, true);
    // A flush programs pages 1 and 2. Then page 2 is written again.
    for page in [1, 2] {
        (device.dirty[page], device.programming[page]) = (false, true);
    }
    assert_eq!(device.victim(&mut policy, Skip::Nothing), Some(3));
    device.access(&mut policy, 2, true, true);
    assert_eq!(device.victims(&mut policy), [4, 5], "T2 has page 5");
    // The program of page 1 ends first, then that of page 2. Page 2 is still dirty, because it was written again.
    device.programming[1] = false;
    device.cleaned(&mut policy, 1);
    policy.moved(&device, PageId(1));
    device.insert(&mut policy, &[6], false);
    assert_eq!(device.victim(&mut policy, Skip::Nothing), Some(1));
    assert_eq!(device.victim(&mut policy, Skip::Nothing), Some(6));
    let in_program = policy.clone();
    device.programming[2] = false;
    policy.moved(&device, PageId(2));
    let states = [&in_program, &policy].map(|policy| policy.state(&device));
    assert!(states[0].starts_with("T1[] T2[2d]"), "{}", states[0]);
    assert_eq!(states[0], states[1]);
    for mut policy in [in_program, policy] {
        assert_eq!(device.victim(&mut policy, Skip::Nothing), Some(2));
    }
}

#[test]
fn coop_writes_whole_rows_ahead_after_a_silence() {
    let ahead = |policy: &mut Coop, device: &mut Fake, in_flight: u32| {
        let busy = |page: PageId| device.programming[page.0 as usize];
        let page = policy.ahead(device, in_flight, &busy);
        if let Some(page) = page {
            (
                device.dirty[page.0 as usize],
                device.programming[page.0 as usize],
            ) = (false, true);
        }
        page.map(|page| page.0)
    };
    let mut device = Fake::new(4);
    let mut policy = coop(&[]);
    assert_eq!(policy.ahead_after(), Some(Time(100)));
    assert_eq!(coop(&[("ahead_depth", "0")]).ahead_after(), None);
    device.insert(&mut policy, &[1, 2, 3], true);
    device.now = Time(100);
    assert_eq!(ahead(&mut policy, &mut device, 0), None, "less than a row");
    device.insert(&mut policy, &[4, 5, 6], true);
    device.access(&mut policy, 5, true, true);
    device.now = Time(199);
    assert_eq!(ahead(&mut policy, &mut device, 0), None, "no silence yet");
    device.now = Time(200);
    assert_eq!(ahead(&mut policy, &mut device, 0), Some(1));
    assert_eq!(
        ahead(&mut policy, &mut device, 8),
        None,
        "one program of two pages for each chip"
    );
    assert_eq!(ahead(&mut policy, &mut device, 1), Some(2));
    assert_eq!(ahead(&mut policy, &mut device, 2), Some(3));
    assert_eq!(ahead(&mut policy, &mut device, 3), Some(4));
    assert_eq!(
        ahead(&mut policy, &mut device, 0),
        None,
        "page 6 is alone, page 5 was written twice"
    );
    assert_eq!(device.victim(&mut policy, Skip::Nothing), Some(6));
    assert_eq!(policy.counters(), [("coop_written_ahead", 4)]);
}

#[test]
fn the_stager_keeps_pages_of_chips_at_the_trigger_with_little_left() {
    // A chip is close to GC if at most 12.5 % of 16 pages, that is 2 pages, are free in its open blocks.
    for (in_gc, free_blocks, open_pages, related) in [
        (false, 2, 2, true),
        (false, 0, 0, true),
        (false, 2, 3, false),
        (false, 3, 2, false),
        (true, 3, 3, true),
    ] {
        let mut device = Fake::new(2);
        device.chip_of[..3].copy_from_slice(&[Some(1), None, Some(0)]);
        let chip = &mut device.chips[1];
        (chip.free_blocks, chip.open_pages) = (free_blocks, open_pages);
        device.in_gc.set(ChipId(1), in_gc);
        let mut stager = CdaGc::stager(&setup("cda-gc-stager", 2, &[]));
        device.insert(&mut stager, &[0, 1, 2], true);
        let first = if related { 1 } else { 0 };
        assert_eq!(device.victim(&mut stager, Skip::Nothing), Some(first));
        let passed = stager.counters()[0];
        assert_eq!(passed, ("stager_passed_over", u64::from(related)));
    }
}

#[test]
fn the_dispatcher_names_the_stream_of_a_page_that_has_left() {
    let mut device = Fake::new(1);
    let mut cda = CdaGc::new(&setup("cda-gc", 1, &[EXACT]));
    device.insert(&mut cda, &[1, 2], true);
    device.access(&mut cda, 1, true, true);
    assert_eq!(device.victims(&mut cda), [2, 1]);
    assert_eq!(cda.stream(PageId(1), Lpn(1)), Stream::Hot);
    assert_eq!(cda.stream(PageId(2), Lpn(2)), Stream::Cold);
    assert_eq!(cda.stream(PageId(3), Lpn(3)), Stream::Cold, "never seen");
    device.insert(&mut cda, &[1], false);
    assert_eq!(
        cda.stream(PageId(1), Lpn(1)),
        Stream::Cold,
        "inserted again by a read"
    );
}

/// States of a dispatcher after `W1 W2 W1 W3 W2 W4 W1`. The filter is reset before the second W2, because three
/// distinct pages have been inserted by then.
#[test]
fn the_dispatcher_forgets_by_distinct_pages() {
    let after = |set: &[(&str, &str)]| {
        let set = [&[EXACT, ("filter_reset_items", "3")], set].concat();
        let mut device = Fake::new(1);
        let mut cda = CdaGc::dispatcher(&setup("cda-gc-dispatcher", 1, &set));
        let mut states = Vec::new();
        for (page, cached) in [
            (1, false),
            (2, false),
            (1, true),
            (3, false),
            (2, true),
            (4, false),
            (1, true),
        ] {
            match cached {
                true => device.access(&mut cda, page, true, true),
                false => device.insert(&mut cda, &[page], true),
            }
            states.push(cda.state(&device));
        }
        states
    };
    assert_eq!(
        after(&[]),
        [
            "1d",
            "2d 1d",
            "1dh 2d",
            "3d 1dh 2d",
            "2d 3d 1d",
            "4d 2d 3d 1d",
            "1d 4d 2d 3d",
        ]
    );
    assert_eq!(
        after(&[("filter_forget", "generations")]),
        [
            "1d",
            "2d 1d",
            "1dh 2d",
            "3d 1dh 2d",
            "2dh 3d 1dh",
            "4d 2dh 3d 1dh",
            "1dh 4d 2dh 3d",
        ]
    );
    assert_eq!(
        after(&[("hot_at", "write-back")]),
        [
            "1dh",
            "2dh 1dh",
            "1dh 2dh",
            "3dh 1dh 2dh",
            "2dh 3d 1d",
            "4dh 2dh 3d 1d",
            "1dh 4dh 2dh 3d",
        ]
    );
}

/// A buffer of 16 pages of 4 KiB has 524 288 bits, and 5 % of these are 26 214 bits. At 0.1455 pages per bit, the
/// filter is reset after 3814 pages. Each half of a filter with two halves is reset after 1907 pages.
#[test]
fn the_filter_forgets_at_five_percent_of_false_positives() {
    for (set, items) in [
        (&[][..], 3814),
        (&[("filter_forget", "generations")], 1907),
        (&[("filter_percent", "10")], 7628),
        (&[("filter_reset_items", "500")], 500),
    ] {
        let set = [&[EXACT][..], set].concat();
        let mut filter = Filter::new(&setup("cda-gc", 1, &set));
        let first = filter.epoch();
        let hot = (0..items).filter(|&lpn| filter.write(Time::ZERO, Lpn(lpn)));
        assert_eq!(hot.count(), 0);
        assert_eq!(filter.epoch(), first);
        filter.write(Time::from_ms(1_000_000), Lpn(items));
        assert_eq!(filter.epoch(), first + 1, "{set:?}");
    }
    // A limit of 0 pages means that the filter is never reset.
    let set = [EXACT, ("filter_reset_items", "0")];
    let mut filter = Filter::new(&setup("cda-gc", 1, &set));
    for lpn in 0..20_000 {
        assert!(!filter.write(Time::from_ms(lpn.into()), Lpn(lpn)));
    }
    assert!(filter.write(Time::from_ms(30_000), Lpn(0)));
}
