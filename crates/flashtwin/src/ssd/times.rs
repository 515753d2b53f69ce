//! The record of the chips whose drain times have changed, and of the idle chips. The drain time of a chip is the time
//! until the chip has completed its work. Some buffer policies use this record.
//!
//! By Equations 1 to 4 of the ECR paper, the drain time of a chip depends on its queue, its operations in service, and
//! its part of the page map. With static placement, only operations of the chip itself change these. The record is kept
//! only for such flash, and only if the policy requires it.

use super::Flash;
use crate::chips::{ChipChanges, ChipSet};
use crate::nand::Nand;
use crate::units::ChipId;

/// Record of the work of all chips.
#[derive(Clone, Debug)]
pub(super) struct WorkRecord {
    /// Chips whose work (queued or in service) has changed.
    pub changes: ChipChanges,
    /// Chips without work. A chip that becomes idle is added when it is [activated](super::Work::activate).
    idle: ChipSet,
    /// Whether `idle` must be computed anew, because chips have changed outside of simulated time.
    is_stale: bool,
}

impl WorkRecord {
    /// Returns the idle chips; `None` if they must be computed first.
    pub fn idle(&self) -> Option<&ChipSet> {
        (!self.is_stale).then_some(&self.idle)
    }

    #[cold]
    fn find_idle(&mut self, nand: &Nand) {
        for chip in 0..self.idle.of() {
            let is_idle = nand.is_idle(chip as usize);
            self.idle.set(ChipId(chip as u16), is_idle);
        }
        self.is_stale = false;
    }
}

impl Flash {
    /// Returns an empty record if `on` is true and this flash can keep a record; otherwise `None`.
    pub(super) fn record_of_times(&self, on: bool) -> Option<Box<WorkRecord>> {
        let by_chip = match &self.nand {
            Nand::Msr(_) | Nand::Layered(_) => true,
            Nand::Modern(_) => !self.spec.gc.has_superblocks(),
            Nand::Units(_) => false,
        };
        let kept = on && by_chip && self.placement.is_static;
        let chips = self.spec.geometry.chips;
        let record = || WorkRecord {
            changes: ChipChanges::new(chips),
            idle: ChipSet::none(chips),
            is_stale: true,
        };
        kept.then(|| Box::new(record()))
    }

    /// Returns the record if it is valid. It is not valid after a die has failed, because the operations of the die
    /// then move to other dies.
    #[inline(always)]
    pub(super) fn valid_record(&self) -> Option<&WorkRecord> {
        self.record.as_deref().filter(|_| !self.has_dead)
    }

    /// Records that the work of a chip may have changed.
    #[inline(always)]
    pub(super) fn note_change(&mut self, chip: usize) {
        if let Some(record) = &mut self.record {
            record.changes.note(chip);
        }
    }

    /// Records that a chip has received an operation.
    #[inline(always)]
    pub(super) fn note_arrival(&mut self, chip: usize) {
        if let Some(record) = &mut self.record {
            record.changes.note(chip);
            record.idle.set(ChipId(chip as u16), false);
        }
    }

    /// Records that the work of a chip may have changed, and whether the chip is idle now.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn note_activation(&mut self, chip: usize) {
        if let Some(record) = &mut self.record {
            record.changes.note(chip);
            match record.is_stale {
                true => record.find_idle(&self.nand),
                false => {
                    let is_idle = self.nand.is_idle(chip);
                    record.idle.set(ChipId(chip as u16), is_idle);
                }
            }
        }
    }

    /// Records that the work of all chips and the locations of all pages may have changed.
    pub(super) fn note_all(&mut self) {
        self.is_rewritten = true;
        if let Some(record) = &mut self.record {
            record.changes.note_all();
            record.is_stale = true;
        }
    }

    /// Returns the chips and their tables, for a change outside of simulated time. All chips and pages are recorded as
    /// changed.
    pub(super) fn nand_untimed(&mut self) -> &mut Nand {
        self.note_all();
        &mut self.nand
    }
}

#[cfg(test)]
mod tests {
    use crate::request::{Op, Request};
    use crate::rng::{seeds, Rng};
    use crate::spec::builtin;
    use crate::units::ChipId;
    use crate::{DeviceSpec, Ssd};

    /// Settings of several kinds of flash that can keep a record.
    const FLASH: [&[(&str, &str)]; 4] = [
        &[],
        &[
            ("nand.parallel_units", "4"),
            ("nand.cleaning_in_background", "true"),
        ],
        &[("nand.backend", "modern"), ("geometry.channels", "2")],
        &[("ftl.kind", "dftl")],
    ];

