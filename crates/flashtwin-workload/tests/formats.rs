//! A few requests in the notation of each format; the reader must return the same requests.

use flashtwin::{Op, Request, Time};
use flashtwin_workload::{
    open_trace, read_bytes, trace_info, BlkEvent, ErrorKind, Format, TraceOptions, Workload,
};
use std::path::PathBuf;

fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/traces")
        .join(name)
}

fn read_all(workload: &mut dyn Workload) -> Vec<Request> {
    let mut requests = Vec::new();
    while workload.next_batch(&mut requests).unwrap() > 0 {}
    requests
}

fn request(us: u64, op: Op, offset: u64, bytes: u64) -> Request {
    Request {
        arrival: Time::from_us(us),
        op,
        offset,
        bytes,
        fua: false,
        ..Request::default()
    }
}

/// Reads and writes that every format can express.
fn transfers() -> Vec<Request> {
    vec![
        request(0, Op::Write, 8192, 4096),
        request(1000, Op::Read, 0, 4096),
        request(2500, Op::Write, 1 << 20, 65536),
        request(2500, Op::Read, 8192, 512),
    ]
}

/// Returns requests that all formats can express. The arguments add trims, flushes and forced writes, which only some
/// formats can express.
fn with(trim: bool, flush: bool, last: Option<bool>) -> Vec<Request> {
    let mut list = transfers();
    if trim {
        list.push(request(4000, Op::Trim, 1 << 20, 65536));
    }
    if flush {
        list.push(request(5000, Op::Flush, 0, 0));
    }
    if let Some(fua) = last {
        list.push(Request {
            fua,
            ..request(6000, Op::Write, 12288, 4096)
        });
    }
    list
}

#[test]
fn every_sample_is_recognised_and_reads_the_same() {
    let cases = [
        ("flashtwin.csv", "csv", with(true, true, Some(true))),
        ("msr.csv", "msr", transfers()),
        ("spc.spc", "spc", transfers()),
        ("disksim.trace", "disksim", transfers()),
        ("mqsim.trace", "mqsim", transfers()),
        ("ssdsim.ascii", "mqsim", transfers()),
        ("systor.csv", "systor", transfers()),
        ("tencent.csv", "tencent", transfers()),
        ("alibaba.csv", "alibaba", transfers()),
        ("fiu.blkparse", "fiu", transfers()),
        ("fio_v2.log", "fio", with(true, true, Some(false))),
        ("fio_v3.log", "fio", with(true, true, Some(false))),
        ("blkparse.txt", "blkparse", with(true, true, Some(true))),
        ("blktrace.bin", "blktrace", with(true, true, Some(true))),
        ("vscsi_v1.bin", "vscsi", with(false, true, None)),
        ("vscsi_v2.bin", "vscsi", with(false, true, None)),
    ];
    for (name, format, expected) in cases {
        let mut workload = open_trace(&sample(name), &TraceOptions::default()).unwrap();
        let guessed = format!("{format} trace (guessed");
        assert!(
            workload.describe().contains(&guessed),
            "{name}: {}",
            workload.describe()
        );
        assert_eq!(read_all(&mut *workload), expected, "{name}");
        // If the format is given by name, the requests are the same.
        let opts = TraceOptions {
            format: Some(format.parse().unwrap()),
            ..TraceOptions::default()
        };
        let mut workload = open_trace(&sample(name), &opts).unwrap();
        assert_eq!(read_all(&mut *workload), expected, "{name} as {format}");
    }
}

#[test]
fn samples_read_the_same_packed() {
    let plain = std::fs::read(sample("msr.csv")).unwrap();
    let zst = zstd::encode_all(&plain[..], 3).unwrap();
    assert_eq!(
        read_bytes(&zst, &TraceOptions::default()).unwrap(),
        transfers()
    );
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, &plain).unwrap();
    let gz = gz.finish().unwrap();
    assert_eq!(
        read_bytes(&gz, &TraceOptions::default()).unwrap(),
        transfers()
    );
}

