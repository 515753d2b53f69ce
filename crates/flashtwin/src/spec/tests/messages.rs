//! Compares every error message with its exact text.

use super::{small_with, SMALL};
use crate::DeviceSpec;

/// Returns the error messages for a device file with this text, one line per problem.
fn error_message(text: &str) -> String {
    DeviceSpec::parse(text, "x.toml")
        .expect_err("must be refused")
        .to_string()
}

/// Test cases: a part of the small device's text, its replacement, and the message that the replacement causes.
const CASES: &[(&str, &str, &str)] = &[
    (
        "chips = 2",
        "chips = ",
        "x.toml:4:9: not TOML: invalid string; expected `\"`, `'`",
    ),
    (
        "chips = 2",
        "chips = 2\nchips = 3",
        "x.toml:5:1: not TOML: duplicate key `chips` in table `geometry`",
    ),
    (
        "capacity =",
        "capcity =",
        "x.toml:25:1: buffer.capcity: unknown key; did you mean \"capacity\"?",
    ),
    (
        "capacity =",
        "chips = 2\ncapacity =",
        "x.toml:25:1: buffer.chips: unknown key; \"chips\" belongs to section [geometry]",
    ),
    (
        "capacity =",
        "name = 2\ncapacity =",
        "x.toml:25:1: buffer.name: unknown key; \"name\" stands before the first section",
    ),
    (
        "capacity =",
        "foobarbaz = 2\ncapacity =",
        "x.toml:25:1: buffer.foobarbaz: unknown key; known here: capacity, policy, \
         evict, background_depth, pause_us, pause_every_us, pause_pages_per_s, partial, latency_us, \
         write_latency_us, read_cache, read_cache_latency_us, power_loss_protection, and the parameters of the policy",
    ),
    (
        "chips = 2",
        "chips = 2\noverprovisioning = 7",
        "x.toml:5:1: geometry.overprovisioning: unknown key; did you mean \"over_provisioning\"?",
    ),
    (
        "capacity =",
        "planes_per_chp = 2\ncapacity =",
        "x.toml:25:1: buffer.planes_per_chp: unknown key; did you mean \
         \"geometry.planes_per_chip\"?",
    ),
    (
        "name = \"small\"",
        "name = \"small\"\nchips = 4",
        "x.toml:2:1: chips: unknown key; \"chips\" belongs to section [geometry]",
    ),
    (
        "name = \"small\"",
        "name = \"small\"\nbuffer = 4",
        "x.toml:25:1: not TOML: invalid table header; duplicate key `buffer` in document root",
    ),
    (
        "[gc]",
        "[gx]",
        "x.toml:21:2: gx: unknown section; did you mean [gc]?",
    ),
    (
        "[buffer]",
        "[cache]",
        "x.toml:24:2: cache: unknown section; known: geometry, timing, host, link, nand, ftl, gc, \
         placement, wear, controller, buffer, published",
    ),
    (
        "[buffer]",
        "[[buffer]]",
        "x.toml:24:3: buffer: found an array; must be a section, [buffer]",
    ),
    (
        "name = \"small\"",
        "",
        "x.toml: name: missing; must be a name of 1 to 64 characters out of a-z 0-9 - _ .",
    ),
    (
        "name = \"small\"",
        "name = \"Big Device\"",
        "x.toml:1:1: name: found \"Big Device\"; must be a name of 1 to 64 characters out of \
         a-z 0-9 - _ .",
    ),
    (
        "name = \"small\"",
        "name = \"small\"\ndescription = \"a\\nb\"",
        "x.toml:2:1: description: found \"a\\nb\"; must be text of one line, at most 200 \
         characters",
    ),
    (
        "[timing]\n",
        "[timing]\n\n#",
        "x.toml:11:2: timing.read_us: missing; must be microseconds from 0 to 1000000, or a list of \
         them by page type",
    ),
    (
        "chips = 2",
        "chips = 0",
        "x.toml:4:1: geometry.chips: found 0; must be a whole number from 1 to 65535",
    ),
    (
        "chips = 2",
        "chips = 65536",
        "x.toml:4:1: geometry.chips: found 65536; must be a whole number from 1 to 65535",
    ),
    (
        "chips = 2",
        "chips = \"two\"",
        "x.toml:4:1: geometry.chips: found \"two\"; must be a whole number from 1 to 65535",
    ),
    (
        "chips = 2",
        "chips = 2.0",
        "x.toml:4:1: geometry.chips: found 2.0; must be a whole number from 1 to 65535",
    ),
    (
        "chips = 2",
        "chips = [2]",
        "x.toml:4:1: geometry.chips: found an array; must be a whole number from 1 to 65535",
    ),
    (
        "chips = 2",
        "chips = 1979-05-27",
        "x.toml:4:1: geometry.chips: found a date; must be a whole number from 1 to 65535",
    ),
    (
        "capacity = \"32 KiB\"",
        "capacity = \"32 KiB\"\n\n[published]\nwrite_steady_iops_min = 9\nwrite_steady_iops_max = 8.5",
        "x.toml:28:1: published.write_steady_iops_min: found 9; must be at most \
         published.write_steady_iops_max = 8.5",
    ),
    (
        "pages_per_block = 8",
        "pages_per_block = 1",
        "x.toml:7:1: geometry.pages_per_block: found 1; must be a whole number from 2 to 4096",
    ),
    (
        "page_bytes = \"4 KiB\"",
        "page_bytes = \"4k\"",
        "x.toml:8:1: geometry.page_bytes: found \"4k\"; must be bytes, or a size such as \"4 \
         KiB\", at most 1 MiB",
    ),
    (
        "page_bytes = \"4 KiB\"",
        "page_bytes = 1000",
        "x.toml:8:1: geometry.page_bytes: found 1000 B; must be a multiple of 512 bytes from \
         512 bytes to 1 MiB (it need not be a power of two)",
    ),
    (
        "page_bytes = \"4 KiB\"",
        "page_bytes = 0",
        "x.toml:8:1: geometry.page_bytes: found 0 B; must be a multiple of 512 bytes from \
         512 bytes to 1 MiB (it need not be a power of two)",
    ),
    (
        "page_bytes = \"4 KiB\"",
        "page_bytes = \"2 MiB\"",
        "x.toml:8:1: geometry.page_bytes: found \"2 MiB\"; must be bytes, or a size such as \
         \"4 KiB\", at most 1 MiB",
    ),
    (
        "reserve_percent = 25",
        "reserve_percent = 100",
        "x.toml:9:1: geometry.reserve_percent: found 100; must be percent from 0 to below 100",
    ),
    (
        "reserve_percent = 25",
        "reserve_percent = nan",
        "x.toml:9:1: geometry.reserve_percent: found NaN; must be percent from 0 to below 100",
    ),
    (
        "reserve_percent = 25",
        "reserve_percent = 12",
        "x.toml:22:1: gc.low_percent: found 12; must be below geometry.reserve_percent = 12",
    ),
    (
        "reserve_percent = 25",
        "reserve_percent = 13",
        "x.toml:9:1: geometry.reserve_percent: 13 % reserve 2 of the 16 blocks of a plane; \
         must be more than 2 (1 that start collection and 1 being written), or a full device \
         cannot run",
    ),
    (
        "low_percent = 12",
        "low_percent = 6",
        "x.toml:22:1: gc.low_percent: 6 % of the 16 blocks of a plane are no whole block; \
         must be at least 6.25 so that collection starts before the last block is gone",
    ),
    (
        "blocks_per_plane = 16",
        "blocks_per_plane = 16777217",
        "x.toml:6:1: geometry.blocks_per_plane: found 16777217; must be a whole number from \
         1 to 16777216",
    ),
    (
        "chips = 2\nplanes_per_chip = 2\nblocks_per_plane = 16\n",
        "chips = 65535\nplanes_per_chip = 2\nblocks_per_plane = 8192\n",
        "x.toml:6:1: geometry.blocks_per_plane: 65535 chips of 2 planes of 8192 blocks of 8 \
         pages make 8589803520 pages; must be at most 4294967294",
    ),
    (
        "read_us = 25",
        "read_us = -1",
        "x.toml:12:1: timing.read_us: found -1; must be microseconds from 0 to 1000000, or a list of \
         them by page type",
    ),
    (
        "read_us = 25",
        "read_us = -0.5",
        "x.toml:12:1: timing.read_us: found -0.5; must be microseconds from 0 to 1000000, or a list of \
         them by page type",
    ),
    (
        "read_us = 25",
        "read_us = inf",
        "x.toml:12:1: timing.read_us: found inf; must be microseconds from 0 to 1000000, or a list of \
         them by page type",
    ),
    (
        "read_us = 25",
        "read_us = nan",
        "x.toml:12:1: timing.read_us: found NaN; must be microseconds from 0 to 1000000, or a list of \
         them by page type",
    ),
    (
        "read_us = 25",
        "read_us = 1000001",
        "x.toml:12:1: timing.read_us: found 1000001; must be microseconds from 0 to 1000000, or a list of \
         them by page type",
    ),
    (
        "read_us = 25",
        "read_us = \"25us\"",
        "x.toml:12:1: timing.read_us: found \"25us\"; must be microseconds from 0 to 1000000, or a list of \
         them by page type",
    ),
    (
        "transfer_ns_per_byte = 25",
        "transfer_ns_per_byte = 1e7",
        "x.toml:15:1: timing.transfer_ns_per_byte: found 10000000.0; must be nanoseconds \
         from 0 to 1000000",
    ),
    (
        "transfer_ns_per_byte = 25",
        "transfer_ns_per_byte = 1e6",
        "x.toml:15:1: timing.transfer_ns_per_byte: a page of 4 KiB would take 4.096 s; must \
         be at most 1.000 s",
    ),
    (
        "backend = \"msr\"",
        "backend = \"modem\"",
        "x.toml:18:1: nand.backend: found \"modem\"; must be one of \"msr\", \"modern\"",
    ),
    (
        "backend = \"msr\"",
        "backend = \"modern\"",
        "x.toml:3:2: geometry.channels: missing; must be a whole number from 1 to 65535; \
         needed with nand.backend = \"modern\"",
    ),
    (
        "backend = \"msr\"",
        "backend = \"msr\"\nread_priority = true",
        "x.toml:19:1: nand.read_priority: has no effect here; it needs nand.backend = \
         \"modern\"",
    ),
    (
        "backend = \"msr\"",
        "backend = \"msr\"\nsuspend = true",
        "x.toml:19:1: nand.suspend: has no effect here; it needs nand.backend = \"modern\"",
    ),
    (
        "read_us = 25",
        "read_us = [25, 50]",
        "x.toml:12:1: timing.read_us: found a list of 2; with the \"msr\" back end must be one \
         number",
    ),
    (
        "program_us = 200",
        "program_us = []",
        "x.toml:13:1: timing.program_us: found an array; must be microseconds from 0 to 1000000, \
         or a list of them by page type",
    ),
    (
        "read_us = 25",
        "read_us = [25, \"50\"]",
        "x.toml:12:1: timing.read_us: found an array; must be microseconds from 0 to 1000000, or a \
         list of them by page type",
    ),
    (
        "backend = \"msr\"",
        "backend = \"msr\"\nparallel_units = 3",
        "x.toml:19:1: nand.parallel_units: found 3; must be 1, 2 or 4",
    ),
    (
        "backend = \"msr\"",
        "backend = \"msr\"\nparallel_units = 4",
        "x.toml:19:1: nand.parallel_units: found 4; must divide geometry.planes_per_chip = 2",
    ),
    (
        "copy_back = true",
        "copy_back = false\nparallel_units = 2",
        "x.toml:20:1: nand.parallel_units: found 2; without copy-back a chip serves one page \
         at a time: must be 1, or set nand.copy_back = true",
    ),
    (
        "copy_back = true",
        "copy_back = false\nallocation_pool = \"plane\"",
        "x.toml:20:1: nand.allocation_pool: found \"plane\"; without copy-back a chip has \
         one write pointer: must be \"chip\", or set nand.copy_back = true",
    ),
    (
        "copy_back = true",
        "copy_back = 1",
        "x.toml:19:1: nand.copy_back: found 1; must be true or false",
    ),
    (
        "copy_back = true",
        "",
        "x.toml:17:2: nand.copy_back: missing; must be true or false",
    ),
    (
        "chips = 2",
        "chips = 2\nchannels = 1",
        "x.toml:5:1: geometry.channels: found 1; on the \"msr\" back end every chip has its \
         own pins: leave the key out",
    ),
    (
        "[gc]",
        "[ftl]\nplacement = \"dynamic\"\n[gc]",
        "x.toml:22:1: ftl.placement: found \"dynamic\"; the \"msr\" back end places pages as \
         the reference does: must be \"static\", or set nand.backend = \"modern\"",
    ),
    (
        "[gc]",
        "[ftl]\nstride_pages = 5\n[gc]",
        "x.toml:22:1: ftl.stride_pages: found 5; must divide the 168 pages a chip exports",
    ),
    (
        "[gc]",
        "[ftl]\nkind = \"block\"\n[gc]",
        "x.toml:22:1: ftl.kind: found \"block\"; must be one of \"page\", \"dftl\", \"bast\", \"fast\", \
         \"faster\"",
    ),
    (
        "[gc]",
        "[ftl]\nkind = \"bast\"\n[gc]",
        "x.toml:24:1: gc.low_percent: has no effect here; it needs ftl.kind = \"page\"",
    ),
    (
        "[gc]\nlow_percent = 12\n",
        "[ftl]\nkind = \"dftl\"\nlog_blocks = 2\n",
        "x.toml:23:1: ftl.log_blocks: has no effect here; it needs ftl.kind = \"bast\"",
    ),
    (
        "[gc]\nlow_percent = 12\n",
        "[ftl]\nkind = \"dftl\"\ncmt_entries = 4\nprotected_entries = 4\n",
        "x.toml:24:1: ftl.protected_entries: with ftl.kind = \"dftl\": protected_entries: found 4; must \
         be below cmt_entries, 4",
    ),
    (
        "[gc]\nlow_percent = 12\n",
        "[ftl]\nkind = \"fast\"\nrw_log_blocks = 7\n",
        "x.toml:9:1: geometry.reserve_percent: with ftl.kind = \"fast\": blocks: found 32; fast needs 33 \
         for 192 logical pages: 24 for data and 9 to write, merge and collect. Give more blocks, export \
         fewer pages or take fewer log blocks",
    ),
    (
        "[gc]",
        "[gc]\nvictim = \"oldest\"",
        "x.toml:22:1: gc.victim: found \"oldest\"; must be one of \"greedy\", \"fifo\", \"random\", \"d-choices\", \"windowed\", \"cost-benefit\", \"cost-age-time\"",
    ),
    (
        "[gc]",
        "[wear]\nerase_limit = -1\n[gc]",
        "x.toml:22:1: wear.erase_limit: found -1; must be a whole number from 0 to 4294967294",
    ),
    (
        "capacity = \"32 KiB\"",
        "capacity = 0",
        "x.toml:25:1: buffer.capacity: found 0 B; must be at least one page of 4 KiB",
    ),
    (
        "capacity = \"32 KiB\"",
        "capacity = 5000",
        "x.toml:25:1: buffer.capacity: found 5000 B; must be whole pages of 4 KiB: 4 KiB or \
         8 KiB",
    ),
    (
        "capacity = \"32 KiB\"",
        "capacity = \"1 TiB\"",
        "x.toml:25:1: buffer.capacity: found 1 TiB; must be at most the 2 MiB of flash \
         behind it",
    ),
    (
        "capacity = \"32 KiB\"",
        "policy = \"lru\"",
        "x.toml:24:2: buffer.capacity: missing; must be bytes, or a size such as \"4 KiB\", \
         at most 4096 TiB",
    ),
    (
        "capacity =",
        "policy = \"gcar-lur\"\ncapacity =",
        "x.toml:25:1: buffer.policy: found \"gcar-lur\"; must be a policy \
         that `flashtwin policy list` knows; did you mean \"gcar-lru\"?",
    ),
    (
        "capacity =",
        "policy = \"no-such-policy\"\ncapacity =",
        "x.toml:25:1: buffer.policy: found \"no-such-policy\"; must be a policy that \
         `flashtwin policy list` knows",
    ),
    (
        "capacity =",
        "window = 3\ncapacity =",
        "x.toml:25:1: buffer.window: has no effect here; it needs buffer.policy = \
         \"cflru\"",
    ),
    (
        "capacity =",
        "policy = \"cflru\"\nwindow = 9\ncapacity =",
        "x.toml:26:1: buffer.window: comes to 9 pages; must be at most the 8 pages of the \
         buffer",
    ),
    (
        "capacity =",
        "policy = \"cflru\"\nwindow = 1.5\ncapacity =",
        "x.toml:26:1: buffer.window: found 1.5; must be a whole number of pages, or a \
         fraction of the capacity such as 0.25, up to 1.0",
    ),
    (
        "capacity =",
        "background_depth = 3\ncapacity =",
        "x.toml:25:1: buffer.background_depth: has no effect here; it needs buffer.evict = \
         \"background\"",
    ),
    (
        "capacity =",
        "evict = \"background\"\nbackground_depth = 0\ncapacity =",
        "x.toml:26:1: buffer.background_depth: found 0; must be a whole number from 1 to \
         65535",
    ),
];

