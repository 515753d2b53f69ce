//! Arbitration between queues: compared with orders computed by hand, and under random load. Also waits for places in
//! queues.

use super::*;
use crate::request::Request;
use crate::rng::Rng;
use crate::spec::{builtin, Arbitration};
use crate::units::Time;
use crate::{DeviceSpec, Ssd};

/// Returns a device that was never written. Its processor takes 1 us for a read, and no time for other requests.
fn device(host: &[(&str, &str)]) -> Ssd {
    let mut overrides = vec![
        ("controller.request_us", "1"),
        ("link.bus_ns_per_sector", "0"),
        ("link.command_overhead_us", "0"),
        ("buffer", "none"),
    ];
    overrides.extend(host);
    let spec = DeviceSpec::with_overrides(builtin("demo").unwrap(), "demo", &overrides);
    Ssd::new(&spec.unwrap_or_else(|e| panic!("{e}")))
}

fn read() -> Request {
    Request {
        arrival: Time::ZERO,
        offset: 0,
        bytes: 4096,
        op: Op::Read,
        fua: false,
        ..Request::default()
    }
}

/// Submits reads to the queues `submitted`, all at the same instant. Returns the queues in the order in which they
/// were served.
fn served(host: &[(&str, &str)], submitted: &[u16]) -> Vec<u64> {
    let mut ssd = device(host);
    // This request keeps the processor busy until all others have arrived.
    ssd.submit_to(Time::ZERO, &read(), 99, 0).unwrap();
    for &queue in submitted {
        let tag = u64::from(queue);
        ssd.submit_to(Time::ZERO, &read(), tag, queue).unwrap();
    }
    while ssd.step() {}
    let done = ssd.completions().drain(..);
    let order: Vec<(u64, u64)> = done.map(|c| (c.tag, c.done.to_ns())).collect();
    for (i, (_, at)) in order.iter().enumerate() {
        assert_eq!(*at, 1_000 * (i as u64 + 1), "one in a microsecond");
    }
    order.iter().skip(1).map(|(tag, _)| *tag).collect()
}

/// Orders in which queues are served, compared with orders computed by hand.
#[test]
fn whose_turn_it_is_by_hand() {
    let submitted = [0, 0, 0, 1, 1, 2];
    let one = served(&[], &submitted);
    assert_eq!(one, [0, 0, 0, 1, 1, 2], "one queue: as they come");
    let round_robin = [("host.queues", "3")];
    assert_eq!(served(&round_robin, &submitted), [1, 2, 0, 1, 0, 0]);
    let bursts = [("host.queues", "3"), ("host.burst", "2")];
    // The request that kept the processor busy was the first of the burst of queue 0.
    assert_eq!(served(&bursts, &submitted), [0, 1, 1, 2, 0, 0]);
    let weighted = [
        ("host.queues", "5"),
        ("host.arbitration", "weighted"),
        ("host.urgent_queues", "1"),
        ("host.high_queues", "2"),
        ("host.medium_queues", "1"),
        ("host.high_weight", "3"),
        ("host.medium_weight", "2"),
    ];
    // Queue 0 is urgent. Queues 1 and 2 are high and alternate, three commands per round. Queue 3 is medium, two per
    // round. Queue 4 is low, one per round.
    let submitted = [4, 4, 4, 3, 3, 3, 2, 2, 1, 1, 1, 1, 0, 0];
    assert_eq!(
        served(&weighted, &submitted),
        [0, 0, 1, 2, 1, 3, 3, 4, 2, 1, 1, 3, 4, 4]
    );
}

/// Queues, weights, bursts, limits and arrivals are random. Every request must be served once, and the requests of one
/// queue in order. As long as all classes have commands, each class must be served in every round exactly as many times
/// as its weight.
#[test]
fn nothing_is_lost_or_overtaken_and_shares_follow_weights() {
    for seed in crate::seeds(3) {
        let mut rng = Rng::new(seed);
        for _ in 0..60 {
            let mut n = |most: u64| (1 + rng.below(most)) as u32;
            let (queues, burst) = ([n(3), n(3), n(3)], 1 << (n(4) - 1));
            let host = Host {
                queues: queues.iter().sum(),
                arbitration: Arbitration::Weighted,
                urgent_queues: 0,
                high_queues: queues[0],
                medium_queues: queues[1],
                high_weight: n(9),
                medium_weight: n(5),
                low_weight: n(3),
                burst,
                queue_depth: 0,
                commands: n(2) - 1,
                assign: Assign::Turn,
            };
            let mut of = Queues::new(&host);
            let weights = host.weights();
            let each = 400;
            for i in 0..each * host.queues {
                let queue = (i % host.queues) as u16;
                assert!(of.enter(queue, ReqId(i)));
                of.push(queue, ReqId(i));
            }
            let mut last = vec![None; host.queues as usize];
            let (mut served, mut by_class) = (0, [0u32; 3]);
            let round: u32 = weights.iter().sum();
            while let Some(ReqId(id)) = of.take() {
                let queue = id % host.queues;
                assert!(
                    last[queue as usize].is_none_or(|last| last < id),
                    "overtaken"
                );
                last[queue as usize] = Some(id);
                let class = match queue {
                    q if q < queues[0] => 0,
                    q if q < queues[0] + queues[1] => 1,
                    _ => 2,
                };
                by_class[class] += 1;
                served += 1;
                let full = |class: usize| by_class[class] + weights[class] < each * queues[class];
                if served % round == 0 && (0..3).all(full) {
                    let rounds = served / round;
                    assert_eq!(by_class, weights.map(|weight| weight * rounds));
                }
                if of.is_limited() {
                    of.finished(queue as u16);
                }
            }
            assert_eq!(served, each * host.queues);
        }
    }
}

