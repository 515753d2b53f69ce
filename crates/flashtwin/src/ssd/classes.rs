//! A copy of the filter with which the buffer's policy classifies pages as hot or cold. GC uses the copy to determine
//! the class of a page that it moves (`gc.moves`, D-220).
//!
//! The flash needs a copy because it never calls the buffer. The copy has the same settings as the policy's filter, and
//! the same writes enter it at the same instants. Whenever the policy is replaced, so is the copy. Its contents
//! therefore always equal those of the policy's filter.

use super::Flash;
use crate::buffer::{Filter, Setup};
use crate::nand::Nand;
use crate::spec::{DeviceSpec, Moves};

/// Creates an empty copy of the filter. Returns `None` if GC does not need it, because the destination of a moved page
/// does not depend on its class.
pub(super) fn classes(spec: &DeviceSpec) -> Option<Box<Filter>> {
    let needed = spec.moves() == Moves::Class;
    needed.then(|| Box::new(Filter::new(&Setup::of(spec))))
}

impl Flash {
    /// Replaces the chips and their tables by others for the same device. The copy of the filter is kept, because the
    /// buffer and the state of its policy do not change.
    pub(super) fn replace_nand(&mut self, nand: Nand) {
        let classes = self.nand.exchange_classes(None);
        *self.nand_untimed() = nand;
        self.nand.exchange_classes(classes);
    }
}

#[cfg(test)]
mod tests {
    use crate::request::{Op, Request};
    use crate::rng::Rng;
    use crate::spec::builtin;
    use crate::{DeviceSpec, Ssd};

    /// Checks that the copy equals the policy's filter. `after` names the preceding step of the test, for a failure
    /// message.
    fn assert_same(ssd: &Ssd, after: &str) {
        let copy = ssd.clone().backend.nand.exchange_classes(None);
        let copy = format!("{:?}", copy.expect("moves go by class"));
        let times = format!("{ssd:?}").matches(&copy).count();
        assert_eq!(times, 2, "{after}");
        ssd.check().unwrap();
    }

    fn drive(ssd: &mut Ssd, rng: &mut Rng, requests: u64) {
        let page = u64::from(ssd.spec().geometry.page_bytes);
        let pages = u64::from(ssd.spec().exported_pages());
        for tag in 0..requests {
            let arrival = ssd.now();
            let op = [Op::Write, Op::Write, Op::Read, Op::Trim][rng.below(4) as usize];
            let request = Request {
                arrival,
                offset: rng.below(pages / 4) * page,
                bytes: page * (1 + rng.below(3)),
                op,
                fua: rng.below(9) == 0,
                ..Request::default()
            };
            ssd.submit(arrival, &request, tag).unwrap();
            while ssd.outstanding() > rng.below(12) as usize {
                assert!(ssd.step());
            }
        }
        while ssd.step() {}
    }

    #[test]
    fn the_copy_has_what_the_policy_has() {
        let msr = [("geometry.chips", "2")];
        let modern = [
            ("nand.backend", "modern"),
            ("nand.background_gc", "true"),
            ("geometry.channels", "2"),
            ("geometry.chips", "4"),
            ("buffer.evict", "background"),
        ];
        let set = [
            ("geometry.planes_per_chip", "1"),
            ("geometry.blocks_per_plane", "32"),
            ("geometry.pages_per_block", "16"),
            ("geometry.reserve_percent", "25"),
            ("buffer.capacity", "128 KiB"),
            ("buffer.filter_reset_ms", "40"),
            ("buffer.policy", "cda-gc"),
            ("gc.moves", "class"),
        ];
        for (seed, backend) in [&msr[..], &modern].iter().enumerate() {
            let set = [backend, &set[..]].concat();
            let spec = DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &set).unwrap();
            let mut rng = Rng::new(seed as u64);
            let mut ssd = Ssd::new(&spec);
            ssd.fill_sequential();
            drive(&mut ssd, &mut rng, 3_000);
            assert!(ssd.flash_report().flash.gc_actions > 100);
            assert_same(&ssd, "writes");
            let mut state = Vec::new();
            ssd.save_state(&mut state).unwrap();
            ssd.load_state(&mut &state[..]).unwrap();
            assert_same(&ssd, "loading a state");
            ssd.fill_sequential();
            assert_same(&ssd, "new flash");
            drive(&mut ssd, &mut rng, 500);
            ssd.set_policy("cda-gc-dispatcher", &[("buffer.filter_percent", "3")])
                .unwrap();
            assert_same(&ssd, "another policy");
            drive(&mut ssd, &mut rng, 500);
            assert_same(&ssd, "writes under another policy");
            ssd.cut_power(1_000_000).unwrap();
            assert_same(&ssd, "a power loss");
        }
    }
}
