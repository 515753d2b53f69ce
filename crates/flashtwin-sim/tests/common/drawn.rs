//! Random devices and requests.

use std::fmt::Write;
use std::sync::LazyLock;

use flashtwin::buffer::ChosenPolicy;
use flashtwin::component::Kind;
use flashtwin::spec::{array_keys, builtin_array, keys, KeyDoc};
use flashtwin::{ArraySpec, DeviceSpec, Op, Request, Rng, Time};

/// Returns one of several values at random.
pub fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// Returns true once in `n` times, at random.
pub fn one_in(rng: &mut Rng, n: u64) -> bool {
    rng.below(n) == 0
}

/// Policies from which random devices choose. Policies added later must not be listed. An additional policy would
/// change all random devices, and thus all recorded results, in the commit that adds the policy.
const POLICIES: [&str; 28] = [
    "lru",
    "cflru",
    "cflru-eps",
    "lru-wsr",
    "ccf-lru",
    "ad-lru",
    "bplru",
    "fab",
    "lb-clock",
    "pud-lru",
    "bpac",
    "cbm",
    "req-block",
    "ecr",
    "ecr-eps",
    "lcr",
    "co-active",
    "cda-gc",
    "cda-gc-stager",
    "cda-gc-dispatcher",
    "fifo",
    "clock",
    "2q",
    "arc",
    "lirs",
    "lfu",
    "s3-fifo",
    "sieve",
];

/// Keys that random devices never change, because they were added later than the list [`POLICIES`]. `LATER_WORD` is a
/// key with one of its values; random devices never choose this value, for the same reason.
const LATER_KEYS: [&str; 4] = [
    "link.jitter_us",
    "buffer.pause_us",
    "buffer.pause_every_us",
    "buffer.pause_pages_per_s",
];
const LATER_WORD: (&str, &str) = ("ftl.separation", "policy");

/// Returns the keys that get random values. Parameters of policies are included only for the policies in [`POLICIES`].
fn drawn_keys() -> &'static [&'static KeyDoc] {
    static KEYS: LazyLock<Vec<&KeyDoc>> = LazyLock::new(|| {
        let is_for = |doc: &KeyDoc, name: &str| {
            doc.is_for_policy(name) || doc.is_for_policy(&format!("gcar-{name}"))
        };
        let all = keys().iter().filter(|doc| !LATER_KEYS.contains(&doc.key));
        let all = all.filter(|doc| {
            !doc.is_policy_parameter() || POLICIES.iter().any(|name| is_for(doc, name))
        });
        all.collect()
    });
    &KEYS
}

