//! Preconditioning: puts a device into the state in which a measurement starts.
//!
//! Preconditioning takes no virtual time, and nothing is measured. Long work is divided into portions. After each
//! portion, the work reports its progress and can be stopped.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::Ordering;

use flashtwin::{Device, Op, Request, Rng, Time};
use flashtwin_workload::Workload;

use crate::untimed::{warm_untimed, UntimedError, Warm};
use crate::{Control, Drivable, SimError, WorkPhase};

/// The state before the first request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Precondition {
    /// No preconditioning: the device is new, and no page has been written.
    None,
    /// Every exported page written once in ascending order.
    #[default]
    Sequential,
    /// Sequential, then uniformly random page writes.
    Random {
        /// Number of page writes, as a multiple of the number of exported pages.
        times: f64,
    },
    /// The steady state of random writing. It is set directly, without writing until it is reached.
    Steady,
    /// Every page is written once in order. Then the load of the run is written, with its placement ids. Only for
    /// devices that write by units (blocks that are erased together).
    Load {
        /// Number of page writes, as a multiple of the number of exported pages. `None`: the load is written until
        /// write amplification is level.
        times: Option<f64>,
    },
}

/// The initial state of the device: a [`Precondition`] of the flash, and a full or empty buffer. In text form,
/// `:empty-buffer` is appended if the buffer is empty (D-175).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InitialState {
    /// The flash.
    pub flash: Precondition,
    /// Whether the buffer is full, with the pages that random writing leaves in it. Otherwise it is empty.
    pub buffer_full: bool,
}

const EMPTY_BUFFER: &str = ":empty-buffer";

impl FromStr for InitialState {
    type Err = SimError;
    fn from_str(text: &str) -> Result<Self, SimError> {
        let (flash, empty) = match text.strip_suffix(EMPTY_BUFFER) {
            Some(flash) => (flash, true),
            None => (text, false),
        };
        let flash: Precondition = flash.parse()?;
        let is_random = matches!(flash, Precondition::Random { .. } | Precondition::Steady);
        if empty && !is_random {
            return Err(SimError::Config(format!(
                "precondition \"{text}\": {flash} leaves the buffer empty anyway: leave out \
                 {EMPTY_BUFFER}"
            )));
        }
        Ok(InitialState {
            flash,
            buffer_full: is_random && !empty,
        })
    }
}

/// Largest permitted number of writes, as a multiple of the exported pages. More writes would not change the state
/// further.
const TIMES_MAX: f64 = 1000.0;
/// Number of pages written between two checks of the control. Writing them takes a few milliseconds.
const PORTION: u64 = 64 * 1024;

impl FromStr for Precondition {
    type Err = SimError;
    fn from_str(text: &str) -> Result<Self, SimError> {
        let wrong = |what: &str| {
            Err(SimError::Config(format!(
                "precondition \"{}\": {what}; none, sequential, random, random:TIMES (as in \
                 random:2), steady, load and load:TIMES are known; :empty-buffer behind random or steady \
                 leaves the buffer empty",
                text.escape_debug()
            )))
        };
        match text.split_once(':') {
            None => match text {
                "none" => Ok(Precondition::None),
                "sequential" => Ok(Precondition::Sequential),
                "random" => Ok(Precondition::Random { times: 1.0 }),
                "steady" => Ok(Precondition::Steady),
                "load" => Ok(Precondition::Load { times: None }),
                _ => wrong("unknown"),
            },
            Some((kind @ ("random" | "load"), times)) => match times.parse::<f64>() {
                Ok(times) if times > 0.0 && times <= TIMES_MAX => Ok(match kind {
                    "random" => Precondition::Random { times },
                    _ => Precondition::Load { times: Some(times) },
                }),
                _ => wrong("TIMES is a number above 0, at most 1000"),
            },
            Some(_) => wrong("unknown"),
        }
    }
}

impl fmt::Display for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Precondition::None => f.write_str("none"),
            Precondition::Sequential => f.write_str("sequential"),
            Precondition::Random { times: 1.0 } => f.write_str("random"),
            Precondition::Random { times } => write!(f, "random:{times}"),
            Precondition::Steady => f.write_str("steady"),
            Precondition::Load { times: None } => f.write_str("load"),
            Precondition::Load { times: Some(times) } => write!(f, "load:{times}"),
        }
    }
}

