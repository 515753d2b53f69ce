//! Random requests on random devices and arrays. The checksums cover completions, logs, counters and saved states. The
//! runs include power losses, changes of the policy, ordered collections, and failures of members and dies.

use super::{hold, Checksum};
use crate::common::drawn::{draw_array, draw_changed_device, draw_request, one_in, pick};
use flashtwin::spec::{Link, LinkKind};
use flashtwin::{Array, Condition, Device, Op, Request, Rng, Ssd, Time, Unwatched};
use flashtwin_sim::Drivable;

const REQUESTS: u64 = 250;
/// Limit on the number of events until a device is idle. No random load needs as many.
const STEPS_MAX: u64 = 2_000_000;

/// Something other than a request that happens to a device, such as a power loss or a change of the policy. The
/// checksum includes its outcome.
type Event<S> = fn(&mut Device<S>, &mut Rng, &mut Checksum);

fn observe<S: Drivable>(device: &mut Device<S>, sum: &mut Checksum) {
    for c in device.completions().drain(..) {
        assert_eq!(c.breakdown.total(), c.done - c.arrival, "{c:?}");
        sum.show(&c);
    }
    S::take_logs(device, &mut |logged| sum.show(&logged));
    sum.show(&device.gauges());
    sum.show(&device.take_program_log().collect::<Vec<_>>());
}

fn rest<S: Drivable>(device: &mut Device<S>) {
    let mut steps = 0;
    while device.step() {
        steps += 1;
        assert!(steps < STEPS_MAX, "the device never comes to rest");
    }
}

fn drive<S: Drivable>(
    device: &mut Device<S>,
    rng: &mut Rng,
    events: &[Event<S>],
    sum: &mut Checksum,
) {
    let page = u64::from(S::describe(device).page_bytes);
    let exported = device.exported_bytes() / page;
    let whole_pages = one_in(rng, 2);
    let gap_us = pick(rng, &[0, 1, 30, 300, 2000]);
    let depth = pick(rng, &[1, 3, 40, usize::MAX]);
    let logged = one_in(rng, 2);
    S::set_logs(device, logged);
    device.set_program_log(logged);
    for tag in 0..REQUESTS {
        while device.outstanding() >= depth {
            assert!(device.step(), "requests in the device and nothing pending");
        }
        let at = device.now() + Time::from_us(rng.below(1 + 2 * gap_us));
        device.advance(at);
        if let (Some(event), 0) = (events.get(rng.below(40) as usize), rng.below(4)) {
            event(device, rng, sum);
        }
        let at = device.now();
        let request = draw_request(rng, page, exported, whole_pages);
        let request = Request {
            arrival: at,
            ..request
        };
        sum.show(&device.submit(at, &request, tag));
        observe(device, sum);
    }
    rest(device);
    let arrival = device.now();
    let flush = Request {
        arrival,
        offset: 0,
        bytes: 0,
        op: Op::Flush,
        fua: false,
        ..Request::default()
    };
    device
        .submit(arrival, &flush, REQUESTS)
        .expect("a flush has no address");
    rest(device);
    observe(device, sum);
    device.metrics().check().expect("times add up");
    sum.show(&device.flash_report());
    sum.show(&(device.durable(), device.is_read_only(), device.submitted()));
    S::each_drive(device, &mut |_, drive| {
        drive.check().expect("a consistent map");
        sum.show(&drive.flash_report());
        sum.show(&(
            drive.free_flash_pages(),
            drive.pages_mapped(),
            drive.free_blocks(),
        ));
        sum.show(&drive.slc_pages_lacked());
    });
    if let Some(array) = S::array(device) {
        sum.show(&(array.raid_stats(), array.phases(), array.rebuilds()));
    }
}

/// Fills a device, runs random requests on it, and saves its state. Then runs requests on another device that has
/// loaded this state.
fn run<S: Drivable>(
    make: impl Fn() -> Device<S>,
    rng: &mut Rng,
    events: &[Event<S>],
    sum: &mut Checksum,
) {
    let mut device = make();
    match rng.below(4) {
        0 => {}
        1 => assert!(S::fill_steady(&mut device, 5, &Unwatched)),
        2 => {
            S::fill_sequential(&mut device, &Unwatched);
            sum.show(&S::write_random(&mut device, rng, 500));
            sum.show(&S::open_policy_blocks(&mut device, 5));
        }
        _ => assert!(S::fill_sequential(&mut device, &Unwatched)),
    }
    if one_in(rng, 2) {
        S::reset_wear(&mut device);
    }
    device.reset_metrics(Some(Time::from_ms(1)));
    drive(&mut device, rng, events, sum);
    let mut state = Vec::new();
    let phases = S::array(&device).map_or(&[][..], |array| array.phases());
    if phases
        .last()
        .is_some_and(|phase| phase.condition == Condition::Lost)
    {
        return;
    }
    if let Err(e) = S::save_state(&device, &mut state) {
        sum.show(&e.to_string());
        return;
    }
    sum.add(&state);
    let mut other = make();
    if let Err(e) = S::load_state(&mut other, &mut &state[..]) {
        // The state of an array with a missing member may be rejected.
        sum.show(&e.to_string());
        return;
    }
    let mut again = Vec::new();
    S::save_state(&other, &mut again).expect("memory takes all");
    assert!(state == again, "a state that was read is written otherwise");
    other.reset_metrics(None);
    drive(&mut other, rng, &[], sum);
    // A damaged state is either rejected or loaded as a different valid state.
    for _ in 0..pick(rng, &[0, 0, 40]) {
        let mut damaged = state.clone();
        let at = rng.below(state.len() as u64) as usize;
        damaged[at] ^= 1 << rng.below(8);
        let taken = S::load_state(&mut make(), &mut &damaged[..]);
        sum.show(&taken.map_err(|e| e.to_string()));
    }
}

