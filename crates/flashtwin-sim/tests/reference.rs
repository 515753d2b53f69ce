//! The model compared with the reference simulator (DiskSim with Microsoft's SSD extension), and
//! tests that this comparison detects faults.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common;
use flashtwin_sim::{validate_dir, CaseReport, SimError};

fn validate(path: &Path) -> Result<Vec<CaseReport>, SimError> {
    validate_dir(path, &mut |_, _| Ok(()))
}

fn assert_all_pass(reports: &[CaseReport]) {
    for report in reports {
        assert!(
            report.passed,
            "{}: {:?} {:?}",
            report.name, report.first_mismatch, report.parts
        );
    }
}

#[test]
fn every_operation_of_the_event_logs_is_reproduced() {
    let reports = validate(&common::data("msr")).expect("sound cases");
    assert_eq!(reports.len(), 11);
    assert_eq!(reports.iter().map(|r| r.mismatched).sum::<u64>(), 0);
    assert_all_pass(&reports);
    assert_eq!(
        reports.iter().map(|r| r.operations_compared).sum::<u64>(),
        14_906
    );
}

#[test]
fn every_response_time_of_the_random_replays_is_reproduced() {
    let reports = validate(&common::data("replay")).expect("sound cases");
    assert_eq!(
        reports.iter().map(|r| r.requests).collect::<Vec<_>>(),
        [300_000, 150_000]
    );
    assert_all_pass(&reports);
}

// ---- planted faults ----

/// A decompressed copy of the files of one case. Tests insert faults into the copy.
struct Copied {
    directory: PathBuf,
    name: &'static str,
}

impl Copied {
    fn new(from: &str, name: &'static str, test: &str) -> Copied {
        let directory =
            std::env::temp_dir().join(format!("flashtwin-{}-{test}", std::process::id()));
        fs::create_dir_all(&directory).expect("the temporary directory is writable");
        for entry in fs::read_dir(common::data(from)).expect("test data") {
            let file = entry.expect("test data").path();
            let file_name = file
                .file_name()
                .and_then(|n| n.to_str())
                .expect("plain names");
            let Some(rest) = file_name
                .strip_prefix(name)
                .filter(|rest| rest.starts_with('.'))
            else {
                continue;
            };
            let bytes = fs::read(&file).expect("test data");
            let (bytes, rest) = match rest.strip_suffix(".zst") {
                Some(rest) => (zstd::decode_all(&bytes[..]).expect("sound .zst"), rest),
                None => (bytes, rest),
            };
            fs::write(directory.join(format!("{name}{rest}")), bytes).expect("room on the disk");
        }
        Copied { directory, name }
    }

    /// Changes the lines of one of the files.
    fn edit(&self, ending: &str, change: impl FnOnce(&mut Vec<String>)) {
        let path = self.directory.join(format!("{}{ending}", self.name));
        let text = fs::read_to_string(&path).expect("just copied");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        fs::write(&path, lines.join("\n") + "\n").expect("room on the disk");
    }

    /// Returns the report of a valid case.
    fn report(&self) -> CaseReport {
        validate(&self.directory)
            .expect("a readable case")
            .remove(0)
    }