/// Returns a small device with random values of all parameters except the mapping.
pub fn draw_device(rng: &mut Rng, mapping: &str) -> DeviceSpec {
    loop {
        let msr = one_in(rng, 2);
        let copy_back = one_in(rng, 2);
        let planes = pick(rng, &[1, 2, 4]);
        let chips = pick(rng, &[1, 2, 3, 4]);
        let units = if msr && copy_back {
            pick(rng, &[1, 2, 4]).min(planes)
        } else {
            1
        };
        let mut toml = format!(
            "name = \"drawn\"\n[geometry]\nchips = {chips}\nplanes_per_chip = {planes}\n\
             blocks_per_plane = {}\npages_per_block = {}\npage_bytes = {}\nreserve_percent = {}\n",
            pick(rng, &[10, 16, 23]),
            pick(rng, &[2, 4, 8, 65]),
            pick(rng, &[512, 2048, 4096, 32768]),
            pick(rng, &[30, 40, 60]),
        );
        if !msr {
            let channels = if one_in(rng, 2) { chips } else { 1 };
            writeln!(toml, "channels = {channels}").expect("a string takes all");
        }
        let zero = one_in(rng, 8);
        let step = |us: u32| if zero { 0 } else { us };
        write!(
            toml,
            "[timing]\nread_us = {}\nprogram_us = {}\nerase_us = {}\ntransfer_ns_per_byte = {}\n\
             [link]\ncommand_overhead_us = {}\nbus_ns_per_sector = {}\n[nand]\n",
            step(25),
            step(200),
            step(1500),
            pick(rng, &[0, 25]),
            pick(rng, &[0, 3]),
            pick(rng, &[0.0, 238.4]),
        )
        .expect("a string takes all");
        if msr {
            write!(
                toml,
                "backend = \"msr\"\nparallel_units = {units}\ncopy_back = {copy_back}\n\
                 plane_mapping = \"{}\"\nallocation_pool = \"{}\"\ncleaning_in_background = {}\n",
                pick(rng, &["striped", "concatenated"]),
                if copy_back { pick(rng, &["chip", "plane"]) } else { "chip" },
                one_in(rng, 2),
            )
        } else {
            write!(
                toml,
                "backend = \"modern\"\ncopy_back = {copy_back}\nread_priority = {}\nbackground_gc = {}\n\
                 cached_commands = {}\n",
                one_in(rng, 2),
                one_in(rng, 2),
                planes > 1,
            )
        }
        .expect("a string takes all");
        let placement = if msr {
            "static"
        } else {
            pick(rng, &["static", "dynamic"])
        };
        write!(
            toml,
            "[ftl]\nplacement = \"{placement}\"\nsummary_page = {}\n{}\n\
             [gc]\nlow_percent = {}\n{}\n{}\n[wear]\nerase_limit = {}\n",
            one_in(rng, 2),
            pick(
                rng,
                &[
                    "",
                    "",
                    "separation = \"gc\"",
                    "separation = \"region\"\nregion_percent = 30"
                ]
            ),
            pick(rng, &[11, 15]),
            if msr {
                ""
            } else {
                pick(
                    rng,
                    &[
                        "",
                        "idle_percent = 20\npreemptible = true",
                        "watermark = \"pages\"",
                        "watermark = \"pages\"\npreemptible = true",
                    ],
                )
            },
            pick(
                rng,
                &[
                    "",
                    "",
                    "victim = \"fifo\"",
                    "victim = \"random\"",
                    "victim = \"d-choices\"\nchoices = 2",
                    "victim = \"windowed\"",
                    "victim = \"cost-benefit\"",
                    "victim = \"cost-age-time\"",
                ]
            ),
            if one_in(rng, 10) { 3 } else { 0 },
        )
        .expect("a string takes all");
        if one_in(rng, 6) {
            let partial = pick(rng, &["round", "sectors"]);
            toml = toml.replace("[ftl]", &format!("[ftl]\npartial = \"{partial}\""));
        } else {
            let base = pick(rng, &POLICIES);
            assert!(ChosenPolicy::is_name(base), "{base}");
            let gcar = if one_in(rng, 3) { "gcar-" } else { "" };
            let evict = pick(rng, &["blocking", "background"]);
            let page = page_bytes(&toml);
            write!(
                toml,
                "[buffer]\ncapacity = {}\npolicy = \"{gcar}{base}\"\nevict = \"{evict}\"\n\
                 partial = \"{}\"\nlatency_us = {}\npower_loss_protection = {}\n",
                pick(rng, &[1, 1, 2, 3, 4, 9, 33]) * page,
                pick(rng, &["round", "sectors"]),
                pick(rng, &[0, 2]),
                one_in(rng, 4),
            )
            .expect("a string takes all");
            for (key, values) in [
                ("read_cache", ["0", "1", "5"]),
                ("write_latency_us", ["0", "1", "3"]),
                ("read_cache_latency_us", ["0", "1", "3"]),
            ] {
                if one_in(rng, 3) {
                    writeln!(toml, "{key} = {}", pick(rng, &values)).expect("a string takes all");
                }
            }
            for (of, line) in [
                ("bplru", "padding = true"),
                ("bplru", "blocks = \"host\""),
                ("bplru", "room = \"whole\""),
                ("fab", "cache_reads = false"),
                ("fab", "room = \"whole\""),
                ("bpac", "room = \"whole\""),
                ("cbm", "threshold_floor = 2"),
                ("cbm", "theta = 0.6"),
                ("cbm", "blocks = \"host\""),
                ("ecr", "cqct = \"exact\""),
                ("co-active", "idle_unit = \"chip\""),
                ("co-active", "write_backs = 1"),
            ] {
                if base == of && one_in(rng, 2) {
                    writeln!(toml, "{line}").expect("a string takes all");
                }
            }
            if evict == "background" {
                let depth = pick(rng, &[1, 2, 8]);
                writeln!(toml, "background_depth = {depth}").expect("a string takes all");
            }
        }
        if one_in(rng, 5) {
            write!(
                toml,
                "[controller]\nrequest_us = {}\nscan_entry_ns = {}\n",
                pick(rng, &[0, 2]),
                pick(rng, &[0, 100, 30_000]),
            )
            .expect("a string takes all");
        }
        if !msr && !copy_back && placement == "dynamic" && one_in(rng, 2) {
            // Superblocks need dynamic placement, and cannot be combined with the `msr` back end, with copy-back, or
            // with summary pages, which the second replacement removes.
            toml = toml.replace("[gc]", "[gc]\ngranularity = \"superblock\"");
            toml = toml.replace("summary_page = true", "summary_page = false");
        }
        if one_in(rng, 4) {
            write!(
                toml,
                "[host]\nqueues = {}\nqueue_depth = {}\ncommands = {}\nburst = {}\nassign = \"{}\"\n{}\n",
                pick(rng, &[1, 2, 3]),
                pick(rng, &[0, 1, 7]),
                pick(rng, &[0, 1, 5]),
                pick(rng, &[0, 1, 4]),
                pick(rng, &["turn", "kind"]),
                pick(
                    rng,
                    &[
                        "",
                        "arbitration = \"weighted\"\nhigh_queues = 1\nhigh_weight = 4",
                        "arbitration = \"weighted\"\nurgent_queues = 1",
                    ]
                ),
            )
            .expect("a string takes all");
        }
        if msr && one_in(rng, 5) {
            toml = toml.replace(
                "erase_limit = 0",
                "erase_limit = 9\nlevelling = \"reference\"",
            );
        }
        // Some random descriptions are invalid, for example because they have too few reserve blocks. The loop then
        // draws again.
        if let Ok(spec) = DeviceSpec::with_overrides(&toml, "drawn", &[("ftl.kind", mapping)]) {
            return spec;
        }
    }
}

