//! Validation cases with response times: a long trace, the response time of every request, and the totals of cleaning.
//!
//! - The numbers of erases and of moved pages must be equal.
//! - Completion times, compared as a set, must agree within 10 ns. One in 100 000 may differ. Rounding in the reference
//!   decides the order of two events at exactly the same instant (a tie).
//! - The response time of each request must agree within 10 ns. Two in 100 000 may differ, because a tie can swap two
//!   requests. Requests that share a page with another outstanding request are not compared, because the reference
//!   credits completions of such requests to the wrong one (quirk Q16).

use std::collections::HashMap;
use std::path::Path;

use flashtwin::{Cause, DeviceSpec, Op, Request, Ssd, Time};
use serde::Deserialize;

use super::case::{read_json, Parameters};
use super::input::{read_text, Line, Listed};
use super::matching::{unmatched, Timed};
use super::{CaseReport, PartReport};
use crate::{run, Control, RunConfig, SimError};

const TOLERANCE: Time = Time::from_ns(10);
/// Number of requests per permitted difference. Such differences are caused by ties.
const REQUESTS_PER_TIE: u64 = 100_000;

/// Contents of `NAME.json`.
#[derive(Debug, Deserialize)]
struct Replay {
    device: Parameters,
    exported_pages: u64,
    requests: u64,
    erases: u64,
    pages_moved: u64,
}

/// A request in the file, with its response time in the reference.
#[derive(Clone, Copy, Debug)]
struct Row {
    arrival: Time,
    page: u32,
    pages: u32,
    op: Op,
    response: Time,
    line: u64,
}

/// Replays the case and compares.
pub(super) fn compare(name: &str, json: &Path, responses: &Path) -> Result<CaseReport, SimError> {
    let case: Replay = read_json(json)?;
    let spec = case.device.device(json)?;
    if u64::from(spec.exported_pages()) != case.exported_pages {
        let message = format!(
            "exported_pages: found {}; a device of these parameters exports {}",
            case.exported_pages,
            spec.exported_pages()
        );
        return Err(SimError::case(json, None, message));
    }
    let rows = read_responses(responses, spec.exported_pages())?;
    if rows.len() as u64 != case.requests {
        let message = format!(
            "holds {} requests; {} has {}",
            rows.len(),
            json.display(),
            case.requests
        );
        return Err(SimError::case(responses, None, message));
    }
    let (got, erases, moved) = replay(&spec, &rows)?;

    let name_of = responses.file_name().unwrap_or_default().to_string_lossy();
    let own = own_responses(&rows, &got);
    let instants = instants(&rows, &got);
    let total = |what, expected: u64, got: u64| {
        let wrong = u64::from(expected != got);
        let part = PartReport {
            what,
            compared: 1,
            matched: 1 - wrong,
            mismatched: wrong,
            allowed: 0,
        };
        let text = (wrong == 1).then(|| format!("expected {expected} {what}, got {got}"));
        (part, text)
    };
    let (erases_part, erases_text) = total("erases", case.erases, erases);
    let (moved_part, moved_text) = total("pages moved", case.pages_moved, moved);
    // A response time is more specific than a completion time or a total. If it is wrong, it is reported first.
    let first = own.1.or(instants.1).map(|text| format!("{name_of}:{text}"));
    let first = first.or(erases_text).or(moved_text);
    let parts = vec![instants.0, own.0, erases_part, moved_part];
    Ok(CaseReport::new(name, "replay", rows.len(), parts, first))
}

/// Returns the number of differences that ties may cause in a replay of `rows`.
fn ties_allowed(rows: &[Row]) -> u64 {
    rows.len() as u64 / REQUESTS_PER_TIE
}

fn part(what: &'static str, compared: usize, mismatched: usize, allowed: u64) -> PartReport {
    let (compared, mismatched) = (compared as u64, mismatched as u64);
    PartReport {
        what,
        compared,
        matched: compared.saturating_sub(mismatched),
        mismatched,
        allowed,
    }
}

fn ms(t: Time) -> f64 {
    t.0 as f64 * 1e-9
}

/// Compares the completion instants as sets.
fn instants(rows: &[Row], got: &[Time]) -> (PartReport, Option<String>) {
    let timed = |(i, at): (usize, Time)| Timed {
        key: (),
        at,
        duration: Time::ZERO,
        number: i as u64,
    };
    let expected = rows
        .iter()
        .map(|row| row.arrival + row.response)
        .enumerate()
        .map(timed)
        .collect();
    let left = unmatched(
        expected,
        got.iter().copied().enumerate().map(timed).collect(),
        TOLERANCE,
    );
    let mismatched = left.expected.len().max(left.got.len());
    let first = left.expected.first().map(|t| {
        let near = left.got.iter().min_by_key(|g| g.at.0.abs_diff(t.at.0));
        let near = near.map_or("none".into(), |g| format!("{:.6} ms", ms(g.at)));
        let line = rows[t.number as usize].line;
        format!(
            "{line}: expected a completion at {:.6} ms; got {near}",
            ms(t.at)
        )
    });
    (
        part(
            "completion instants",
            rows.len(),
            mismatched,
            ties_allowed(rows),
        ),
        first,
    )
}

