//! More members fail than the redundancy of the array permits. Every request must still complete.

use super::{array, do_alone, pages, request, until_idle};
use flashtwin::{Array, Condition, MemberError, Op, Request, Rng, Status, Time};

/// Submits many requests of all kinds. After half of them, the members `failing` fail, so that data are lost. Returns
/// the number of requests that succeeded, and the number that failed.
pub fn through_a_loss(array: &mut Array, failing: &[usize], seed: u64) -> [u64; 2] {
    let mut rng = Rng::new(seed);
    let mut completions = [0; 2];
    let mut seen = vec![false; 2000];
    let last = array.now() + Time::from_us(200) * 1000;
    let mut count = |array: &mut Array, broken: bool| {
        for c in array.completions().drain(..) {
            assert!(!std::mem::replace(&mut seen[c.tag as usize], true));
            assert_eq!(c.breakdown.total(), c.done - c.arrival);
            match c.status {
                Status::Ok => completions[0] += 1,
                Status::Failed => completions[1] += 1,
                Status::ReadOnly => panic!("nothing is worn"),
            }
            assert!(broken || c.status == Status::Ok);
        }
    };
    for tag in 0..2000 {
        let now = array.now().max(Time::from_us(tag * 200));
        array.advance(now);
        if tag == 1000 {
            assert_eq!(now, last);
            count(array, false);
            for &member in failing {
                array.fail_needed_member(member).unwrap();
            }
        }
        let op = [Op::Read, Op::Write, Op::Write, Op::Trim, Op::Flush][rng.below(5) as usize];
        let span = match op {
            Op::Flush => 0,
            _ => 1 + rng.below(16),
        };
        let mut wanted: Request = request(op, rng.below(pages(array) - 16), span);
        wanted.fua = rng.below(8) == 0;
        array.submit(now, &wanted, tag).unwrap();
    }
    until_idle(array);
    count(array, true);
    assert_eq!(array.outstanding(), 0);
    assert!(seen.iter().all(|&seen| seen), "each completes once");
    completions
}

#[test]
fn requests_fail_after_one_failure_too_many() {
    for seed in flashtwin::seeds(2) {
        for (level, members, failing) in [
            ("raid0", "harmonia*2", &[1][..]),
            ("raid1", "harmonia*2", &[0, 1]),
            ("raid10", "harmonia*4", &[2, 3]),
            ("raid5", "harmonia*4", &[0, 3]),
            ("raid6", "harmonia*5", &[4, 0, 2]),
        ] {
            for more in [
                &[][..],
                &[("member.link.bus_ns_per_sector", "0")],
                &[("buffer.capacity", "256 KiB"), ("buffer.policy", "bplru")],
                &[("array.reads", "hedged"), ("array.hedge_after_us", "60")],
                &[
                    ("member.buffer.capacity", "64 KiB"),
                    ("member.buffer.policy", "lru"),
                    ("array.coordination", "turns"),
                ],
            ] {
                let hedged = more.contains(&("array.reads", "hedged"));
                if hedged && level == "raid0" {
                    continue;
                }
                let mut device = array(level, members, more);
                device.fill_steady(1);
                device.set_gc_timeline(true);
                let [ok, failed] = through_a_loss(&mut device, failing, seed);
                assert!(ok > 400 && failed >= 1000, "{level} {ok} {failed}");
                let phases = device.phases();
                let conditions: Vec<Condition> =
                    phases.iter().map(|phase| phase.condition).collect();
                let mut want = vec![Condition::Whole];
                want.extend(vec![Condition::Degraded; failing.len() - 1]);
                want.push(Condition::Lost);
                assert_eq!(conditions, want, "{level}");
                assert_eq!(phases[1].from, Time::from_ms(200));
                let phases_end = phases[phases.len() - 1].from;
                assert!(!device.is_read_only());
                assert_eq!(device.raid_stats().pages_hedged > 0, hedged, "{level}");
                let intervals = device.take_gc_intervals();
                assert!(!intervals.is_empty());
                assert!(intervals.iter().all(|i| i.end <= phases_end), "{level}");
                assert_eq!(device.replace_member(failing[0]), Err(MemberError::Lost));
                assert_eq!(device.fail_member(0), Err(MemberError::Lost));
                let read = do_alone(&mut device, &request(Op::Read, 0, 1));
                assert_eq!(read.status, Status::Failed);
            }
        }
    }
}

/// If a further member fails during a rebuild, data are lost and the rebuild ends.
#[test]
fn a_rebuild_ends_with_the_array() {
    let set = [("array.rebuild_mib_per_s", "10"), ("array.chunk", "16 KiB")];
    let mut device = array("raid5", "harmonia*4", &set);
    device.fill_sequential();
    device.fail_member(1).unwrap();
    device.replace_member(1).unwrap();
    device.advance(Time::from_ms(50));
    assert!(device.rebuild_progress().is_some_and(|(done, _)| done > 0));
    device
        .submit(device.now(), &request(Op::Read, 0, 4), 9)
        .unwrap();
    assert_eq!(device.fail_needed_member(1), Ok(()), "it is not there yet");
    assert_eq!(
        device.phases().last().unwrap().condition,
        Condition::Degraded
    );
    device.replace_member(1).unwrap();
    device.advance(Time::from_ms(90));
    assert_eq!(device.fail_needed_member(0), Ok(()));
    until_idle(&mut device);
    let rebuilds = device.rebuilds();
    assert_eq!(rebuilds.len(), 2);
    for record in rebuilds {
        assert_eq!((record.member, record.until), (1, None));
        assert!(record.pages_written > 0 && record.pages_written < record.pages);
    }
    assert_eq!(device.rebuild_progress(), None);
}
