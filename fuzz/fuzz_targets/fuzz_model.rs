//! The model with any requests on any small device. A case in which the model violates one of its laws is printed as
//! the code of a test.
#![no_main]

#[path = "../../crates/flashtwin-sim/tests/common/case.rs"]
mod case;

use std::cell::RefCell;
use std::sync::Once;

use case::{try_case, Described, Fill, Shown, Step};
use flashtwin::buffer::ChosenPolicy;
use flashtwin::component::Kind;
use flashtwin::spec::{array_keys, keys, KeyDoc};
use flashtwin::{Array, Op, Ssd};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// Page size of a device, unless a case changes it.
const PAGE: u64 = 4096;
const STEPS_MAX: usize = 400;
/// Range of most random numbers, above their minimum.
const NEAR: u32 = 40;
/// Sizes of devices. Larger devices take longer without finding more bugs.
const SIZES: [(&str, &[&str]); 6] = [
    ("geometry.chips", &["1", "2", "3", "4"]),
    ("geometry.planes_per_chip", &["1", "2", "4"]),
    ("geometry.blocks_per_plane", &["10", "16", "23"]),
    ("geometry.pages_per_block", &["2", "4", "8", "65"]),
    ("geometry.page_bytes", &["512", "2048", "4096", "32768"]),
    ("geometry.reserve_percent", &["30", "40", "60"]),
];

thread_local! {
    /// The case that is running, in the form of a test.
    static RUNNING: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes a panic print the case before the fuzzer ends the process.
fn print_the_case_of_a_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let next = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            RUNNING.with(|case| eprintln!("{}", case.borrow()));
            next(panic);
        }));
    });
}

/// Returns a value that the kind of the key permits. In combination with other keys, it may still be invalid.
fn draw_value(u: &mut Unstructured, doc: &KeyDoc) -> Result<String> {
    if let Some((_, sizes)) = SIZES.iter().find(|(key, _)| *key == doc.key) {
        return Ok(u.choose(sizes)?.to_string());
    }
    let near = |u: &mut Unstructured, least: u32, most: u32| -> Result<String> {
        let above = u.int_in_range(0..=NEAR.min(most - least))?;
        Ok((least + above).to_string())
    };
    match doc.kind {
        Kind::Choice(words) => Ok(u.choose(words)?.to_string()),
        Kind::PolicyName => {
            let names = ChosenPolicy::names();
            Ok(u.choose(&names)?.clone())
        }
        Kind::Bool => Ok(u.arbitrary::<bool>()?.to_string()),
        Kind::CountOrAuto(..) if u.arbitrary()? => Ok("auto".to_string()),
        Kind::Count(least, most) | Kind::CountOrAuto(least, most) => near(u, least, most),
        Kind::Size(_) => Ok((u.int_in_range(0..=NEAR)? * PAGE as u32).to_string()),
        Kind::Micros(most) | Kind::MicrosByType(most) | Kind::Nanos(most) => {
            let zeros = *u.choose(&[1, 1, 100])?;
            Ok((u.int_in_range(0..=NEAR)? * zeros).min(most).to_string())
        }
        Kind::Percent => near(u, 0, 99),
        Kind::Window | Kind::Beyond if u.arbitrary()? => near(u, 0, NEAR),
        Kind::Window | Kind::Beyond | Kind::Share => {
            Ok(format!("{:.2}", u.int_in_range(0..=100)? as f64 / 100.0))
        }
        Kind::Figure | Kind::Name | Kind::Text => unreachable!("not drawn"),
    }
}

fn draw_changes(u: &mut Unstructured) -> Result<Vec<(String, String)>> {
    let of_devices: Vec<&KeyDoc> = (keys().iter())
        .filter(|doc| !matches!(doc.kind, Kind::Figure | Kind::Name | Kind::Text))
        .collect();
    let array = u.ratio(1, 4)?;
    let mut changes = Vec::new();
    for _ in 0..u.int_in_range(0..=14)? {
        if array && u.ratio(1, 3)? {
            let doc = u.choose(array_keys())?;
            if doc.key != "array.members" {
                changes.push((doc.key.to_string(), draw_value(u, doc)?));
            }
            continue;
        }
        let doc = u.choose(&of_devices)?;
        let of_front = ["buffer.", "host.", "link.", "controller."]
            .iter()
            .any(|front| doc.key.starts_with(front));
        let key = match array && !of_front {
            true => format!("member.{}", doc.key),
            false => doc.key.to_string(),
        };
        changes.push((key, draw_value(u, doc)?));
    }
    changes.sort();
    changes.dedup_by(|a, b| a.0 == b.0);
    Ok(changes)
}

/// Removes changes that make the device invalid, until it is valid.
fn describe(changes: &mut Vec<(String, String)>) -> Option<Described> {
    loop {
        match Described::read(&borrowed(changes)) {
            Ok(described) => return Some(described),
            Err(wrong) => {
                let before = changes.len();
                changes.retain(|(key, _)| !wrong.iter().any(|wrong| key.ends_with(wrong.as_str())));
                if changes.len() == before {
                    changes.pop()?;
                }
            }
        }
    }
}

fn borrowed(changes: &[(String, String)]) -> Vec<(&str, &str)> {
    changes
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

fn exported_bytes(described: &Described) -> u64 {
    match described {
        Described::Ssd(spec) => Ssd::new(spec).exported_bytes(),
        Described::Array(spec) => Array::new(spec).exported_bytes(),
    }
}

fn draw_steps(u: &mut Unstructured, exported: u64) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    while !u.is_empty() && steps.len() < STEPS_MAX {
        let op = *u.choose(&[Op::Write, Op::Write, Op::Read, Op::Trim, Op::Flush])?;
        let unit = *u.choose(&[1, 512, PAGE, PAGE])?;
        let gap_ns = u64::from(u.arbitrary::<u8>()?) * u.choose(&[0, 100, 10_000, 1_000_000])?;
        let reach = match u.arbitrary()? {
            true => exported.min(12 * PAGE),
            false => exported,
        };
        let offset = u64::from(u.arbitrary::<u16>()?) * unit % reach;
        let bytes = (1 + u64::from(u.arbitrary::<u8>()?) % 20) * unit;
        let bytes = bytes.min(exported - offset);
        let fua = op == Op::Write && u.ratio(1, 8)?;
        steps.push(match op {
            Op::Flush => (gap_ns, op, 0, 0, false),
            _ => (gap_ns, op, offset, bytes, fua),
        });
    }
    Ok(steps)
}

fn draw(u: &mut Unstructured) -> Result<()> {
    let fill = match u.int_in_range(0..=2)? {
        0 => Fill::Empty,
        1 => Fill::Sequential,
        _ => Fill::Steady(u.arbitrary::<u8>()?.into()),
    };
    let mut changes = draw_changes(u)?;
    let Some(described) = describe(&mut changes) else {
        return Ok(());
    };
    let changes = borrowed(&changes);
    let steps = draw_steps(u, exported_bytes(&described))?;
    RUNNING.set(Shown(&changes, fill, &steps).to_string());
    try_case(&changes, fill, &steps);
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    print_the_case_of_a_panic();
    // If there are too few bytes for a case, nothing is run.
    let _ = draw(&mut Unstructured::new(data));
});
