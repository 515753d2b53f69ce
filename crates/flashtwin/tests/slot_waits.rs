//! The wait for a buffer slot, split by the causes that delayed the operation which freed the slot. The expected values
//! are computed by hand, for one chip and a buffer of one page. A page takes 102.4 us to transfer, 200 us to program
//! and 25 us to read. An erase takes 1500 us.

use flashtwin::spec::{builtin, builtin_array};
use flashtwin::{Array, ArraySpec, Breakdown, Cause, Completion, DeviceSpec, Op, Rng, Ssd, Time};

const PAGE: u64 = 4096;
const TRANSFER: Time = Time::from_ns(102_400);
const PROGRAM: Time = Time::from_us(200);
const READ: Time = Time::from_us(25);

/// Returns a device with all pages written. Its buffer has room for one page, and holds page 0, which is dirty.
fn device(more: &[(&str, &str)]) -> Ssd {
    let mut keys = vec![
        ("geometry.chips", "1"),
        ("geometry.planes_per_chip", "1"),
        ("geometry.blocks_per_plane", "32"),
        ("geometry.pages_per_block", "8"),
        ("geometry.reserve_percent", "40"),
        ("link.bus_ns_per_sector", "0"),
        ("ftl.summary_page", "false"),
        ("buffer.capacity", "4 KiB"),
    ];
    keys.extend(more);
    let text = builtin("ecr").expect("it is built in");
    let spec = DeviceSpec::with_overrides(text, "ecr", &keys).expect("a sound device");
    let mut ssd = Ssd::new(&spec);
    ssd.fill_sequential();
    send(&mut ssd, Op::Write, 0);
    rest(&mut ssd);
    ssd.completions().clear();
    ssd
}

fn send(ssd: &mut Ssd, op: Op, page: u64) {
    let request = flashtwin::Request {
        arrival: ssd.now(),
        offset: page * PAGE,
        bytes: PAGE,
        op,
        fua: false,
        ..flashtwin::Request::default()
    };
    ssd.submit(ssd.now(), &request, page).expect("a page of it");
}

fn rest(ssd: &mut Ssd) {
    while ssd.step() {}
}

/// Runs the device until it is idle; returns the completions in order.
fn completed(ssd: &mut Ssd) -> Vec<Completion> {
    rest(ssd);
    let done: Vec<Completion> = ssd.completions().drain(..).collect();
    for c in &done {
        assert_eq!(c.breakdown.total(), c.done - c.arrival);
    }
    done
}

/// Returns the parts of the wait for a slot that becomes free when a program completes.
fn slot(order: Time, queue_gc: Time) -> Breakdown {
    Breakdown {
        slot_order: order,
        slot_queue_gc: queue_gc,
        slot_transfer: TRANSFER,
        slot_array: PROGRAM,
        ..Breakdown::default()
    }
}

/// Two writes arrive at the same time. The first waits until the cached page is programmed. The second waits until the
/// page of the first write is programmed, and for the collections of the chip before that program.
#[test]
fn second_write_waits_for_its_turn_then_for_gc_and_the_program() {
    let mut ssd = device(&[]);
    let mut rng = Rng::new(1);
    let pages = ssd.exported_bytes() / PAGE;
    let mut second_waited = 0;
    for _ in 0..300 {
        let first = 1 + rng.below(pages / 2 - 1);
        let second = pages / 2 + rng.below(pages / 2);
        let before = ssd.flash_report();
        send(&mut ssd, Op::Write, first);
        send(&mut ssd, Op::Write, second);
        while ssd.completions().is_empty() {
            ssd.step();
        }
        let between = ssd.flash_report().gc_time[0];
        let done = completed(&mut ssd);
        let after = ssd.flash_report();
        let count = |cause| after.flash.count(cause) - before.flash.count(cause);
        let collected =
            (READ + PROGRAM) * count(Cause::GcMove) + Time::from_us(1500) * count(Cause::Erase);
        assert_eq!(collected, after.gc_time[0] - before.gc_time[0]);
        let gc = after.gc_time[0] - between;
        let waited = done[0].done - done[0].arrival;
        let parts: Vec<Breakdown> = done.iter().map(|c| c.breakdown).collect();
        assert_eq!(
            parts,
            [
                slot(Time::ZERO, between - before.gc_time[0]),
                slot(waited, gc)
            ]
        );
        second_waited += u32::from(gc > Time::ZERO);
    }
    assert!(second_waited > 10, "{second_waited}");
}

