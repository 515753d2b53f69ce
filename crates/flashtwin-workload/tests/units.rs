//! Units of times and addresses that a trace does not state: the tests check which unit is chosen, and whether it is
//! reported as doubtful or rejected.

use flashtwin_workload::{
    read_bytes, trace_info, AddressUnit, ErrorKind, Format, TimeUnit, TraceInfo, TraceOptions,
};

/// Returns lines of the form `time device address size flag`. `gap` is the mean time between two requests, in the unit
/// of the time column.
fn five_columns(gap: f64, decimals: usize, address: u64, size: u64) -> String {
    let mut time = 0.0;
    (0..500u64)
        .map(|i| {
            // Gaps vary, so that times are not all multiples of a larger unit.
            time += gap * (0.5 + (i * 37 % 101) as f64 / 100.0);
            let place = (i * 7919 % 1000) * address;
            format!("{time:.decimals$} 0 {place} {size} {}\n", i % 2)
        })
        .collect()
}

fn info(name: &str, text: &str, opts: &TraceOptions) -> TraceInfo {
    let name = format!("flashtwin_units_{}_{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).unwrap();
    let info = trace_info(&path, opts);
    std::fs::remove_file(&path).unwrap();
    info.unwrap()
}

fn doubts(info: &TraceInfo) -> String {
    info.warnings.join("; ")
}

#[test]
fn byte_addresses_in_columns_of_sectors_are_read_as_bytes() {
    // Requests of 64 KiB in a range of 7 GiB. Offsets and sizes are given in bytes.
    let text = five_columns(5.0, 3, 15 << 19, 65536);
    let guessed = info("bytes", &text, &TraceOptions::default());
    assert_eq!(guessed.size_max_bytes, 65536, "{}", guessed.description);
    assert!(guessed.description.contains("addresses in bytes"));
    assert!(
        doubts(&guessed).contains("--address-unit"),
        "{}",
        doubts(&guessed)
    );
    // A unit given in the options is kept.
    let sectors = TraceOptions {
        address_unit: Some(AddressUnit::SECTORS),
        ..TraceOptions::default()
    };
    let given = info("sectors", &text, &sectors);
    assert_eq!(given.size_max_bytes, 65536 * 512);
    assert_eq!(doubts(&given), "");
    // A format that is given by name keeps its unit of addresses, but the doubt is reported.
    let named = TraceOptions {
        format: Some(Format::Disksim),
        ..TraceOptions::default()
    };
    let named = info("named", &text, &named);
    assert_eq!(named.size_max_bytes, 65536 * 512);
    assert!(
        doubts(&named).contains("--address-unit"),
        "{}",
        doubts(&named)
    );
    // If these addresses were sectors, they would exceed any drive. They are therefore read as bytes, whatever the
    // sizes.
    let text = five_columns(5.0, 3, 1 << 40, 4000);
    let far = info("far", &text, &TraceOptions::default());
    assert_eq!(far.size_max_bytes, 4000);
    // Plausible sectors cause no remark.
    let text = five_columns(5.0, 3, 24, 8);
    let usual = info("usual", &text, &TraceOptions::default());
    assert_eq!(
        (usual.size_max_bytes, doubts(&usual)),
        (4096, String::new())
    );
}

#[test]
fn time_units_of_five_columns_are_judged_by_the_rate() {
    for (name, gap, decimals, unit, doubtful) in [
        // 200 requests a second, in each unit.
        ("ns", 5_000_013.0, 0, "ns", true),
        ("us", 5e3, 0, "us", true),
        ("ms", 5.0, 0, "ms", true),
        ("dec_ms", 5.0, 3, "ms", false),
        ("dec_s", 0.005, 6, "s", true),
        ("dec_us", 50_000.0, 3, "us", true),
        // Nine decimals: seconds, however rare.
        ("dec_s_nine", 0.020_000_013, 9, "s", true),
        ("dec_s_nine_slow", 0.500_000_013, 9, "s", true),
        ("dec_s_nine_rare", 20.000_000_013, 9, "s", true),
        // Milliseconds that a program computed.
        ("dec_ms_noise", 5.000_000_000_123_4, 13, "ms", false),
        // If the times were seconds, the rate would be 50 requests per second; in milliseconds, it is 50 000 per
        // second.
        ("dec_ms_or_s", 0.02, 6, "ms", true),
        // In microseconds, the rate is 2000 requests per second; in nanoseconds, it would be 2 million per second.
        ("us_fast", 500.0, 0, "us", true),
        // If the times were microseconds, requests would be extremely rare. Only nanoseconds are plausible.
        ("ns_rare", 5e8, 0, "ns", false),
    ] {
        let found = info(
            name,
            &five_columns(gap, decimals, 24, 8),
            &TraceOptions::default(),
        );
        let wanted = format!("time in {unit},");
        assert!(
            found.description.contains(&wanted),
            "{name}: {}",
            found.description
        );
        let doubted = doubts(&found).contains("--time-unit");
        assert_eq!(doubted, doubtful, "{name}: {}", doubts(&found));
    }
}

#[test]
fn fio_logs_of_version_3_may_be_in_nanoseconds() {
    let text = |gap: u64| {
        let lines = (0..5).map(|i| format!("{} /dev/a read {} 4096\n", i * gap, i * 4096));
        format!(
            "fio version 3 iolog\n0 /dev/a add\n10 /dev/a wait 5 0\n{}",
            lines.collect::<String>()
        )
    };
    let slow = info("fio_ns", &text(125_000_000), &TraceOptions::default());
    assert_eq!(slow.span_s, 0.5);
    assert!(doubts(&slow).contains("in ns the first 5 requests come at 8.000 requests/s, in us at"));
    let usual = info("fio_us", &text(125_000), &TraceOptions::default());
    assert_eq!((usual.span_s, doubts(&usual)), (0.5, String::new()));
    let named = TraceOptions {
        format: Some(Format::Fio),
        ..TraceOptions::default()
    };
    let named = info("fio_named", &text(125_000_000), &named);
    assert_eq!(named.span_s, 500.0);
    assert!(doubts(&named).contains("in us the first 5 requests come at 0.008 requests/s"));
}

#[test]
fn joined_traces_are_named_as_such() {
    let text: String = (0..60)
        .map(|i| format!("{} 0 {} 8 0\n", 700_000 + i * 1_000_100, i * 8))
        .collect();
    let joined = doubts(&info("joined", &text.repeat(2), &TraceOptions::default()));
    assert!(
        joined.contains("is at line 61") && joined.contains("joined"),
        "{joined}"
    );
    let late = text.replace("1700100 ", "500 ");
    let late = doubts(&info("late", &late, &TraceOptions::default()));
    assert!(
        late.contains("by 199.500 ns is at line 2") || late.contains("is at line 2"),
        "{late}"
    );
}

#[test]
fn mqsim_refuses_fractions_of_a_nanosecond() {
    let text = "0.5 0 16 8 0\n1.25 0 16 8 0\n";
    let mqsim = TraceOptions {
        format: Some(Format::Mqsim),
        ..TraceOptions::default()
    };
    let error = read_bytes(text.as_bytes(), &mqsim).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    let error = error.to_string();
    for part in [
        "line 1",
        "column 1",
        "\"0.5\"",
        "integer nanoseconds",
        "--time-unit",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let milliseconds = TraceOptions {
        time_unit: Some(TimeUnit::Milliseconds),
        ..mqsim
    };
    assert_eq!(read_bytes(text.as_bytes(), &milliseconds).unwrap().len(), 2);
}
