//! Placement ids of traces. They are read from text and tables, and every form that can store them preserves them.

use flashtwin::{Op, Request};
use flashtwin_workload::{convert, open_trace, read_bytes, ErrorKind, TraceOptions};
use std::path::{Path, PathBuf};

const HEADER: &str = "time_us,op,offset_bytes,size_bytes,placement\n";

fn ids(text: &str, columns: Option<&str>) -> Vec<Option<u16>> {
    let opts = TraceOptions {
        columns: columns.map(str::to_string),
        ..TraceOptions::default()
    };
    let requests = read_bytes(text.as_bytes(), &opts).unwrap();
    requests.iter().map(|r| r.placement.get()).collect()
}

fn refused(text: &str, columns: Option<&str>) -> String {
    let opts = TraceOptions {
        columns: columns.map(str::to_string),
        ..TraceOptions::default()
    };
    let error = read_bytes(text.as_bytes(), &opts).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    error.to_string()
}

#[test]
fn fifth_column_holds_ids_if_the_header_names_it() {
    let rows =
        "1,W,0,4096,3\n2,W,0,4096,0x1F\n3,R,0,4096,\n4,W,0,4096\n5,WF,0,512,65534\n6,FW,0,512,7\n";
    assert_eq!(
        ids(&format!("{HEADER}{rows}"), None),
        [Some(3), Some(31), None, None, Some(65534), None, Some(7)],
        "a flush before a write has no id"
    );
    let four = "time_us,op,offset_bytes,size_bytes\n1,W,0,4096\n";
    assert_eq!(ids(four, None), [None]);
    let message = refused(&format!("{four}2,W,0,4096,3\n"), None);
    assert!(
        message.contains(
            "line 3: end of line (column 5): found \"3\", expected four columns, or placement"
        ),
        "{message}"
    );
}

