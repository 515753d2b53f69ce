//! Validation cases with an event log. The log of the reference simulator has every page operation, victim, cleaning
//! cost and completion.
//!
//! Times may differ by 5 ns, and operations at the same instant may be in any order. The comparison ends before the
//! last three requests of a trace. These exist only to make the reference run to its end (quirk Q1).

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use flashtwin::{Cause, FlashEvent, Op, Request, Ssd, Time};

use super::case::{read_json, Parameters};
use super::input::{read_text, Line, Listed};
use super::matching::{unmatched, Timed};
use super::{CaseReport, PartReport};
use crate::{run, Control, RunConfig, SimError};

const TOLERANCE: Time = Time::from_ns(5);
/// Number of requests at the end of a trace that are not compared.
const UNCOMPARED: usize = 3;

/// Properties that must be equal for two operations to match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A page read. The plane is -1 if the chip has one write pointer for all planes.
    Read { element: u32, plane: i32 },
    /// A page write.
    Write { element: u32, plane: i32 },
    /// A block chosen for cleaning.
    Victim {
        element: u32,
        plane: i32,
        block: u32,
        valid: u32,
    },
    /// A cleaning action.
    Clean { element: u32 },
    /// A request's completion as the host sees it.
    HostDone,
}

impl What {
    const NAMES: [&'static str; 5] = ["rd", "wr", "victim", "clean", "hostdone"];

    fn name(&self) -> &'static str {
        Self::NAMES[match self {
            What::Read { .. } => 0,
            What::Write { .. } => 1,
            What::Victim { .. } => 2,
            What::Clean { .. } => 3,
            What::HostDone => 4,
        }]
    }

    fn element(&self) -> Option<u32> {
        match *self {
            What::Read { element, .. }
            | What::Write { element, .. }
            | What::Victim { element, .. }
            | What::Clean { element } => Some(element),
            What::HostDone => None,
        }
    }
}

/// Prints the operation in the words of the event log.
impl fmt::Display for Timed<What> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |t: Time| t.0 as f64 * 1e-9;
        write!(f, "{} t={:.6}", self.key.name(), ms(self.at))?;
        match &self.key {
            What::Read { element, plane } | What::Write { element, plane } => {
                write!(
                    f,
                    " elem={element} plane={plane} sch={:.6}",
                    ms(self.duration)
                )
            }
            What::Victim {
                element,
                plane,
                block,
                valid,
            } => {
                write!(f, " elem={element} plane={plane} blk={block} valid={valid}")
            }
            What::Clean { element } => write!(f, " elem={element} cost={:.6}", ms(self.duration)),
            What::HostDone => Ok(()),
        }
    }
}

/// Replays the case and compares.
pub(super) fn compare(
    name: &str,
    json: &Path,
    trace: &Path,
    events: &Path,
) -> Result<CaseReport, SimError> {
    let parameters: Parameters = read_json(json)?;
    let spec = parameters.device(json)?;
    let requests = read_trace(trace, &spec)?;
    let count = requests.len();
    let end = requests[count - UNCOMPARED].arrival;
    let mut expected = read_events(events)?;
    expected.retain(|event| event.at < end);
    let mut got = replay(&spec, requests)?;
    got.retain(|event| event.at < end);

    let mut parts: BTreeMap<&str, PartReport> = BTreeMap::new();
    let mut part = |what: &'static str, count: fn(&mut PartReport)| {
        let new = PartReport {
            what,
            compared: 0,
            matched: 0,
            mismatched: 0,
            allowed: 0,
        };
        count(parts.entry(what).or_insert(new));
    };
    expected
        .iter()
        .for_each(|event| part(event.key.name(), |p| p.compared += 1));
    let left = unmatched(expected, got, TOLERANCE);
    // A wrong operation is unmatched in both lists. It counts as one mismatch.
    left.expected
        .iter()
        .for_each(|event| part(event.key.name(), |p| p.mismatched += 1));
    let mut extra: BTreeMap<&str, u64> = BTreeMap::new();
    for event in &left.got {
        part(event.key.name(), |_| ());
        *extra.entry(event.key.name()).or_default() += 1;
    }
    let first = describe_first(&left.expected, &left.got, events);
    let order = |what| What::NAMES.iter().position(|name| *name == what);
    let mut parts: Vec<PartReport> = parts.into_values().collect();
    parts.sort_by_key(|p| order(p.what));
    for p in &mut parts {
        p.matched = p.compared - p.mismatched;
        p.mismatched = p.mismatched.max(extra.get(p.what).copied().unwrap_or(0));
    }
    Ok(CaseReport::new(name, "msr", count, parts, first))
}

