//! Behaviour of the reader beyond single lines: order, volumes, limits, and helpful errors.

use flashtwin::{Op, Time};
use flashtwin_workload::{
    read_bytes, trace_info, Addresses, ErrorKind, Format, TimeUnit, TraceInfo, TraceOptions,
    Volumes,
};
use std::path::PathBuf;

fn opts() -> TraceOptions {
    TraceOptions::default()
}

fn csv(rows: &[(u64, &str, u64, u64)]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|(t, op, o, b)| format!("{t},{op},{o},{b}\n"))
        .collect();
    format!("time_us,op,offset_bytes,size_bytes\n{}", rows.concat())
}

/// A file in the temporary directory that is removed at the end of the test.
struct Temp(PathBuf);

impl Temp {
    fn new(name: &str, bytes: &[u8]) -> Temp {
        let path = std::env::temp_dir().join(format!("flashtwin_{}_{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Temp(path)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn info(name: &str, text: &str, opts: &TraceOptions) -> TraceInfo {
    let file = Temp::new(name, text.as_bytes());
    trace_info(&file.0, opts).unwrap()
}

#[test]
fn times_start_at_the_first_request_in_order_of_time() {
    let text = csv(&[
        (500, "W", 0, 4096),
        (400, "R", 4096, 4096),
        (600, "R", 8192, 4096),
    ]);
    let requests = read_bytes(text.as_bytes(), &opts()).unwrap();
    let times: Vec<Time> = requests.iter().map(|r| r.arrival).collect();
    assert_eq!(times, [Time::ZERO, Time::from_us(100), Time::from_us(200)]);
    assert_eq!(requests[0].op, Op::Read);
    let info = info("order", &text, &opts());
    assert_eq!(info.reordered, 1);
    assert!(
        info.warnings[0].contains("out of order"),
        "{:?}",
        info.warnings
    );
}

#[test]
fn equal_times_keep_the_order_of_the_file() {
    let rows: Vec<(u64, &str, u64, u64)> = (0..100)
        .map(|i| (7 - i / 50, "W", i * 4096, 4096))
        .collect();
    let requests = read_bytes(csv(&rows).as_bytes(), &opts()).unwrap();
    let offsets: Vec<u64> = requests.iter().map(|r| r.offset / 4096).collect();
    assert_eq!(offsets, (50..100).chain(0..50).collect::<Vec<_>>());
}

#[test]
fn a_step_back_past_the_window_is_an_error_with_its_line_and_remedy() {
    let mut rows: Vec<(u64, &str, u64, u64)> = (10..20_010).map(|i| (i, "W", 0, 4096)).collect();
    rows.push((3, "R", 0, 4096));
    let text = csv(&rows);
    let narrow = TraceOptions {
        reorder_window: 64,
        ..opts()
    };
    let error = read_bytes(text.as_bytes(), &narrow).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfOrder);
    let message = error.to_string();
    assert!(
        message.contains("line 20002") && message.contains("reorder_window"),
        "{message}"
    );
    assert_eq!(
        read_bytes(text.as_bytes(), &opts()).unwrap()[0].op,
        Op::Read
    );

    let none = TraceOptions {
        reorder_window: 0,
        ..opts()
    };
    let text = csv(&[(5, "W", 0, 4096), (5, "W", 0, 4096), (4, "W", 0, 4096)]);
    let error = read_bytes(text.as_bytes(), &none).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("line 4: time steps back by 1.000 us"),
        "{error}"
    );
}

#[test]
fn bad_lines_stop_the_run_unless_allowed() {
    let text =
        "time_us,op,offset_bytes,size_bytes\n1,W,0,4096\n2,X,0,4096\n3,W,0,oops\n4,R,0,512\n";
    let message = read_bytes(text.as_bytes(), &opts())
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "(memory), line 3: op (column 2): found \"X\", expected R, W, T, F, or the letters of Linux block tracing, \
         such as WF, FW, WS, D; the line as read (csv): \"2,X,0,4096\"; to skip up to N such lines: \
         max_bad_lines = N (--max-bad-lines N)"
    );
    let one = TraceOptions {
        max_bad_lines: 1,
        ..opts()
    };
    let message = read_bytes(text.as_bytes(), &one).unwrap_err().to_string();
    assert!(
        message.contains("line 4: size_bytes (column 4): found \"oops\""),
        "{message}"
    );
    let two = TraceOptions {
        max_bad_lines: 2,
        ..opts()
    };
    assert_eq!(read_bytes(text.as_bytes(), &two).unwrap().len(), 2);
    let info = info("bad", text, &two);
    assert_eq!(info.bad_lines, 2);
    assert!(info.warnings[0].contains("2 unreadable lines") && info.warnings[0].contains("line 3"));
}

