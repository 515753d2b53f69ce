//! Pauses of the buffer's programs (`buffer.pause_us`).

use flashtwin::spec::builtin;
use flashtwin::{Cause, DeviceSpec, FlashEvent, Op, Request, Rng, Ssd, Time};

const PAUSE_MS: u64 = 10;
const EVERY_MS: u64 = 100;
const DEPTH: u64 = 32;

fn spec(backend: &[(&str, &str)], pause: bool) -> DeviceSpec {
    let mut set = vec![
        ("geometry.chips", "8"),
        ("geometry.blocks_per_plane", "64"),
        ("geometry.pages_per_block", "16"),
        ("geometry.reserve_percent", "25"),
        ("buffer.capacity", "256 KiB"),
        ("buffer.evict", "background"),
        ("buffer.background_depth", "32"),
    ];
    if pause {
        set.extend([
            ("buffer.pause_us", "10000"),
            ("buffer.pause_every_us", "100000"),
        ]);
    }
    set.extend(backend);
    DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &set).unwrap()
}

/// Whether a pause has been in progress for at least 3 ms at the instant `at`. Programs that were queued before the
/// pause have then begun.
fn is_in_pause(at: Time) -> bool {
    let since_ms = at.0 as f64 / 1e9 % EVERY_MS as f64;
    since_ms >= (EVERY_MS - PAUSE_MS + 3) as f64
}

/// Writes pages at a constant rate to a new device. Returns the longest response time (only of writes after the buffer
/// was full), the instants at which programs began, and the number of completed requests.
fn run(spec: &DeviceSpec, per_s: u64, requests: u64) -> (Time, Vec<Time>, usize) {
    let mut ssd = Ssd::new(spec);
    ssd.set_flash_log(true);
    let pages = spec.exported_pages() as u64;
    let (mut rng, mut done, mut begun) = (Rng::new(1), Vec::new(), Vec::new());
    let full = Time(64 * 1_000_000_000_000 / per_s);
    let mut collect = |ssd: &mut Ssd| {
        for event in ssd.take_flash_log() {
            if let FlashEvent::Begin {
                at,
                cause: Cause::Destage,
                ..
            } = event
            {
                begun.push(at);
            }
        }
    };
    for tag in 0..requests {
        let at = Time(tag * 1_000_000_000_000 / per_s);
        ssd.advance(at);
        let request = Request {
            arrival: at,
            offset: rng.below(pages) * 4096,
            bytes: 4096,
            op: Op::Write,
            ..Request::default()
        };
        ssd.submit(at, &request, tag).unwrap();
        collect(&mut ssd);
        done.append(ssd.completions());
    }
    while ssd.step() {}
    collect(&mut ssd);
    done.append(ssd.completions());
    ssd.check().unwrap();
    let late = done.iter().filter(|c| c.arrival > full);
    let worst = late.map(|c| c.done - c.arrival).max().unwrap();
    (worst, begun, done.len())
}

#[test]
fn in_a_pause_writes_wait_once_the_limit_is_reached() {
    let modern = [("nand.backend", "modern"), ("geometry.channels", "4")];
    for backend in [&[][..], &modern] {
        let per_s = 5000;
        let (worst, begun, done) = run(&spec(backend, true), per_s, 2000);
        assert_eq!(done, 2000);
        assert!(!begun.iter().any(|&at| is_in_pause(at)));
        let ends = |at: &&Time| at.0 % (EVERY_MS * 1_000_000_000) < 1_000_000;
        assert!(
            begun.iter().filter(ends).count() > 8,
            "programs that were held"
        );
        // In a pause, 32 writes find room. The next one waits until the end of the pause.
        let expected_ms = PAUSE_MS as f64 - DEPTH as f64 / per_s as f64 * 1000.0;
        let worst_ms = worst.0 as f64 / 1e9;
        assert!(
            (worst_ms - expected_ms).abs() < 1.0,
            "{worst_ms} of {expected_ms} ms"
        );
        let (without, begun, _) = run(&spec(backend, false), per_s, 2000);
        assert!(begun.iter().any(|&at| is_in_pause(at)));
        assert!(without.0 < worst.0 / 4, "{without:?}");
    }
}

