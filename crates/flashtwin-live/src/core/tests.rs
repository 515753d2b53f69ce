//! Random calls at random instants. The test sets the clock.

use flashtwin::{DeviceSpec, Rng, Ssd};

use super::*;

fn twin(overrides: &[(&str, &str)]) -> Box<dyn Twin> {
    let profile = flashtwin::spec::builtin("demo").expect("demo is built in");
    let mut all = vec![
        ("geometry.blocks_per_plane", "64"),
        ("geometry.chips", "2"),
        ("geometry.reserve_percent", "15"),
        ("buffer.power_loss_protection", "false"),
    ];
    all.extend_from_slice(overrides);
    let mut ssd = Ssd::new(&DeviceSpec::with_overrides(profile, "demo", &all).expect("sound"));
    ssd.fill_sequential();
    Box::new(ssd)
}

fn random_call(rng: &mut Rng, exported_bytes: u64) -> Call {
    let op = [Op::Read, Op::Write, Op::Write, Op::Trim, Op::Flush][rng.below(5) as usize];
    if op == Op::Flush {
        return Call {
            op,
            offset: 0,
            bytes: 0,
            fua: false,
            placement: PlacementId::NONE,
        };
    }
    let bytes = match rng.below(20) {
        0 => rng.below(5 << 20),
        1 => 1 + rng.below(3),
        _ => 512 * (1 + rng.below(40)),
    };
    Call {
        op,
        offset: rng.below(exported_bytes - bytes),
        bytes,
        fua: rng.below(8) == 0,
        placement: PlacementId::NONE,
    }
}

/// Every call is returned exactly once, by the first poll at or after its completion.
#[test]
fn calls_complete_once_and_never_early() {
    for seed in flashtwin::seeds(6) {
        let mut core = Core::new(twin(&[]));
        let mut rng = Rng::new(seed);
        let exported_bytes = core.twin().exported_bytes();
        let (mut now, mut finished) = (Time::ZERO, Vec::new());
        let mut open: Vec<u64> = Vec::new();
        let mut before = Time::ZERO;
        for number in 0..3000_u64 {
            // Some pauses between polls are long. Some polls are at the same instant as the
            // previous one.
            now += match rng.below(10) {
                0 => Time::from_ms(rng.below(20)),
                1 => Time::ZERO,
                _ => Time::from_us(rng.below(300)),
            };
            if rng.below(3) > 0 {
                let call = random_call(&mut rng, exported_bytes);
                open.push(number);
                core.submit(now, &call, number, &mut finished)
                    .expect("within");
            } else {
                core.advance(now, &mut finished);
            }
            for (caller, response) in finished.drain(..) {
                assert!(response.due <= now, "early: due {} at {now}", response.due);
                assert!(
                    response.due > before || response.due == now || before == now,
                    "kept back"
                );
                assert_eq!(response.status, Status::Ok);
                let at = open.iter().position(|&other| other == caller);
                open.swap_remove(at.expect("comes out once"));
            }
            before = now;
            assert_eq!(core.waiting(), open.len());
        }
        core.advance(now + Time::from_s(100), &mut finished);
        assert_eq!(finished.len(), open.len(), "all come out in the end");
    }
}

/// The completion times of requests do not depend on how often the host polls.
#[test]
fn frequent_polling_changes_no_due_time() {
    let dues = |seed: u64, looks: u64| {
        let mut core = Core::new(twin(&[]));
        let mut rng = Rng::new(seed);
        let exported_bytes = core.twin().exported_bytes();
        let (mut now, mut finished) = (Time::ZERO, Vec::new());
        for number in 0..500 {
            let call = random_call(&mut rng, exported_bytes);
            core.submit(now, &call, number, &mut finished)
                .expect("within");
            let step = Time::from_us(rng.below(400));
            for look in 1..=looks {
                core.advance(now + Time(step.0 * look / looks), &mut finished);
            }
            now += step;
        }
        core.advance(now + Time::from_s(100), &mut finished);
        let mut dues: Vec<(u64, Time)> = finished
            .iter()
            .map(|(caller, a)| (*caller, a.due))
            .collect();
        dues.sort_unstable();
        dues
    };
    for seed in flashtwin::seeds(3) {
        assert_eq!(dues(seed, 1), dues(seed, 17));
    }
}

#[test]
fn long_calls_are_split_between_pages_and_complete_as_one() {
    let mut core = Core::new(twin(&[]));
    let mut finished = Vec::new();
    let call = Call {
        op: Op::Write,
        offset: 12_345,
        bytes: 5 << 20,
        fua: false,
        placement: PlacementId::NONE,
    };
    core.submit(Time::ZERO, &call, 7, &mut finished)
        .expect("within");
    core.advance(Time::from_s(10), &mut finished);
    assert_eq!(finished.len(), 1);
    let writes = core.twin().metrics().op(Op::Write);
    assert_eq!(writes.bytes, 5 << 20);
    // The call is split at every multiple of 1 MiB, and nowhere else.
    assert_eq!(writes.requests, 6);
}

#[test]
fn a_call_beyond_the_end_begins_nothing() {
    let mut core = Core::new(twin(&[]));
    let exported_bytes = core.twin().exported_bytes();
    let mut finished = Vec::new();
    for (offset, bytes) in [(exported_bytes, 1), (exported_bytes - 1, 2), (u64::MAX, 2)] {
        let call = Call {
            op: Op::Read,
            offset,
            bytes,
            fua: false,
            placement: PlacementId::NONE,
        };
        let refused = core.submit(Time::ZERO, &call, 0, &mut finished);
        assert_eq!(refused.expect_err("beyond").exported_bytes, exported_bytes);
        assert_eq!(core.waiting(), 0);
    }
}

#[test]
fn a_worn_out_device_refuses_writes_and_still_reads() {
    for seed in flashtwin::seeds(1) {
        let mut core = Core::new(twin(&[("wear.erase_limit", "2")]));
        let mut rng = Rng::new(seed);
        let (mut now, mut finished) = (Time::ZERO, Vec::new());
        let page = |op, rng: &mut Rng| Call {
            op,
            offset: rng.below(20_000) * 4096,
            bytes: 4096,
            fua: false,
            placement: PlacementId::NONE,
        };
        let refused = (0..400_000).any(|_| {
            now += Time::from_us(500);
            core.submit(now, &page(Op::Write, &mut rng), 0, &mut finished)
                .expect("within");
            finished
                .drain(..)
                .any(|(_, response)| response.status == Status::ReadOnly)
        });
        assert!(refused && core.twin().is_read_only());
        core.advance(now + Time::from_s(100), &mut finished);
        finished.clear();
        now += Time::from_s(200);
        core.submit(now, &page(Op::Read, &mut rng), 1, &mut finished)
            .expect("within");
        core.advance(now + Time::from_s(1), &mut finished);
        assert_eq!(finished[0].1.status, Status::Ok);
    }
}

#[test]
fn abandoned_calls_fail_once() {
    let mut core = Core::new(twin(&[]));
    let mut finished = Vec::new();
    let call = Call {
        op: Op::Read,
        offset: 0,
        bytes: 4096,
        fua: false,
        placement: PlacementId::NONE,
    };
    core.submit(Time::ZERO, &call, 5, &mut finished)
        .expect("within");
    core.abandon(&mut finished);
    core.abandon(&mut finished);
    let status = |(caller, response): &(i32, Response)| (*caller, response.status);
    assert_eq!(
        finished.iter().map(status).collect::<Vec<_>>(),
        [(5, Status::Failed)]
    );
}
