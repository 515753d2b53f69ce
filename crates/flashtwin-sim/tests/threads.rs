//! An array that simulates its members on several threads has the same results as on one thread, to the last bit.

use std::fmt::Write;

use flashtwin::{Array, ArraySpec, Completion, Op, Request, Rng, Time};
use flashtwin_sim::{run, Beyond, Control, Outcome, Pacing, RunConfig, SimError, Speed, Threads};
use flashtwin_workload::{Workload, WorkloadError};

/// A workload of prepared requests, returned one batch at a time.
struct Prepared {
    requests: Vec<Request>,
    next: usize,
    batch: usize,
}

impl Workload for Prepared {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        let upto = (self.next + self.batch).min(self.requests.len());
        out.extend_from_slice(&self.requests[self.next..upto]);
        let count = upto - self.next;
        self.next = upto;
        Ok(count)
    }

    fn requests_total(&self) -> Option<u64> {
        Some(self.requests.len() as u64)
    }

    fn describe(&self) -> String {
        "prepared".into()
    }
}

/// Kinds of requests in the load, in addition to reads and writes of whole pages.
#[derive(Clone, Copy, Debug)]
enum Odd {
    Nothing,
    Trims,
    /// Flushes, requests for parts of pages, and addresses beyond the array.
    All,
}

fn load(exported_bytes: u64, odd: Odd, seed: u64) -> Vec<Request> {
    let mut rng = Rng::new(seed);
    let mut arrival = Time::ZERO;
    let pages = exported_bytes / 4096;
    let mut last_end = 0;
    let request = |_| {
        // Some requests arrive at the same instant as the previous request and begin where it ends. The others have
        // random addresses and usually arrive later.
        let follows = rng.below(4) == 0;
        arrival += Time::from_us(rng.below(4) * rng.below(300) * u64::from(!follows));
        let span = 1 + rng.below(20);
        let mut offset = match last_end {
            end if follows && end + span * 4096 <= exported_bytes => end,
            _ => rng.below(pages - span) * 4096,
        };
        let mut bytes = span * 4096;
        last_end = offset + bytes;
        let mut op = match rng.below(10) {
            0..=3 => Op::Read,
            _ => Op::Write,
        };
        match odd {
            Odd::Nothing => {}
            Odd::Trims if rng.below(10) == 0 => op = Op::Trim,
            Odd::All if rng.below(50) == 0 => match rng.below(4) {
                0 => (op, bytes) = (Op::Flush, 0),
                1 => bytes -= 512,
                2 => offset += exported_bytes,
                _ => bytes = 0,
            },
            _ => {}
        }
        Request {
            arrival,
            offset,
            bytes,
            op,
            fua: rng.below(8) == 0,
            ..Request::default()
        }
    };
    (0..2000).map(request).collect()
}

fn array(more: &[(&str, &str)]) -> Array {
    let mut all = vec![
        ("array.members", "harmonia*5"),
        ("member.geometry.chips", "4"),
        ("member.geometry.planes_per_chip", "1"),
        ("member.geometry.blocks_per_plane", "64"),
        ("member.geometry.pages_per_block", "16"),
    ];
    all.extend(more);
    let text = flashtwin::spec::builtin_array("harmonia-array").expect("it is built in");
    let spec = ArraySpec::with_overrides(text, "harmonia-array", &all).expect("a sound array");
    let mut array = Array::new(&spec);
    array.fill_steady(3);
    array
}

type Seen = (String, Outcome, String, Time);

fn result(spec: &[(&str, &str)], odd: Odd, config: &RunConfig, batch: usize) -> Seen {
    let mut array = array(spec);
    let requests = load(array.exported_bytes(), odd, 9);
    let mut workload = Prepared {
        requests,
        next: 0,
        batch,
    };
    let mut seen = String::new();
    let mut keep = |completions: &[Completion]| {
        for c in completions {
            writeln!(seen, "{c:?}").expect("a string takes it");
        }
        Ok(())
    };
    let outcome = run(
        &mut array,
        &mut workload,
        config,
        &Control::default(),
        Some(&mut keep),
    );
    let outcome = outcome.expect("the load is sound");
    // The second run starts from the state that the first run left.
    let again = RunConfig {
        pacing: Pacing::Closed { depth: 3 },
        warmup_requests: 0,
        beyond: Beyond::Wrap,
        ..RunConfig::default()
    };
    let mut workload = Prepared {
        requests: load(array.exported_bytes(), Odd::Nothing, 10),
        next: 0,
        batch,
    };
    run(
        &mut array,
        &mut workload,
        &again,
        &Control::default(),
        Some(&mut keep),
    )
    .expect("the load is sound");
    let reports = format!("{:?}", array.member_reports());
    (seen, outcome, reports, array.now())
}

