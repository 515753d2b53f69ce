//! Slow members: the delay of their responses. Each request still completes exactly once.

use flashtwin::{Array, Completion, MemberError, Op, Request, Rng, Status, Time};

use super::array;

const PAGE: u64 = 4096;
/// Setting for bare members: pages bypass their front ends. In a striped array without redundancy, their flash events
/// are in the array's own queue.
const BARE: &[(&str, &str)] = &[("member.link.bus_ns_per_sector", "0")];

fn request(array: &Array, op: Op, page: u64) -> Request {
    Request {
        arrival: array.now(),
        offset: page * PAGE,
        bytes: PAGE,
        op,
        fua: false,
        ..Request::default()
    }
}

/// Accesses a single page of an idle array, and returns the response time.
fn took(array: &mut Array, op: Op, page: u64) -> Time {
    array
        .submit(array.now(), &request(array, op, page), 0)
        .unwrap();
    let mut done = Vec::new();
    while array.step() {
        done.append(array.completions());
    }
    let [done] = done[..] else {
        panic!("{} completions", done.len())
    };
    assert_eq!(done.breakdown.total(), done.done - done.arrival);
    done.done - done.arrival
}

#[test]
fn a_slow_member_multiplies_response_times() {
    for (level, more) in [("raid0", BARE), ("raid0", &[]), ("raid5", &[])] {
        let mut array = array(level, "harmonia*4", more);
        array.fill_sequential();
        // In the first row of chunks, chunk 0 is on member 0, chunk 1 on member 1, and so on.
        let chunk = u64::from(array.spec().chunk_pages);
        let plain: Vec<Time> = (0..3)
            .map(|at| took(&mut array, Op::Read, at * chunk))
            .collect();
        array.slow_member(1, 2500).unwrap();
        for (at, &before) in (0..3).zip(&plain) {
            let slow = took(&mut array, Op::Read, at * chunk);
            let times = if at == 1 { 5 } else { 2 };
            // The array's front end takes no time. The delay therefore multiplies the whole response time.
            assert_eq!(slow, Time(before.0 * times / 2), "{level}: member {at}");
        }
        let write = took(&mut array, Op::Write, chunk);
        array.slow_member(1, 1000).unwrap();
        assert_eq!(took(&mut array, Op::Read, chunk), plain[1], "{level}");
        let again = took(&mut array, Op::Write, chunk);
        assert!(write > again, "{level}: {write:?} {again:?}");
        array.slow_member(1, 1).unwrap();
        assert_eq!(took(&mut array, Op::Read, chunk), plain[1], "never faster");
    }
}

/// Submits 1500 requests of up to `most` pages each, and calls `change` after every hundredth. Returns the completions
/// in order.
fn load(
    array: &mut Array,
    (most, seed): (u64, u64),
    mut change: impl FnMut(&mut Array, u64),
) -> Vec<Completion> {
    let mut rng = Rng::new(seed);
    let pages = array.exported_bytes() / PAGE;
    let start = array.now();
    for tag in 0..1500 {
        let now = start + Time::from_us(150 * tag);
        array.advance(now);
        if tag % 100 == 99 {
            change(array, tag / 100);
        }
        let op = [
            Op::Read,
            Op::Read,
            Op::Write,
            Op::Write,
            Op::Flush,
            Op::Trim,
        ];
        let op = op[rng.below(6) as usize];
        let mut request = request(array, op, rng.below(pages - 8));
        request.bytes *= 1 + rng.below(most);
        if op == Op::Flush {
            (request.offset, request.bytes) = (0, 0);
        }
        array.submit(now, &request, tag).unwrap();
    }
    while array.step() {}
    assert_eq!(array.outstanding(), 0);
    let done = std::mem::take(array.completions());
    let mut tags: Vec<u64> = done.iter().map(|c| c.tag).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..1500), "each once");
    for c in done.iter().filter(|c| c.status == Status::Ok) {
        assert_eq!(c.breakdown.total(), c.done - c.arrival);
    }
    done
}

