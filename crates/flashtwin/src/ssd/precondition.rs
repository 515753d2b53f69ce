//! Initial states of a drive, and saving and loading them.
//!
//! Random writing converges to a state that depends only on geometry, reserve and watermarks. To reach it here, a
//! single chip is written by the device's own rules, and its state is copied to all chips with other logical pages
//! ([`Ssd::fill_steady`]). Further writes between two copies prevent two chips from having the same state.

use std::io::{self, Read, Write};

use super::Ssd;
use crate::device::Work;
use crate::ftl::{coprime, StateError};
use crate::nand::Nand;
use crate::rng::Rng;
use crate::spec::{DeviceSpec, Placement, Separation};
use crate::units::Lpn;
use crate::units::Stream;
use crate::watch::{each_page, Unwatched, Watch};

/// Random writes ahead of which map entries are fetched.
const AHEAD: usize = 16;
/// Times its exported pages that the worn-in chip is written before the first stamp: what is left
/// of its sequential start is e^-8.
const WEAR_IN: u64 = 8;
/// Times all pages that are programmed to level the superblocks. After the first time, each superblock has been
/// collected once on average.
const LEVELLING: u64 = 2;
/// Random pages drawn at most to write a policy's own blocks, as a multiple of what they hold.
const OPENING_TRIES: u64 = 8;

impl Ssd {
    fn assert_idle(&self) {
        assert!(
            self.next_event().is_none() && self.outstanding() == 0,
            "a device is preconditioned, saved and loaded only while idle"
        );
    }

    /// Every exported page written once in ascending order: the state the reference starts from.
    pub fn fill_sequential(&mut self) {
        self.assert_idle();
        self.renew();
        self.backend.nand.fill_sequential();
    }

    /// Writes `pages` uniformly random pages without time passing; false if the device wore out.
    /// Call it in portions to show progress.
    pub fn write_random(&mut self, rng: &mut Rng, pages: u64) -> bool {
        self.write_random_watched(rng, pages, &Unwatched)
    }

    /// Writes as [`Ssd::write_random`] does, of one sequence of random numbers; also false if `watch` stopped it.
    fn write_random_watched(&mut self, rng: &mut Rng, pages: u64, watch: &dyn Watch) -> bool {
        self.assert_idle();
        let exported = u64::from(self.spec().exported_pages());
        let mut ahead = [Lpn(0); AHEAD];
        for lpn in &mut ahead {
            *lpn = Lpn(rng.below(exported) as u32);
        }
        each_page(watch, pages, |i| {
            let at = i as usize % AHEAD;
            let lpn = std::mem::replace(&mut ahead[at], Lpn(rng.below(exported) as u32));
            self.backend.nand.prefetch(ahead[at]);
            self.write_untimed(lpn)
        })
    }

    /// A device that was never written.
    pub(crate) fn empty(&mut self) {
        self.assert_idle();
        self.renew();
        self.read_only = false;
    }

    /// Makes the flash new. The tables of a new one stay as they are: they are most of the memory of a run.
    fn renew(&mut self) {
        if !self.is_new() {
            let new = self.backend.new_nand();
            self.backend.replace_nand(new);
        }
    }

    /// Writes a page without time passing; false if the device wore out.
    pub(crate) fn write_untimed(&mut self, lpn: Lpn) -> bool {
        let chip = self.backend.unit_for_write(lpn);
        self.write_untimed_on(chip, lpn, Stream::Cold)
    }

    fn write_untimed_on(&mut self, chip: u32, lpn: Lpn, asked: Stream) -> bool {
        let nand = &mut self.backend.nand;
        let written = nand.write_untimed(chip as usize, lpn, asked);
        self.read_only |= !written;
        written
    }