#[test]
fn access_that_comes_during_the_program_waits_for_the_rest_of_it() {
    let mut ssd = device(&[]);
    let start = ssd.now();
    send(&mut ssd, Op::Write, 1);
    for (late, transfer) in [(50, Time::from_ns(52_400)), (150, Time::ZERO)] {
        ssd.advance(start + Time::from_us(late));
        send(&mut ssd, Op::Write, 1);
        let waited = TRANSFER + PROGRAM - Time::from_us(late);
        let parts = Breakdown {
            slot_transfer: transfer,
            slot_array: waited - transfer,
            ..Breakdown::default()
        };
        let mut ssd = ssd.clone();
        assert_eq!(completed(&mut ssd).pop().unwrap().breakdown, parts);
    }
}

#[test]
fn read_has_the_wait_for_its_slot_and_its_own_operation() {
    let mut ssd = device(&[]);
    send(&mut ssd, Op::Read, 1);
    let parts = Breakdown {
        transfer: TRANSFER,
        array: READ,
        ..slot(Time::ZERO, Time::ZERO)
    };
    assert_eq!(completed(&mut ssd)[0].breakdown, parts);
}

/// Only one write-back may be in flight. The first write is given a slot at once. The second waits until the first
/// write-back ends. The third waits until the second page is in the buffer, and then until the second write-back
/// ends.
#[test]
fn limit_of_write_backs_is_the_order() {
    let mut ssd = device(&[
        ("buffer.evict", "background"),
        ("buffer.background_depth", "1"),
    ]);
    for page in 1..4 {
        send(&mut ssd, Op::Write, page);
    }
    let parts: Vec<Breakdown> = completed(&mut ssd).iter().map(|c| c.breakdown).collect();
    let (none, one) = (Time::ZERO, TRANSFER + PROGRAM);
    assert_eq!(
        parts,
        [Breakdown::default(), slot(none, none), slot(one, none)]
    );
}

/// When a trim removes a page from the buffer, the slot of the page becomes free without a flash operation.
#[test]
fn slot_of_a_trimmed_page_is_waited_for_in_order() {
    let mut ssd = device(&[
        ("buffer.evict", "background"),
        ("buffer.background_depth", "1"),
    ]);
    send(&mut ssd, Op::Write, 1);
    send(&mut ssd, Op::Write, 2);
    ssd.advance(ssd.now() + Time::from_us(10));
    send(&mut ssd, Op::Trim, 1);
    let done = completed(&mut ssd);
    let write = done.iter().find(|c| c.tag == 2).unwrap();
    let parts = Breakdown {
        slot_order: Time::from_us(10),
        ..Breakdown::default()
    };
    assert_eq!(write.breakdown, parts);
}

/// Writes one page at a time to an array whose members have buffers. Each write waits for the program that frees its
/// slot, and for the chip's collections before that program. The array reports the same parts of the response time as
/// the member.
#[test]
fn array_keeps_what_its_members_waited_for() {
    let keys = [
        ("array.members", "ecr*2"),
        ("member.geometry.chips", "1"),
        ("member.geometry.planes_per_chip", "1"),
        ("member.geometry.blocks_per_plane", "32"),
        ("member.geometry.pages_per_block", "8"),
        ("member.geometry.reserve_percent", "40"),
        ("member.link.bus_ns_per_sector", "0"),
        ("member.ftl.summary_page", "false"),
        ("member.buffer.capacity", "4 KiB"),
    ];
    let text = builtin_array("harmonia-array").expect("it is built in");
    let spec = ArraySpec::with_overrides(text, "harmonia-array", &keys).expect("a sound array");
    let mut array = Array::new(&spec);
    array.fill_sequential();
    let mut rng = Rng::new(1);
    let pages = array.exported_bytes() / PAGE;
    let gc_time = |array: &Array| {
        let times = array.flash_report().gc_time;
        times.into_iter().fold(Time::ZERO, |sum, time| sum + time)
    };
    let (mut evicted, mut behind_gc) = (0, 0);
    for number in 0..600 {
        let before = gc_time(&array);
        let write = flashtwin::Request {
            arrival: array.now(),
            offset: rng.below(pages) * PAGE,
            bytes: PAGE,
            op: Op::Write,
            fua: false,
            ..flashtwin::Request::default()
        };
        array
            .submit(array.now(), &write, number)
            .expect("a page of it");
        while array.completions().is_empty() {
            assert!(array.step(), "a write without a response");
        }
        let queue_gc = gc_time(&array) - before;
        let done = array.completions().pop().expect("the write");
        while array.step() {}
        assert_eq!(done.breakdown.total(), done.done - done.arrival);
        if done.breakdown.total() == Time::ZERO {
            continue;
        }
        let waited = Breakdown {
            queue_gc,
            transfer: TRANSFER,
            array: PROGRAM,
            ..Breakdown::default()
        };
        assert_eq!(done.breakdown, waited);
        evicted += 1;
        behind_gc += u32::from(queue_gc > Time::ZERO);
    }
    assert!(evicted > 500 && behind_gc > 10, "{evicted} {behind_gc}");
}