#[test]
fn a_trace_without_requests_is_an_error() {
    for text in [
        "",
        "\n",
        "time_us,op,offset_bytes,size_bytes\n",
        "# nothing\n",
    ] {
        let options = TraceOptions {
            format: Some(Format::Csv),
            ..opts()
        };
        let error = read_bytes(text.as_bytes(), &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Empty, "{text:?}: {error}");
    }
    let error = read_bytes(b"", &opts()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Empty);
    let zero = csv(&[(1, "W", 0, 0)]);
    let error = read_bytes(zero.as_bytes(), &opts()).unwrap_err();
    assert!(error.to_string().contains("1 of zero size"), "{error}");
    let queued = "8,0 1 1 0.5 4 Q W 16 + 8 [cp]\n";
    let error = read_bytes(queued.as_bytes(), &opts()).unwrap_err();
    assert!(error.to_string().contains("event = \"Q\""), "{error}");
}

#[test]
fn requests_of_zero_size_are_skipped_and_counted() {
    let text = csv(&[(1, "W", 0, 0), (2, "R", 0, 4096), (3, "F", 0, 0)]);
    let info = info("zero", &text, &opts());
    assert_eq!((info.requests, info.zero_size, info.flushes), (2, 1, 1));
    assert!(info.warnings.iter().any(|w| w.contains("zero size")));
}

const TWO_DISKS: &str = "\
128166372003000000,hm,0,Write,0,4096,1
128166372003000010,hm,1,Write,8192,4096,1
128166372003000020,hm,0,Read,2093056,4096,1
128166372003000030,hm,1,Read,0,4096,1
";

#[test]
fn several_volumes_are_laid_end_to_end() {
    let requests = read_bytes(TWO_DISKS.as_bytes(), &opts()).unwrap();
    let offsets: Vec<u64> = requests.iter().map(|r| r.offset).collect();
    // The requests to disk 0 end at byte 2 097 152, a whole number of MiB, so disk 1 begins there.
    assert_eq!(offsets, [0, 2_097_152 + 8192, 2_093_056, 2_097_152]);
    let info = info("volumes", TWO_DISKS, &opts());
    let names: Vec<(&str, u64, u64)> = info
        .volumes
        .iter()
        .map(|v| (v.name.as_str(), v.requests, v.start_bytes))
        .collect();
    assert_eq!(names, [("hm_0", 2, 0), ("hm_1", 2, 2_097_152)]);
}

#[test]
fn one_volume_can_be_chosen_or_all_overlaid() {
    let only = |name: &str| TraceOptions {
        volumes: Volumes::Only(name.into()),
        ..opts()
    };
    for name in ["hm_1", "hm,1"] {
        let requests = read_bytes(TWO_DISKS.as_bytes(), &only(name)).unwrap();
        assert_eq!(
            requests.iter().map(|r| r.offset).collect::<Vec<_>>(),
            [8192, 0]
        );
        assert_eq!(requests[0].arrival, Time::ZERO);
    }
    let error = read_bytes(TWO_DISKS.as_bytes(), &only("usr_0")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the volumes in it are: hm_0, hm_1"),
        "{error}"
    );
    let overlay = TraceOptions {
        volumes: Volumes::Overlay,
        ..opts()
    };
    let requests = read_bytes(TWO_DISKS.as_bytes(), &overlay).unwrap();
    assert_eq!(
        requests.iter().map(|r| r.offset).collect::<Vec<_>>(),
        [0, 8192, 2_093_056, 0]
    );
}