const OF_SSD: [Event<flashtwin::Flash>; 4] = [
    |ssd, rng, sum| {
        if one_in(rng, 2) {
            // After only three steps, the flash may not be idle yet. The device must not be used after such a power
            // loss, so it is tried on a copy of the device.
            sum.show(&ssd.clone().cut_power(3));
        }
        sum.show(&ssd.cut_power(STEPS_MAX));
    },
    |ssd, rng, sum| {
        let die = one_in(rng, 2).then(|| rng.below(4) as u32);
        sum.show(&ssd.collect(die).map_err(|e| e.to_string()));
    },
    |ssd, rng, sum| {
        let name = pick(rng, &["lru", "gcar-arc", "cflru", "fab", "cda-gc", "lirs"]);
        sum.show(&ssd.set_policy(name, &[]).map_err(|e| e.to_string()));
    },
    |ssd, rng, sum| {
        let die = rng.below(5) as u32;
        sum.show(&ssd.kill_die(die).map_err(|e| e.to_string()));
    },
];

const OF_ARRAY: [Event<flashtwin::Raid>; 7] = [
    |array, rng, sum| {
        // Few of these 40 numbers are numbers of members, so that members fail seldom. Otherwise, data would often be
        // lost, which ends most of the array's work.
        let member = rng.below(40) as usize;
        sum.show(&array.fail_member(member).map_err(|e| e.to_string()));
    },
    |array, rng, sum| {
        let member = rng.below(7) as usize;
        sum.show(&array.fail_needed_member(member).map_err(|e| e.to_string()));
    },
    |array, rng, sum| {
        let member = rng.below(7) as usize;
        sum.show(&array.replace_member(member).map_err(|e| e.to_string()));
        sum.show(&array.rebuild_progress());
    },
    |array, rng, sum| {
        let member = rng.below(7) as usize;
        let times_milli = pick(rng, &[1000, 2000, 15_000]);
        sum.show(
            &array
                .slow_member(member, times_milli)
                .map_err(|e| e.to_string()),
        );
    },
    |array, rng, sum| {
        let member = one_in(rng, 2).then(|| rng.below(4) as usize);
        let die = one_in(rng, 2).then(|| rng.below(3) as u32);
        sum.show(&array.collect(member, die).map_err(|e| e.to_string()));
    },
    |array, _, sum| {
        sum.show(&array.cut_power(STEPS_MAX));
    },
    |array, rng, sum| {
        array.set_gc_timeline(one_in(rng, 2));
        sum.show(&array.take_gc_intervals());
    },
];

/// Number of seeds per line of the file.
const A_LINE: u64 = 20;

fn lines(seeds: std::ops::Range<u64>, one: impl Fn(&mut Rng, &mut Checksum)) -> Vec<(String, u64)> {
    let line = |first: u64| {
        let mut sum = Checksum::new();
        for seed in first..first + A_LINE {
            one(&mut Rng::new(seed), &mut sum);
        }
        (format!("seeds {first} to {}", first + A_LINE - 1), sum.0)
    };
    seeds.step_by(A_LINE as usize).map(line).collect()
}

fn ssds(mapping: &str, seeds: std::ops::Range<u64>) -> Vec<(String, u64)> {
    lines(seeds, |rng, sum| {
        let spec = draw_changed_device(rng, mapping);
        run(|| Ssd::new(&spec), rng, &OF_SSD, sum);
    })
}

#[test]
fn devices_with_a_page_map_a() {
    hold("random_page_a", &ssds("page", 0..200));
}

#[test]
fn devices_with_a_page_map_b() {
    hold("random_page_b", &ssds("page", 200..400));
}

#[test]
fn devices_with_dftl() {
    hold("random_dftl", &ssds("dftl", 0..60));
}

#[test]
fn devices_with_bast() {
    hold("random_bast", &ssds("bast", 0..60));
}

#[test]
fn devices_with_fast() {
    hold("random_fast", &ssds("fast", 0..60));
}

#[test]
fn devices_with_faster() {
    hold("random_faster", &ssds("faster", 0..60));
}

fn random_arrays(seeds: std::ops::Range<u64>) -> Vec<(String, u64)> {
    lines(seeds, |rng, sum| {
        let spec = draw_array(rng);
        run(|| Array::new(&spec), rng, &OF_ARRAY, sum);
    })
}

#[test]
fn arrays_a() {
    hold("random_arrays_a", &random_arrays(0..200));
}

#[test]
fn arrays_b() {
    hold("random_arrays_b", &random_arrays(200..400));
}

/// Bare members have no buffer and a link that takes no time. Pages bypass their front ends and go directly to their
/// flash.
#[test]
fn arrays_of_bare_members() {
    let cases = lines(0..200, |rng, sum| {
        let mut spec = draw_array(rng);
        for member in &mut spec.members {
            member.link = Link {
                kind: LinkKind::Reference,
                command_overhead: Time::ZERO,
                bus_per_sector: Time::ZERO,
                ..member.link.clone()
            };
            member.buffer = None;
        }
        run(|| Array::new(&spec), rng, &OF_ARRAY, sum);
    });
    hold("random_arrays_bare", &cases);
}
