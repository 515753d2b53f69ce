//! Initial states of a drive; saving and loading the state of a drive.
//!
//! Random writing converges to a *steady state* that depends only on geometry, reserve and watermarks.
//! [`Ssd::fill_steady`] writes a single chip by the device's own rules until it is in this state. The state is then
//! copied to all chips, each time with other logical pages. Between two copies, the single chip is written further, so
//! that no two chips have the same state.

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

/// Number of random writes by which the prefetch of a map entry precedes the use of this entry.
const AHEAD: usize = 16;
/// Number of random writes, per exported page, of the chip whose state is copied to all chips. After these writes, only
/// a fraction e^-8 of the pages still has its contents of the sequential fill.
const WEAR_IN: u64 = 8;
/// Number of pages that are programmed to level the superblocks ([`Ssd::fill_steady_by_sets`]), as a multiple of the
/// pages of the device. After one multiple, each superblock has been collected once on average.
const LEVELLING: u64 = 2;
/// Limit on the number of random pages that are drawn to fill the blocks of the buffer's policy, as a multiple of the
/// number of pages in these blocks.
const OPENING_TRIES: u64 = 8;

impl Ssd {
    fn assert_idle(&self) {
        assert!(
            self.next_event().is_none() && self.outstanding() == 0,
            "a device is preconditioned, saved and loaded only while idle"
        );
    }

    /// Writes every exported page once, in ascending order. The reference simulator (DiskSim with Microsoft's SSD
    /// extension) starts with a device in this state.
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

    /// Works like a single call of [`Ssd::write_random`], but reports progress to `watch`. Also returns false if
    /// `watch` stopped it.
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

    /// Resets the flash to the state in which it was never written. If it is in this state already, its tables are
    /// kept, because allocating them again would cause most of the memory traffic of a run.
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

    /// Fills the blocks to which the buffer's policy writes some pages (such as hot pages) separately (D-176). Random
    /// pages of the whole device are written to these blocks. Each chip receives as many pages as one such block per
    /// pool has, and then a smaller, random number of further pages. Returns false if the device wore out. Does nothing
    /// if the policy has no such blocks.
    ///
    /// The blocks are filled before the run. Otherwise all chips would collect at the start of the run: to open such a
    /// block, a chip needs a free block, for which it must collect several blocks in succession. Pages are drawn from
    /// the whole device. If they were drawn from a small set, their block would soon be entirely invalid, and the first
    /// collection would be cheap for any policy.
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
        // The loop is limited because no page is placed on a dead die, so that the die's count in `left` stays above
        // zero.
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

    /// Puts the device into steady state: the state to which random writing converges.
    pub fn fill_steady(&mut self, seed: u64) {
        self.fill_steady_announced(seed, &Unwatched);
    }

    /// Puts the device into steady state as [`Ssd::fill_steady`] does, and reports progress to `watch`. Returns false
    /// if `watch` stopped the work. The flash is then in an undefined state and must not be used.
    pub fn fill_steady_watched(&mut self, seed: u64, watch: &dyn Watch) -> bool {
        watch.expect(self.steady_pages());
        self.fill_steady_announced(seed, watch)
    }

    /// Returns the number of pages that [`Ssd::fill_steady`] writes or copies, without the writes that level
    /// superblocks.
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

    /// Returns a device that consists of a single chip of this device, in steady state. `None` if `watch` stopped the
    /// work.
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

    /// Returns the factor and shift of a random permutation of logical pages. When the state of the single chip is
    /// copied to another chip, its logical pages are renumbered by this permutation.
    fn renaming(&self, pages: u32, rng: &mut Rng) -> (u32, u32) {
        let factor = coprime(pages, rng.below(pages as u64) as u32);
        let shift = rng.below(pages as u64) as u32;
        // With `ftl.separation = "region"`, the number of a page determines its region, so pages keep their numbers.
        match self.spec().ftl.separation {
            Separation::Region => (1, 0),
            _ => (factor, shift),
        }
    }

    /// Puts a device with superblocks, which are collected on all chips together, into steady state. First the state of
    /// a single chip is copied to all chips, each time with other logical pages. The number of valid pages then varies
    /// as much between superblocks as between the blocks of a single chip, which is more than in steady state. Random
    /// writes then reduce this variation.
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

    /// Writes the state of the flash to `out`. The device must be idle. Its buffer must be empty, or the data of the
    /// buffer must have been written back.
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
    /// unchanged. If the device is new, the state is read directly into its tables, because a second set of tables
    /// would double the memory of a run.
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

/// Returns the number of pages that are written to the single chip between two copies of its state, for a device with
/// `chips` chips of `pages` pages each.
fn between_stamps(pages: u32, chips: u32) -> u64 {
    u64::from((pages / chips).clamp(pages / 64, pages / 16).max(1))
}

/// Returns the number of pages that the host must write until a device has programmed [`LEVELLING`] times the number of
/// its pages. This number follows from the write amplification of the single chip `worn`.
fn levelling_pages(worn: &Ssd, spec: &DeviceSpec) -> u64 {
    let report = worn.flash_report_without_wear();
    let pages = LEVELLING * u64::from(spec.physical_pages());
    let by_host = u128::from(pages) * u128::from(report.flash.host_programs());
    u64::try_from(by_host / u128::from(report.programs().max(1)))
        .expect("fewer pages than programmed")
}

/// Reads the positions of the round robins and the state of the flash. Stores them in `nand`, except the position of
/// the round robin over chips, which it returns.
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

    /// Pages that were written before preconditioning do not affect the preconditioned state.
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

    /// Afterwards each chip has one full block and one open block with the pages that the policy writes separately.
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
