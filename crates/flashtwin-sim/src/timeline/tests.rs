//! Recordings of timelines: they change no result, two recordings of the same run are equal, and each shows only its
//! window.

use flashtwin::spec::{builtin, builtin_array};
use flashtwin::{Array, ArraySpec, Device, DeviceSpec, Op, Request, Rng, Ssd, Time};
use flashtwin_workload::{Workload, WorkloadError};

use super::lines::lines;
use super::slices::{Shown, Slice, Slices, Track};
use super::*;
use crate::{run, Control, Outcome, Pacing, RunConfig};

const REQUESTS: u64 = 800;

/// Random requests of a few pages.
struct Random {
    rng: Rng,
    left: u64,
    pages: u64,
}

impl Workload for Random {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        let n = self.left.min(50);
        self.left -= n;
        for i in 0..n {
            let size = 1 + self.rng.below(4);
            let done = REQUESTS - self.left - n + i;
            out.push(Request {
                arrival: Time::from_us(done * 60),
                offset: self.rng.below(self.pages - size) * 4096,
                bytes: size * 4096,
                op: [Op::Read, Op::Write, Op::Write][self.rng.below(3) as usize],
                fua: false,
                ..Request::default()
            });
        }
        Ok(n as usize)
    }

    fn requests_total(&self) -> Option<u64> {
        Some(self.left)
    }

    fn describe(&self) -> String {
        "random".into()
    }
}

fn ssd(keys: &[(&str, &str)]) -> Ssd {
    let mut all = vec![("geometry.chips", "4"), ("geometry.blocks_per_plane", "48")];
    if !keys.contains(&("buffer", "none")) {
        all.push(("buffer.capacity", "128 KiB"));
    }
    all.extend(keys);
    let text = builtin("ecr").unwrap();
    let mut ssd = Ssd::new(&DeviceSpec::with_overrides(text, "ecr", &all).unwrap());
    ssd.fill_steady(1);
    ssd
}

fn array() -> Array {
    let set = [
        ("array.level", "raid5"),
        ("array.members", "harmonia*4"),
        ("array.coordination", "inclusive"),
        ("buffer.capacity", "128 KiB"),
        ("member.geometry.chips", "2"),
        ("member.geometry.blocks_per_plane", "48"),
    ];
    let text = builtin_array("harmonia-array").unwrap();
    let spec = ArraySpec::with_overrides(text, "harmonia-array", &set).unwrap();
    let mut array = Array::new(&spec);
    array.fill_steady(1);
    array
}

fn window(from_us: u64, length_us: u64) -> Option<Window> {
    Some(Window {
        from: Time::from_us(from_us),
        length: Time::from_us(length_us),
    })
}

/// Runs a load; returns the results as text, and the timeline.
fn outcome<S: Drivable>(
    device: &Device<S>,
    seed: u64,
    config: &RunConfig,
) -> (String, Option<Timeline>) {
    let mut device = device.clone();
    let mut load = Random {
        rng: Rng::new(seed),
        left: REQUESTS,
        pages: device.exported_bytes() / 4096,
    };
    let mut text = String::new();
    let control = Control::default();
    let Outcome {
        flash, timeline, ..
    } = run(
        &mut device,
        &mut load,
        config,
        &control,
        Some(&mut |all| {
            all.iter().for_each(|c| text += &format!("{c:?}\n"));
            Ok(())
        }),
    )
    .unwrap();
    (format!("{text}{flash:?}"), timeline)
}

fn changes_nothing<S: Drivable>(device: &Device<S>, seed: u64) {
    for pacing in [RunConfig::default().pacing, Pacing::Closed { depth: 8 }] {
        for warmup_requests in [0, 300] {
            let config = |timeline| RunConfig {
                pacing,
                warmup_requests,
                timeline,
                ..RunConfig::default()
            };
            let (plain, none) = outcome(device, seed, &config(None));
            assert_eq!(none, None);
            for window in [
                window(0, 1_000_000_000),
                window(10_000, 20_000),
                window(1, 0),
            ] {
                let (text, timeline) = outcome(device, seed, &config(window));
                assert!(text == plain, "{window:?} changes the run");
                let timeline = timeline.unwrap();
                assert_eq!(timeline.cut_at, None);
                match window.map_or(0, |window| window.length.0) {
                    0 => assert_eq!(timeline.slices, 0),
                    length => assert!(timeline.slices > 0 || length < Time::from_s(1).0),
                }
            }
        }
    }
}

#[test]
fn a_timeline_changes_no_result() {
    for seed in flashtwin::seeds(2) {
        changes_nothing(&ssd(&[]), seed);
        changes_nothing(&ssd(&[("buffer", "none"), ("ftl.kind", "fast")]), seed);
        changes_nothing(
            &ssd(&[
                ("nand.backend", "modern"),
                ("geometry.channels", "2"),
                ("nand.suspend", "true"),
                ("nand.read_priority", "true"),
                ("nand.cached_commands", "true"),
            ]),
            seed,
        );
        changes_nothing(&array(), seed);
    }
}