    /// Writes the blocks that the buffer's policy has for pages of its choice (D-176): random pages of the whole
    /// device, until every such block was sealed once and a random part of the next is written. False if the device
    /// wore out; without such a policy nothing happens.
    ///
    /// Each such block takes a free one, for which a chip collects several others in a row: all chips would do so at
    /// the start of the run. The pages are no smaller set than those of the other blocks: a block of stale pages would
    /// be a gift to the first collection, whatever the policy does.
    pub fn open_policy_blocks(&mut self, seed: u64) -> bool {
        self.assert_idle();
        if !self.spec().policy_separates() {
            return true;
        }
        let spec = self.spec();
        let (chips, exported) = (spec.geometry.chips, u64::from(spec.exported_pages()));
        let pools = match spec.copy_back() {
            true => spec.geometry.planes_per_chip,
            false => 1,
        };
        let pages = u64::from(pools * spec.hot_pages_per_block());
        let mut rng = Rng::new(seed);
        let mut left: Vec<u64> = (0..chips).map(|_| pages + rng.below(pages)).collect();
        // Of a dead die no turn comes: what is left of its pages is not written.
        for _ in 0..OPENING_TRIES * pages * u64::from(chips) {
            let lpn = Lpn(rng.below(exported) as u32);
            let chip = self.backend.unit_for_write(lpn);
            if left[chip as usize] == 0 {
                continue;
            }
            left[chip as usize] -= 1;
            if !self.write_untimed_on(chip, lpn, Stream::Hot) {
                return false;
            }
            if left.iter().all(|&pages| pages == 0) {
                break;
            }
        }
        true
    }

    /// Forgets a page without time passing.
    pub(crate) fn trim_untimed(&mut self, lpn: Lpn) {
        self.backend.nand.trim_untimed(lpn);
    }

    /// Places the device in the state that random writing converges to.
    pub fn fill_steady(&mut self, seed: u64) {
        self.fill_steady_announced(seed, &Unwatched);
    }

    /// Places the device in the steady state ([`Ssd::fill_steady`]) and reports progress; returns false if `watch`
    /// stopped it. The flash of a stopped device is in no state of use.
    pub fn fill_steady_watched(&mut self, seed: u64, watch: &dyn Watch) -> bool {
        watch.expect(self.steady_pages());
        self.fill_steady_announced(seed, watch)
    }

    /// Number of pages that [`Ssd::fill_steady`] writes or stamps, before superblocks are levelled.
    pub(crate) fn steady_pages(&self) -> u64 {
        if let Some(pages) = self.backend.nand.steady_pages() {
            return pages;
        }
        let spec = self.spec();
        let (chip, chips) = (spec.pages_per_chip_exported(), spec.geometry.chips);
        let between_stamps = match spec.gc.has_superblocks() {
            true => 0,
            false => between_stamps(chip, chips),
        };
        WEAR_IN * u64::from(chip) + u64::from(chips) * (u64::from(chip) + between_stamps)
    }

    /// Places the device in the steady state; the caller has announced [`Ssd::steady_pages`]. Returns false if `watch`
    /// stopped the work.
    pub(crate) fn fill_steady_announced(&mut self, seed: u64, watch: &dyn Watch) -> bool {
        self.assert_idle();
        let mut rng = Rng::new(seed);
        self.renew();
        if let Some(finished) = self.backend.nand.fill_steady(&mut rng, watch) {
            self.read_only = false;
            return finished;
        }
        if self.spec().gc.has_superblocks() {
            return self.fill_steady_by_sets(&mut rng, watch);
        }
        let Some(mut worn) = self.worn_chip(&mut rng, watch) else {
            return false;
        };
        let pages = worn.spec().pages_per_chip_exported();
        let chips = self.spec().geometry.chips;
        let between = between_stamps(pages, chips);
        for chip in 0..chips {
            let (factor, shift) = self.renaming(pages, &mut rng);
            let nand = &mut self.backend.nand;
            nand.stamp(chip, &worn.backend.nand, factor, shift);
            let written = worn.write_random_watched(&mut rng, between, watch);
            if !watch.done(u64::from(pages)) || !written {
                return false;
            }
        }
        self.reset_wear();
        true
    }