#[test]
fn a_limit_reads_the_start_of_the_file_only() {
    let text = csv(&[(1, "W", 0, 4096), (2, "R", 0, 4096), (3, "X", 0, 4096)]);
    let two = TraceOptions {
        limit: Some(2),
        ..opts()
    };
    assert_eq!(read_bytes(text.as_bytes(), &two).unwrap().len(), 2);
    let none = TraceOptions {
        limit: Some(0),
        ..opts()
    };
    assert_eq!(
        read_bytes(text.as_bytes(), &none).unwrap_err().kind(),
        ErrorKind::Option
    );
}

#[test]
fn units_can_be_overridden() {
    let text = "5000000000 0 16 8 1\n5000001000 0 16 8 1\n";
    let us = TraceOptions {
        time_unit: Some(TimeUnit::Microseconds),
        ..opts()
    };
    assert_eq!(
        read_bytes(text.as_bytes(), &us).unwrap()[1].arrival,
        Time::from_us(1000)
    );
    let sectors = TraceOptions {
        address_unit: Some("sectors".parse().unwrap()),
        ..opts()
    };
    let requests = read_bytes(csv(&[(1, "W", 16, 8)]).as_bytes(), &sectors).unwrap();
    assert_eq!((requests[0].offset, requests[0].bytes), (8192, 4096));
}

#[test]
fn doubtful_units_are_reported() {
    let odd: Vec<(u64, &str, u64, u64)> = (0..100).map(|i| (i, "W", i * 7 + 1, 3)).collect();
    let found = info("odd", &csv(&odd), &opts());
    assert!(
        found.warnings.iter().any(|w| w.contains("whole sectors")),
        "{:?}",
        found.warnings
    );
    // Microseconds for a while, then nanoseconds.
    let mut leap: Vec<(u64, &str, u64, u64)> =
        (100..400).map(|i| (i * 100_000, "W", 0, 4096)).collect();
    leap.push((40_000_000_000, "W", 0, 4096));
    let found = info("leap", &csv(&leap), &opts());
    assert!(
        found
            .warnings
            .iter()
            .any(|w| w.starts_with("line 302: time leaps")),
        "{:?}",
        found.warnings
    );
}

#[test]
fn spans_past_the_models_clock_are_refused() {
    let text = "1,W,0,4096\n99999999999999,R,0,4096\n";
    let error = read_bytes(text.as_bytes(), &opts()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(
        error.to_string().contains("line 2") && error.to_string().contains("time_unit"),
        "{error}"
    );
}

#[test]
fn broken_packing_is_named_with_its_place() {
    let text = csv(&(0..50_000)
        .map(|i| (i, "W", i * 4096, 4096))
        .collect::<Vec<_>>());
    let zst = zstd::encode_all(text.as_bytes(), 3).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, text.as_bytes()).unwrap();
    let gz = gz.finish().unwrap();
    for (name, packed) in [("zstd", &zst), ("gzip", &gz)] {
        for end in [packed.len() - 1, packed.len() / 2] {
            let error = read_bytes(&packed[..end], &opts()).unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::Truncated,
                "{name} cut at {end}: {error}"
            );
            assert!(
                error.to_string().contains(&format!("the {name} stream")),
                "{error}"
            );
            assert!(error.to_string().contains("near byte"), "{error}");
        }
    }
}