/// Describes the earliest unmatched operation, expected or actual, and the nearest unmatched operation of its kind in
/// the other list.
fn describe_first(expected: &[Timed<What>], got: &[Timed<What>], log: &Path) -> Option<String> {
    let counterpart = |of: &Timed<What>, others: &[Timed<What>]| {
        let same =
            |t: &&Timed<What>| t.key.name() == of.key.name() && t.key.element() == of.key.element();
        let nearest = others
            .iter()
            .filter(same)
            .min_by_key(|t| t.at.0.abs_diff(of.at.0));
        nearest.map_or("nothing of the kind".into(), Timed::to_string)
    };
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    match (expected.first(), got.first()) {
        (Some(e), g) if g.is_none_or(|g| e.at <= g.at + TOLERANCE) => Some(format!(
            "{name}:{}: expected {e}; got {}",
            e.number,
            counterpart(e, got)
        )),
        (_, Some(g)) => Some(format!(
            "{name}: got {g}; expected {}",
            counterpart(g, expected)
        )),
        _ => None,
    }
}

/// Returns the model's operations for the given requests.
fn replay(
    spec: &flashtwin::DeviceSpec,
    requests: Vec<Request>,
) -> Result<Vec<Timed<What>>, SimError> {
    let mut ssd = Ssd::new(spec);
    ssd.fill_sequential();
    ssd.set_flash_log(true);
    let mut got = Vec::new();
    let (config, control) = (RunConfig::default(), Control::default());
    run(
        &mut ssd,
        &mut Listed::new(requests),
        &config,
        &control,
        Some(&mut |completions| {
            got.extend(
                completions
                    .iter()
                    .map(|c| timed(What::HostDone, c.done, Time::ZERO)),
            );
            Ok(())
        }),
    )?;
    got.extend(ssd.take_flash_log().into_iter().filter_map(timed_event));
    Ok(got)
}

fn timed(key: What, at: Time, duration: Time) -> Timed<What> {
    Timed {
        key,
        at,
        duration,
        number: 0,
    }
}

/// Converts an operation; `None` if the reference does not log operations of its kind.
fn timed_event(event: FlashEvent) -> Option<Timed<What>> {
    Some(match event {
        FlashEvent::Page {
            at,
            chip: element,
            plane,
            cause,
            duration,
            ..
        } => {
            let plane = plane.map_or(-1, |plane| plane as i32);
            let key = match cause {
                Cause::HostRead => What::Read { element, plane },
                _ => What::Write { element, plane },
            };
            timed(key, at, duration)
        }
        FlashEvent::Victim {
            at,
            chip: element,
            plane,
            block,
            valid,
        } => timed(
            What::Victim {
                element,
                plane: plane as i32,
                block,
                valid,
            },
            at,
            Time::ZERO,
        ),
        FlashEvent::Clean {
            at,
            chip: element,
            duration,
        } => timed(What::Clean { element }, at, duration),
        _ => return None,
    })
}