fn page_bytes(toml: &str) -> u64 {
    let value = toml.split_once("page_bytes = ").expect("it stands there").1;
    value
        .split_once('\n')
        .expect("lines end")
        .0
        .parse()
        .expect("a number")
}

/// Returns a random value for a key, as TOML text. Most of the values are valid.
fn draw_value(rng: &mut Rng, doc: &KeyDoc) -> String {
    let count = |rng: &mut Rng, least: u32, most: u32| {
        let few = least.saturating_add(rng.below(9) as u32).min(most);
        pick(rng, &[least, few, few, few, most]).to_string()
    };
    match doc.kind {
        Kind::Choice(words) => {
            let words = words.iter().copied();
            let words: Vec<&str> = words
                .filter(|&word| (doc.key, word) != LATER_WORD)
                .collect();
            format!("{:?}", pick(rng, &words))
        }
        Kind::Bool => one_in(rng, 2).to_string(),
        Kind::Count(least, most) => count(rng, least, most),
        Kind::CountOrAuto(..) if one_in(rng, 2) => "\"auto\"".into(),
        Kind::CountOrAuto(least, most) => count(rng, least, most),
        Kind::Size(_) => pick(rng, &["4096", "\"16 KiB\"", "\"64 KiB\"", "\"1 MiB\""]).into(),
        Kind::Micros(_) | Kind::Nanos(_) => pick(rng, &["0", "0.5", "3", "70"]).into(),
        Kind::MicrosByType(_) => pick(rng, &["30", "[20, 90]", "[40, 60, 80]"]).into(),
        Kind::Percent => pick(rng, &["0", "5", "12.5", "40", "90"]).into(),
        Kind::Window | Kind::Beyond => pick(rng, &["0", "1", "2", "0.3", "1.0"]).into(),
        Kind::Share => pick(rng, &["0", "0.1", "0.5", "1"]).into(),
        Kind::Name | Kind::Text | Kind::PolicyName | Kind::Figure => "\"drawn\"".into(),
    }
}

/// Settings that are only permitted together.
const TOGETHER: [&[(&str, &str)]; 10] = [
    &[
        ("nand.cell", "tlc"),
        ("nand.suspend", "true"),
        ("timing.read_us", "[40, 60, 80]"),
    ],
    &[
        ("nand.cell", "tlc"),
        ("nand.pslc_percent", "20"),
        ("ftl.summary_page", "false"),
    ],
    &[
        ("nand.multi_plane", "2"),
        ("ftl.summary_page", "false"),
        ("geometry.planes_per_chip", "2"),
    ],
    &[
        ("nand.multi_plane", "2"),
        ("nand.independent_reads", "true"),
        ("nand.cached_commands", "false"),
        ("ftl.summary_page", "false"),
        ("geometry.planes_per_chip", "2"),
    ],
    &[
        ("nand.cached_commands", "true"),
        ("nand.read_retry_percent", "30"),
    ],
    &[
        ("wear.levelling", "static"),
        ("wear.erases_behind", "2"),
        ("wear.erase_limit", "0"),
    ],
    &[("wear.levelling", "dynamic"), ("wear.erase_limit", "0")],
    &[("link.kind", "pcie"), ("controller.request_us", "2")],
    &[("link.kind", "sata")],
    &[("ftl.separation", "region"), ("ftl.region_percent", "20")],
];

