//! Requests have the same results and times on the plain path as on the general path.

use super::super::{Backend, Device};
use super::Path;
use crate::buffer::ChosenPolicy;
use crate::request::{Op, Request};
use crate::rng::{seed_of, seeds, Rng};
use crate::spec::{builtin, builtin_array};
use crate::units::Time;
use crate::{Array, ArraySpec, DeviceSpec, Ssd};

const PAGE: u64 = 4096;
const MODERN: [(&str, &str); 2] = [("nand.backend", "modern"), ("geometry.channels", "2")];

/// Submits random requests. Returns the result and time of each completed request, and the flash operations. In one
/// half of the run, programs are logged, so that the device takes the general path. This is the first half if `logged`,
/// otherwise the second half.
fn run<B: Backend>(device: &mut Device<B>, seed: u64, logged: bool, plain: Path) -> String {
    let mut rng = Rng::new(seed);
    let pages = device.exported_bytes() / PAGE;
    let (mut now, mut text) = (device.now(), String::new());
    for tag in 0..3000 {
        if tag % 1500 == 0 {
            device.set_program_log(logged == (tag == 0));
            let is_logged = logged == (tag == 0);
            assert_eq!(device.path, if is_logged { Path::ANY } else { plain });
        }
        now += Time::from_us(rng.below(4) * 40);
        let span = 1 + rng.below(4).saturating_sub(rng.below(4));
        let part = rng.below(4) == 0;
        let request = Request {
            arrival: now,
            offset: rng.below(pages - span) * PAGE + if part { 512 } else { 0 },
            bytes: if part { 1024 } else { span * PAGE },
            op: match rng.below(40) {
                0 => Op::Flush,
                1 => Op::Trim,
                2..=15 => Op::Read,
                _ => Op::Write,
            },
            fua: rng.below(16) == 0,
            ..Request::default()
        };
        device.advance(now);
        device
            .submit(now, &request, tag)
            .expect("it is on the device");
        let done = device.completions().drain(..);
        done.for_each(|c| text += &format!("{c:?}\n"));
    }
    while device.step() {}
    let done = device.completions().drain(..);
    done.for_each(|c| text += &format!("{c:?}\n"));
    text + &format!(
        "{:?}\n{:?}",
        device.flash_report(),
        device.metrics().op(Op::Write)
    )
}

fn compare<B: Backend>(what: &str, mut device: Device<B>, plain: Path) {
    assert_eq!(device.path, plain, "{what}");
    let mut other = device.clone();
    for seed in seeds(3) {
        let (got, expected) = (
            run(&mut device, seed, false, plain),
            run(&mut other, seed, true, plain),
        );
        assert!(got == expected, "{what}, seed {seed}");
    }
}

fn ssd(more: &[(&str, &str)]) -> Ssd {
    let mut keys = vec![
        ("geometry.chips", "4"),
        ("geometry.blocks_per_plane", "32"),
        ("geometry.pages_per_block", "16"),
        ("geometry.reserve_percent", "30"),
        ("buffer.capacity", "256 KiB"),
    ];
    keys.extend(more);
    let text = builtin("ecr").expect("it is built in");
    let mut ssd =
        Ssd::new(&DeviceSpec::with_overrides(text, "ecr", &keys).expect("a sound device"));
    ssd.fill_steady(1);
    ssd
}

/// Settings of the devices under test. Each device runs with every policy in turn.
const KINDS: [(&str, &[(&str, &str)]); 9] = [
    ("msr", &[]),
    ("modern", &MODERN),
    ("sectors", &[("buffer.partial", "sectors")]),
    (
        "dynamic placement",
        &[MODERN[0], MODERN[1], ("ftl.placement", "dynamic")],
    ),
    (
        "few erases",
        &[("wear.erase_limit", "6"), ("buffer.capacity", "64 KiB")],
    ),
    (
        "protected",
        &[
            ("buffer.power_loss_protection", "true"),
            ("buffer.capacity", "32 KiB"),
        ],
    ),
    (
        "read cache",
        &[("buffer.read_cache", "16"), ("nand.copy_back", "false")],
    ),
    (
        "parallel units",
        &[
            ("geometry.planes_per_chip", "2"),
            ("nand.parallel_units", "2"),
            ("nand.cleaning_in_background", "true"),
        ],
    ),
    (
        "suspension",
        &[
            MODERN[0],
            MODERN[1],
            ("nand.suspend", "true"),
            ("nand.read_priority", "true"),
        ],
    ),
];

fn state(ssd: &Ssd) -> Vec<u8> {
    let mut bytes = Vec::new();
    ssd.save_state(&mut bytes).expect("memory takes all");
    bytes
}

