//! Tables of text by named columns, and libCacheSim's binary traces.

use flashtwin::{Op, Request, Time};
use flashtwin_workload::{read_bytes, trace_info, AddressUnit, ErrorKind, TraceOptions};

fn read(text: &str, columns: &str) -> Vec<Request> {
    read_bytes(text.as_bytes(), &named(columns)).unwrap()
}

fn error(text: &str, columns: &str) -> String {
    read_bytes(text.as_bytes(), &named(columns))
        .unwrap_err()
        .to_string()
}

fn named(columns: &str) -> TraceOptions {
    TraceOptions {
        columns: Some(columns.to_string()),
        ..TraceOptions::default()
    }
}

fn request(arrival: Time, op: Op, offset: u64, bytes: u64) -> Request {
    Request {
        arrival,
        offset,
        bytes,
        op,
        fua: false,
    }
}

const COLUMNS: &str = "time=ts:us,offset=lba:sectors,size=len:bytes,op=type";

#[test]
fn columns_are_found_by_name_in_any_order_among_others() {
    let expected = [
        request(Time::ZERO, Op::Read, 8192, 4096),
        request(Time::from_us(1500), Op::Write, 512, 512),
        request(Time::from_us(2500), Op::Trim, 0, 1024),
    ];
    let text = "extra,len,type,lba,note,ts\nx,4096,Read,16,\"a, b\",1000\n,512,w,1,,2500\n,1024,DISCARD,0,,3500\n";
    assert_eq!(read(text, COLUMNS), expected);
    // As pandas writes floats, with an index column, semicolons, tabs and blanks.
    let floats = ",len,type,lba,note,ts\n0,4096.0,R,1.6e+01,,1e3\n1,512.0,W,1.0,,2500.0\n2,1.024e+03,T,0.0,,0.35E4\n";
    assert_eq!(read(floats, COLUMNS), expected);
    assert_eq!(read(&floats.replace(',', ";"), COLUMNS), expected);
    assert_eq!(read(&floats.replace(',', "\t"), COLUMNS), expected);
    let blanks = "ts  len type lba\r\n1000 4096 R 16\r\n2500 512 W 1\r\n3500 1024 T 0\r\n";
    assert_eq!(read(blanks, COLUMNS), expected);
    let counted = "time=6:us,offset=4:sectors,size=2,op=3";
    assert_eq!(read(text, counted), expected, "a header, columns by number");
    // By number, without a header, with a flag for the operation.
    let plain = "1.0,16,8,1\n2.5,1,1,0\n";
    let by_number = "time=1:ms,offset=2:sectors,size=3:sectors,op=4:read=1";
    assert_eq!(read(plain, by_number), expected[..2]);
    let float_flag = "1.0,16,8,1.0\n2.5,1,1,0.0\n";
    assert_eq!(read(float_flag, by_number), expected[..2]);
    let other_way = by_number.replace("read=1", "write=0");
    assert_eq!(read(plain, &other_way), expected[..2]);
}

#[test]
fn times_of_named_columns_are_exact() {
    let at =
        |ts: &str| read(&format!("ts,lba,len,type\n0,0,1,R\n{ts},0,1,R\n"), COLUMNS)[1].arrival;
    assert_eq!(at("1.5e-05"), Time(15));
    assert_eq!(at("0.123456789"), Time(123_456));
    assert_eq!(at("1e-300"), Time(0));
    assert_eq!(at("1234567.000001"), Time(1_234_567_000_001));
}

#[test]
fn volumes_are_read_from_a_column() {
    let text = "ts,lba,len,type,dev\n0,0,512,R,sda\n1,8,512,R,sdb\n2,0,512,R,sda\n";
    let columns = format!("{COLUMNS},volume=dev");
    let offsets: Vec<u64> = read(text, &columns).iter().map(|r| r.offset).collect();
    assert_eq!(offsets, [0, (1 << 20) + 4096, 0]);
}

#[test]
fn errors_of_named_columns_name_place_and_problem() {
    let header = "ts,lba,len,type\n";
    for (line, column, parts) in [
        ("x,0,512,R", 1, "found \"x\""),
        ("-1,0,512,R", 1, "non-negative"),
        ("0,1.5,512,R", 2, "whole number"),
        ("0,,512,R", 2, "found nothing"),
        ("0,nan,512,R", 2, "found \"nan\""),
        ("0,0,1e40,R", 3, "found \"1e40\""),
        ("0,0,512,1", 4, "op=COLUMN:read=1"),
        ("0,0,512", 4, "found nothing"),
    ] {
        let error = error(&format!("{header}{line}\n"), COLUMNS);
        assert!(
            error.contains("line 2: ") && error.contains(&format!("column {column})")),
            "{line}: {error}"
        );
        assert!(error.contains(parts), "{line}: {error}");
    }
    for (columns, part) in [
        (
            "time=when:us,offset=lba,size=len,op=type",
            "no column \"when\"",
        ),
        ("time=ts:us,offset=lba,size=len", "op are needed"),
        ("time=ts,offset=lba,size=len,op=type", "like time=ts:us"),
        (
            "time=ts:hours,offset=lba,size=len,op=type",
            "time unit \"hours\"",
        ),
        (
            "time=ts:us,offset=lba:pages,size=len,op=type",
            "address unit \"pages\"",
        ),
        ("time=ts:us,offset=lba,size=len,op=type:1", "op=flag:read=1"),
        ("time=ts:us,colour=lba", "known are time"),
        ("time", "no key=column"),
        ("time=0:us,offset=lba,size=len,op=type", "no column \"0\""),
    ] {
        let error = error(&format!("{header}0,0,512,R\n"), columns);
        assert!(error.contains(part), "{columns}: {error}");
    }
}