/// Returns a random device. After the device is drawn, up to six of its keys or sets of keys are changed at random. A
/// change that would make the device invalid or too large is skipped.
pub fn draw_changed_device(rng: &mut Rng, mapping: &str) -> DeviceSpec {
    let mut spec = draw_device(rng, mapping);
    for _ in 0..6 {
        let key = pick(rng, drawn_keys());
        let value = draw_value(rng, key);
        let mut changes = vec![(key.key, value.as_str())];
        if one_in(rng, 2) {
            changes = pick(rng, &TOGETHER).to_vec();
        }
        let toml = spec.to_toml();
        if let Ok(changed) = DeviceSpec::with_overrides(&toml, "drawn", &changes) {
            let geometry = &changed.geometry;
            let pages = u64::from(geometry.chips * geometry.planes_per_chip)
                * u64::from(geometry.blocks_per_plane * geometry.pages_per_block);
            if pages < 200_000 {
                spec = changed;
            }
        }
    }
    spec
}

/// Returns a small array with random values of all parameters.
pub fn draw_array(rng: &mut Rng) -> ArraySpec {
    let text = builtin_array("harmonia-array").expect("it is built in");
    loop {
        let member = pick(rng, &["harmonia", "demo", "ecr", "nvme-tlc"]);
        let count = 2 + rng.below(5);
        let level = pick(
            rng,
            &[
                "raid0", "raid1", "raid10", "raid5", "raid5", "raid6", "swan",
            ],
        );
        let mut changes: Vec<(String, String)> = [
            ("array.members", format!("{member}*{count}")),
            ("array.level", level.into()),
            (
                "array.chunk",
                pick(rng, &["4 KiB", "8 KiB", "32 KiB"]).into(),
            ),
            ("array.coordination", "local".into()),
            ("member.geometry.chips", pick(rng, &["1", "2", "3"]).into()),
            (
                "member.geometry.blocks_per_plane",
                pick(rng, &["24", "32"]).into(),
            ),
            (
                "member.geometry.pages_per_block",
                pick(rng, &["4", "8"]).into(),
            ),
            ("member.geometry.reserve_percent", "40".into()),
            ("member.gc.low_percent", "15".into()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into();
        if one_in(rng, 2) {
            let policies = ["lru", "gcar-lru", "arc", "fab", "cflru", "bplru", "lirs"];
            let more = [
                ("buffer.capacity", pick(rng, &["32 KiB", "128 KiB"])),
                ("buffer.policy", pick(rng, &policies)),
                ("buffer.evict", pick(rng, &["blocking", "background"])),
                ("buffer.partial", pick(rng, &["round", "sectors"])),
            ];
            changes.extend(more.map(|(key, value)| (key.to_owned(), value.to_owned())));
        }
        if one_in(rng, 2) {
            let more = pick(
                rng,
                &[
                    "inclusive",
                    "selective",
                    "idle",
                    "soft-limit",
                    "turns",
                    "ideal",
                ],
            );
            changes.push(("array.coordination".into(), more.into()));
        }
        for _ in 0..rng.below(5) {
            let all = array_keys();
            let key = &all[rng.below(all.len() as u64) as usize];
            if !["array.members", "array.level"].contains(&key.key) {
                changes.push((key.key.into(), draw_value(rng, key)));
            }
        }
        if one_in(rng, 3) {
            let key = pick(rng, drawn_keys());
            if !key.key.starts_with("geometry") {
                changes.push((format!("member.{}", key.key), draw_value(rng, key)));
            }
        }
        let changes: Vec<(&str, &str)> = changes
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        if let Ok(spec) = ArraySpec::with_overrides(text, "drawn", &changes) {
            return spec;
        }
    }
}

/// Returns a random request to a device of `exported` pages of `page` bytes.
pub fn draw_request(rng: &mut Rng, page: u64, exported: u64, whole_pages: bool) -> Request {
    // Half of the requests access few pages, so that requests often touch the same page.
    let reach = if one_in(rng, 2) {
        12.min(exported)
    } else {
        exported
    };
    let pages_max = pick(rng, &[1, 2, 9]);
    let pages = (1 + rng.below(pages_max)).min(reach);
    let first = rng.below(reach - pages + 1);
    let (mut offset, mut bytes) = (first * page, pages * page);
    if !whole_pages {
        let unit = if one_in(rng, 3) { 1 } else { 512 };
        let cut = rng.below(page / unit) * unit;
        if bytes > cut {
            offset += cut;
            bytes -= cut;
        }
        bytes = (bytes - rng.below(page / unit) * unit % bytes).max(1);
    }
    let op = match rng.below(20) {
        0..=6 => Op::Read,
        7 | 8 => Op::Trim,
        9 => Op::Flush,
        _ => Op::Write,
    };
    let (offset, bytes) = if op == Op::Flush {
        (0, 0)
    } else {
        (offset, bytes)
    };
    Request {
        arrival: Time::ZERO,
        offset,
        bytes,
        op,
        fua: op == Op::Write && one_in(rng, 6),
        ..Request::default()
    }
}
