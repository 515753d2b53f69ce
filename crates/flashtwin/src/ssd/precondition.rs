//! Initial states of a drive; saving and loading the state of a drive.
//!
//! Random writing converges to a state that depends only on geometry, reserve and watermarks. To reach this state, a
//! single chip is written by the device's own rules. The state of this chip is copied to all chips, each time with
//! other logical pages ([`Ssd::fill_steady`]). Further writes between two copies ensure that no two chips have the
//! same state.

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

/// Number of random writes between the prefetch of a map entry and its use.
const AHEAD: usize = 16;
/// Number of times that each exported page of the worn-in chip is written at random, on average, before its state is
/// first copied. A fraction of e^-8 of the pages then still has the version of the sequential fill.
const WEAR_IN: u64 = 8;
/// Number of times that all pages are programmed in order to level the superblocks. After the first time, each
/// superblock has been collected once on average.
const LEVELLING: u64 = 2;
/// Largest number of random pages that are drawn to fill a policy's own blocks, as a multiple of the number of pages
/// of these blocks.
const OPENING_TRIES: u64 = 8;

impl Ssd {
    fn assert_idle(&self) {
        assert!(
            self.next_event().is_none() && self.outstanding() == 0,
            "a device is preconditioned, saved and loaded only while idle"
        );
    }

    /// Writes every exported page once in ascending order. The reference (DiskSim with Microsoft's SSD extension)
    /// starts in this state.
    pub fn fill_sequential(&mut self) {
        self.assert_idle();
        self.renew();
        self.backend.nand_untimed().fill_sequential();
    }

    /// Writes `pages` uniformly random pages in no simulated time. Returns false if the device wore out. To show
    /// progress, a caller writes the pages in several portions.
    pub fn write_random(&mut self, rng: &mut Rng, pages: u64) -> bool {
        self.write_random_watched(rng, pages, &Unwatched)
    }

    /// Works like [`Ssd::write_random`] with one sequence of random numbers, and reports progress to `watch`. Also
    /// returns false if `watch` stopped it.
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

    /// Resets the device to the state in which it was never written.
    pub(crate) fn empty(&mut self) {
        self.assert_idle();
        self.renew();
        self.read_only = false;
    }

    /// Resets the flash to new. If the flash is new already, its tables are kept. To allocate them again would be
    /// most of the memory traffic of a run.
    fn renew(&mut self) {
        if !self.is_new() {
            let new = self.backend.new_nand();
            self.backend.replace_nand(new);
        }
    }

    /// Writes a page in no simulated time. Returns false if the device wore out.
    pub(crate) fn write_untimed(&mut self, lpn: Lpn) -> bool {
        let chip = self.backend.unit_for_write(lpn);
        self.write_untimed_on(chip, lpn, Stream::Cold)
    }

    fn write_untimed_on(&mut self, chip: u32, lpn: Lpn, asked: Stream) -> bool {
        let nand = self.backend.nand_untimed();
        let written = nand.write_untimed(chip as usize, lpn, asked);
        self.read_only |= !written;
        written
    }

    /// Fills the blocks to which the buffer's policy writes the pages of its choice (D-176). Random pages of the
    /// whole device are written to them until every such block has been sealed once and a random part of the next
    /// block is written. Returns false if the device wore out. Does nothing if the policy has no such blocks.
    ///
    /// The blocks are filled before the run, because each of them takes a free block, for which its chip must collect
    /// several blocks in succession. Otherwise, all chips would collect at the start of the run. Pages are drawn from
    /// the whole device. If they were drawn from a small set, their block would soon be entirely invalid, and the
    /// first collection would be cheap for any policy.
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
        // A dead die gets no turn. The number of pages drawn is limited, and pages for the dead die are not written.
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

    /// Trims a page in no simulated time.
    pub(crate) fn trim_untimed(&mut self, lpn: Lpn) {
        self.backend.nand_untimed().trim_untimed(lpn);
    }

    /// Puts the device into steady state, to which random writing converges.
    pub fn fill_steady(&mut self, seed: u64) {
        self.fill_steady_announced(seed, &Unwatched);
    }

