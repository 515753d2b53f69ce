//! Tables of text by named columns, and libCacheSim's binary traces.

use flashtwin::{Op, Request, Time};
use flashtwin_workload::{
    has_times, read_bytes, trace_info, AddressUnit, ErrorKind, TimeUnit, TraceInfo, TraceOptions,
};

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
        ..Request::default()
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
    // A table as pandas writes it, with an index column and floating-point numbers. Then the same
    // table with semicolons and with tabs, and a table with blanks.
    let floats = ",len,type,lba,note,ts\n0,4096.0,R,1.6e+01,,1e3\n1,512.0,W,1.0,,2500.0\n2,1.024e+03,T,0.0,,0.35E4\n";
    assert_eq!(read(floats, COLUMNS), expected);
    assert_eq!(read(&floats.replace(',', ";"), COLUMNS), expected);
    assert_eq!(read(&floats.replace(',', "\t"), COLUMNS), expected);
    let blanks = "ts  len type lba\r\n1000 4096 R 16\r\n2500 512 W 1\r\n3500 1024 T 0\r\n";
    assert_eq!(read(blanks, COLUMNS), expected);
    let counted = "time=6:us,offset=4:sectors,size=2,op=3";
    assert_eq!(read(text, counted), expected, "a header, columns by number");
    // A table without a header: columns are given by number, and the operation is a flag (1 for a
    // read).
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
        ("time=ts:us,size=len,op=type", "offset is needed"),
        ("time=ts:us,offset=lba,op=type", "size is missing"),
        ("time=ts:us,gap=ts:us,offset=lba", "time and gap are given"),
        ("time=ts:us,time=ts:us,offset=lba", "time is given twice"),
        (
            "time=ts:us,offset=lba,size=len,op=type:colour=1",
            "\"colour\" is no operation",
        ),
        (
            "time=ts:us,offset=lba,size=len,op=type:read=1||2",
            "an empty code",
        ),
        (
            "time=ts:us,offset=lba,size=len,op=type:read=1:write=1",
            "named twice",
        ),
        ("time=ts,offset=lba,size=len,op=type", "like time=ts:us"),
        (
            "time=ts:hours,offset=lba,size=len,op=type",
            "time unit \"hours\"",
        ),
        (
            "time=ts:us,offset=lba:chunks,size=len,op=type",
            "address unit \"chunks\"",
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

/// Runs `with` on a file that holds `bytes`.
fn with_file<T>(name: &str, bytes: &[u8], with: impl FnOnce(&std::path::Path) -> T) -> T {
    let name = format!("flashtwin_tables_{}_{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).unwrap();
    let result = with(&path);
    std::fs::remove_file(&path).unwrap();
    result
}

fn info(name: &str, bytes: &[u8], opts: &TraceOptions) -> TraceInfo {
    with_file(name, bytes, |path| trace_info(path, opts)).unwrap()
}

fn ops(text: &str, columns: &str) -> Vec<Op> {
    read(text, columns).iter().map(|r| r.op).collect()
}

#[test]
fn op_codes_are_texts_or_numbers_of_several_kinds() {
    use Op::{Flush, Read, Trim, Write};
    let scsi =
        "time,op,size,lbn\n500,2a,512,1\n501,28,4096,2\n501,8A,8192,3\n502,42,512,4\n503,99,0,5\n";
    for codes in [
        "write=2a|8a:trim=42:skip=99",
        "write=2a,8a:trim=42:skip=99",
        "read=28:write=2a|8a:trim=42:skip=0x63",
    ] {
        let columns = format!("time=time:ms,op=op:{codes},size=size,offset=lbn:sectors");
        assert_eq!(ops(scsi, &columns), [Write, Read, Write, Trim], "{codes}");
    }
    // fio's log of latencies numbers the operations 0, 1 and 2, and has blanks around its fields.
    let fio = "1, 84210, 0, 4096, 8192\n3, 91000, 1, 4096, 16384\n4, 20000, 2, 65536, 0\n";
    let columns = "time=1:ms,offset=5,size=4,op=3:read=0:write=1:trim=2";
    assert_eq!(ops(fio, columns), [Read, Write, Trim]);
    // Codes are compared without regard to upper and lower case, unless two codes differ only in
    // their case.
    let case = "0.1,W,1,8\n0.2,R,2,1\n0.3,w,3,8\n";
    let columns = "time=1:s,offset=3:sectors,size=4:sectors,op=2";
    assert_eq!(
        ops(case, &format!("{columns}:read=r")),
        [Write, Read, Write]
    );
    assert_eq!(
        ops(case, &format!("{columns}:read=R|W:write=w")),
        [Read, Read, Write]
    );
    // The words for operations keep their meaning if the options define only other codes.
    assert_eq!(
        ops(case, &format!("{columns}:flush=r")),
        [Write, Flush, Write]
    );
}

#[test]
fn op_codes_that_are_absent_or_not_named_cause_a_warning() {
    let text = "1,a,0,1\n2,b,0,1\n3,c,0,1\n4,c,0,1\n";
    let warnings = |name: &str, codes: &str| {
        let columns = format!("time=1:ms,offset=3:sectors,size=4:sectors,op=2:{codes}");
        info(name, text.as_bytes(), &named(&columns))
            .warnings
            .join("; ")
    };
    assert_eq!(warnings("all", "write=a:read=b|c"), "");
    assert_eq!(
        warnings("one", "write=a|b"),
        "",
        "one other code is the other kind"
    );
    let several = warnings("several", "write=a");
    assert!(
        several.contains("count as reads: \"b\" (1), \"c\" (2)"),
        "{several}"
    );
    let absent = warnings("absent", "write=a|b|x");
    assert!(
        absent.contains("no request has the op code \"x\"") && absent.contains("\"c\" (2)"),
        "{absent}"
    );
}

#[test]
fn op_words_are_read_as_linux_and_drivers_write_them() {
    let row = |word: &str| {
        let text = format!("ts,lba,len,type\n0,0,512,R\n1,8,512,{word}\n");
        read(&text, COLUMNS)[1..]
            .iter()
            .map(|r| (r.op, r.fua))
            .collect::<Vec<_>>()
    };
    use Op::{Flush, Read, Trim, Write};
    for (word, expected) in [
        ("RA", vec![(Read, false)]),
        ("RSM", vec![(Read, false)]),
        ("ws", vec![(Write, false)]),
        ("WFS", vec![(Write, true)]),
        ("FWFSM", vec![(Flush, false), (Write, true)]),
        ("DE", vec![(Trim, false)]),
        ("FF", vec![(Flush, false)]),
        ("RD_IN", vec![(Read, false)]),
        ("WR", vec![(Write, false)]),
        ("Read(10)", vec![(Read, false)]),
        ("WRITE_16", vec![(Write, false)]),
        ("N", vec![]),
    ] {
        assert_eq!(row(word), expected, "{word}");
    }
    for word in ["X", "reader", "WX", "E", "A"] {
        let text = format!("ts,lba,len,type\n0,0,512,{word}\n");
        assert!(error(&text, COLUMNS).contains("(column 4)"), "{word}");
    }
    let own = b"time_us,op,offset_bytes,size_bytes\n0,RA,0,512\n1,FWFS,0,512\n2,N,0,0\n";
    let own = read_bytes(own, &TraceOptions::default()).unwrap();
    let own: Vec<_> = own.iter().map(|r| (r.op, r.fua)).collect();
    assert_eq!(own, [(Read, false), (Flush, false), (Write, true)]);
}

#[test]
fn addresses_have_any_unit_and_may_be_hexadecimal() {
    let place = |text: &str, columns: &str| {
        let r = read(text, columns)[0];
        (r.offset, r.bytes)
    };
    assert_eq!(
        place("0,3,2,R\n", "time=1:us,offset=2:4096,size=3:pages,op=4"),
        (12288, 8192)
    );
    assert_eq!(
        place("0,3,2,R\n", "time=1:us,offset=2:520,size=3:1,op=4"),
        (1560, 2)
    );
    assert_eq!(
        place("0,0x1F,0x200,R\n", "time=1:us,offset=2:sectors,size=3,op=4"),
        (15872, 512)
    );
    assert_eq!(
        place(
            "ff,1f,2,R\n",
            "time=1:us:hex,offset=2:hex:sectors,size=3:pages,op=4"
        ),
        (15872, 8192)
    );
    assert_eq!(
        place("0,10,2,R\n", "time=1:us,offset=2:hex,size=3:pages,op=4"),
        (16, 8192)
    );
    let bad = error("0,1f,2,R\n", "time=1:us,offset=2,size=3,op=4");
    assert!(bad.contains("found \"1f\""), "{bad}");
    // Options are for columns without a unit.
    let opts = |columns: &str| TraceOptions {
        address_unit: AddressUnit::of_bytes(8192),
        time_unit: Some(TimeUnit::Milliseconds),
        ..named(columns)
    };
    let read = |columns: &str| read_bytes(b"0,1,2,R\n5,1,2,R\n", &opts(columns));
    let both = read("time=1,offset=2,size=3:sectors,op=4").unwrap();
    assert_eq!((both[1].offset, both[1].bytes), (8192, 1024));
    assert_eq!(both[1].arrival, Time::from_us(5000));
    for (columns, part) in [
        (
            "time=1:us,offset=2,size=3,op=4",
            "time_unit (--time-unit) is ms",
        ),
        (
            "time=1:datetime,offset=2,size=3,op=4",
            "time_unit (--time-unit) is ms",
        ),
        ("offset=2,size=3,op=4", "no time column"),
        (
            "time=1,offset=2:pages,size=3:pages,op=4",
            "(--address-unit) is units of 8192 bytes",
        ),
    ] {
        let error = read(columns).unwrap_err().to_string();
        assert!(error.contains(part), "{columns}: {error}");
    }
    for unit in ["0", "1073741825", "-1", "4 k"] {
        assert!(unit.parse::<AddressUnit>().is_err(), "{unit}");
    }
}

#[test]
fn times_are_dates_or_gaps() {
    let arrivals = |text: &str, columns: &str| -> Vec<u64> {
        read(text, columns)
            .iter()
            .map(|r| r.arrival.0 / 1_000_000)
            .collect()
    };
    let columns = "time=1:datetime,offset=3:pages,op=2";
    let dates =
        "2024-05-31 23:59:59.5,R,7\n\"2024-06-01T00:00:00Z\",R,7\n2024-06-01T02:00:01+02:00,R,7\n";
    assert_eq!(arrivals(dates, columns), [0, 500_000, 1_500_000]);
    // The date and the time of day are two words in a row, but only one column in the header.
    let words = "when op lba\n2024-05-31 23:59:59.5 R 7\n2024-06-01 00:00:00 R 8\n";
    assert_eq!(
        arrivals(words, "time=when:datetime,offset=lba:pages,op=op"),
        [0, 500_000]
    );
    let two = "day,when,op,lba\n2024-05-31,23:59:59.5,R,7\n2024-06-01,00:00:00,R,8\n";
    assert_eq!(
        arrivals(two, "time=day:datetime,offset=lba:pages,op=op"),
        [0, 500_000]
    );
    let gaps = "gap,op,lba\n5,R,7\n1.5,R,8\n0,R,9\n";
    assert_eq!(
        arrivals(gaps, "gap=gap:ms,offset=lba:pages,op=op"),
        [0, 1500, 1500]
    );
    let wrong = error("when,op,lba\n31.05.2024 10:00:00,R,7\n", columns);
    assert!(wrong.contains("such as 2024-05-31 13:05:00.25"), "{wrong}");
    let plain = error("ts,lba,len,type\n2024-05-31 10:00:00,0,1,R\n", COLUMNS);
    assert!(plain.contains("time=COLUMN:datetime"), "{plain}");
}

#[test]
fn headers_are_found_behind_titles_and_comments() {
    let hash =
        "#SEQ.I,ELAPSED_USECS.D,CMD.S,LBA.I,NBLKS.I\n1,0.5,RD_IN,2048,8\n2,120.25,WR_IN,4096,16\n";
    let columns = "time=ELAPSED_USECS.D:us,offset=LBA.I:sectors,size=NBLKS.I:sectors,op=CMD.S";
    assert_eq!(ops(hash, columns), [Op::Read, Op::Write]);
    let wrong = error(hash, "time=ELAPSED_USECS:us,offset=LBA.I:sectors");
    assert!(
        wrong.contains("no column \"ELAPSED_USECS\"; the header is \"SEQ.I,ELAPSED_USECS.D,"),
        "{wrong}"
    );
    let none = error(hash, "time=when:us,offset=1:sectors");
    assert!(none.contains("the first line is \"1,0.5,RD_IN"), "{none}");
    let snoop = "Tracing block device I/O, end with Ctrl-C.\n\nTIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n\
                 0.0 jbd2/vda1-8 422 vda W 16 4096 0.55\n\
                 0.0025 IO Thread #3 1201 vda W 2048 16384 1.02\n\
                 0.004 fsyncer 913 vda F 18446744073709551615 0 0.40\n";
    let columns = "time=TIME(s):s,offset=SECTOR:sectors,size=BYTES,op=T,volume=DISK";
    let read_snoop = read(snoop, columns);
    let expected = [
        request(Time::ZERO, Op::Write, 8192, 4096),
        request(Time::from_us(2500), Op::Write, 1 << 20, 16384),
        request(Time::from_us(4000), Op::Flush, 0, 0),
    ];
    assert_eq!(read_snoop, expected);
    let counted = "time=1:s,offset=6:sectors,size=7,op=5";
    assert_eq!(read(snoop, counted), expected, "columns by number");
    // The text with a blank can be in either of two columns, so that line 3 is ambiguous.
    let twice = "ts a op b lba\n0 x R y 5\n1 x R R 6 5\n";
    let ambiguous = error(twice, "time=ts:us,op=op,offset=lba:pages");
    assert!(
        ambiguous.contains("line 3") && ambiguous.contains("one possible place"),
        "{ambiguous}"
    );
}

#[test]
fn keys_alone_are_a_trace_without_times() {
    let opts = named("offset=1:pages");
    let found = info("keys", b"7\n3\n7\n", &opts);
    assert_eq!(
        (found.reads.requests, found.footprint_pages, found.span_s),
        (3, 2, 0.0)
    );
    for part in ["no arrival times", "4096 bytes each", "all are reads"] {
        assert!(found.description.contains(part), "{}", found.description);
    }
    let arc = read("100 8 0 0\n200 1 0 1\n", "offset=1:pages,size=2:pages");
    assert_eq!((arc[0].offset, arc[0].bytes), (409_600, 32768));
    let unknown = read_bytes(b"7\n3\n", &TraceOptions::default()).unwrap_err();
    assert!(
        unknown.to_string().contains("--columns offset=1:pages"),
        "{unknown}"
    );
}

#[test]
fn traces_without_times_are_recognised() {
    let timed = |bytes: &[u8], opts: &TraceOptions| {
        with_file(&format!("timed_{}", bytes.len()), bytes, |path| {
            has_times(path, opts)
        })
        .unwrap()
    };
    let usual = TraceOptions::default();
    let mut same: String = (0..9000)
        .map(|i| format!("0,R,{},512\n", i * 512))
        .collect();
    assert!(!timed(same.as_bytes(), &usual));
    same += "1,R,0,512\n";
    assert!(timed(same.as_bytes(), &usual), "the last time differs");
    assert!(timed(b"7,R,0,512\n", &usual), "a single request");
    assert!(!timed(b"7\n8\n", &named("offset=1:pages")));
    assert!(timed(b"5,R,0,512\n4,R,0,512\n", &usual), "a step back");
    let fio = "fio version 2 iolog\n/a add\n/a read 0 512\n/a read 512 512\n";
    assert!(!timed(fio.as_bytes(), &usual));
    assert!(timed(
        fio.replace("/a read 512", "/a wait 9 0\n/a read 512")
            .as_bytes(),
        &usual
    ));
}

#[test]
fn utf16_is_read_like_utf8() {
    let text = "ts,lba,len,type\r\n0,16,4096,R\r\n5,0,512,W\r\n";
    for big in [false, true] {
        let mut bytes = if big {
            vec![0xfe, 0xff]
        } else {
            vec![0xff, 0xfe]
        };
        bytes.extend(text.encode_utf16().flat_map(|c| {
            if big {
                c.to_be_bytes()
            } else {
                c.to_le_bytes()
            }
        }));
        assert_eq!(
            read_bytes(&bytes, &named(COLUMNS)).unwrap(),
            read(text, COLUMNS)
        );
        let packed = zstd::encode_all(&bytes[..], 1).unwrap();
        assert_eq!(
            read_bytes(&packed, &named(COLUMNS)).unwrap(),
            read(text, COLUMNS)
        );
    }
    let found = info(
        "utf16",
        b"\xff\xfe1\0,\0R\0,\x000\0,\x008\0\n\0",
        &TraceOptions::default(),
    );
    assert!(
        found.description.contains("UTF-16"),
        "{}",
        found.description
    );
}

#[test]
fn request_logs_are_traces_and_parquet_needs_a_reader() {
    let log = "\"request\",\"op\",\"status\",\"offset_bytes\",\"size_bytes\",\"arrival_ps\"\n\
               0,\"write\",\"ok\",4096,8192,7\n1,\"flush\",\"ok\",0,0,9\n";
    let expected = [
        request(Time::ZERO, Op::Write, 4096, 8192),
        request(Time(2), Op::Flush, 0, 0),
    ];
    assert_eq!(
        read_bytes(log.as_bytes(), &TraceOptions::default()).unwrap(),
        expected
    );
    let parquet = read_bytes(b"PAR1\0\0\0\0", &TraceOptions::default()).unwrap_err();
    assert!(parquet.to_string().contains("Parquet"), "{parquet}");
    let file = with_file("parquet", b"PAR1\0\0\0\0", |path| {
        trace_info(path, &TraceOptions::default())
    });
    assert!(file.unwrap_err().to_string().contains("Python package"));
}

#[test]
fn object_numbers_are_not_sectors() {
    // If these object numbers were sectors, every object would overlap the next one.
    let small: Vec<_> = (0..20)
        .map(|i| (i, u64::from(i * 7 % 10), 6000, -1))
        .collect();
    let found = info("objects", &oracle(&small), &TraceOptions::default());
    assert!(
        found.description.contains("in units of 8192 bytes"),
        "{}",
        found.description
    );
    assert!(found.warnings.join("; ").contains("--address-unit sectors"));
    assert_eq!(found.address_max_bytes, 9 * 8192 + 6000);
    // If these object numbers were sectors, the objects would be far apart, but most would not
    // begin at the start of a page.
    let spread: Vec<_> = (0..200)
        .map(|i| (i, u64::from(i) * 1001, 4096, -1))
        .collect();
    let found = info("spread", &oracle(&spread), &TraceOptions::default());
    assert!(
        found.description.contains("in pages"),
        "{}",
        found.description
    );
    // Pages of a device.
    let pages: Vec<_> = (0..200)
        .map(|i| (i, u64::from(i) * 1000, 4096, -1))
        .collect();
    let found = info("device", &oracle(&pages), &TraceOptions::default());
    assert!(
        found.description.contains("in sectors"),
        "{}",
        found.description
    );
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
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
        address_unit: Some(AddressUnit::BYTES),
        ..opts
    };
    assert_eq!(read_bytes(&whole, &bytes).unwrap()[3].offset, 2048);
}

/// Creates an lcs trace (of libCacheSim) with a header of the given size and the given version.
/// Each row has an operation.
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
    // The trace has two volumes, so the reader reads it twice.
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
