//! The record of the chips whose drain times have changed. A policy that follows these times uses it.
//!
//! The drain time of a chip as printed (ECR's Eqs 1 to 4) depends on its queue, its operations in service, and its
//! part of the page map. With static placement, only operations of the chip itself change these. The record is kept
//! only for such flash, and only if the policy requires it.

use super::Flash;
use crate::chips::ChipChanges;
use crate::nand::Nand;

impl Flash {
    /// Returns an empty record if `on`, and if this flash can keep a record.
    pub(super) fn record_of_times(&self, on: bool) -> Option<Box<ChipChanges>> {
        let by_chip = match &self.nand {
            Nand::Msr(_) | Nand::Layered(_) => true,
            Nand::Modern(_) => !self.spec.gc.has_superblocks(),
            Nand::Units(_) => false,
        };
        let kept = on && by_chip && self.placement.is_static;
        kept.then(|| Box::new(ChipChanges::new(self.spec.geometry.chips)))
    }

    /// Records that the work of a chip may have changed.
    #[inline(always)]
    pub(super) fn note_change(&mut self, chip: usize) {
        if let Some(changes) = &mut self.changes {
            changes.note(chip);
        }
    }

    /// Records that the work of any chip and the place of any page may have changed.
    pub(super) fn note_all(&mut self) {
        self.is_rewritten = true;
        if let Some(changes) = &mut self.changes {
            changes.note_all();
        }
    }

    /// Returns the back end for a change in which no time passes. All chips and pages are recorded as changed.
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
    use crate::{DeviceSpec, Ssd};

    /// Settings of back ends that keep a record.
    const FLASH: [&[(&str, &str)]; 4] = [
        &[],
        &[
            ("nand.parallel_units", "4"),
            ("nand.cleaning_in_background", "true"),
        ],
        &[("nand.backend", "modern"), ("geometry.channels", "2")],
        &[("ftl.kind", "dftl")],
    ];

    const POLICIES: [&[(&str, &str)]; 6] = [
        &[("buffer.policy", "ecr")],
        &[("buffer.policy", "ecr"), ("buffer.tie", "lowest")],
        &[("buffer.policy", "ecr"), ("buffer.tie", "round-robin")],
        &[("buffer.policy", "ecr-eps")],
        &[("buffer.policy", "lcr")],
        &[("buffer.policy", "gcar-ecr")],
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

    /// Submits random requests, with at most `depth` in flight. Returns the completions, and the counters of the
    /// flash, as text.
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
                        assert!(with.backend.changes.is_some(), "{flash:?}, {policy:?}");
                        without.backend.changes = None;
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

    /// At each eviction, a debug assertion compares the table of times with the device.
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
            assert!(ssd.backend.changes.is_none(), "LRU follows no times");
            drive(&mut ssd, 5, 16);
            ssd.set_policy("ecr", &[]).unwrap();
            drive(&mut ssd, 6, 16);
            ssd.cut_power(1_000_000).unwrap();
            assert!(
                ssd.backend.changes.is_some(),
                "the policy of the specification is ECR"
            );
            drive(&mut ssd, 7, 16);
        }
    }
}
