//! Tests of chips that are too small for their translation layer. Only tests can build them, because the check of a
//! device rejects them. A write without room must fail, and the chip must still serve later operations.

use super::super::{Nand, PageOp};
use super::*;
use crate::ftl::chip::ENTRIES;
use crate::nand::Owner;
use crate::spec::builtin;
use crate::units::Stream;

fn op(lpn: u32, cause: Cause, now: Time) -> PageOp {
    PageOp {
        lpn: Lpn(lpn),
        owner: Owner::cached_page(0),
        cause,
        request: crate::nand::FlashEvent::NO_REQUEST,
        stream: Stream::Cold,
        fua: false,
        again: 0,
        enqueued: now,
        gc_before: Time::ZERO,
    }
}

/// Executes one operation on an idle chip.
fn pass(nand: &mut Nand, lpn: u32, cause: Cause, now: &mut Time) -> Done {
    let mut events = EventQueue::new(nand.resources());
    nand.enqueue(0, op(lpn, cause, *now), *now, &mut events);
    let mut done = None;
    while events.next_time() != Time::NEVER {
        *now = events.next_time();
        let resource = events.pop().unwrap();
        let mut ended = None;
        let chip = nand.on_event(resource, *now, &mut events, &mut ended);
        done = done.or(ended);
        nand.activate(chip.expect("it collects in its map"), *now, &mut events);
    }
    done.expect("it ended")
}

#[test]
fn chip_serves_operations_after_a_write_without_room() {
    for seed in crate::seeds(3) {
        for kind in ENTRIES.iter().map(|entry| entry.name) {
            let overrides = [
                ("geometry.chips", "1"),
                ("geometry.planes_per_chip", "1"),
                ("geometry.blocks_per_plane", "16"),
                ("geometry.pages_per_block", "4"),
                ("geometry.reserve_percent", "60"),
                ("ftl.kind", kind),
                ("buffer", "none"),
            ];
            let spec =
                DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &overrides).unwrap();
            let mut nand = Nand::new(&spec);
            let Nand::Layered(layers) = &mut nand else {
                panic!("a translation layer was asked for")
            };
            // The chip has 16 blocks, but exports 20 logical blocks.
            let setup = Setup::new(kind, 80, 16, 4).unwrap();
            layers.ftls = vec![Ftl::unchecked(&setup)];
            let mut rng = Rng::new(seed);
            let (mut now, mut failed) = (Time::ZERO, 0);
            for _ in 0..2000 {
                let lpn = rng.below(80) as u32;
                let was_mapped = nand.is_mapped(Lpn(lpn));
                let write = pass(&mut nand, lpn, Cause::HostWrite, &mut now);
                failed += u64::from(!write.written);
                assert_eq!(nand.is_mapped(Lpn(lpn)), was_mapped || write.written);
                assert!(pass(&mut nand, lpn, Cause::HostRead, &mut now).written);
                assert!(nand.is_idle(0) && nand.chips_in_gc().is_empty(), "{kind}");
            }
            assert!(failed > 0, "{kind}: the chip was meant to be too small");
            assert_eq!(nand.stats().writes_failed, failed, "{kind}");
            assert_eq!(nand.stats().count(Cause::HostRead), 2000, "{kind}");
            assert_eq!(
                nand.stats().count(Cause::HostWrite),
                2000 - failed,
                "{kind}"
            );
            nand.check().unwrap();
        }
    }
}

/// The reported remaining time of a chip must be exactly the time until it is free.
#[test]
fn the_rest_of_an_access_is_known() {
    let overrides = [("ftl.kind", "dftl"), ("buffer", "none")];
    let spec = DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &overrides).unwrap();
    let mut nand = Nand::new(&spec);
    let mut now = Time::ZERO;
    assert!(pass(&mut nand, 0, Cause::HostWrite, &mut now).written);
    let mut events = EventQueue::new(nand.resources());
    nand.enqueue(0, op(0, Cause::HostRead, now), now, &mut events);
    let begun = now;
    let times = nand.times();
    let whole = times.read + times.transfer;
    for part in [0, 5] {
        let at = begun + Time::from_us(part);
        let Nand::Layered(layers) = &nand else {
            panic!("a translation layer was asked for")
        };
        assert_eq!(layers.in_hand(0, at).rest, whole - Time::from_us(part));
        assert_eq!(nand.drain_time(0, true, at), whole - Time::from_us(part));
    }
}