const BARE: &[(&str, &str)] = &[("member.link.bus_ns_per_sector", "0")];
const LINKED: &[(&str, &str)] = &[("member.link.bus_ns_per_sector", "100")];
const MODERN: &[(&str, &str)] = &[
    ("member.nand.backend", "modern"),
    ("member.geometry.channels", "2"),
];

#[test]
fn members_on_several_threads_give_the_same_bytes() {
    for spec in [BARE, LINKED, MODERN] {
        for (odd, beyond) in [
            (Odd::Nothing, Beyond::Error),
            (Odd::Trims, Beyond::Error),
            (Odd::All, Beyond::Wrap),
            (Odd::All, Beyond::Drop),
        ] {
            // The third warm-up ends when the run is steady, and at the latest after 1200 of the 2000 requests.
            for (warmup_requests, most) in [(0, None), (700, None), (300, Some(1200))] {
                let config = |threads| RunConfig {
                    beyond,
                    warmup_requests,
                    warmup_requests_max: most,
                    pacing: Pacing::Open {
                        speed: Speed::try_from(1.5).expect("a speed"),
                    },
                    series_interval: Some(Time::from_ms(10)),
                    threads,
                    ..RunConfig::default()
                };
                let alone = result(spec, odd, &config(1), 4096);
                for (threads, batch) in [(2, 4096), (3, 50)] {
                    let together = result(spec, odd, &config(threads), batch);
                    let case = format!("{spec:?} {odd:?} {beyond:?} {warmup_requests} {threads}");
                    assert!(alone.0 == together.0, "{case}: completions");
                    assert_eq!(alone.3, together.3, "{case}");
                    assert_eq!(alone.2, together.2, "{case}");
                    assert_eq!(
                        format!("{:?}", alone.1),
                        format!("{:?}", together.1),
                        "{case}"
                    );
                }
            }
        }
    }
}

/// If the members of an array are independent of each other, `run_ahead` must simulate their parts of the next requests
/// on several threads, before the array receives the requests. If members depend on each other, it must refuse to do
/// so.
#[test]
fn only_independent_members_are_simulated_ahead() {
    let whole = Request {
        arrival: Time::from_ms(1),
        offset: 0,
        bytes: 4096 * 64,
        op: Op::Write,
        fua: false,
        ..Request::default()
    };
    let part = Request {
        bytes: 512,
        ..whole
    };
    let mut independent = array(BARE);
    assert!(!independent.run_ahead(&[part], false, &Threads(2)));
    assert!(independent.run_ahead(&[whole], false, &Threads(2)));
    for dependent in [
        ("array.level", "raid5"),
        ("array.coordination", "selective"),
        ("link.command_overhead_us", "1"),
        ("controller.request_us", "1"),
    ] {
        assert!(
            !array(&[dependent]).run_ahead(&[whole], false, &Threads(2)),
            "{dependent:?}"
        );
    }
}

#[test]
fn members_do_not_run_beyond_the_end_of_the_clock() {
    let mut requests = load(array(&[]).exported_bytes(), Odd::Nothing, 9);
    for (request, month) in requests.iter_mut().zip(0..) {
        request.arrival = match month {
            0..=7 => Time::from_s(month * 30 * 86_400),
            _ => Time(u64::MAX),
        };
    }
    for (threads, batch) in [(1, 64), (2, 64), (2, 2000)] {
        let mut workload = Prepared {
            requests: requests.clone(),
            next: 0,
            batch,
        };
        let config = RunConfig {
            threads,
            ..RunConfig::default()
        };
        let mut array = array(&[]);
        let control = Control::default();
        let result = run(&mut array, &mut workload, &config, &control, None);
        assert!(
            matches!(result, Err(SimError::Clock { request: 8 })),
            "{threads} threads, batches of {batch}"
        );
    }
}