    /// Puts the device into steady state ([`Ssd::fill_steady`]), and reports progress to `watch`. Returns false if
    /// `watch` stopped it. The flash is then in an undefined state and must not be used.
    pub fn fill_steady_watched(&mut self, seed: u64, watch: &dyn Watch) -> bool {
        watch.expect(self.steady_pages());
        self.fill_steady_announced(seed, watch)
    }

    /// Returns the number of pages that [`Ssd::fill_steady`] writes or copies. The writes that level superblocks are
    /// not included.
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

    /// Puts the device into steady state. The caller must have announced [`Ssd::steady_pages`] to `watch`. Returns
    /// false if `watch` stopped the work.
    pub(crate) fn fill_steady_announced(&mut self, seed: u64, watch: &dyn Watch) -> bool {
        self.assert_idle();
        let mut rng = Rng::new(seed);
        self.renew();
        if let Some(finished) = self.backend.nand_untimed().fill_steady(&mut rng, watch) {
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
            let nand = self.backend.nand_untimed();
            nand.stamp(chip, &worn.backend.nand, factor, shift);
            let written = worn.write_random_watched(&mut rng, between, watch);
            if !watch.done(u64::from(pages)) || !written {
                return false;
            }
        }
        self.reset_wear();
        true
    }

    /// Returns a device that consists of one of the chips, in steady state. `None` if `watch` stopped it.
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

    /// Returns factor and shift of a permutation. It renumbers the logical pages of the worn-in chip for the copy of
    /// its state on another chip.
    fn renaming(&self, pages: u32, rng: &mut Rng) -> (u32, u32) {
        let factor = coprime(pages, rng.below(pages as u64) as u32);
        let shift = rng.below(pages as u64) as u32;
        // A renumbered page could move to the other region, so pages keep their numbers.
        match self.spec().ftl.separation {
            Separation::Region => (1, 0),
            _ => (factor, shift),
        }
    }

    /// Fills a device whose chips are collected together. The same blocks are in use on all chips, each with
    /// different pages. The number of valid pages then varies as much between superblocks as between the blocks of a
    /// single chip, which is more than in steady state. Random writes then reduce this variation.
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
            let nand = worn.backend.nand_untimed();
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

    /// Resets the erase counts, because a preconditioned drive counts as new.
    pub fn reset_wear(&mut self) {
        self.backend.nand_untimed().reset_wear();
        self.read_only = false;
    }

    /// Writes the state of the flash. The device must be idle. Its buffer must be empty, or its data must have been
    /// written back.
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

    /// Whether the flash was never written, so that its tables may be overwritten.
    pub(crate) fn is_new(&self) -> bool {
        self.backend.nand.is_new()
    }

    /// Reads a state that [`Ssd::save_state`] wrote for the same specification. After an error, the device is
    /// unchanged. If the device is new, the state is read into its tables directly. A second set of tables would
    /// double the memory of a run.
    ///
    /// # Errors
    /// Fails if reading `input` fails, or if the state does not fit this device.
    pub fn load_state(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        self.assert_idle();
        let mut other = (!self.is_new()).then(|| self.backend.new_nand());
        self.backend.note_all();
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

/// Returns the number of pages that are written on the worn-in chip between two copies of its state. The device has
/// `chips` chips with `pages` pages each.
fn between_stamps(pages: u32, chips: u32) -> u64 {
    u64::from((pages / chips).clamp(pages / 64, pages / 16).max(1))
}

/// Returns the number of host pages after which a device has programmed [`LEVELLING`] times the number of its pages.
/// The number follows from the write amplification of the worn-in chip.
fn levelling_pages(worn: &Ssd, spec: &DeviceSpec) -> u64 {
    let report = worn.flash_report_without_wear();
    let pages = LEVELLING * u64::from(spec.physical_pages());
    let by_host = u128::from(pages) * u128::from(report.flash.host_programs());
    u64::try_from(by_host / u128::from(report.programs().max(1)))
        .expect("fewer pages than programmed")
}

/// Reads the positions of the round robins and the state of the flash into `nand`. Returns the position of the
/// device's own round robin.
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

    /// Requests that were served before preconditioning do not affect the preconditioned state.
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

    /// Each chip has one full block and one open block with pages of the policy's choice.
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