#[test]
fn a_window_shows_less_than_the_whole_and_one_after_the_end_nothing() {
    let ssd = ssd(&[]);
    let slices = |window| {
        let config = RunConfig {
            timeline: window,
            ..RunConfig::default()
        };
        outcome(&ssd, 5, &config).1.unwrap().slices
    };
    let whole = slices(window(0, 1_000_000_000));
    let halves = [window(0, 24_000), window(24_000, 1_000_000_000)].map(slices);
    // A slice is recorded only in the half in which its operation begins. Chips log the beginning of a collection
    // before it begins. Therefore up to two slices of each of the four chips may be missing in both halves.
    let both = halves[0] + halves[1];
    assert!(both <= whole && whole <= both + 8, "{halves:?} of {whole}");
    assert!(halves.iter().all(|&half| half > whole / 10));
    assert_eq!(slices(window(1_000_000_000, 1000)), 0);
}

#[test]
fn overlapping_slices_are_drawn_on_the_first_free_line() {
    let track = |member| Track {
        member,
        shown: Shown::Requests,
    };
    let slice = |member, begin, end| Slice {
        track: track(member),
        name: "read",
        begin: Time(begin),
        end: Some(Time(end)),
        details: Vec::new(),
    };
    let slices = vec![
        slice(None, 0, 10),
        slice(Some(1), 5, 6),
        slice(None, 4, 6),
        slice(None, 6, 9),
        slice(None, 10, 11),
        slice(None, 5, 20),
    ];
    let all = Slices {
        slices,
        ..Slices::default()
    };
    let drawn: Vec<usize> = lines(&all).into_iter().map(Option::unwrap).collect();
    assert_eq!(drawn, [0, 0, 1, 1, 0, 2]);
}

/// A timeline ends at the first request whose number exceeds the range of the logs. It contains all earlier requests.
#[test]
fn a_timeline_ends_with_the_numbers_of_requests() {
    let mut ssd = ssd(&[]);
    let whole = Window {
        from: Time::ZERO,
        length: Time::from_s(10),
    };
    let ahead = u64::from(FlashEvent::NO_REQUEST) - 10;
    let mut recording = Recording::new(whole, ssd.now(), ahead);
    recording.open(&mut ssd);
    for tag in 0..50 {
        let request = Request {
            arrival: ssd.now(),
            offset: tag * 4096,
            bytes: 4096,
            op: Op::Write,
            fua: true,
            ..Request::default()
        };
        recording.submitted(tag, &request, ssd.now());
        ssd.submit(ssd.now(), &request, tag).unwrap();
        while recording.is_open() && ssd.step() {
            recording.completed(&std::mem::take(ssd.completions()));
            recording.look(&mut ssd);
        }
    }
    assert_eq!(recording.state, State::Over);
    assert!(recording.cut_at.is_some());
    let slices = &recording.collector.all.slices;
    let requests = slices.iter().filter(|s| s.track.shown == Shown::Requests);
    assert_eq!(requests.count(), 10);
}

/// When a timeline is full, slices that have begun are recorded to their ends, and no new slices begin.
#[test]
fn a_full_timeline_reports_its_end() {
    for seed in flashtwin::seeds(3) {
        let mut ssd = ssd(&[]);
        let whole = Window {
            from: Time::ZERO,
            length: Time::from_s(10),
        };
        let mut recording = Recording::new(whole, ssd.now(), ssd.submitted());
        recording.limit = 50;
        recording.open(&mut ssd);
        let mut rng = Rng::new(seed);
        for tag in 0..200 {
            let request = Request {
                arrival: ssd.now(),
                offset: rng.below(4000) * 4096,
                bytes: 4096,
                op: Op::Write,
                fua: false,
                ..Request::default()
            };
            recording.submitted(tag, &request, ssd.now());
            ssd.submit(ssd.now(), &request, tag).unwrap();
            while recording.is_open() && ssd.step() {
                recording.completed(&std::mem::take(ssd.completions()));
                recording.look(&mut ssd);
            }
        }
        assert_eq!(recording.state, State::Over);
        let things = recording.collector.all.len();
        assert!((50..70).contains(&things), "{things}");
        // The number of slices is no exact limit, because chips log some operations in advance. The timeline ends at or
        // after its last request.
        let slices = recording.collector.all.slices.iter();
        let requests = slices.filter(|slice| slice.track.shown == Shown::Requests);
        let last = requests.map(|slice| slice.begin).max();
        let timeline = recording.finish(&mut ssd);
        assert!(timeline.cut_at >= last, "{:?} {last:?}", timeline.cut_at);
        assert!(timeline.cut_at < Some(whole.length));
    }
}