/// With `pause_pages_per_s`, programs begin at this rate in a pause, so a write waits only for the requests ahead of it.
#[test]
fn in_a_pause_programs_begin_at_the_given_rate() {
    let modern = [("nand.backend", "modern"), ("geometry.channels", "4")];
    for backend in [&[][..], &modern] {
        let (per_s, in_pause_per_s) = (5000, 2000.0);
        let rate = [("buffer.pause_pages_per_s", "2000")];
        let spec = spec(&[backend, &rate].concat(), true);
        let (worst, mut begun, done) = run(&spec, per_s, 2000);
        assert_eq!(done, 2000);
        // On `modern`, a program begins on its die and on its channel.
        begun.dedup();
        // In the last 7 ms of each of the four pauses, 14 programs begin.
        let in_pauses = begun.iter().filter(|&&at| is_in_pause(at)).count() as f64;
        let expected = in_pause_per_s * 0.007 * 4.0;
        assert!(
            (in_pauses - expected).abs() <= 4.0,
            "{in_pauses} of {expected}"
        );
        for pair in begun
            .windows(2)
            .filter(|pair| is_in_pause(pair[0]) && is_in_pause(pair[1]))
        {
            let apart_ms = (pair[1] - pair[0]).0 as f64 / 1e9;
            assert!(apart_ms > 0.4, "{apart_ms}");
        }
        // Of the 50 writes of a pause, 20 are programmed and 32 find room.
        assert!(worst.0 < 2_000_000_000, "{worst:?}");
    }
}

/// A pause that never ends makes the buffer drain at a constant rate.
#[test]
fn a_pause_without_end_drains_at_a_constant_rate() {
    let steady = [
        ("buffer.pause_us", "100000"),
        ("buffer.pause_pages_per_s", "2000"),
    ];
    let (worst, begun, done) = run(&spec(&steady, true), 5000, 2000);
    assert_eq!(done, 2000);
    assert!(worst.0 > 100_000_000_000, "{worst:?}");
    assert!(begun.len() > 1500, "{}", begun.len());
    let apart = begun.windows(2).map(|pair| (pair[1] - pair[0]).0);
    let (mut least, mut most) = (u64::MAX, 0);
    for time in apart {
        (least, most) = (least.min(time), most.max(time));
    }
    // A program begins after the transfer of its page, which may wait for the channel.
    assert!(least > 450_000_000 && most < 550_000_000, "{least} {most}");
    let (worst, _, _) = run(&spec(&steady, true), 1000, 1000);
    assert!(worst.0 < 2_000_000_000, "{worst:?}");
}

#[test]
fn a_power_loss_in_a_pause_loses_no_protected_page() {
    for (protection, is_lost) in [("true", false), ("false", true)] {
        let mut spec = spec(&[("buffer.power_loss_protection", protection)], true);
        spec.name = "pauses".into();
        let mut ssd = Ssd::new(&spec);
        for tag in 0..500 {
            let at = Time::from_us(tag * 200);
            ssd.advance(at);
            let request = Request {
                arrival: at,
                offset: tag * 4096,
                bytes: 4096,
                op: Op::Write,
                ..Request::default()
            };
            ssd.submit(at, &request, tag).unwrap();
        }
        assert!(is_in_pause(ssd.now()), "{:?}", ssd.now());
        let cut = ssd.cut_power(1_000_000).expect("it becomes idle");
        assert_eq!(!cut.lost.is_empty(), is_lost);
        ssd.check().unwrap();
    }
}

#[test]
fn inconsistent_keys_of_pauses_are_rejected() {
    let error = |set: &[(&str, &str)]| {
        let all = [&[("buffer.evict", "background")], set].concat();
        let wrong = DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &all);
        wrong.unwrap_err().to_string()
    };
    let of_none = error(&[("buffer.pause_us", "10")]);
    assert!(of_none.contains("buffer.pause_every_us: must be more than buffer.pause_us"));
    let of_no_length = error(&[("buffer.pause_every_us", "10")]);
    assert!(of_no_length.contains("buffer.pause_every_us: has no effect with buffer.pause_us = 0"));
    let of_no_pause = error(&[("buffer.pause_pages_per_s", "10")]);
    assert!(
        of_no_pause.contains("buffer.pause_pages_per_s: has no effect with buffer.pause_us = 0")
    );
}
