//! Tests of units, of the exactness of numbers, of defaults and derived quantities, and of texts that are not device
//! files.

use super::{small_with, SMALL};
use crate::component::Pages;
use crate::spec::convert::parse_size;
use crate::spec::{EvictMode, Nand, Partial, PlaneMapping};
use crate::{DeviceSpec, Time};

fn parse(text: &str) -> DeviceSpec {
    DeviceSpec::parse(text, "t.toml").unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_reference_as_shipped_exports_what_it_exports_there() {
    let spec = parse(
        r#"
        name = "shipped"
        geometry = { chips = 8, planes_per_chip = 8, blocks_per_plane = 2048, pages_per_block = 64, page_bytes = 4096, spare_bytes_per_sector = 16, reserve_percent = 15 }
        timing = { read_us = 25, program_us = 200, erase_us = 1.5e3, transfer_ns_per_byte = 25 }
        link.bus_ns_per_sector = 238.4
        nand = { backend = "msr", copy_back = true }
        gc.low_percent = 5
        "#,
    );
    assert_eq!(spec.usable_blocks_per_plane(), 1741);
    assert_eq!(spec.data_pages_per_block(), 63);
    assert_eq!(spec.pages_per_chip_exported(), 877_464);
    assert_eq!(spec.exported_pages(), 7_019_712);
    assert_eq!(spec.exported_bytes(), 7_019_712 * 4096);
    assert_eq!(spec.physical_pages(), 8 * 8 * 2048 * 64);
    assert_eq!(spec.raw_bytes(), 32 << 30);
    assert_eq!(spec.sectors_per_page(), 8);
    assert_eq!(
        (spec.low_blocks_plane(), spec.low_blocks_chip()),
        (102, 819)
    );
    assert_eq!(spec.page_transfer(), Time(105_600_000));
    assert_eq!(spec.summary_transfer(), Time(13_200_000));
    assert_eq!(spec.link.bus_per_sector, Time(238_400));
    assert_eq!(spec.timing.erase, Time::from_us(1500));
}

#[test]
fn missing_keys_take_the_default_of_the_table() {
    let spec = parse(SMALL);
    let Nand::Msr(msr) = &spec.nand else {
        panic!("backend = msr")
    };
    assert_eq!(
        (msr.parallel_units, msr.plane_mapping),
        (1, PlaneMapping::Striped)
    );
    assert_eq!((spec.geometry.channels, spec.ftl.summary_page), (2, true));
    assert_eq!(spec.wear.erase_limit, None);
    let buffer = spec.buffer.expect("the file has a buffer");
    assert_eq!((buffer.capacity_pages, buffer.policy.base), (8, "lru"));
    assert_eq!(
        (buffer.evict, buffer.partial),
        (EvictMode::Blocking, Partial::Round)
    );
    let bare = parse(&small_with("[buffer]\ncapacity = \"32 KiB\"\n", ""));
    assert_eq!(bare.buffer, None);
}

#[test]
fn sizes_take_bytes_and_binary_and_decimal_units() {
    for (text, bytes) in [
        ("0", Some(0)),
        ("512", Some(512)),
        ("512 B", Some(512)),
        ("4KiB", Some(4096)),
        (" 32 MiB ", Some(32 << 20)),
        ("1GB", Some(1_000_000_000)),
        ("1 GiB", Some(1 << 30)),
        ("2 TB", Some(2_000_000_000_000)),
        ("", None),
        ("MiB", None),
        ("-1 MiB", None),
        ("1.5 MiB", None),
        ("32M", None),
        ("99999999999999999999", None),
        ("99999999999 TiB", None),
    ] {
        assert_eq!(parse_size(text), bytes, "{text:?}");
    }
}

#[test]
fn a_window_is_pages_or_a_share() {
    let window = |value: &str| {
        let policy = format!("capacity = \"400 KiB\"\npolicy = \"gcar-cflru\"\n{value}");
        parse(&small_with("capacity = \"32 KiB\"", &policy))
            .buffer
            .unwrap()
            .policy
            .settings
            .get::<Pages>("window")
            .0
    };
    assert_eq!(window(""), 25);
    assert_eq!(window("window = 29"), 29);
    assert_eq!(window("window = 0.29"), 29);
    assert_eq!(window("window = 1"), 1);
    assert_eq!(window("window = 1.0"), 100);
    assert_eq!(window("window = 0.001"), 1);
    assert_eq!(window("window = 0"), 0);
    assert_eq!(window("window = 0.0"), 0);
}

/// A fixed sequence of 64-bit numbers (xorshift64*).
struct Stream(u64);

impl Stream {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

#[test]
fn no_text_makes_it_panic() {
    const PIECES: &[&str] = &[
        "[",
        "]",
        "[[buffer]]",
        "=",
        ".",
        "\"",
        "\n",
        "{",
        "}",
        "-1",
        "0",
        "1e308",
        "nan",
        "inf",
        "9223372036854775807",
        "4294967295",
        "1979-05-27",
        "\u{fe0f}",
        "\0",
        "''",
        "none",
        "2",
    ];
    let mut stream = Stream(0x9e37_79b9_7f4a_7c15);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..40_000 {
        let names: Vec<&str> = crate::spec::builtin_names().collect();
        let base = match round % 4 {
            0 => crate::spec::builtin(names[stream.below(names.len())]).unwrap(),
            _ => SMALL,
        };
        let mut bytes = base.as_bytes().to_vec();
        for _ in 0..=stream.below(3) {
            let at = stream.below(bytes.len());
            let end = (at + stream.below(8)).min(bytes.len());
            match stream.below(4) {
                0 => bytes[at] = stream.below(256) as u8,
                1 => drop(bytes.drain(at..end)),
                2 => {
                    let piece = PIECES[stream.below(PIECES.len())];
                    drop(bytes.splice(at..end, piece.bytes()));
                }
                // Digits are replaced only by digits, so that the file stays plausible and reaches the later checks.
                _ => {
                    let digits: Vec<usize> = (0..bytes.len())
                        .filter(|&i| bytes[i].is_ascii_digit())
                        .collect();
                    if !digits.is_empty() {
                        bytes[digits[stream.below(digits.len())]] = b'0' + stream.below(10) as u8;
                    }
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        match DeviceSpec::parse(&String::from_utf8_lossy(&bytes), "mutant.toml") {
            Ok(spec) => {
                accepted += 1;
                let text = spec.to_toml();
                assert_eq!(
                    DeviceSpec::parse(&text, "again").as_ref(),
                    Ok(&spec),
                    "{text}"
                );
                assert!(spec.exported_pages() <= spec.physical_pages());
                assert!(spec.page_transfer() <= Time::from_s(1));
            }
            Err(e) => {
                refused += 1;
                assert!(!e.problems.is_empty() && e.to_string().contains("mutant.toml"));
            }
        }
    }
    assert!(
        accepted > 1000 && refused > 1000,
        "{accepted} accepted, {refused} refused"
    );
}