/// Compares two devices under the same random requests. One stays on its path; the other is switched between the
/// paths while requests are in flight.
fn compare_switched(what: &str, ssd: Ssd, seed: u64) {
    let mut rng = Rng::new(seed);
    let pages = ssd.exported_bytes() / PAGE;
    let pace = [20, 80, 400, 3000][rng.below(4) as usize];
    let hot = [16, 200, pages][rng.below(3) as usize].min(pages);
    let mut now = ssd.now();
    let mut devices = [ssd.clone(), ssd];
    let end_of = |device: &mut Ssd| std::mem::take(device.completions());
    for tag in 0..500 {
        if rng.below(8) == 0 {
            devices[1].set_program_log(rng.below(2) == 0);
        }
        now += Time::from_us(rng.below(pace));
        let span = 1 + rng.below(4).saturating_sub(rng.below(4));
        let within = if rng.below(4) == 0 { pages } else { hot };
        let part = rng.below(4) == 0;
        let request = Request {
            arrival: now,
            offset: rng.below(within - span) * PAGE + if part { 512 } else { 0 },
            bytes: if part { 1024 } else { span * PAGE },
            op: match rng.below(40) {
                0 => Op::Flush,
                1 => Op::Trim,
                2..=15 => Op::Read,
                _ => Op::Write,
            },
            fua: rng.below(16) == 0,
            ..Request::default()
        };
        let [plain, switched] = devices.each_mut().map(|device| {
            device.advance(now);
            (device.submit(now, &request, tag)).expect("it is on the device");
            let _ = device.take_program_log().count();
            let lost = (tag % 100 == 0).then(|| device.power_cut().lost);
            format!("{:?} {lost:?}", end_of(device))
        });
        assert!(plain == switched, "{what}, seed {seed}, request {tag}");
    }
    let [plain, switched] = devices.each_mut().map(|device| {
        while device.step() {}
        let of = |op| format!("{:?}", device.metrics().op(op));
        let metrics = [Op::Read, Op::Write, Op::Trim, Op::Flush].map(of);
        let report = format!("{metrics:?} {:?}", device.flash_report());
        (format!("{:?}", end_of(device)), report, state(device))
    });
    assert!(plain == switched, "{what}, seed {seed}, at the end");
}

#[test]
fn every_policy_does_the_same_on_both_paths_of_every_kind_of_device() {
    for policy in ChosenPolicy::names() {
        for (kind, keys) in KINDS {
            let mut keys = keys.to_vec();
            keys.push(("buffer.policy", &policy));
            let ssd = ssd(&keys);
            let is_plain = policy != "co-active";
            let what = format!("{policy}, {kind}");
            assert_eq!(ssd.path != Path::ANY, is_plain, "{what}");
            for seed in seeds(1) {
                compare_switched(&what, ssd.clone(), seed_of(&policy, seed));
            }
        }
    }
}

#[test]
fn devices_without_a_policy_to_choose_do_the_same_on_both_paths() {
    compare("msr", ssd(&[]), Path::plain(1, false));
    compare("modern", ssd(&MODERN), Path::plain(2, false));
    let dynamic = [MODERN[0], MODERN[1], ("ftl.placement", "dynamic")];
    compare("dynamic placement", ssd(&dynamic), Path::plain(0, false));
    compare("dftl", ssd(&[("ftl.kind", "dftl")]), Path::plain(0, false));
}

#[test]
fn an_array_does_the_same_on_both_paths() {
    for level in ["raid0", "raid5"] {
        let keys = [
            ("array.level", level),
            ("array.members", "ecr*4"),
            ("buffer.capacity", "256 KiB"),
            ("link.bus_ns_per_sector", "238.4"),
            ("member.buffer", "none"),
            ("member.geometry.chips", "2"),
            ("member.geometry.blocks_per_plane", "32"),
            ("member.geometry.pages_per_block", "16"),
            ("member.geometry.reserve_percent", "30"),
            ("member.link.bus_ns_per_sector", "0"),
        ];
        let text = builtin_array("raid5-array").expect("it is built in");
        let spec = ArraySpec::with_overrides(text, "raid5-array", &keys).expect("a sound array");
        let mut array = Array::new(&spec);
        array.fill_steady(1);
        compare(level, array, Path::plain(0, false));
    }
}

/// A front end that takes time, or that has limits, is not plain.
#[test]
fn features_of_the_front_end_select_the_general_path() {
    for (key, value) in [
        ("link.command_overhead_us", "1"),
        ("link.kind", "pcie"),
        ("host.queue_depth", "4"),
        ("host.queues", "2"),
        ("controller.request_us", "1"),
        ("buffer.latency_us", "1"),
        ("buffer.evict", "background"),
        ("buffer.policy", "co-active"),
        ("buffer", "none"),
    ] {
        assert_eq!(ssd(&[(key, value)]).path, Path::ANY, "{key} = {value}");
    }
}

/// The policy COOP, which writes pages back after a time without accesses, is replaced by LRU while COOP's timer is
/// set. The copy of the path for LRU does not support this timer.
#[test]
fn exchange_for_a_policy_that_writes_nothing_ahead_ends_the_timer() {
    let mut ssd = ssd(&[("buffer.policy", "coop")]);
    assert_eq!(ssd.path, Path::plain(1, true));
    for (tag, policy) in (0..).zip(["lru", "coop", "lru", "coop"]) {
        let request = Request {
            arrival: ssd.now(),
            offset: tag * PAGE,
            bytes: PAGE,
            op: Op::Write,
            ..Request::default()
        };
        ssd.submit(ssd.now(), &request, tag)
            .expect("it is on the device");
        ssd.set_policy(policy, &[]).expect("a policy");
        assert_eq!(ssd.path, Path::plain(1, policy == "coop"));
        ssd.advance(ssd.now() + Time::from_us(100_000));
        assert_eq!(ssd.completions().drain(..).count(), 1);
    }
    let report = ssd.flash_report();
    assert!(report.programs() > 0, "COOP writes pages ahead");
}

/// Every build, not only debug builds, checks the kind of the back end. Running the copy for another kind would be
/// undefined behaviour.
#[test]
#[should_panic(expected = "the path of another kind of back end")]
fn stale_path_panics() {
    let mut device = ssd(&MODERN);
    device.as_plain::<1, false>();
}