#[test]
fn a_file_of_no_known_format_is_refused_with_the_formats() {
    let cases: [(&[u8], &str); 6] = [
        (b"hello world\nthis is text\n", "no known trace format fits"),
        (
            b"\x00\x01\x02\x03binary rubbish \x00\x00\x00",
            "no known trace format fits",
        ),
        (b"\xfd7zXZ\x00rest", "packed with xz"),
        (b"BZh91AY&SY", "packed with bzip2"),
        (b"PK\x03\x04zip", "packed with zip"),
        (
            &{
                let mut tar = vec![b'a'; 512];
                tar[257..262].copy_from_slice(b"ustar");
                tar
            },
            "tar archive",
        ),
    ];
    for (bytes, part) in cases {
        let error = read_bytes(bytes, &opts()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownFormat, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let missing = trace_info(&PathBuf::from("no/such/file.csv"), &opts()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Io);
    assert!(
        missing
            .to_string()
            .starts_with("no/such/file.csv: cannot open"),
        "{missing}"
    );
    let directory = trace_info(&std::env::temp_dir(), &opts()).unwrap_err();
    assert!(
        directory.to_string().contains("is a directory"),
        "{directory}"
    );
}

#[test]
fn options_read_from_toml_and_refuse_unknown_keys() {
    let parsed: TraceOptions = toml::from_str(
        "format = \"mqsim\"\ntime_unit = \"us\"\nevent = \"Q\"\nvolumes = { only = \"hm_0\" }\nlimit = 5\n",
    )
    .unwrap();
    assert_eq!(parsed.format, Some(Format::Mqsim));
    assert_eq!(parsed.volumes, Volumes::Only("hm_0".into()));
    let overlay: TraceOptions = toml::from_str("volumes = \"overlay\"").unwrap();
    assert_eq!(overlay.volumes, Volumes::Overlay);
    assert!(toml::from_str::<TraceOptions>("formt = \"msr\"").is_err());
    assert!("msrr"
        .parse::<Format>()
        .unwrap_err()
        .to_string()
        .contains("one of: csv, binary, msr"));
}

#[test]
fn the_summary_counts_the_requests_of_the_trace() {
    let text = csv(&[
        (0, "W", 0, 8192),
        (100, "W", 8192, 4096),
        (200, "R", 1000, 512),
        (300, "T", 0, 1 << 20),
        (400, "F", 0, 0),
        (400, "WF", 4096, 4096),
    ]);
    let i = info("summary", &text, &opts());
    assert_eq!(
        (i.requests, i.reads.requests, i.writes.requests, i.flushes),
        (6, 1, 3, 1)
    );
    assert_eq!(
        (i.reads.bytes, i.writes.bytes, i.trims.bytes),
        (512, 16384, 1 << 20)
    );
    assert_eq!((i.fua_writes, i.footprint_pages), (1, 3));
    assert_eq!((i.address_min_bytes, i.address_max_bytes), (0, 1 << 20));
    assert_eq!(
        (i.size_p50_bytes, i.size_p90_bytes, i.size_max_bytes),
        (4096, 8192, 8192)
    );
    assert_eq!(i.size_top[0], (4096, 2));
    assert_eq!(
        (i.writes.sequential, i.write_ratio, i.aligned_4k_share),
        (1, 0.75, 0.75)
    );
    assert_eq!(
        (i.sequential_share, i.span_s, i.gap_mean_us),
        (0.25, 400e-6, 80.0)
    );
    let text = i.to_string();
    for part in [
        "6: 1 reads, 3 writes, 1 trims, 1 flushes",
        "12.0 KiB (3 pages of 4 KiB)",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let json = serde_json::to_value(&i).unwrap();
    assert_eq!(json["writes"]["requests"], 3);
}

#[test]
fn compact_drops_untouched_addresses_and_keeps_the_order() {
    const MIB: u64 = 1 << 20;
    let text = csv(&[
        (0, "W", 900 * MIB + 4096, 4096),
        (1, "R", 10 * MIB, 2 * MIB),
        (2, "T", 100 * MIB, MIB),
        (3, "T", 0, 1 << 61),
        (4, "W", 901 * MIB - 512, 1024),
        (5, "F", 0, 0),
    ]);
    let compact = TraceOptions {
        addresses: Addresses::Compact,
        ..opts()
    };
    let requests = read_bytes(text.as_bytes(), &compact).unwrap();
    let places: Vec<(u64, u64)> = requests.iter().map(|r| (r.offset, r.bytes)).collect();
    assert_eq!(
        places,
        [
            (2 * MIB + 4096, 4096),
            (0, 2 * MIB),
            (0, 4 * MIB),
            (3 * MIB - 512, 1024),
            (0, 0),
        ]
    );
    let info = info("compact", &text, &compact);
    assert_eq!(info.address_max_bytes, 4 * MIB);
    assert!(info.warnings[0].contains("1 trims"), "{:?}", info.warnings);
    // With compacted addresses, trims of addresses that are never accessed are dropped. The reader
    // must also end if a trace has only such trims.
    let trims = csv(&[(0, "T", 0, MIB), (1, "T", MIB, MIB)]);
    assert_eq!(read_bytes(trims.as_bytes(), &compact).unwrap(), []);
}

/// A sample has all requests of its pieces and none of other pieces, and a request that crosses an end is cut.
#[test]
fn sample_keeps_all_requests_of_some_pieces() {
    const PIECE: u64 = 128 << 10;
    const SAMPLE: u64 = 8;
    let sampled = TraceOptions {
        one_in: SAMPLE as u32,
        ..opts()
    };
    // Two requests for each piece, then a request for pieces 0 to 7, one for 64 pieces that no other request accesses,
    // and flushes.
    let pieces = 4000;
    let mut rows: Vec<_> = (0..2 * pieces)
        .map(|i| (i * 80, "W", i % pieces * PIECE + 4096, 4096))
        .collect();
    let end = rows.len() as u64 * 80;
    rows.push((end, "R", 0, 8 * PIECE));
    rows.push((end, "T", pieces * PIECE, 64 * PIECE));
    rows.push((end, "R", pieces * PIECE, 64 * PIECE));
    rows.extend((0..16).map(|i| (end + i, "F", 0, 0)));
    let requests = read_bytes(csv(&rows).as_bytes(), &sampled).unwrap();
    let of = |op: Op| requests.iter().filter(move |r| r.op == op);
    let kept = of(Op::Write).count() as u64 / 2;
    assert!(kept.abs_diff(pieces / SAMPLE) < 45, "{kept}");
    // Both passes access the same pieces, in order and without gaps.
    let places: Vec<u64> = of(Op::Write).map(|r| r.offset).collect();
    let expected = (0..kept).map(|piece| piece * PIECE + 4096);
    assert!(places.iter().copied().eq(expected.clone().chain(expected)));
    let long: u64 = of(Op::Read).next_back().unwrap().bytes / PIECE;
    assert!((3..16).contains(&long), "{long} of 64 pieces");
    assert_eq!(of(Op::Trim).next().unwrap().bytes, long * PIECE);
    let read: u64 = of(Op::Read).map(|r| r.bytes).sum::<u64>() - long * PIECE;
    let of_first = of(Op::Write).take_while(|r| r.arrival.0 < 8 * 80_000_000 / SAMPLE);
    assert_eq!(read, of_first.count() as u64 * PIECE);
    assert_eq!(of(Op::Flush).count(), 2);
    let last = requests.last().unwrap().arrival.0;
    assert!(
        last.abs_diff((end + 15) * 1_000_000 / SAMPLE) < 10_000_000,
        "{last}"
    );
    let text = info("sample", &csv(&rows), &sampled).warnings.join("");
    assert!(text.contains("1/8 of the addresses"), "{text}");
    let none = TraceOptions {
        one_in: 0,
        ..opts()
    };
    assert!(read_bytes(csv(&rows).as_bytes(), &none).is_err());
}