/// Reads the requests of `NAME.trace.csv`.
fn read_trace(path: &Path, spec: &flashtwin::DeviceSpec) -> Result<Vec<Request>, SimError> {
    const HEADER: &str = "arrival_ms,sector,sectors,op";
    let text = read_text(path)?;
    let mut requests: Vec<Request> = Vec::new();
    for line in Line::all(path, &text) {
        if line.number == 1 && line.text.trim() == HEADER {
            continue;
        }
        let [arrival, sector, sectors, op] = line.fields(HEADER)?;
        let (sector, sectors): (u32, u32) = (
            line.whole("sector", sector)?,
            line.whole("sectors", sectors)?,
        );
        let page = spec.sectors_per_page();
        if sector % page != 0 || sectors % page != 0 || sectors == 0 {
            return Err(line.error(&format!(
                "a request must be whole pages of {page} sectors (quirk Q2)"
            )));
        }
        let request = Request {
            arrival: line.ms("arrival_ms", arrival)?,
            offset: u64::from(sector) * 512,
            bytes: u64::from(sectors) * 512,
            op: match op {
                "R" => Op::Read,
                "W" => Op::Write,
                _ => return Err(line.error("op must be R or W")),
            },
            fua: false,
            ..Request::default()
        };
        if request.offset + request.bytes > spec.exported_bytes() {
            let sectors = spec.exported_bytes() / 512;
            return Err(line.error(&format!(
                "the request ends beyond the device's {sectors} sectors"
            )));
        }
        if requests
            .last()
            .is_some_and(|last| last.arrival > request.arrival)
        {
            return Err(line.error("requests must be in order of arrival"));
        }
        requests.push(request);
    }
    if requests.len() <= UNCOMPARED {
        let message = format!(
            "{} requests; at least {} are needed, as the last {UNCOMPARED} are not compared (quirk Q1)",
            requests.len(),
            UNCOMPARED + 1
        );
        return Err(SimError::case(path, None, message));
    }
    Ok(requests)
}

/// Returns the time at which the reads of a batch end and its writes start. It is at the end of the line, as in
/// `(after reads 0.130600)`.
fn after_reads(line: &Line) -> Result<Time, SimError> {
    match line.text.split_once("(after reads ") {
        None => Ok(Time::ZERO),
        Some((_, rest)) => line.ms("after reads", rest.trim_end().trim_end_matches(')')),
    }
}

/// Parses an operation. Also returns the name of the field with the duration, if there is one.
fn what<'a>(
    kind: &str,
    line: &Line,
    field: &dyn Fn(&str) -> Result<&'a str, SimError>,
) -> Result<(What, Option<&'static str>), SimError> {
    let element = || line.whole("elem", field("elem")?);
    let plane = || line.whole("plane", field("plane")?);
    Ok(match kind {
        "rd" => (
            What::Read {
                element: element()?,
                plane: plane()?,
            },
            Some("sch"),
        ),
        "wr" => (
            What::Write {
                element: element()?,
                plane: plane()?,
            },
            Some("sch"),
        ),
        "victim" => {
            let block = line.whole("blk", field("blk")?)?;
            let valid = line.whole("valid", field("valid")?)?;
            (
                What::Victim {
                    element: element()?,
                    plane: plane()?,
                    block,
                    valid,
                },
                None,
            )
        }
        "clean" => (
            What::Clean {
                element: element()?,
            },
            Some("cost"),
        ),
        "hostdone" => (What::HostDone, None),
        _ => {
            return Err(line
                .error("an event must be one of arrive, rd, wr, victim, clean, devdone, hostdone"))
        }
    })
}

/// Reads the operations of `NAME.events.txt`.
fn read_events(path: &Path) -> Result<Vec<Timed<What>>, SimError> {
    let text = read_text(path)?;
    let mut events = Vec::new();
    for line in Line::all(path, &text) {
        let mut words = line.text.split_whitespace();
        let kind = words.next().unwrap_or_default();
        if matches!(kind, "arrive" | "devdone") {
            continue;
        }
        let fields: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
        let field = |name: &str| {
            let found = fields
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| *value);
            found.ok_or_else(|| line.error(&format!("{kind} needs {name}=")))
        };
        let (key, duration) = what(kind, &line, &field)?;
        let duration = match duration {
            Some(name) => line.ms(name, field(name)?)? + after_reads(&line)?,
            None => Time::ZERO,
        };
        let at = line.ms("t", field("t")?)?;
        events.push(Timed {
            key,
            at,
            duration,
            number: line.number,
        });
    }
    if events.is_empty() {
        return Err(SimError::case(
            path,
            None,
            "no event in it; nothing could be compared",
        ));
    }
    Ok(events)
}