#[test]
fn blktrace_events_can_be_chosen() {
    let opts = TraceOptions {
        event: BlkEvent::Q,
        ..TraceOptions::default()
    };
    for name in ["blkparse.txt", "blktrace.bin"] {
        let requests = read_all(&mut *open_trace(&sample(name), &opts).unwrap());
        assert_eq!(requests.len(), 7, "{name}");
    }
}

#[test]
fn the_shipped_trace_reads() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../python/flashtwin/data/postgres_pgbench.csv.zst");
    let info = trace_info(&path, &TraceOptions::default()).unwrap();
    assert_eq!(info.requests, 320_986);
    assert_eq!(
        (info.reads.requests, info.writes.requests),
        (57_190, 206_666)
    );
    assert_eq!((info.trims.requests, info.flushes), (29, 57_101));
    assert!(info.warnings.is_empty(), "{:?}", info.warnings);
    assert!((40.0..41.0).contains(&info.span_s));
}

fn parse(format: Format, text: &str) -> Result<Vec<Request>, flashtwin_workload::WorkloadError> {
    read_bytes(
        text.as_bytes(),
        &TraceOptions {
            format: Some(format),
            ..TraceOptions::default()
        },
    )
}

/// One valid line of each text format.
const GOOD: &[(Format, &str)] = &[
    (Format::Csv, "5,W,8192,4096"),
    (Format::Msr, "128166372003061629,hm,0,Write,8192,4096,100"),
    (Format::Spc, "0,16,4096,w,0.5"),
    (Format::Disksim, "5.5 0 16 8 0"),
    (Format::Mqsim, "5 0 16 8 0"),
    (Format::Ssdsim, "5 0 16 8 0"),
    (Format::Systor, "1456.5,0.1,W,0,8192,4096"),
    (Format::Tencent, "1538,16,8,1,7"),
    (Format::Alibaba, "7,W,8192,4096,1577"),
    (Format::Fiu, "5 1 cp 16 8 W 6 0 aa"),
    (Format::Blkparse, "8,0 1 1 0.5 4 D W 16 + 8 [cp]"),
];

#[test]
fn line_ends_and_blank_lines_do_not_matter() {
    let expected = vec![request(0, Op::Write, 8192, 4096); 2];
    for (format, line) in GOOD {
        for text in [
            format!("{line}\n{line}\n"),
            format!("{line}\n{line}"),
            format!("{line}\r\n{line}\r\n"),
            format!("\n{line}\n\n# a comment\n{line}\n\n"),
            format!("{line} \n{line}\t\n"),
            format!("\u{feff}{line}\n{line}\n"),
        ] {
            assert_eq!(
                parse(*format, &text).unwrap(),
                expected,
                "{format}: {text:?}"
            );
        }
    }
}

#[test]
fn header_lines_are_passed_over() {
    let expected = vec![request(0, Op::Write, 8192, 4096)];
    let headers = [
        (Format::Csv, "time_us,op,offset_bytes,size_bytes"),
        (
            Format::Msr,
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
        ),
        (Format::Spc, "ASU,LBA,Size,Opcode,Timestamp"),
        (Format::Systor, "Timestamp,Response,IOType,LUN,Offset,Size"),
        (Format::Tencent, "Timestamp,Offset,Size,IOType,VolumeID"),
        (Format::Alibaba, "device_id,opcode,offset,length,timestamp"),
    ];
    for (format, header) in headers {
        let line = GOOD.iter().find(|(f, _)| *f == format).unwrap().1;
        for header in [header, &format!("\"{}\"", header.replace(',', "\",\""))] {
            assert_eq!(
                parse(format, &format!("{header}\n{line}\n")).unwrap(),
                expected,
                "{format}: {header}"
            );
        }
    }
    let foreign = parse(Format::Csv, "time,op,lba\n1,W,0,4096\n")
        .unwrap_err()
        .to_string();
    assert!(
        foreign.contains("time_us,op,offset_bytes,size_bytes"),
        "{foreign}"
    );
}