fn oracle(rows: &[(u32, u64, u32, i64)]) -> Vec<u8> {
    rows.iter()
        .flat_map(|&(time, object, size, next)| {
            let mut r = time.to_le_bytes().to_vec();
            r.extend(object.to_le_bytes());
            r.extend(size.to_le_bytes());
            r.extend(next.to_le_bytes());
            r
        })
        .collect()
}

const ROWS: [(u32, u64, u32, i64); 4] = [
    (100, 16, 4096, 2),
    (100, 0, 512, -1),
    (101, 16, 4096, -1),
    (103, 2048, 65536, -1),
];

#[test]
fn oracle_general_is_known_by_its_references() {
    let opts = TraceOptions::default();
    let requests = read_bytes(&oracle(&ROWS), &opts).unwrap();
    let second = Time(1_000_000_000_000);
    assert_eq!(
        requests,
        [
            request(Time::ZERO, Op::Read, 8192, 4096),
            request(Time::ZERO, Op::Read, 0, 512),
            request(second, Op::Read, 8192, 4096),
            request(Time(3 * second.0), Op::Read, 1 << 20, 65536),
        ]
    );
    let mut wrong = ROWS;
    wrong[0].3 = 1;
    wrong[1].3 = 3;
    assert_eq!(
        read_bytes(&oracle(&wrong), &opts).unwrap_err().kind(),
        ErrorKind::UnknownFormat
    );
    let whole = oracle(&ROWS);
    let cut = read_bytes(&whole[..whole.len() - 5], &opts).unwrap_err();
    assert_eq!(cut.kind(), ErrorKind::Truncated);
    assert!(cut.to_string().contains("record 4 (byte 72)"), "{cut}");
    let hashed = oracle(&[(0, u64::MAX - 1, 4096, -1)]);
    let error = read_bytes(&hashed, &opts).unwrap_err().to_string();
    assert!(
        error.contains("record 1 (byte 0)") && error.contains("hashed"),
        "{error}"
    );
    let bytes = TraceOptions {
        address_unit: Some(AddressUnit::Bytes),
        ..opts
    };
    assert_eq!(read_bytes(&whole, &bytes).unwrap()[3].offset, 2048);
}

/// An lcs trace of one header size and version; the rows have operations.
fn lcs(header: usize, version: u64, rows: &[(u32, u64, u32, u8)]) -> Vec<u8> {
    let mark = 0x1234_5678_9abc_def0_u64.to_le_bytes();
    let mut bytes = vec![0; header];
    bytes[..8].copy_from_slice(&mark);
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    bytes[header - 8..].copy_from_slice(&mark);
    for &(time, object, size, op) in rows {
        bytes.extend(time.to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        if version >= 3 {
            bytes.extend([0; 4]);
        }
        if version >= 2 {
            bytes.extend([op, 0, 0, 0]);
        }
        if version >= 3 {
            bytes.extend([0; 4]);
        }
        bytes.extend((-1i64).to_le_bytes());
        if version >= 4 {
            bytes.extend(vec![7; 4 << (version - 4)]);
        }
    }
    bytes
}

#[test]
fn lcs_is_read_in_all_versions() {
    let rows = [
        (5, 16, 4096, 12),
        (6, 8, 512, 13),
        (7, 24, 1024, 9),
        (7, 0, 512, 99),
    ];
    for header in [8192, 1024] {
        for version in 1..=8 {
            let bytes = lcs(header, version, &rows);
            let requests = read_bytes(&bytes, &TraceOptions::default()).unwrap();
            let ops: Vec<Op> = requests.iter().map(|r| r.op).collect();
            let places: Vec<(u64, u64)> = requests.iter().map(|r| (r.offset, r.bytes)).collect();
            if version == 1 {
                assert_eq!(ops, [Op::Read; 4], "no operations in version 1");
            } else {
                assert_eq!(ops, [Op::Read, Op::Write, Op::Trim], "version {version}");
            }
            assert_eq!(places[..3], [(8192, 4096), (4096, 512), (12288, 1024)]);
        }
    }
    for (bytes, part) in [
        (lcs(8192, 9, &rows), "lcs version 9"),
        (lcs(8192, 3, &rows)[..5000].to_vec(), "no whole lcs header"),
    ] {
        let error = read_bytes(&bytes, &TraceOptions::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_pipe_is_read_once_and_serves_every_pass() {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().unwrap();
    // Two volumes make the reader go through the trace twice.
    let feeder = std::thread::spawn(move || {
        for i in 0..20_000u64 {
            writeln!(writer, "{i}.5 {} {i} 8 1", i % 2).unwrap();
        }
    });
    let path = std::path::PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
    for _ in 0..2 {
        let info = trace_info(&path, &TraceOptions::default()).unwrap();
        assert_eq!((info.requests, info.volumes_total), (20_000, 2));
    }
    feeder.join().unwrap();
}