/// Compares the response times of those requests for which the reference reports correct ones.
fn own_responses(rows: &[Row], got: &[Time]) -> (PartReport, Option<String>) {
    let shares = share_a_page(rows, got);
    let (mut compared, mut mismatched, mut first) = (0, 0, None);
    for ((row, &done), shares) in rows.iter().zip(got).zip(shares) {
        if shares {
            continue;
        }
        compared += 1;
        let expected = row.arrival + row.response;
        if expected.0.abs_diff(done.0) > TOLERANCE.0 {
            mismatched += 1;
            first.get_or_insert_with(|| {
                format!(
                    "{}: {:?} of {} pages from page {} at {:.6} ms: expected response {:.6} ms, got \
                     {:.6} ms",
                    row.line,
                    row.op,
                    row.pages,
                    row.page,
                    ms(row.arrival),
                    ms(row.response),
                    ms(done - row.arrival)
                )
            });
        }
    }
    (
        part(
            "own responses",
            compared,
            mismatched,
            2 * ties_allowed(rows),
        ),
        first,
    )
}

/// Returns, for each request, whether it shares a page with another request while both are outstanding, in the model or
/// in the reference.
fn share_a_page(rows: &[Row], got: &[Time]) -> Vec<bool> {
    let ends = rows
        .iter()
        .zip(got)
        .map(|(row, &done)| done.max(row.arrival + row.response));
    let ends: Vec<Time> = ends.collect();
    let mut shares = vec![false; rows.len()];
    let mut outstanding: HashMap<u32, Vec<usize>> = HashMap::new();
    for (i, row) in rows.iter().enumerate() {
        for page in row.page..row.page + row.pages {
            let others = outstanding.entry(page).or_default();
            others.retain(|&other| ends[other] + TOLERANCE >= row.arrival);
            for &other in others.iter() {
                shares[other] = true;
                shares[i] = true;
            }
            others.push(i);
        }
    }
    shares
}

/// Replays the requests in the model. Returns the completion time of each request, the total number of erases and the
/// total number of moved pages.
fn replay(spec: &DeviceSpec, rows: &[Row]) -> Result<(Vec<Time>, u64, u64), SimError> {
    let mut ssd = Ssd::new(spec);
    ssd.fill_sequential();
    let page_bytes = u64::from(spec.geometry.page_bytes);
    let request = |row: &Row| Request {
        arrival: row.arrival,
        offset: u64::from(row.page) * page_bytes,
        bytes: u64::from(row.pages) * page_bytes,
        op: row.op,
        fua: false,
        ..Request::default()
    };
    let mut listed = Listed::new(rows.iter().map(request).collect());
    let mut got = vec![Time::ZERO; rows.len()];
    let (config, control) = (RunConfig::default(), Control::default());
    let outcome = run(
        &mut ssd,
        &mut listed,
        &config,
        &control,
        Some(&mut |completions| {
            completions
                .iter()
                .for_each(|c| got[c.tag as usize] = c.done);
            Ok(())
        }),
    )?;
    let flash = &outcome.flash.flash;
    Ok((got, flash.count(Cause::Erase), flash.count(Cause::GcMove)))
}

/// Reads the rows of `NAME.responses.csv`.
fn read_responses(path: &Path, exported_pages: u32) -> Result<Vec<Row>, SimError> {
    const HEADER: &str = "arrival_ms,page,pages,op,response_ms";
    let text = read_text(path)?;
    let mut rows: Vec<Row> = Vec::new();
    for line in Line::all(path, &text) {
        if line.number == 1 && line.text.trim() == HEADER {
            continue;
        }
        let [arrival, page, pages, op, response] = line.fields(HEADER)?;
        let row = Row {
            arrival: line.ms("arrival_ms", arrival)?,
            page: line.whole("page", page)?,
            pages: line.whole("pages", pages)?,
            op: match op {
                "R" => Op::Read,
                "W" => Op::Write,
                _ => return Err(line.error("op must be R or W")),
            },
            response: line.ms("response_ms", response)?,
            line: line.number,
        };
        if row.pages == 0 || u64::from(row.page) + u64::from(row.pages) > exported_pages.into() {
            return Err(line.error(&format!(
                "a request must lie within the device's {exported_pages} pages"
            )));
        }
        if rows.last().is_some_and(|last| last.arrival > row.arrival) {
            return Err(line.error("requests must be in order of arrival"));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(SimError::case(
            path,
            None,
            "no request in it; nothing could be compared",
        ));
    }
    Ok(rows)
}