    /// A device of one of the chips, in the state that random writing converges to; `None` if `watch` stopped it.
    fn worn_chip(&self, rng: &mut Rng, watch: &dyn Watch) -> Option<Ssd> {
        let mut one = self.spec().clone();
        one.geometry.chips = 1;
        one.geometry.channels = 1;
        one.ftl.stride_pages = 1;
        one.ftl.placement = Placement::Static;
        one.wear.erase_limit = None;
        one.buffer = None;
        let mut worn = Ssd::new(&one);
        worn.fill_sequential();
        let pages = worn.spec().pages_per_chip_exported();
        let written = worn.write_random_watched(rng, WEAR_IN * u64::from(pages), watch);
        written.then_some(worn)
    }

    /// Factor and shift by which the pages of a chip get other numbers than those of the worn-in one.
    fn renaming(&self, pages: u32, rng: &mut Rng) -> (u32, u32) {
        let factor = coprime(pages, rng.below(pages as u64) as u32);
        let shift = rng.below(pages as u64) as u32;
        // Renamed, pages would change sides.
        match self.spec().ftl.separation {
            Separation::Region => (1, 0),
            _ => (factor, shift),
        }
    }

    /// Chips that are collected together have the same blocks in use, each with other pages. Valid pages then vary between
    /// superblocks as between the blocks of one chip, which is too much: random writes level them.
    fn fill_steady_by_sets(&mut self, rng: &mut Rng, watch: &dyn Watch) -> bool {
        let mut spec = self.spec().clone();
        spec.wear.erase_limit = None;
        spec.buffer = None;
        let Some(one) = self.worn_chip(rng, watch) else {
            return false;
        };
        let pages = one.spec().pages_per_chip_exported();
        let mut worn = Ssd::new(&spec);
        for chip in 0..spec.geometry.chips {
            let (factor, shift) = self.renaming(pages, rng);
            let nand = &mut worn.backend.nand;
            nand.stamp(chip, &one.backend.nand, factor, shift);
            if !watch.done(u64::from(pages)) {
                return false;
            }
        }
        let levelling = levelling_pages(&one, &spec);
        watch.expect(levelling);
        if !worn.write_random_watched(rng, levelling, watch) {
            return false;
        }
        let mut nand = worn.backend.nand;
        nand.limit_erases(&self.backend.nand);
        self.backend.replace_nand(nand);
        self.reset_wear();
        true
    }

    /// Forgets wear: a preconditioned drive counts as new.
    pub fn reset_wear(&mut self) {
        self.backend.nand.reset_wear();
        self.read_only = false;
    }

    /// Writes the state of the flash; the device must be idle and its buffer empty or protected
    /// data already written.
    ///
    /// # Errors
    /// Fails if `out` does.
    pub fn save_state(&self, out: &mut dyn Write) -> io::Result<()> {
        self.assert_idle();
        let mut cursors = vec![self.backend.next_write];
        self.backend.nand.cursors(&mut cursors);
        for cursor in cursors {
            out.write_all(&cursor.to_le_bytes())?;
        }
        self.backend.nand.save_state(out)
    }

    /// Nothing was ever written, and the tables may be written over.
    pub(crate) fn is_new(&self) -> bool {
        self.backend.nand.is_new()
    }

    /// Reads a state that [`Ssd::save_state`] wrote for the same spec. An error leaves the device as it was. A new
    /// device is read in place, since its tables are most of what a run allocates.
    ///
    /// # Errors
    /// Fails if `input` does, or if the state is none of this device.
    pub fn load_state(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        self.assert_idle();
        let mut other = (!self.is_new()).then(|| self.backend.new_nand());
        let nand = other.as_mut().unwrap_or(&mut self.backend.nand);
        let turn = self.backend.placement.writes_a_turn();
        let read = read_over(nand, self.backend.next_write, turn, input);
        match (read, other) {
            (Ok(next_write), other) => {
                self.backend.next_write = next_write;
                if let Some(nand) = other {
                    self.backend.replace_nand(nand);
                }
                let chips = 0..self.spec().geometry.chips;
                self.backend.has_dead = chips.into_iter().any(|die| self.backend.nand.is_dead(die));
                Ok(())
            }
            (Err(e), other) => {
                if other.is_none() {
                    let new = self.backend.new_nand();
                    self.backend.replace_nand(new);
                }
                Err(e)
            }
        }
    }
}