/// A value that is not valid in any column of any format causes an error that names the column and the line.
#[test]
fn a_damaged_column_is_named_with_its_line() {
    for (format, line) in GOOD {
        let separator = if line.contains(' ') { ' ' } else { ',' };
        let fields: Vec<&str> = line.split(separator).collect();
        // The column of response times in the format SYSTOR is not used, so any number is valid in it.
        let unused = |i: usize| *format == Format::Systor && i == 1;
        let numeric = |i: &usize| fields[*i].parse::<f64>().is_ok() && !unused(*i);
        for i in (0..fields.len()).filter(numeric) {
            for wrong in ["-1", "x", "99999999999999999999999", "1e3", "0x10"] {
                // DiskSim's flags are hexadecimal.
                let hexadecimal = *format == Format::Disksim && i == 4;
                if hexadecimal && (wrong == "1e3" || wrong == "0x10") {
                    continue;
                }
                let mut changed = fields.clone();
                changed[i] = wrong;
                let text = format!("{line}\n{}\n", changed.join(&separator.to_string()));
                let Err(error) = parse(*format, &text) else {
                    panic!("{format}, column {}: accepts {wrong:?}; a decoder checks all numbers, used or not", i + 1);
                };
                assert_eq!(
                    error.kind(),
                    ErrorKind::Malformed,
                    "{format} {i} {wrong}: {error}"
                );
                let message = error.to_string();
                for part in ["(memory), line 2: ", "expected", "--max-bad-lines"] {
                    assert!(message.contains(part), "{format} {i} {wrong}: {message}");
                }
            }
        }
        for cut in 1..fields.len() {
            let optional = *format == Format::Fiu && cut == 8;
            let unneeded = *format == Format::Blkparse && (cut == 7 || cut == 10);
            if optional || unneeded {
                continue;
            }
            let text = format!("{line}\n{}\n", fields[..cut].join(&separator.to_string()));
            let error = parse(*format, &text).unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::Malformed,
                "{format} cut to {cut}: {error}"
            );
        }
    }
}

#[test]
fn numbers_that_pass_the_address_space_are_refused() {
    let cases = [
        (Format::Csv, "5,W,9223372036854775808,4096"),
        (Format::Csv, "5,W,0,9223372036854775808"),
        (Format::Csv, "5,R,0,4294967297"),
        (Format::Mqsim, "5 0 18446744073709551615 8 0"),
        (Format::Disksim, "5.0 0 0 36028797018963968 1"),
        (Format::Fiu, "5 1 cp 18446744073709551615 8 W 6 0 aa"),
        (Format::Tencent, "1538,18446744073709551615,8,1,7"),
    ];
    for (format, line) in cases {
        let error = parse(format, line).unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Malformed,
            "{format} {line}: {error}"
        );
    }
    // A trim may be as large as the device, unlike a read or write.
    assert_eq!(
        parse(Format::Csv, "0,T,0,1099511627776").unwrap()[0].bytes,
        1 << 40
    );
}

#[test]
fn letters_of_block_tracing_are_understood() {
    let of = |letters: &str, rest: &str| {
        let text = format!("8,0 1 1 0.5 4 D {letters} {rest}[cp]\n8,0 1 2 0.5 4 D R 0 + 8 [cp]\n");
        let mut all = parse(Format::Blkparse, &text).unwrap();
        all.pop();
        all.iter()
            .map(|r| (r.op, r.bytes, r.fua))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("RA", "16 + 8 "), [(Op::Read, 4096, false)]);
    assert_eq!(of("WSM", "16 + 8 "), [(Op::Write, 4096, false)]);
    assert_eq!(of("WFS", "16 + 8 "), [(Op::Write, 4096, true)]);
    assert_eq!(
        of("FWS", "16 + 8 "),
        [(Op::Flush, 0, false), (Op::Write, 4096, false)]
    );
    assert_eq!(
        of("FWFSM", "16 + 8 "),
        [(Op::Flush, 0, false), (Op::Write, 4096, true)]
    );
    assert_eq!(of("FWS", ""), [(Op::Flush, 0, false)]);
    assert_eq!(of("FN", ""), [(Op::Flush, 0, false)]);
    assert_eq!(of("DS", "16 + 8 "), [(Op::Trim, 4096, false)]);
    assert_eq!(of("DE", "16 + 8 "), [(Op::Trim, 4096, false)]);
    assert_eq!(of("N", "36 (12 00 00) "), []);
    assert_eq!(of("R", "36 (12 00 00) "), []);
}