#[test]
fn each_mistake_has_its_message() {
    for (from, to, message) in CASES {
        assert_eq!(
            &error_message(&small_with(from, to)),
            message,
            "for {from:?} -> {to:?}"
        );
    }
}

#[test]
fn all_errors_are_listed_in_file_order() {
    let text = small_with("chips = 2", "chips = 0").replace("low_percent = 12", "low_percent = -1");
    let text = text.replace("read_us = 25", "read_us = 25\nraed_us = 1");
    assert_eq!(
        error_message(&text),
        "x.toml:4:1: geometry.chips: found 0; must be a whole number from 1 to 65535\n\
         x.toml:13:1: timing.raed_us: unknown key; did you mean \"read_us\"?\n\
         x.toml:23:1: gc.low_percent: found -1; must be percent from 0 to below 100"
    );
}

#[test]
fn a_file_that_is_no_device_is_refused_as_a_whole() {
    assert!(error_message("").starts_with("x.toml: name: missing; must be a name"));
    assert!(error_message("\u{feff}[").starts_with("x.toml:1:"));
    let long = format!("{SMALL}#{}", "x".repeat(1 << 16));
    assert_eq!(
        error_message(&long),
        format!(
            "x.toml: the file has {} bytes; at most 65536 are read",
            long.len()
        )
    );
    let deep = format!("a = {}1{}", "[".repeat(30_000), "]".repeat(30_000));
    assert!(error_message(&deep).contains("not TOML"));
    let dotted = format!("{}b = 1", "a.".repeat(30_000));
    assert!(!error_message(&dotted).is_empty());
    // A root key whose name looks like a dotted key is not this dotted key.
    assert!(
        error_message("\"geometry.chips\" = 3").contains("\"chips\" belongs to section [geometry]")
    );
    assert!(error_message("[\"\"]\nname = 3").contains("unknown"));
}

#[test]
fn columns_count_characters() {
    let text = small_with("chips = 2", "\"\u{e9}\" = 2\n\t\u{20}chips = 0");
    assert_eq!(
        error_message(&text).lines().last(),
        Some("x.toml:5:3: geometry.chips: found 0; must be a whole number from 1 to 65535")
    );
}

#[test]
fn a_message_is_one_line_whatever_the_file_holds() {
    let odd_key = small_with("capacity =", "\"\\u001b[2J\\n\" = 1\ncapacity =");
    let message = "x.toml:25:1: buffer.\\u{1b}[2J\\n: unknown key; known here: capacity,";
    assert!(
        error_message(&odd_key).starts_with(message),
        "{}",
        error_message(&odd_key)
    );
    let long = error_message(&small_with(
        "capacity =",
        &format!("{} = 1\ncapacity =", "k".repeat(5000)),
    ));
    assert!(long.lines().count() == 1 && long.len() < 600, "{long}");
}