/// Pages written on the worn-in chip between two stamps, on a device of so many chips with so many `pages` each.
fn between_stamps(pages: u32, chips: u32) -> u64 {
    u64::from((pages / chips).clamp(pages / 64, pages / 16).max(1))
}

/// Host pages after which a device has programmed [`LEVELLING`] times all its pages, by the write amplification of the
/// worn-in chip.
fn levelling_pages(worn: &Ssd, spec: &DeviceSpec) -> u64 {
    let report = worn.flash_report_without_wear();
    let pages = LEVELLING * u64::from(spec.physical_pages());
    let by_host = u128::from(pages) * u128::from(report.flash.host_programs());
    u64::try_from(by_host / u128::from(report.programs().max(1)))
        .expect("fewer pages than programmed")
}

/// Reads cursors and state over `nand`: which write of a turn is next.
fn read_over(
    nand: &mut Nand,
    next_write: u32,
    writes_a_turn: u32,
    input: &mut dyn Read,
) -> Result<u32, StateError> {
    let mut cursors = vec![next_write];
    nand.cursors(&mut cursors);
    for cursor in &mut cursors {
        let mut bytes = [0; 4];
        input.read_exact(&mut bytes)?;
        *cursor = u32::from_le_bytes(bytes);
    }
    if cursors[0] >= writes_a_turn || !nand.set_cursors(&cursors[1..]) {
        return Err(StateError::Inconsistent(
            "a cursor points beyond its planes or chips".into(),
        ));
    }
    nand.load_state(input)?;
    Ok(cursors[0])
}

#[cfg(test)]
mod tests {
    use crate::rng::Rng;
    use crate::spec::builtin;
    use crate::{DeviceSpec, Ssd};

    /// Requests served before preconditioning leave no trace.
    #[test]
    fn preconditioned_state_ignores_earlier_requests() {
        for seed in crate::seeds(3) {
            let state = |ssd: &Ssd| {
                let mut bytes = Vec::new();
                ssd.backend.nand.save_state(&mut bytes).unwrap();
                (bytes, ssd.backend.nand.stats().clone())
            };
            let modern = [
                ("nand.backend", "modern"),
                ("nand.background_gc", "false"),
                ("geometry.channels", "2"),
            ];
            for backend in [&[][..], &modern] {
                let few = [("geometry.chips", "2"), ("geometry.blocks_per_plane", "32")];
                let set = [&few, backend].concat();
                let spec =
                    DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &set).unwrap();
                let fills: [&dyn Fn(&mut Ssd); 3] = [
                    &|ssd| ssd.fill_steady(1),
                    &|ssd| ssd.fill_sequential(),
                    &|ssd| ssd.empty(),
                ];
                for (n, fill) in fills.iter().enumerate() {
                    let mut new = Ssd::new(&spec);
                    let mut used = Ssd::new(&spec);
                    assert!(used.write_random(&mut Rng::new(seed), 20_000));
                    assert_ne!(state(&used), state(&new));
                    fill(&mut new);
                    fill(&mut used);
                    assert!(state(&used) == state(&new), "{backend:?}: fill {n}");
                }
            }
        }
    }

    /// Of each chip a block of the policy's pages is full, and another is open.
    #[test]
    fn the_policy_s_blocks_have_been_sealed_once() {
        let set = [
            ("geometry.chips", "3"),
            ("geometry.planes_per_chip", "1"),
            ("geometry.blocks_per_plane", "64"),
            ("geometry.reserve_percent", "20"),
            ("buffer.policy", "cda-gc"),
        ];
        let spec = DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &set).unwrap();
        for seed in crate::seeds(4) {
            let mut ssd = Ssd::new(&spec);
            ssd.fill_sequential();
            let free = |ssd: &Ssd| [0, 1, 2].map(|pool| ssd.backend.nand.ftl().pool(pool).free);
            let before = free(&ssd);
            assert!(ssd.open_policy_blocks(seed));
            assert_eq!(free(&ssd), before.map(|free| free - 2));
            ssd.check().unwrap();
        }
    }
}
