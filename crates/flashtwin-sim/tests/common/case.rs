//! Cases of a small device that executes requests one by one. The fuzz target `fuzz_model` generates such cases. If the
//! model violates one of its laws in a case, the fuzzer prints the case as a call of [`try_case`]. After the bug is
//! fixed, this call is added to `cases.rs`.

use std::fmt;

use flashtwin::{
    Array, ArraySpec, Cause, Device, DeviceSpec, Op, Request, Ssd, Status, Time, Unwatched,
};
use flashtwin_sim::Drivable;

/// Contents of the flash at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Flash that was never written.
    Empty,
    /// Each page was written once, in ascending order.
    Sequential,
    /// The steady state, as after long random writing. The number is the seed of the random generator.
    Steady(u64),
}

/// A request: the time in nanoseconds after the previous one, the operation, the offset and size in bytes, and whether
/// it is a forced write.
pub type Step = (u64, Op, u64, u64, bool);

/// Prefixes of the keys that only arrays have. A case that changes such a key tests an array instead of an SSD.
const OF_ARRAYS: [&str; 2] = ["array.", "member."];
/// Settings of the small device, before a case changes some of them.
const SMALL: [(&str, &str); 8] = [
    ("geometry.chips", "2"),
    ("geometry.planes_per_chip", "2"),
    ("geometry.blocks_per_plane", "16"),
    ("geometry.pages_per_block", "4"),
    ("geometry.reserve_percent", "40"),
    ("nand.parallel_units", "1"),
    ("gc.low_percent", "15"),
    ("buffer.capacity", "64 KiB"),
];
/// Limit on the number of events between two requests. A test that reaches it fails. No valid case needs as many
/// events.
const STEPS_MAX: u32 = 1_000_000;

/// Specification of the device under test: an SSD or an array.
pub enum Described {
    /// One SSD.
    Ssd(Box<DeviceSpec>),
    /// An array of SSDs.
    Array(Box<ArraySpec>),
}

impl Described {
    /// Returns the small device, or a small array, with the given changes. The error lists the keys that are wrong.
    pub fn read(changes: &[(&str, &str)]) -> Result<Described, Vec<String>> {
        let wrong = |e: flashtwin::spec::SpecError| {
            assert!(!e.to_string().is_empty());
            e.problems.into_iter().map(|problem| problem.key).collect()
        };
        if changes
            .iter()
            .any(|(key, _)| OF_ARRAYS.iter().any(|of| key.starts_with(of)))
        {
            // The members have no buffer. The array itself has one only if a change adds it.
            let members: Vec<(String, &str)> = (SMALL.iter())
                .filter(|(key, _)| !key.starts_with("buffer."))
                .map(|&(key, value)| (format!("member.{key}"), value))
                .collect();
            let mut all: Vec<(&str, &str)> =
                vec![("array.members", "harmonia*3"), ("array.level", "raid5")];
            all.extend(members.iter().map(|(key, value)| (key.as_str(), *value)));
            all.extend(changes);
            let text = flashtwin::spec::builtin_array("harmonia-array").expect("it is built in");
            return ArraySpec::with_overrides(text, "case", &all)
                .map(|spec| Described::Array(Box::new(spec)))
                .map_err(wrong);
        }
        let mut all = SMALL.to_vec();
        all.extend(changes);
        let text = flashtwin::spec::builtin("demo").expect("it is built in");
        DeviceSpec::with_overrides(text, "case", &all)
            .map(|spec| Described::Ssd(Box::new(spec)))
            .map_err(wrong)
    }
}

/// A case, formatted as the call that runs it.
pub struct Shown<'a>(pub &'a [(&'a str, &'a str)], pub Fill, pub &'a [Step]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(changes, fill, steps) = self;
        writeln!(
            f,
            "#[test]\nfn found() {{\n    try_case(\n        &{changes:?},"
        )?;
        writeln!(f, "        Fill::{fill:?},\n        &[")?;
        for step in *steps {
            writeln!(f, "            {step:?},")?;
        }
        writeln!(f, "        ],\n    );\n}}")
    }
}

/// Runs a case. Panics if the model violates one of its laws.
pub fn try_case(changes: &[(&str, &str)], fill: Fill, steps: &[Step]) {
    match Described::read(changes).expect("a device that can be") {
        Described::Ssd(spec) => {
            let mut ssd = Ssd::new(&spec);
            prepare(&mut ssd, fill);
            let room = |ssd: &Ssd| ssd.free_flash_pages() + ssd.slc_pages_lacked();
            let room_before = room(&ssd);
            drive(&mut ssd, steps);
            let report = ssd.flash_report();
            let erased =
                u64::from(spec.geometry.pages_per_block) * report.flash.count(Cause::Erase);
            let taken = report.programs() + report.flash.pages_skipped;
            assert_eq!(
                room_before + erased,
                room(&ssd) + taken,
                "conservation of pages"
            );
        }
        Described::Array(spec) => {
            let mut array = Array::new(&spec);
            prepare(&mut array, fill);
            drive(&mut array, steps);
        }
    }
}

fn prepare<S: Drivable>(device: &mut Device<S>, fill: Fill) {
    match fill {
        Fill::Empty => {}
        Fill::Sequential => assert!(S::fill_sequential(device, &Unwatched)),
        Fill::Steady(seed) => assert!(S::fill_steady(device, seed, &Unwatched)),
    }
    device.reset_metrics(None);
}

fn drive<S: Drivable>(device: &mut Device<S>, steps: &[Step]) {
    let mut completed = vec![0u32; steps.len()];
    let mut at = device.now();
    for (tag, &(gap_ns, op, offset, bytes, fua)) in steps.iter().enumerate() {
        at = (at + Time::from_ns(gap_ns)).max(device.now());
        let mut events = 0;
        while device.next_event().is_some_and(|next| next <= at) {
            events += 1;
            assert!(events < STEPS_MAX, "the device never gets on");
            device.step();
        }
        device.advance(at);
        let request = Request {
            arrival: at,
            offset,
            bytes,
            op,
            fua,
            ..Request::default()
        };
        device
            .submit(at, &request, tag as u64)
            .expect("the request is on the device");
        collect(device, &mut completed);
    }
    let mut events = 0;
    while device.step() {
        events += 1;
        assert!(events < STEPS_MAX, "the device never comes to rest");
    }
    collect(device, &mut completed);
    assert!(
        completed.iter().all(|&n| n == 1),
        "requests completed {completed:?} times"
    );
    assert_eq!(device.outstanding(), 0);
    device.metrics().check().expect("times add up");
    S::each_drive(device, &mut |member, drive| {
        if let Err(message) = drive.check() {
            panic!("the map of drive {member:?}: {message}");
        }
    });
}

fn collect<S: Drivable>(device: &mut Device<S>, completed: &mut [u32]) {
    let may_refuse = device.is_read_only();
    for c in device.completions().drain(..) {
        completed[c.tag as usize] += 1;
        assert_eq!(
            c.breakdown.total(),
            c.done - c.arrival,
            "parts of request {}",
            c.tag
        );
        assert!(c.hits <= c.pages);
        let refused = c.status == Status::ReadOnly && may_refuse && c.op != Op::Read;
        assert!(
            c.status == Status::Ok || refused,
            "request {}: {:?}",
            c.tag,
            c.status
        );
    }
}
