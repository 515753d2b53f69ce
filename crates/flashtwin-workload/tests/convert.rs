//! Conversion of traces: a written trace has the same requests as its source. No incomplete file remains after an
//! error.

use flashtwin::Request;
use flashtwin_workload::{
    convert, open_trace, read_bytes, trace_info, Addresses, ErrorKind, TraceOptions,
};
use std::path::{Path, PathBuf};

fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/traces")
        .join(name)
}

/// A temporary directory that is removed at the end of the test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path =
            std::env::temp_dir().join(format!("flashtwin_convert_{name}_{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = names
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> (Vec<Request>, Option<u64>, String) {
    let mut workload = open_trace(path, &TraceOptions::default()).unwrap();
    let (total, describe) = (workload.requests_total(), workload.describe());
    let mut requests = Vec::new();
    while workload.next_batch(&mut requests).unwrap() > 0 {}
    (requests, total, describe)
}

#[test]
fn every_form_reads_back_the_same() {
    let dir = Dir::new("forms");
    for source in ["flashtwin.csv", "blkparse.txt", "disksim.trace"] {
        let (expected, ..) = read(&sample(source));
        for name in [
            "t.csv",
            "t.csv.zst",
            "t.csv.gz",
            "t.ftb",
            "t.ftb.zst",
            "t.ftb.gz",
        ] {
            let dst = dir.0.join(name);
            let done = convert(&sample(source), &dst, &TraceOptions::default()).unwrap();
            assert_eq!(done.requests, expected.len() as u64);
            assert_eq!(done.bytes, std::fs::metadata(&dst).unwrap().len());
            let (requests, total, describe) = read(&dst);
            assert_eq!(requests, expected, "{source} as {name}");
            let form = if name.contains("csv") {
                "csv"
            } else {
                "binary"
            };
            assert!(describe.contains(&format!("{form} trace")), "{describe}");
            let known = (name == "t.ftb").then_some(expected.len() as u64);
            assert_eq!(
                total, known,
                "the plain binary form knows its length beforehand"
            );
        }
    }
    assert_eq!(
        dir.files().len(),
        6,
        "nothing else is left: {:?}",
        dir.files()
    );
}

#[test]
fn picoseconds_survive_the_text_form() {
    let dir = Dir::new("ps");
    let src = dir.0.join("in.csv");
    std::fs::write(
        &src,
        "time_us,op,offset_bytes,size_bytes\n0,W,0,4096\n0.000001,R,0,512\n7.25,F,0,0\n",
    )
    .unwrap();
    let dst = dir.0.join("out.csv");
    convert(&src, &dst, &TraceOptions::default()).unwrap();
    assert_eq!(std::fs::read(&dst).unwrap(), std::fs::read(&src).unwrap());
}

#[test]
fn a_failed_conversion_leaves_the_old_file_and_no_other() {
    let dir = Dir::new("failed");
    let (src, dst) = (dir.0.join("in.csv"), dir.0.join("out.ftb"));
    std::fs::write(&src, "1,W,0,4096\n2,X,0,4096\n").unwrap();
    std::fs::write(&dst, "old").unwrap();
    let error = convert(&src, &dst, &TraceOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert_eq!(std::fs::read(&dst).unwrap(), b"old");
    assert_eq!(dir.files(), ["in.csv", "out.ftb"]);
    let error = convert(
        &sample("msr.csv"),
        &dir.0.join("out.txt"),
        &TraceOptions::default(),
    );
    assert!(error
        .unwrap_err()
        .to_string()
        .contains(".csv (text) or .ftb (binary)"));
    let nowhere = dir.0.join("missing/out.csv");
    let error = convert(&sample("msr.csv"), &nowhere, &TraceOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn a_file_may_be_converted_onto_itself() {
    let dir = Dir::new("itself");
    let path = dir.0.join("t.csv");
    std::fs::copy(sample("msr.csv"), &path).unwrap();
    let (expected, ..) = read(&path);
    convert(&path, &path, &TraceOptions::default()).unwrap();
    assert_eq!(read(&path).0, expected);
}

#[test]
fn damage_to_the_binary_form_is_found() {
    let dir = Dir::new("damage");
    let path = dir.0.join("t.ftb");
    convert(&sample("flashtwin.csv"), &path, &TraceOptions::default()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let kind = |bytes: &[u8]| {
        read_bytes(bytes, &TraceOptions::default())
            .unwrap_err()
            .kind()
    };
    for end in [whole.len() - 1, whole.len() - 24, whole.len() - 48, 20] {
        assert_eq!(kind(&whole[..end]), ErrorKind::Truncated, "cut at {end}");
    }
    let first_record = whole.len() - 8 * 24;
    for at in [first_record + 9, whole.len() - 24, whole.len() - 16] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        assert_eq!(kind(&changed), ErrorKind::Malformed, "byte {at} changed");
    }
}

#[test]
fn records_of_all_kinds_survive_the_binary_form() {
    let dir = Dir::new("kinds");
    let (src, dst) = (dir.0.join("in.csv"), dir.0.join("out.ftb"));
    let hour = 3_600_000_000u64;
    let mut text = String::from("time_us,op,offset_bytes,size_bytes\n");
    for i in 0..30_000u64 {
        // Some requests are hours apart, some arrive at the same instant, and every operation occurs.
        let (time, op) = match i % 1000 {
            7 => (i / 1000 * 5 * hour, "T"),
            500 => (i / 1000 * 5 * hour, "F"),
            501 => (i / 1000 * 5 * hour, "WF"),
            n => (
                i / 1000 * 5 * hour + n / 600,
                ["R", "W", "WF"][i as usize % 3],
            ),
        };
        let (offset, bytes) = match op {
            "F" => (0, 0),
            _ => (i * 512 + i % 2, 1 + i % 9000),
        };
        text += &format!("{time},{op},{offset},{bytes}\n");
    }
    std::fs::write(&src, text).unwrap();
    convert(&src, &dst, &TraceOptions::default()).unwrap();
    let (expected, ..) = read(&src);
    assert_eq!(expected.len(), 30_000);
    assert_eq!(read(&dst).0, expected);
    let info = |path, opts: &TraceOptions| {
        let info = trace_info(path, opts).unwrap();
        // Only the number of warnings is compared, because their line numbers differ: the text has a header line in
        // addition to its requests.
        (
            info.requests,
            info.span_s,
            info.volumes,
            info.warnings.len(),
        )
    };
    let all = TraceOptions::default();
    assert!(info(&dst, &all).3 > 0, "the leap of the times is seen");
    for limit in [None, Some(1), Some(4096), Some(4097), Some(29_999)] {
        let opts = TraceOptions {
            limit,
            ..all.clone()
        };
        assert_eq!(info(&dst, &opts), info(&src, &opts), "{limit:?}");
    }
    let compact = TraceOptions {
        addresses: Addresses::Compact,
        ..all
    };
    assert_eq!(info(&dst, &compact), info(&src, &compact));
}

#[test]
fn the_binary_form_is_in_order() {
    let dir = Dir::new("order");
    let path = dir.0.join("t.ftb");
    convert(&sample("flashtwin.csv"), &path, &TraceOptions::default()).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 2 * 24;
    bytes[last..last + 8].fill(0);
    for addresses in Addresses::ALL {
        let opts = TraceOptions {
            addresses: *addresses,
            ..TraceOptions::default()
        };
        let error = read_bytes(&bytes, &opts).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        let text = error.to_string();
        assert!(text.contains("in order of arrival"), "{text}");
    }
}