/// Preconditions an idle device. Returns `false` if `control` stopped the work before its end. Afterwards the device
/// counts as new: it has no wear, and all its counters are zero.
///
/// # Errors
/// Fails if the state cannot be reached, for instance because the device wears out first.
pub fn precondition<S: Drivable>(
    device: &mut Device<S>,
    kind: Precondition,
    seed: u64,
    control: &Control,
) -> Result<bool, SimError> {
    let finished = match kind {
        Precondition::None => true,
        Precondition::Sequential => fill_sequential(device, control),
        Precondition::Random { times } => {
            let finished =
                fill_sequential(device, control) && write_random(device, times, seed, control)?;
            S::reset_wear(device);
            finished
        }
        Precondition::Steady => {
            control.begin(WorkPhase::Steady, 0);
            S::fill_steady(device, seed, control)
        }
        Precondition::Load { .. } => {
            return Err(SimError::Config(format!(
                "precondition {kind}: only runs and comparisons have a load"
            )))
        }
    };
    device.reset_metrics(None);
    Ok(finished)
}

/// Preconditions an idle device that writes by units (blocks that are erased together), without virtual time. First,
/// `fill` writes each page once, with the placement id that the load uses for the page. Then `load` is written: `times`
/// the capacity or, if `times` is `None`, until write amplification is level. Afterwards the device counts as new, as
/// after [`precondition`]. Returns `false` if `control` stopped the work.
///
/// # Errors
/// Fails if the device does not write by units, if the load cannot be read, or if the load is too short.
pub fn precondition_by_load<S: Drivable>(
    device: &mut Device<S>,
    times: Option<f64>,
    fill: &mut dyn Workload,
    load: &mut dyn Workload,
    control: &Control,
) -> Result<bool, SimError> {
    let page_bytes = S::describe(device).page_bytes;
    let Some(placed) = S::placement(device) else {
        return Err(SimError::Config(
            "precondition load: the device does not write by units (placement.scheme); random and steady are for all \
             devices"
                .into(),
        ));
    };
    control.begin(WorkPhase::Load, 0);
    let warm = times.map_or(Warm::UntilLevel, Warm::Capacities);
    match warm_untimed(placed, fill, load, page_bytes, warm, control) {
        Ok(()) => {}
        Err(UntimedError::Stopped) => return Ok(false),
        Err(e) => return Err(SimError::Config(format!("precondition load: {e}"))),
    }
    S::reset_wear(device);
    device.reset_metrics(None);
    Ok(true)
}

fn fill_sequential<S: Drivable>(device: &mut Device<S>, control: &Control) -> bool {
    control.begin(WorkPhase::Sequential, 0);
    S::fill_sequential(device, control)
}

/// Requests in flight while the buffer is filled.
const FILL_DEPTH: usize = 32;

/// Fills the buffer of an idle preconditioned device with random pages (D-175, D-176). Returns `false` if `control`
/// stopped the work before its end.
///
/// First, if the buffer policy writes pages of its own choice to separate blocks, opens these blocks. Then writes
/// different random pages. If the device has a separate read cache, finally reads further pages to fill it. Virtual
/// time passes until the device is idle again, but nothing is measured.
///
/// # Errors
/// Fails if a write is refused.
pub fn fill_buffer<S: Drivable>(
    device: &mut Device<S>,
    seed: u64,
    control: &Control,
) -> Result<bool, SimError> {
    if !S::open_policy_blocks(device, seed) {
        return Err(SimError::Config(
            "the device wore out before its buffer was full; raise wear.erase_limit".into(),
        ));
    }
    let is = S::describe(device);
    let page_bytes = u64::from(is.page_bytes);
    let members = match is.array {
        Some(_) => is.members.as_slice(),
        None => &[],
    };
    let buffers = members.iter().filter_map(|member| member.buffer.as_ref());
    let buffers: Vec<_> = buffers.chain(is.buffer).collect();
    let pages = |of: fn(&flashtwin::spec::Buffer) -> u32| -> u64 {
        buffers.iter().map(|&buffer| u64::from(of(buffer))).sum()
    };
    let writes = pages(|buffer| buffer.capacity_pages);
    let reads = pages(|buffer| buffer.read_cache_pages);
    let exported = device.exported_bytes() / page_bytes;
    let total = (writes + reads).min(exported);
    control.begin(WorkPhase::Buffer, total);
    let mut rng = Rng::new(seed);
    let mut seen = HashSet::new();
    while (seen.len() as u64) < total {
        let page = rng.below(exported);
        if !seen.insert(page) {
            continue;
        }
        if control.stopped() {
            return Ok(false);
        }
        while device.outstanding() >= FILL_DEPTH && device.step() {}
        let now = device.now();
        device.advance(now);
        device.completions().clear();
        let request = Request {
            arrival: Time::ZERO,
            offset: page * page_bytes,
            bytes: page_bytes,
            op: match seen.len() as u64 <= writes {
                true => Op::Write,
                false => Op::Read,
            },
            fua: false,
            ..Request::default()
        };
        device
            .submit(now, &request, 0)
            .map_err(|source| SimError::Beyond { request: 0, source })?;
        control.done.store(seen.len() as u64, Ordering::Relaxed);
    }
    while device.step() {}
    device.completions().clear();
    device.reset_metrics(None);
    Ok(true)
}