    /// Returns the message about an invalid case.
    fn error(&self) -> String {
        validate(&self.directory)
            .expect_err("a malformed case")
            .to_string()
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Returns the index of the `n`-th line that begins with `kind`; both count from 0.
fn nth(lines: &[String], kind: &str, n: usize) -> usize {
    let mut of_kind = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with(kind));
    of_kind.nth(n).expect("so many lines").0
}

/// Replaces a field `name=value` of an event.
fn set_field(line: &mut String, name: &str, value: &str) {
    let words = line.split(' ').map(|word| match word.split_once('=') {
        Some((key, _)) if key == name => format!("{key}={value}"),
        _ => word.to_owned(),
    });
    *line = words.collect::<Vec<_>>().join(" ");
}

#[test]
fn an_unchanged_copy_passes() {
    let case = Copied::new("msr", "gc_cb_par2", "unchanged");
    let report = case.report();
    assert!(report.passed && report.first_mismatch.is_none());
    assert_eq!(report.mismatched, 0);
}

#[test]
fn one_wrong_value_of_any_kind_is_caught_at_its_line() {
    for (kind, field, value) in [
        ("wr", "t", "3000.001913"),
        ("wr", "plane", "7"),
        ("wr", "elem", "1"),
        ("wr", "sch", "0.305607"),
        ("victim", "blk", "31"),
        ("victim", "valid", "8"),
        ("clean", "cost", "2.400006"),
        ("hostdone", "t", "3000.307513"),
    ] {
        let case = Copied::new("msr", "gc_cb_par1", &format!("{kind}-{field}"));
        let mut at = 0;
        case.edit(".events.txt", |lines| {
            at = nth(lines, kind, 60);
            set_field(&mut lines[at], field, value);
        });
        let report = case.report();
        assert!(!report.passed, "{kind} {field}");
        assert_eq!(report.mismatched, 1, "{kind} {field}");
        let message = report.first_mismatch.expect("a message");
        assert!(
            message.contains(&format!("events.txt:{}: expected {kind}", at + 1)),
            "{message}"
        );
    }
}

#[test]
fn a_time_off_by_less_than_5_ns_passes() {
    let case = Copied::new("msr", "gc_cb_par1", "rounding");
    case.edit(".events.txt", |lines| {
        let at = nth(lines, "wr", 60);
        assert!(lines[at].contains("1907 "), "{}", lines[at]);
        lines[at] = lines[at].replacen("1907 ", "1911 ", 1);
    });
    assert!(case.report().passed);
}

#[test]
fn an_operation_too_few_or_too_many_is_caught() {
    for kind in ["rd", "wr", "victim", "clean", "hostdone"] {
        let case = Copied::new("msr", "m_concat", &format!("missing-{kind}"));
        case.edit(".events.txt", |lines| {
            let at = nth(lines, kind, 40);
            lines.remove(at);
        });
        let report = case.report();
        assert!(
            !report.passed && report.mismatched == 1,
            "{kind} {:?}",
            report.first_mismatch
        );
        let message = report.first_mismatch.expect("a message");
        assert!(message.contains(&format!("got {kind}")), "{message}");

        let case = Copied::new("msr", "m_concat", &format!("extra-{kind}"));
        case.edit(".events.txt", |lines| {
            let at = nth(lines, kind, 40);
            lines.insert(at, lines[at].clone());
        });
        let report = case.report();
        assert!(
            !report.passed && report.mismatched == 1,
            "{kind} {:?}",
            report.first_mismatch
        );
    }
}

#[test]
fn another_device_is_caught() {
    for (from, to) in [
        ("\"parallel_units\": 2", "\"parallel_units\": 1"),
        ("\"read_ms\": 0.025", "\"read_ms\": 0.02501"),
        ("\"allocation_pool\": 1", "\"allocation_pool\": 2"),
        ("\"plane_block_mapping\": 3", "\"plane_block_mapping\": 1"),
        (
            "\"bus_ms_per_sector\": 0.0002384",
            "\"bus_ms_per_sector\": 0.0002394",
        ),
    ] {
        let case = Copied::new("msr", "m_stride2", &format!("device-{}", to.len()));
        case.edit(".json", |lines| {
            let at = lines
                .iter()
                .position(|line| line.contains(from))
                .expect("the key is there");
            lines[at] = lines[at].replace(from, to);
        });
        let report = case.report();
        assert!(!report.passed, "{to}");
    }
}

#[test]
fn a_wrong_response_or_total_of_a_replay_is_caught() {
    let case = Copied::new("replay", "random4k_2g_par2", "replay");
    let shift = |line: &mut String| {
        let (rest, response) = line.rsplit_once(',').expect("five fields");
        let ms: f64 = response.parse().expect("a number");
        *line = format!("{rest},{:.6}", ms + 0.000_050);
    };
    case.edit(".responses.csv", |lines| {
        shift(&mut lines[1000]);
        shift(&mut lines[2000]);
    });
    let report = case.report();
    assert!(!report.passed);
    let message = report.first_mismatch.expect("a message");
    assert!(message.contains("responses.csv:1001: "), "{message}");

    let case = Copied::new("replay", "random4k_2g_par2", "totals");
    case.edit(".json", |lines| {
        let at = lines
            .iter()
            .position(|line| line.contains("\"erases\""))
            .expect("the key is there");
        lines[at] = " \"erases\": 4433,".into();
    });
    let report = case.report();
    assert!(!report.passed);
    let erases = report
        .parts
        .iter()
        .find(|p| p.what == "erases")
        .expect("it is compared");
    assert_eq!(erases.mismatched, 1);
}

// ---- malformed cases ----

#[test]
fn malformed_lines_are_errors_with_file_and_line() {
    for (ending, line, text, expected) in [
        (
            ".trace.csv",
            5,
            "1.0,8,8",
            "gc_cb_par1.trace.csv:6: expected the 4 fields",
        ),
        (
            ".trace.csv",
            5,
            "-1,8,8,W",
            "trace.csv:6: arrival_ms must be a time",
        ),
        (
            ".trace.csv",
            5,
            "0.1,8,8,W",
            "trace.csv:6: requests must be in order",
        ),
        (
            ".trace.csv",
            5,
            "200.0,4,8,W",
            "trace.csv:6: a request must be whole pages",
        ),
        (
            ".trace.csv",
            5,
            "200.0,8,0,W",
            "trace.csv:6: a request must be whole pages",
        ),
        (
            ".trace.csv",
            5,
            "200.0,80000,8,W",
            "trace.csv:6: the request ends beyond",
        ),
        (
            ".trace.csv",
            5,
            "200.0,8,8,X",
            "trace.csv:6: op must be R or W",
        ),
        (
            ".events.txt",
            1,
            "wr t=0.1 elem=0",
            "events.txt:2: wr needs plane=",
        ),
        (
            ".events.txt",
            1,
            "wr t=0.1 elem=x plane=0 sch=1",
            "events.txt:2: elem must be a whole number",
        ),
        (
            ".events.txt",
            1,
            "erase t=0.1",
            "events.txt:2: an event must be one of",
        ),
        (
            ".json",
            2,
            "\"min_free_percent\": \"12\",",
            ".json:3: invalid type",
        ),
        (
            ".json",
            3,
            "\"planes_per_element\": 0,",
            "no possible device",
        ),
        (
            ".json",
            5,
            "\"plane_block_mapping\": 2,",
            "plane_block_mapping: found 2; modelled are 1 and 3",
        ),
    ] {
        let case = Copied::new(
            "msr",
            "gc_cb_par1",
            &format!("bad-{}", text.len() + 100 * line),
        );
        case.edit(ending, |lines| lines[line] = text.into());
        let message = case.error();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn incomplete_cases_and_directories_are_errors() {
    let case = Copied::new("msr", "gc_cb_par1", "incomplete");
    fs::remove_file(case.directory.join("gc_cb_par1.events.txt")).expect("it was there");
    let message = case.error();
    assert!(
        message.contains("found only gc_cb_par1.json, gc_cb_par1.trace.csv"),
        "{message}"
    );

    let case = Copied::new("msr", "gc_cb_par1", "truncated-zst");
    let whole = fs::read(common::data("msr/gc_cb_par1.events.txt.zst")).expect("test data");
    fs::remove_file(case.directory.join("gc_cb_par1.events.txt")).expect("it was there");
    let path = case.directory.join("gc_cb_par1.events.txt.zst");
    fs::write(path, &whole[..whole.len() / 2]).expect("room on the disk");
    let message = case.error();
    assert!(message.contains("truncated .zst"), "{message}");

    let case = Copied::new("replay", "random4k_2g_par2", "short");
    case.edit(".responses.csv", |lines| lines.truncate(100));
    let message = case.error();
    assert!(message.contains("holds 99 requests"), "{message}");

    let empty = Copied::new("msr", "no such case", "empty");
    assert!(empty.error().contains("no reference case here"));
    let message = validate(Path::new("/nonexistent"))
        .expect_err("not there")
        .to_string();
    assert!(
        message.contains("/nonexistent: cannot read this directory"),
        "{message}"
    );
}
