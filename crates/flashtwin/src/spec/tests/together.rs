//! Combinations of settings that are not permitted, and the error messages about them.

use crate::spec::builtin;
use crate::DeviceSpec;

/// Returns the error messages for a profile with the given settings, without the positions of the
/// problems.
fn error_message(profile: &str, settings: &[(&str, &str)]) -> String {
    let spec = DeviceSpec::with_overrides(builtin(profile).unwrap(), profile, settings);
    let problems = spec.expect_err("must be refused").problems;
    let lines = problems.iter().map(|p| format!("{}: {}", p.key, p.message));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn partial_pages_are_set_in_one_place() {
    assert_eq!(
        error_message("demo", &[("ftl.partial", "sectors")]),
        "ftl.partial: has no effect with a buffer: leave it out, or set buffer.partial instead"
    );
}

#[test]
fn superblocks_need_turns_and_one_stream() {
    let superblock = ("gc.granularity", "superblock");
    let must_be = |key: &str, wanted: &str| {
        format!("{key}: with gc.granularity = \"superblock\" must be {wanted}")
    };
    for (setting, wanted) in [
        (("ftl.placement", "static"), "\"dynamic\""),
        (("nand.copy_back", "true"), "false"),
        (("ftl.summary_page", "true"), "false"),
        (("ftl.separation", "gc"), "\"none\""),
        (("gc.victim", "fifo"), "\"greedy\""),
        (("wear.levelling", "static"), "\"none\" or \"dynamic\""),
    ] {
        let found = error_message("tlc-client", &[superblock, setting]);
        assert_eq!(found, must_be(setting.0, wanted));
    }
    assert_eq!(
        error_message("qlc-client", &[superblock]),
        must_be("nand.pslc_percent", "0")
    );
    assert_eq!(
        error_message("tlc-client", &[superblock, ("buffer.policy", "cda-gc")]),
        must_be("buffer.policy", "one that does not separate pages itself")
    );
    let short = [
        ("geometry.pages_per_block", "12"),
        ("nand.multi_plane", "3"),
    ];
    assert_eq!(
        error_message("tlc-client", &[&short[..], &[superblock]].concat()),
        "geometry.pages_per_block: found 12; with gc.granularity = \"superblock\" must be at least two \
         programs of 12"
    );
    let two = [
        ("geometry.pages_per_block", "2"),
        ("geometry.flash_page_bytes", "4 KiB"),
        ("nand.multi_plane", "1"),
    ];
    let two = [&two[..], &[superblock]].concat();
    DeviceSpec::with_overrides(builtin("tlc-client").unwrap(), "tlc-client", &two).unwrap();
    // Without superblocks, this reserve is sufficient. With superblocks, the device needs two more
    // blocks.
    let few = [
        ("geometry.blocks_per_plane", "20"),
        ("geometry.planes_per_chip", "1"),
        ("geometry.reserve_percent", "20"),
        ("gc.low_percent", "5"),
    ];
    assert!(DeviceSpec::with_overrides(builtin("tlc-client").unwrap(), "tlc-client", &few).is_ok());
    assert_eq!(
        error_message("tlc-client", &[&few[..], &[superblock]].concat()),
        "geometry.reserve_percent: 20 % reserve 4 of the 20 blocks of a chip; must be more than 4 \
         (1 that start collection and 3 being written), or a full device cannot run"
    );
}

#[test]
fn the_reference_s_levelling_shares_out_life() {
    let reference = ("wear.levelling", "reference");
    for (profile, more, message) in [
        (
            "tlc-client",
            ("wear.erase_limit", "50"),
            "is of the \"msr\" back end; must be another on \"modern\"",
        ),
        (
            "demo",
            ("wear.erase_limit", "0"),
            "shares out the life that blocks have left: set wear.erase_limit, or another",
        ),
        (
            "demo",
            ("gc.victim", "fifo"),
            "chooses victims itself: set gc.victim = \"greedy\", or another",
        ),
    ] {
        let limit = ("wear.erase_limit", "50");
        let found = error_message(profile, &[limit, reference, more]);
        assert_eq!(found, format!("wear.levelling: \"reference\" {message}"));
    }
}

#[test]
fn queues_have_one_class_each() {
    let weighted = ("host.arbitration", "weighted");
    assert_eq!(
        error_message(
            "demo",
            &[weighted, ("host.queues", "2"), ("host.urgent_queues", "3")]
        ),
        "host.queues: found 2; must be at least the 3 that are urgent, high and medium"
    );
    assert_eq!(
        error_message("demo", &[("host.high_queues", "1")]),
        "host.high_queues: has no effect here; it needs host.arbitration = \"weighted\""
    );
    assert_eq!(
        error_message("demo", &[("host.burst", "3")]),
        "host.burst: found 3; must be 0, 1, 2, 4, 8, 16, 32 or 64"
    );
    assert_eq!(
        error_message("demo", &[("host.assign", "kind")]),
        "host.assign: found \"kind\"; needs host.queues of 2 or more: must be \"turn\""
    );
}

/// For each of the settings, a device with it is written as text. The same device must be read from
/// this text.
#[test]
fn written_device_file_reads_back() {
    for (profile, settings) in [
        ("harmonia", vec![("ftl.partial", "sectors")]),
        ("tlc-client", vec![("gc.granularity", "superblock")]),
        (
            "demo",
            vec![
                ("wear.levelling", "reference"),
                ("wear.erase_limit", "50"),
                ("wear.migrate_percent", "70.25"),
            ],
        ),
        (
            "nvme-tlc",
            vec![
                ("host.queues", "9"),
                ("host.queue_depth", "64"),
                ("host.commands", "128"),
                ("host.assign", "kind"),
                ("host.arbitration", "weighted"),
                ("host.burst", "0"),
                ("host.urgent_queues", "1"),
                ("host.high_queues", "2"),
                ("host.medium_queues", "3"),
                ("host.high_weight", "8"),
                ("host.medium_weight", "4"),
                ("host.low_weight", "2"),
            ],
        ),
    ] {
        let text = builtin(profile).unwrap();
        let spec = DeviceSpec::with_overrides(text, profile, &settings).unwrap();
        let again = DeviceSpec::parse(&spec.to_toml(), "again").unwrap();
        assert_eq!(again, spec);
        for (key, value) in settings {
            let written = spec.value_toml(key).unwrap();
            assert_eq!(written.trim_matches('"'), value, "{key}");
        }
    }
}