#[test]
fn disksim_flags_are_hexadecimal_and_bit_0_is_a_read() {
    let op = |flags: &str| parse(Format::Disksim, &format!("1.5 0 16 8 {flags}\n")).unwrap()[0].op;
    for flags in ["1", "3", "41", "b", "0x1f"] {
        assert_eq!(op(flags), Op::Read, "{flags}");
    }
    for flags in ["0", "2", "10", "a"] {
        assert_eq!(op(flags), Op::Write, "{flags}");
    }
}

/// R and other programs write quotes around all text, or only around the header.
#[test]
fn own_form_is_recognised_by_a_quoted_header() {
    let path = std::env::temp_dir().join(format!("flashtwin_quoted_{}", std::process::id()));
    let expected = vec![request(0, Op::Write, 8192, 4096)];
    for text in [
        "\"time_us\",\"op\",\"offset_bytes\",\"size_bytes\"\n0,W,8192,4096\n",
        "\"time_us\",\"op\",\"offset_bytes\",\"size_bytes\"\r\n0,\"W\",8192,4096\r\n",
        "\"time_us\",\"op\",\"offset_bytes\",\"size_bytes\",\"placement\"\n0,\"W\",8192,4096,\n",
    ] {
        std::fs::write(&path, text).unwrap();
        let mut workload = open_trace(&path, &TraceOptions::default()).unwrap();
        let (described, read) = (workload.describe(), read_all(&mut *workload));
        assert!(
            described.contains("csv trace (guessed: its header"),
            "{described}"
        );
        assert_eq!(read, expected, "{text}");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn names_may_hold_blanks_and_further_columns() {
    let fiu = parse(Format::Fiu, "5 1 my R 2 daemon 16 8 W 6 0 aa bb\n").unwrap();
    assert_eq!(fiu, [request(0, Op::Write, 8192, 4096)]);
    let spc = parse(Format::Spc, "0, 16 ,4096,W,0.5,more,columns\n").unwrap();
    assert_eq!(spc, [request(0, Op::Write, 8192, 4096)]);
}

#[test]
fn whole_times_of_five_columns_are_judged_by_the_rate() {
    let path = std::env::temp_dir().join(format!("flashtwin_guess_{}", std::process::id()));
    let guess = |text: &str| {
        std::fs::write(&path, text).unwrap();
        open_trace(&path, &TraceOptions::default())
            .unwrap()
            .describe()
    };
    assert!(guess("100000 0 16 8 1\n250000 0 16 8 0\n").contains("mqsim trace"));
    assert!(guess("0.1 0 16 8 1\n0.2 0 16 8 0\n").contains("disksim trace"));
    let close = guess("1 0 16 8 1\n5 0 16 8 0\n9 0 0 8 0\n");
    assert!(
        close.contains("time in ms") && close.contains("uncertain"),
        "{close}"
    );
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn broken_binary_records_are_placed() {
    for name in ["vscsi_v1.bin", "vscsi_v2.bin", "blktrace.bin"] {
        let whole = std::fs::read(sample(name)).unwrap();
        let error = read_bytes(&whole[..whole.len() - 3], &TraceOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Truncated, "{name}: {error}");
        assert!(error.to_string().contains("record"), "{error}");
    }
    let mut bytes = std::fs::read(sample("vscsi_v1.bin")).unwrap();
    bytes[4 * 32 + 15] = 9;
    let opts = TraceOptions {
        format: Some(Format::Vscsi),
        ..TraceOptions::default()
    };
    let error = read_bytes(&bytes, &opts).unwrap_err().to_string();
    assert!(error.contains("record 5 (byte 128)"), "{error}");
    let mut bytes = std::fs::read(sample("blktrace.bin")).unwrap();
    bytes[0] = 8;
    let error = read_bytes(&bytes, &TraceOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("layout 8, only 7 is read"), "{error}");
}
