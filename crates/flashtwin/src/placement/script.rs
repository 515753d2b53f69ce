//! Executes operations that are given as text, one after the other, on a device. The notation is defined here.
//!
//! Operations, which end with `;`:
//!
//! - `W lpn n id` writes `n` pages with a placement id (`-`: without an id). `T lpn n` trims `n` pages. `U id...` is
//!   the command update, which closes the units of these ids.
//! - `S` returns the status, `L` log page 22h in pages, and `E` the events of the host.
//! - `P` is a power loss.
//!
//! The text of a state lists the units of each group in the order in which they were opened, as `owner:unit[pages]`,
//! with `*` if the unit is open. In the list of pages, `-` is a page that is no longer live, and `.` a page that was
//! not written. The free units of the group follow, in the order in which they will be reused.

use super::device::{Did, Placed};
use super::events::Event;
use super::fdp::InvalidField;
use super::state::Classes;
use crate::units::Lpn;

/// Result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The operation.
    pub op: String,
    /// The error of the operation, by name.
    pub status: Option<String>,
    /// Collections, erases and events, in order.
    pub did: Vec<String>,
    /// Result of a query.
    pub output: Option<String>,
    /// The state after the operation.
    pub state: String,
}

/// Steps a device through a script.
///
/// # Errors
/// The error quotes the text that is not a valid operation, and describes how to correct it.
pub fn run(device: &mut Placed, script: &str) -> Result<Vec<Step>, String> {
    device.keep_did(true);
    let ops = script.split(';').map(str::trim).filter(|op| !op.is_empty());
    ops.map(|op| step(device, op)).collect()
}

fn step(device: &mut Placed, op: &str) -> Result<Step, String> {
    let mut words = op.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let wrong = |must: &str| format!("op: found \"{op}\"; must be {must}");
    let mut status = None;
    let mut output = None;
    match (kind, rest.as_slice()) {
        ("W", [lpn, n, id]) => {
            let (lpn, n) = pages(lpn, n).ok_or_else(|| wrong("W LPN PAGES ID"))?;
            let id = match *id {
                "-" => None,
                id => {
                    Some(number(id).ok_or_else(|| wrong("W LPN PAGES ID, the id a number or -"))?)
                }
            };
            status = match is_within(device, lpn, n) {
                false => Some("lba out of range".to_string()),
                true => device
                    .write(Lpn(lpn), n, id, &[])
                    .err()
                    .map(|e| e.to_string()),
            };
        }
        ("T", [lpn, n]) => {
            let (lpn, n) = pages(lpn, n).ok_or_else(|| wrong("T LPN PAGES"))?;
            match is_within(device, lpn, n) {
                false => status = Some("lba out of range".to_string()),
                true => device.trim(Lpn(lpn), n),
            }
        }
        ("U", ids @ [_, ..]) => {
            let ids: Option<Vec<u16>> = ids.iter().map(|id| number(id)).collect();
            let ids = ids.ok_or_else(|| wrong("U ID..."))?;
            status = device
                .update(&ids)
                .err()
                .map(|InvalidField| "invalid field".to_string());
        }
        ("S", []) => output = Some(status_text(device)),
        ("L", []) => {
            let t = device.totals();
            output = Some(format!("hbmw {} mbmw {} mbe {}", t.host, t.media, t.erased));
        }
        ("E", []) => {
            let events = device.last_events(true);
            let texts: Vec<String> = events.iter().map(event_text).collect();
            output = Some(texts.join(" "));
        }
        ("P", []) => device.cut_power(),
        _ => {
            return Err(wrong(
                "W LPN PAGES ID, T LPN PAGES, U ID..., S, L, E or P, with ; between",
            ))
        }
    }
    let did = device.take_did();
    Ok(Step {
        op: op.to_string(),
        status,
        did: did.iter().map(did_text).collect(),
        output,
        state: state_text(device),
    })
}

fn pages(lpn: &str, n: &str) -> Option<(u32, u32)> {
    Some((lpn.parse().ok()?, n.parse().ok()?))
}

fn is_within(device: &Placed, lpn: u32, n: u32) -> bool {
    u64::from(lpn) + u64::from(n) <= u64::from(device.setup().logical_pages)
}

/// Parses a decimal or hexadecimal number.
fn number(text: &str) -> Option<u16> {
    match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn did_text(did: &Did) -> String {
    match did {
        Did::Victim { unit, live, .. } => format!("victim u{unit} v{live}"),
        Did::Erase { unit, .. } => format!("erase u{unit}"),
        Did::Event(event) => event.kind.code().to_string(),
    }
}

fn event_text(event: &Event) -> String {
    let handle = event
        .handle
        .map_or("s".into(), |handle| format!("h{handle}"));
    let id = event.id.map_or("None".into(), |id| id.to_string());
    format!("{}/{handle}/{id}", event.kind.code())
}

fn status_text(device: &Placed) -> String {
    let status = device.status();
    let text = |s: &super::fdp::HandleStatus| format!("{}:{}", s.id_text, s.pages_left);
    let texts: Vec<String> = status.iter().map(text).collect();
    format!("ruamw {}", texts.join(" "))
}

/// Returns the state of a device in the notation of this module.
pub fn state_text(device: &Placed) -> String {
    let groups = 0..device.setup().groups;
    let texts: Vec<String> = groups.map(|group| group_text(device, group)).collect();
    texts.join(" | ")
}

fn group_text(device: &Placed, group: u32) -> String {
    let (units, classes) = (&device.units, &device.classes);
    let first = group * device.setup().units;
    let mut words: Vec<String> = units
        .opened(group)
        .iter()
        .map(|&unit| unit_text(device, classes, unit, first))
        .collect();
    words.push("free".into());
    words.extend(
        units
            .free_units(group)
            .iter()
            .map(|u| (u - first).to_string()),
    );
    words.join(" ")
}

fn unit_text(device: &Placed, classes: &Classes, unit: u32, first: u32) -> String {
    let u = device.units.unit(unit);
    let page = |page: u32| match page {
        page if page >= u.given => ".".to_string(),
        page if device.units.is_live(unit, page) => device.units.lpn_at(unit, page).0.to_string(),
        _ => "-".to_string(),
    };
    let pages: Vec<String> = (0..device.setup().unit_pages).map(page).collect();
    format!(
        "{}:u{}[{}]{}",
        classes.show(u.owner),
        unit - first,
        pages.join(" "),
        if u.bound { "*" } else { "" }
    )
}