#[test]
fn slow_members_complete_every_request_once_and_repeatably() {
    for seed in flashtwin::seeds(2) {
        let buffer = ("buffer.capacity", "256 KiB");
        for (level, more) in [
            ("raid0", BARE),
            ("raid0", &[]),
            ("raid1", &[]),
            ("raid10", &[]),
            (
                "raid5",
                &[("array.reads", "hedged"), ("array.hedge_after_us", "500")],
            ),
            ("raid5", &[("array.coordination", "turns")]),
            ("raid6", &[buffer]),
        ] {
            let mut fresh = array(level, "harmonia*4", more);
            fresh.fill_steady(1);
            let faster_and_slower = |array: &mut Array, turn: u64| {
                let times = [4000, 1000, 30_000, 1500];
                array
                    .slow_member(turn as usize % 4, times[turn as usize % 3])
                    .unwrap();
            };
            let done = load(&mut fresh.clone(), (8, seed), faster_and_slower);
            assert!(done.iter().all(|c| c.status == Status::Ok), "{level}");
            let again = load(&mut fresh.clone(), (8, seed), faster_and_slower);
            let ends =
                |of: &[Completion]| -> Vec<_> { of.iter().map(|c| (c.tag, c.done)).collect() };
            assert_eq!(ends(&done), ends(&again), "{level}");
            let plain = load(&mut fresh.clone(), (8, seed), |_, _| {});
            assert!(ends(&plain) != ends(&done), "{level}");
            // Member 2 fails while its delayed responses are in flight. Then a new member replaces it and is rebuilt.
            load(&mut fresh, (8, seed), |array, turn| match turn {
                1 => array.slow_member(2, 50_000).unwrap(),
                3 => array.fail_needed_member(2).unwrap(),
                5 if level != "raid0" => array.replace_member(2).unwrap(),
                _ => {}
            });
        }
    }
}

/// Once the speed of a member has been set, requests to the member take a longer path through the code, even at normal
/// speed. The results must equal those of members whose speed was never set.
#[test]
fn members_reset_from_slow_equal_fresh_ones() {
    let buffer = ("buffer.capacity", "256 KiB");
    let cases: [(&str, &[(&str, &str)]); 5] = [
        ("raid1", &[buffer]),
        ("raid5", &[]),
        ("raid5", &[buffer]),
        ("raid5", &[buffer, ("buffer.policy", "co-active")]),
        ("raid6", &[buffer, ("buffer.policy", "co-active")]),
    ];
    for (level, more) in cases {
        let mut fresh = array(level, "harmonia*5", &[BARE, more].concat());
        fresh.fill_steady(1);
        let mut others = fresh.clone();
        for member in 0..5 {
            others.slow_member(member, 1000).unwrap();
        }
        for pages in [1, 8] {
            let done = |array: &mut Array| format!("{:?}", load(array, (pages, 1), |_, _| {}));
            assert_eq!(done(&mut fresh), done(&mut others), "{level}");
            assert_eq!(fresh.raid_stats(), others.raid_stats(), "{level}");
            assert_eq!(fresh.flash_report(), others.flash_report(), "{level}");
        }
    }
}

#[test]
fn a_power_loss_does_not_wait_for_delayed_responses() {
    for more in [BARE, &[]] {
        let mut array = array("raid0", "harmonia*4", more);
        array.fill_sequential();
        array.slow_member(1, 8000).unwrap();
        let chunk = u64::from(array.spec().chunk_pages);
        let read = request(&array, Op::Read, chunk);
        array.submit(array.now(), &read, 7).unwrap();
        array.advance(array.now() + Time::from_us(300));
        let cut = array.cut_power(1_000_000).unwrap();
        assert_eq!((cut.unfinished, cut.lost.len()), (1, 0));
        assert!(array.completions().is_empty());
        // The member is still slow after the power loss.
        let slow = took(&mut array, Op::Read, chunk);
        assert_eq!(slow, Time(8 * took(&mut array, Op::Read, 0).0));
    }
}

#[test]
fn a_missing_member_cannot_be_slowed() {
    let mut array = array("raid5", "harmonia*4", &[]);
    let unknown = MemberError::Unknown {
        member: 4,
        members: 4,
    };
    assert_eq!(array.slow_member(4, 2000), Err(unknown));
    array.slow_member(1, 2000).unwrap();
    array.fail_member(1).unwrap();
    let missing = MemberError::Missing { member: 1 };
    assert_eq!(array.slow_member(1, 2000), Err(missing));
    array.replace_member(1).unwrap();
    array.slow_member(1, 2000).unwrap();
    array.fail_needed_member(2).unwrap();
    assert_eq!(array.slow_member(0, 2000), Err(MemberError::Lost));
}
