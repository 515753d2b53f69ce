//! Collection while the array is idle, and a request that arrives during it.

use crate::array::layout::Spot;
use crate::device::{Backend, Work};
use crate::request::{Op, Request};
use crate::rng::Rng;
use crate::spec::builtin_array;
use crate::units::{Lpn, Time};
use crate::{Array, ArraySpec, Cause};

/// Returns an array that collects while it is idle, with one pool per chip of its members.
fn array() -> Array {
    let set = [
        ("array.level", "raid0"),
        ("array.members", "harmonia*2"),
        ("array.coordination", "idle"),
        ("array.soft_percent", "30"),
        ("array.idle_ms", "1"),
        ("array.idle_until_percent", "14"),
        ("member.geometry.chips", "4"),
        ("member.geometry.planes_per_chip", "1"),
        ("member.geometry.blocks_per_plane", "64"),
        ("member.geometry.pages_per_block", "16"),
    ];
    let text = builtin_array("harmonia-array").unwrap();
    let spec = ArraySpec::with_overrides(text, "harmonia-array", &set).unwrap();
    let mut array = Array::new(&spec);
    array.fill_steady(5);
    array
}

/// Returns whether the chip that holds a page is at its low mark. At this mark, the chip has so few free blocks that it
/// collects before it serves waiting requests.
fn is_at_low_mark(array: &Array, lpn: Lpn) -> bool {
    let Spot { member, lpn } = array.backend.io.layout.spot(lpn);
    let flash = &array.backend.io.members[member].drive.ssd.backend;
    let chip = usize::from(flash.home(lpn).0);
    flash.free_blocks(chip) <= flash.gc_trigger_blocks(chip)
}

/// The idle array collects garbage, and a request arrives. The request cancels the coordinator's order to collect, and
/// waits at most for the move or erase that is running. There is one exception. If the free blocks of a chip have
/// fallen to the chip's own low mark (T_hard), the chip collects a whole block before it serves the request, as it does
/// under load.
#[test]
fn idle_collection_makes_room_for_a_request_at_once() {
    let (mut at_low_mark, mut above, mut waited) = (0, 0, Time::ZERO);
    for seed in crate::seeds(8) {
        let mut device = array();
        let mut rng = Rng::new(seed);
        let pages = device.exported_bytes() / 4096;
        let request = |arrival, page: u64, op| Request {
            arrival,
            offset: page * 4096,
            bytes: 4096,
            op,
            fua: false,
            ..Request::default()
        };
        // There are enough writes for every pool (all blocks of a chip) to open a block. Both members then register
        // with the coordinator.
        for tag in 0..400 {
            let at = device.now();
            let write = request(at, rng.below(pages), Op::Write);
            device.submit(at, &write, tag).unwrap();
            while device.outstanding() > 0 {
                device.step();
            }
        }
        device.completions().clear();
        for tag in 400..440 {
            // By this instant, the array has been idle long enough for the controller's periodic check, and members
            // have been collecting for a while.
            let at = device.now() + Time::from_us(3_137);
            device.advance(at);
            let page = rng.below(pages);
            let is_low = is_at_low_mark(&device, Lpn(page as u32));
            device
                .submit(at, &request(at, page, Op::Read), tag)
                .unwrap();
            while device.outstanding() > 0 {
                device.step();
            }
            let done = device.completions().pop().unwrap();
            let wait = done.breakdown.queue_gc;
            if is_low {
                at_low_mark += 1;
                continue;
            }
            above += 1;
            assert!(
                wait <= Time::from_us(1_500),
                "seed {seed}: {:?}",
                done.breakdown
            );
            waited = waited.max(wait);
        }
        assert!(device.raid_stats().gc_left_off > 0);
        assert!(device.flash_report().flash.count(Cause::GcMove) > 0);
    }
    assert!(waited > Time::ZERO, "some read met a collection");
    assert!(
        above > at_low_mark,
        "{above} reads above the low mark, {at_low_mark} at it"
    );
}