/// There are two queues with one place each. The second request of a queue waits at the host until the first one is
/// finished. With a limit of one command, the device executes commands one after the other.
#[test]
fn requests_wait_for_places() {
    let ends = |host: &[(&str, &str)]| -> Vec<(u64, u64)> {
        let mut all = vec![("controller.request_us", "0"), ("host.queues", "2")];
        all.extend(host);
        let mut ssd = device(&all);
        let page = 4096;
        for tag in 0..4 {
            let write = Request {
                offset: tag * page,
                op: Op::Write,
                ..read()
            };
            // The pages are on chips 0 to 3, and the requests in queues 0, 0, 1, 1.
            ssd.submit_to(Time::ZERO, &write, tag, tag as u16 / 2)
                .unwrap();
        }
        while ssd.step() {}
        let metrics = ssd.metrics().op(Op::Write);
        assert_eq!(metrics.requests, 4);
        let done = ssd.completions().drain(..);
        done.map(|c| (c.tag, c.done.to_ns())).collect()
    };
    let none = ends(&[]);
    let one = none[0].1;
    assert_eq!(none, [(0, one), (1, one), (2, one), (3, one)]);
    let places = ends(&[("host.queue_depth", "1")]);
    assert_eq!(places, [(0, one), (2, one), (1, 2 * one), (3, 2 * one)]);
    let commands = ends(&[("host.commands", "1")]);
    assert_eq!(
        commands,
        [(0, one), (2, 2 * one), (1, 3 * one), (3, 4 * one)]
    );
}

/// Limits that are never reached change no completion time of a random load. Neither does the use of several queues.
#[test]
fn limits_that_are_not_reached_change_nothing() {
    for seed in crate::seeds(3) {
        let run = |profile: &str, host: &[(&str, &str)]| {
            let spec = DeviceSpec::with_overrides(builtin(profile).unwrap(), profile, host);
            let mut ssd = Ssd::new(&spec.unwrap());
            let mut rng = Rng::new(seed);
            for tag in 0..3_000 {
                let at = Time::from_us(rng.below(60)) + ssd.now();
                ssd.advance(at);
                let request = Request {
                    offset: rng.below(4_000) * 4096,
                    bytes: 4096 * (1 + rng.below(6)),
                    op: [Op::Read, Op::Write][rng.below(2) as usize],
                    ..read()
                };
                ssd.submit(at, &request, tag).unwrap();
            }
            while ssd.step() {}
            let done = ssd.completions().drain(..);
            let mut all: Vec<_> = done.map(|c| (c.tag, c.done, c.breakdown)).collect();
            all.sort_by_key(|&(tag, ..)| tag);
            all
        };
        for profile in ["demo", "nvme-tlc", "gcar"] {
            let plain = run(profile, &[]);
            let wide = [("host.queue_depth", "65535"), ("host.commands", "65535")];
            assert!(plain == run(profile, &wide), "{profile}");
            assert!(plain == run(profile, &[("host.queues", "4")]), "{profile}");
        }
    }
}

#[test]
fn reads_and_the_others_have_queues_of_their_own() {
    let host = Host {
        queues: 5,
        assign: Assign::Kind,
        ..Host::default()
    };
    let mut of = Queues::new(&host);
    let ops = [
        Op::Read,
        Op::Write,
        Op::Read,
        Op::Read,
        Op::Read,
        Op::Flush,
        Op::Trim,
    ];
    let queues: Vec<u16> = ops.into_iter().map(|op| of.queue_for(op)).collect();
    assert_eq!(queues, [0, 3, 1, 2, 0, 4, 3]);
    assert_eq!(of.queue_of(7), 2);
}