    const POLICIES: [&[(&str, &str)]; 8] = [
        &[("buffer.policy", "ecr")],
        &[("buffer.policy", "ecr"), ("buffer.tie", "lowest")],
        &[("buffer.policy", "ecr"), ("buffer.tie", "round-robin")],
        &[("buffer.policy", "ecr-eps")],
        &[("buffer.policy", "lcr")],
        &[("buffer.policy", "gcar-ecr")],
        &[("buffer.policy", "coop")],
        &[("buffer.policy", "coop"), ("buffer.quiet_us", "300")],
    ];

    fn device(flash: &[(&str, &str)], policy: &[(&str, &str)]) -> Ssd {
        let size = [
            ("geometry.chips", "8"),
            ("geometry.planes_per_chip", "4"),
            ("geometry.blocks_per_plane", "32"),
            ("geometry.pages_per_block", "16"),
            ("geometry.reserve_percent", "30"),
            ("buffer.capacity", "512 KiB"),
        ];
        let keys = [&size[..], flash, policy].concat();
        let spec = DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &keys).unwrap();
        let mut ssd = Ssd::new(&spec);
        ssd.fill_steady(1);
        ssd
    }

    /// Checks that the recorded set of idle chips is correct.
    fn check_idle(ssd: &Ssd) {
        let flash = &ssd.backend;
        if let Some(idle) = flash.valid_record().and_then(|record| record.idle()) {
            for chip in 0..idle.of() {
                let is_idle = flash.nand.is_idle(chip as usize);
                assert_eq!(idle.contains(ChipId(chip as u16)), is_idle, "chip {chip}");
            }
        }
    }

    /// Submits random requests, with at most `depth` in flight. Returns, as text, the completions and the counters of
    /// the flash.
    fn drive(ssd: &mut Ssd, seed: u64, depth: usize) -> String {
        let mut rng = Rng::new(seed);
        let page = u64::from(ssd.spec().geometry.page_bytes);
        let pages = u64::from(ssd.spec().exported_pages());
        let mut text = String::new();
        for tag in 0..1_500 {
            let span = 1 + rng.below(3);
            let request = Request {
                arrival: ssd.now(),
                offset: rng.below(pages - span) * page,
                bytes: span * page,
                op: match rng.below(40) {
                    0 => Op::Flush,
                    1 => Op::Trim,
                    2..=11 => Op::Read,
                    _ => Op::Write,
                },
                fua: rng.below(20) == 0,
                ..Request::default()
            };
            ssd.submit(ssd.now(), &request, tag).unwrap();
            while ssd.outstanding() >= depth {
                assert!(ssd.step());
                check_idle(ssd);
            }
            let done = ssd.completions().drain(..);
            done.for_each(|completion| text += &format!("{completion:?}\n"));
        }
        while ssd.step() {}
        text + &format!("{:?}", ssd.flash_report())
    }

    #[test]
    fn the_record_changes_no_victim() {
        for seed in seeds(1) {
            for flash in FLASH {
                for policy in POLICIES {
                    let ssd = device(flash, policy);
                    for depth in [1, 16, 120] {
                        let (mut with, mut without) = (ssd.clone(), ssd.clone());
                        assert!(with.backend.record.is_some(), "{flash:?}, {policy:?}");
                        without.backend.record = None;
                        let with = drive(&mut with, seed, depth);
                        let without = drive(&mut without, seed, depth);
                        assert!(
                            with == without,
                            "{flash:?}, {policy:?}, seed {seed}, depth {depth}"
                        );
                    }
                }
            }
        }
    }

    /// At each eviction, a debug assertion compares the policy's table of drain times with the device. The test changes
    /// the device outside of simulated time, and replaces the policy.
    #[test]
    fn the_table_follows_changes_without_time() {
        for flash in FLASH {
            let mut ssd = device(flash, &[("buffer.policy", "ecr")]);
            drive(&mut ssd, 1, 16);
            let mut state = Vec::new();
            ssd.save_state(&mut state).unwrap();
            ssd.fill_sequential();
            drive(&mut ssd, 2, 16);
            ssd.load_state(&mut &state[..]).unwrap();
            drive(&mut ssd, 3, 16);
            assert!(ssd.write_random(&mut Rng::new(4), 5_000));
            drive(&mut ssd, 4, 16);
            ssd.set_policy("lru", &[]).unwrap();
            assert!(ssd.backend.record.is_none(), "LRU follows no times");
            drive(&mut ssd, 5, 16);
            ssd.set_policy("ecr", &[]).unwrap();
            drive(&mut ssd, 6, 16);
            ssd.cut_power(1_000_000).unwrap();
            assert!(
                ssd.backend.record.is_some(),
                "the policy of the specification is ECR"
            );
            drive(&mut ssd, 7, 16);
        }
    }
}
