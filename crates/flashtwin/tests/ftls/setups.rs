//! Valid setups, and the messages about invalid ones.

use flashtwin::ftl::chip::trace::trace_ftl;
use flashtwin::ftl::chip::{Layer, Setup, ENTRIES};

fn message(name: &str, blocks: u32, set: &[(&str, &str)]) -> String {
    let made = Setup::new(name, 64, blocks, 4).and_then(|mut setup| {
        setup.set_all(set)?;
        setup.check()
    });
    made.expect_err("this is wrong").to_string()
}

#[test]
fn messages_name_the_problem_and_valid_values() {
    for (name, blocks, set, parts) in [
        (
            "ftl9",
            32,
            &[][..],
            &["\"ftl9\"", "dftl, bast, fast, faster"][..],
        ),
        (
            "fast",
            17,
            &[],
            &["found 17", "needs 19", "16 for data", "fewer log blocks"],
        ),
        (
            "dftl",
            20,
            &[],
            &["found 20", "needs 21", "16 for data and 5"],
        ),
        ("faster", 21, &[("isolation_blocks", "9")], &["needs 30"]),
        ("bast", 32, &[("log_blocks", "0")], &["log_blocks: found 0"]),
        (
            "bast",
            32,
            &[("log_blocks", "x")],
            &["found \"x\"", "whole number"],
        ),
        (
            "bast",
            32,
            &[("rw_log_blocks", "1")],
            &["bast has no such parameter", "log_blocks"],
        ),
        ("faster", 64, &[("refinements", "1")], &["true or false"]),
        (
            "dftl",
            32,
            &[("low_blocks", "14")],
            &["low_blocks: found 14", "from 2 to 13"],
        ),
        (
            "dftl",
            32,
            &[("protected_entries", "5"), ("cmt_entries", "5")],
            &["below cmt_entries, 5"],
        ),
        (
            "dftl",
            32,
            &[("entries_per_translation_page", "0")],
            &["must be at least 1"],
        ),
    ] {
        let found = message(name, blocks, set);
        for part in parts {
            assert!(found.contains(part), "{found:?} lacks {part:?}");
        }
    }
    let huge = Setup::new("fast", 1, u32::MAX, 4096).unwrap().check();
    assert!(huge.unwrap_err().to_string().contains("can be numbered"));
    assert!(Setup::new("fast", 1, 99, 1).unwrap().check().is_err());
    assert!(Setup::new("fast", 0, 99, 4).unwrap().check().is_err());
}

#[test]
fn defaults_are_the_published_shares() {
    let made = |name| Setup::new(name, 15_240 * 64, 16_632, 64).unwrap();
    let Layer::Faster(faster) = made("faster").kind else {
        panic!()
    };
    assert_eq!((faster.rw_log_blocks, faster.isolation_blocks), (1113, 266));
    let Layer::Fast(fast) = made("fast").kind else {
        panic!()
    };
    assert_eq!(fast.rw_log_blocks + 1, 499, "3 %");
    let Layer::Dftl(dftl) = made("dftl").kind else {
        panic!()
    };
    assert_eq!(dftl.low_blocks, 687, "half of what is spare, below 5 %");
    for name in ENTRIES.iter().map(|entry| entry.name) {
        made(name).check().unwrap();
    }
}

#[test]
fn tokens_that_cannot_be_read_are_named() {
    let setup = Setup::new("fast", 8, 16, 4).unwrap();
    for (accesses, part) in [
        ("0 1 Q7", "token 3 \"Q7\""),
        ("8", "page 8 of 8"),
        ("4x5", "5 pages from page 4"),
        ("4x0", "0 pages"),
        ("R", "\"\" is no number"),
        ("-1", "is no number"),
    ] {
        let e = trace_ftl(&setup, false, accesses).unwrap_err().to_string();
        assert!(e.contains(part) && e.contains("known are"), "{e}");
    }
}