#[test]
fn ids_out_of_range_are_named_with_their_line() {
    for (value, shown) in [
        ("65535", "65535"),
        ("0x10000", "0x10000"),
        ("-1", "-1"),
        ("1.5", "1.5"),
        ("x", "x"),
    ] {
        let text = format!("{HEADER}1,W,0,4096,0\n2,W,0,4096,{value}\n");
        let message = refused(&text, None);
        let expected = format!(
            "(memory), line 3: placement (column 5): found \"{shown}\", expected a placement id from 0 to 65534, \
             decimal or hexadecimal after 0x, or nothing for none"
        );
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn columns_name_ids() {
    let table = "at;where;stream\n1;0;5\n2;8;\n3;16;0x20\n4;16;7.0\n";
    let columns = "time=at:us,offset=where:sectors,placement=stream,size=where:sectors";
    // This table uses the address as the size, too. A request of size 0 is skipped.
    assert_eq!(ids(table, Some(columns)), [None, Some(32), Some(7)]);
    let hex = "1,ff\n2,10\n";
    assert_eq!(
        ids(hex, Some("offset=1:pages,placement=2:hex")),
        [Some(255), Some(16)]
    );
    let message = refused("1,70000\n", Some("offset=1:pages,placement=2"));
    assert!(
        message.contains("line 1: placement (column 2): found \"70000\""),
        "{message}"
    );
}

/// A temporary directory that is removed at the end of the test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path =
            std::env::temp_dir().join(format!("flashtwin_placement_{name}_{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> Vec<Request> {
    let mut workload = open_trace(path, &TraceOptions::default()).unwrap();
    let mut requests = Vec::new();
    while workload.next_batch(&mut requests).unwrap() > 0 {}
    requests
}

/// Returns a trace with all operations, some of them with placement ids. Its trims are too large for one record of
/// version 2.
fn trace() -> String {
    let mut text = HEADER.to_string();
    for i in 0..10_000u64 {
        let id = match i % 3 {
            0 => String::new(),
            _ => (i * 7 % 65_535).to_string(),
        };
        text += &match i % 100 {
            50 => format!("{i},F,0,0,\n"),
            60 => format!("{i},T,{},{},{id}\n", i * 4096, (1u64 << 39) + i),
            n => format!(
                "{i},{},{},{},{id}\n",
                ["R", "W", "WF"][n as usize % 3],
                i * 512,
                512 + n
            ),
        };
    }
    text
}

#[test]
fn every_form_keeps_ids() {
    let dir = Dir::new("forms");
    let src = dir.0.join("in.csv");
    std::fs::write(&src, trace()).unwrap();
    let expected = read(&src);
    assert!(
        expected
            .iter()
            .filter(|r| r.placement.get().is_some())
            .count()
            > 6000
    );
    // A long trim is two records.
    let pieces = expected.iter().flat_map(|r| {
        let first = r.bytes.min(1 << 39);
        let rest = Request {
            offset: r.offset + first,
            bytes: r.bytes - first,
            ..*r
        };
        [
            Some(Request { bytes: first, ..*r }),
            (r.op == Op::Trim).then_some(rest),
        ]
    });
    let pieces: Vec<Request> = pieces.flatten().collect();
    for name in ["out.csv", "out.ftb", "out.ftb.zst"] {
        let dst = dir.0.join(name);
        convert(&src, &dst, &TraceOptions::default()).unwrap();
        match name {
            "out.csv" => assert_eq!(read(&dst), expected),
            _ => assert_eq!(read(&dst), pieces, "{name}"),
        }
        // Once more, from the form itself.
        let again = dir.0.join("again.csv");
        convert(&dst, &again, &TraceOptions::default()).unwrap();
        assert_eq!(read(&again), read(&dst), "{name}");
    }
    assert!(std::fs::read(dir.0.join("out.ftb"))
        .unwrap()
        .starts_with(b"FLTWTRC2"));
}

#[test]
fn requests_without_an_id_have_an_empty_column() {
    let dir = Dir::new("empty");
    let (src, dst) = (dir.0.join("in.csv"), dir.0.join("out.csv"));
    let text = format!("{HEADER}0,W,0,4096,5\n1,W,0,4096,\n2,F,0,0,\n");
    std::fs::write(&src, &text).unwrap();
    convert(&src, &dst, &TraceOptions::default()).unwrap();
    assert_eq!(std::fs::read_to_string(&dst).unwrap(), text);
}

#[test]
fn traces_without_ids_are_written_as_before() {
    let dir = Dir::new("before");
    let (src, csv, ftb) = (
        dir.0.join("in.csv"),
        dir.0.join("out.csv"),
        dir.0.join("out.ftb"),
    );
    let text = "time_us,op,offset_bytes,size_bytes\n0,W,0,4096\n1,T,4096,4096\n";
    std::fs::write(&src, text).unwrap();
    convert(&src, &csv, &TraceOptions::default()).unwrap();
    convert(&src, &ftb, &TraceOptions::default()).unwrap();
    assert_eq!(std::fs::read_to_string(&csv).unwrap(), text);
    assert!(std::fs::read(&ftb).unwrap().starts_with(b"FLTWTRC1"));
}

#[test]
fn operations_of_a_later_version_are_refused() {
    let dir = Dir::new("later");
    let (src, ftb) = (dir.0.join("in.csv"), dir.0.join("out.ftb"));
    std::fs::write(&src, format!("{HEADER}0,W,0,4096,1\n1,W,0,4096,2\n")).unwrap();
    convert(&src, &ftb, &TraceOptions::default()).unwrap();
    let whole = std::fs::read(&ftb).unwrap();
    // The third word of the second record.
    let at = whole.len() - 24 - 8;
    for (changed, expected) in [
        (
            4u8,
            "request 2: operation 4: expected 0 (read), 1 (write), 2 (trim) or 3 (flush)",
        ),
        (
            1 << 6 | 1,
            "request 2: bits 6 and 7 of its last word must be 0",
        ),
    ] {
        let mut bytes = whole.clone();
        bytes[at] = changed;
        let error = read_bytes(&bytes, &TraceOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn damage_to_version_2_never_panics() {
    let dir = Dir::new("damage");
    let (src, ftb) = (dir.0.join("in.csv"), dir.0.join("out.ftb"));
    let text: String = trace()
        .lines()
        .take(200)
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&src, text).unwrap();
    convert(&src, &ftb, &TraceOptions::default()).unwrap();
    let whole = std::fs::read(&ftb).unwrap();
    let header = whole.len() - 24 * 202;
    for seed in flashtwin::seeds(2) {
        let mut rng = flashtwin::Rng::new(seed);
        for _ in 0..3000 {
            let mut bytes = whole.clone();
            let at = header + rng.below((bytes.len() - header) as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
            assert!(
                read_bytes(&bytes, &TraceOptions::default()).is_err(),
                "byte {at}"
            );
            bytes.truncate(at);
            assert!(
                read_bytes(&bytes, &TraceOptions::default()).is_err(),
                "cut at {at}"
            );
        }
    }
}