fn write_random<S: Drivable>(
    device: &mut Device<S>,
    times: f64,
    seed: u64,
    control: &Control,
) -> Result<bool, SimError> {
    if !(times > 0.0 && times <= TIMES_MAX) {
        return Err(SimError::Config(format!(
            "precondition random:{times}: give a number above 0, at most 1000"
        )));
    }
    let members = S::describe(device).members;
    let pages: u64 = members.iter().map(|m| u64::from(m.exported_pages())).sum();
    let total = (times * pages as f64).round() as u64;
    control.begin(WorkPhase::Random, total);
    let mut rng = Rng::new(seed);
    let mut done = 0;
    while done < total {
        if control.stopped() {
            return Ok(false);
        }
        let portion = PORTION.min(total - done);
        if !S::write_random(device, &mut rng, portion) {
            return Err(SimError::Config(format!(
                "the device wore out after {done} random page writes of its preconditioning; raise \
                 wear.erase_limit, set it to 0 (no limit), or precondition with steady"
            )));
        }
        done += portion;
        control.done.store(done, Ordering::Relaxed);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashtwin::{Array, ArraySpec, DeviceSpec, Ssd, Watch};
    use std::sync::atomic::AtomicU64;

    fn small(overrides: &[(&str, &str)]) -> Ssd {
        let profile = flashtwin::spec::builtin("demo").expect("demo is built in");
        let mut all = vec![
            ("geometry.blocks_per_plane", "64"),
            ("geometry.chips", "2"),
            ("geometry.reserve_percent", "15"),
        ];
        all.extend_from_slice(overrides);
        Ssd::new(&DeviceSpec::with_overrides(profile, "demo", &all).expect("a sound device"))
    }

    #[test]
    fn every_kind_reads_back_from_its_text() {
        for text in [
            "none",
            "sequential",
            "random",
            "random:2",
            "random:0.25",
            "steady",
        ] {
            assert_eq!(text.parse::<Precondition>().expect(text).to_string(), text);
        }
        assert_eq!(
            "random:1"
                .parse::<Precondition>()
                .expect("a number")
                .to_string(),
            "random"
        );
        for text in [
            "",
            "Steady",
            "random:",
            "random:0",
            "random:-1",
            "random:nan",
            "random:1e9",
            "steady:2",
        ] {
            let message = text.parse::<Precondition>().expect_err(text).to_string();
            assert!(message.contains("random:TIMES"), "{message}");
        }
    }

    #[test]
    fn a_preconditioned_device_is_full_unworn_and_unmeasured() {
        for kind in [
            Precondition::Sequential,
            Precondition::Random { times: 1.5 },
            Precondition::Steady,
        ] {
            let mut ssd = small(&[]);
            let control = Control::default();
            assert!(precondition(&mut ssd, kind, 7, &control).expect("no trouble"));
            assert_eq!(
                ssd.pages_mapped(),
                u64::from(ssd.spec().exported_pages()),
                "{kind}"
            );
            let report = ssd.flash_report();
            assert_eq!(report.flash.host_programs(), 0, "{kind}");
            assert_eq!(report.erase_spread.max, 0, "{kind}");
            ssd.check().expect("a consistent map");
        }
    }

    #[test]
    fn a_stop_ends_every_kind_and_is_reported() {
        for kind in ["sequential", "random:3", "steady"] {
            let mut ssd = small(&[]);
            let control = Control::default();
            control.stop.store(true, Ordering::Relaxed);
            let kind: Precondition = kind.parse().expect("a kind");
            assert!(!precondition(&mut ssd, kind, 1, &control).expect("no trouble"));
            let [done, total] = counts(&control);
            assert!(done <= total, "{kind}: {done} of {total}");
        }
    }

    fn counts(control: &Control) -> [u64; 2] {
        [&control.done, &control.total].map(|count| count.load(Ordering::Relaxed))
    }

    #[test]
    fn the_last_phase_ends_with_all_pages_done() {
        for (kind, phase) in [
            ("sequential", WorkPhase::Sequential),
            ("random:3", WorkPhase::Random),
            ("steady", WorkPhase::Steady),
        ] {
            let mut ssd = small(&[]);
            let control = Control::default();
            let kind: Precondition = kind.parse().expect("a kind");
            assert!(precondition(&mut ssd, kind, 1, &control).expect("no trouble"));
            assert_eq!(control.phase(), phase);
            let [done, total] = counts(&control);
            assert_eq!(done, total, "{kind}");
            let exported = u64::from(ssd.spec().exported_pages());
            assert!(total >= exported, "{kind}: {total}");
            if matches!(kind, Precondition::Random { .. }) {
                assert_eq!(total, 3 * exported);
            }
            assert!(fill_buffer(&mut ssd, 1, &control).expect("no trouble"));
            assert_eq!(control.phase(), WorkPhase::Buffer);
            let [done, total] = counts(&control);
            assert_eq!(done, total, "{kind}: buffer");
        }
    }

    /// Counts the progress reports, and stops the work at the report with number `stop_at`.
    struct Counted {
        expected: AtomicU64,
        done: AtomicU64,
        reports: AtomicU64,
        stop_at: u64,
    }

    impl Counted {
        fn new(stop_at: u64) -> Counted {
            Counted {
                expected: AtomicU64::new(0),
                done: AtomicU64::new(0),
                reports: AtomicU64::new(0),
                stop_at,
            }
        }

        fn counts(&self) -> [u64; 3] {
            [&self.expected, &self.done, &self.reports].map(|count| count.load(Ordering::SeqCst))
        }
    }

    impl Watch for Counted {
        fn expect(&self, pages: u64) {
            self.expected.fetch_add(pages, Ordering::SeqCst);
        }

        fn done(&self, pages: u64) -> bool {
            let done = self.done.fetch_add(pages, Ordering::SeqCst) + pages;
            assert!(done <= self.expected.load(Ordering::SeqCst));
            self.reports.fetch_add(1, Ordering::SeqCst) + 1 < self.stop_at
        }
    }

    /// Checks three properties: the reported progress adds up to the announced amount, the work can be stopped at any
    /// report, and observing the work does not change the resulting state.
    fn check_steady<S: Drivable>(what: &str, make: impl Fn() -> Device<S>) {
        let state = |device: &Device<S>| {
            let mut bytes = Vec::new();
            S::save_state(device, &mut bytes).expect("memory");
            bytes
        };
        let mut unwatched = make();
        assert!(S::fill_steady(&mut unwatched, 7, &flashtwin::Unwatched));
        let mut watched = make();
        let all = Counted::new(u64::MAX);
        assert!(S::fill_steady(&mut watched, 7, &all));
        assert!(state(&watched) == state(&unwatched), "{what}");
        let [expected, done, reports] = all.counts();
        assert_eq!(done, expected, "{what}");
        assert!(reports >= 3, "{what}: {reports}");
        for stop_at in [1, reports / 2, reports] {
            let stopped = Counted::new(stop_at);
            assert!(
                !S::fill_steady(&mut make(), 7, &stopped),
                "{what}: {stop_at}"
            );
            let reported = stopped.counts()[2];
            // After the stop, each member that is simulated on another thread reports once more.
            assert!(reported < stop_at + 8, "{what}: {stop_at}: {reported}");
        }
    }

    #[test]
    fn progress_to_the_steady_state_adds_up() {
        check_steady("page map", || small(&[]));
        check_steady("superblocks", || {
            small(&[
                ("nand.backend", "modern"),
                ("nand.background_gc", "false"),
                ("nand.copy_back", "false"),
                ("geometry.channels", "1"),
                ("ftl.placement", "dynamic"),
                ("ftl.summary_page", "false"),
                ("gc.granularity", "superblock"),
            ])
        });
        check_steady("a layer of each chip", || small(&[("ftl.kind", "dftl")]));
        for level in ["raid5", "swan"] {
            check_steady(level, || {
                let set = [
                    ("array.level", level),
                    ("array.members", "harmonia*4"),
                    ("member.geometry.blocks_per_plane", "64"),
                    ("member.geometry.chips", "2"),
                    ("member.geometry.reserve_percent", "15"),
                ];
                let profile =
                    flashtwin::spec::builtin_array("harmonia-array").expect("it is built in");
                Array::new(&ArraySpec::with_overrides(profile, "", &set).expect("a sound array"))
            });
        }
    }

    #[test]
    fn a_device_that_wears_out_on_the_way_is_an_error() {
        let mut ssd = small(&[("wear.erase_limit", "2")]);
        let kind = Precondition::Random { times: 20.0 };
        let error = precondition(&mut ssd, kind, 1, &Control::default()).expect_err("worn out");
        assert!(error.to_string().contains("wear.erase_limit"), "{error}");
    }
}
