//! Every key of device and array files, with values inside and outside its range, and with a misspelt name. Damaged
//! files are tested, too. The recorded result is either the file as the model writes it again, or the error message.

use super::{hold, Checksum};
use flashtwin::component::Kind;
use flashtwin::spec::{
    array_keys, builtin, builtin_array, builtin_array_names, builtin_names, keys, KeyDoc, SpecError,
};
use flashtwin::{ArraySpec, DeviceSpec, Rng};

/// Returns TOML values at the limits of a key's range and beyond.
fn values(doc: &KeyDoc) -> Vec<String> {
    let mut values: Vec<String> = [
        "-1",
        "0",
        "1",
        "2",
        "1.5",
        "0.3",
        "\"x y\"",
        "true",
        "[]",
        "[3, 4]",
        "none",
        "1979-05-27",
    ]
    .map(String::from)
    .into();
    values.extend(doc.default.map(String::from));
    let around = |n: u64| [n.saturating_sub(1), n, n.saturating_add(1)].map(|n| n.to_string());
    match doc.kind {
        Kind::Choice(words) => values.extend(words.iter().map(|word| format!("{word:?}"))),
        Kind::Bool => values.push("false".into()),
        Kind::Count(least, most) => {
            values.extend(around(least.into()));
            values.extend(around(most.into()));
        }
        Kind::CountOrAuto(least, most) => {
            values.extend(around(least.into()));
            values.extend(around(most.into()));
            values.push("\"auto\"".into());
        }
        Kind::Size(most) => {
            values.extend(around(most));
            values.extend(["\"8 KiB\"", "\"1 MiB\"", "\"3 GB\"", "\"4 TiB\""].map(String::from));
        }
        Kind::Micros(most) | Kind::MicrosByType(most) | Kind::Nanos(most) => {
            values.extend(around(most.into()));
            values.extend(["0.0001", "[20, 30, 40]", "[1, \"x\"]"].map(String::from));
        }
        Kind::Percent => values.extend(["99.9", "100", "33"].map(String::from)),
        Kind::Window | Kind::Beyond => {
            values.extend(["1.0", "1.1", "5", "999999"].map(String::from))
        }
        Kind::Share => values.extend(["1.0", "1.01"].map(String::from)),
        Kind::PolicyName => {
            values.extend(["\"lru\"", "\"gcar-ecr\"", "\"gcar-gcar-lru\""].map(String::from))
        }
        Kind::Name | Kind::Text => values.push(format!("{:?}", "a".repeat(201))),
        Kind::Figure => values.extend(["1e9", "1e10"].map(String::from)),
    }
    values
}

fn add(sum: &mut Checksum, read: Result<(String, String), SpecError>) {
    match read {
        Ok((toml, more)) => {
            sum.add(toml.as_bytes());
            sum.add(more.as_bytes());
        }
        Err(e) => sum.add(e.to_string().as_bytes()),
    }
}

fn device(text: &str, changes: &[(&str, &str)]) -> Result<(String, String), SpecError> {
    let spec = DeviceSpec::with_overrides(text, "file.toml", changes)?;
    let toml = spec.to_toml();
    let again = DeviceSpec::parse(&toml, "again").expect("what was written can be read");
    assert_eq!(again, spec, "{toml}");
    let pages = spec.exported_pages().to_string();
    Ok((toml, pages))
}

fn array(text: &str, changes: &[(&str, &str)]) -> Result<(String, String), SpecError> {
    let spec = ArraySpec::with_overrides(text, "file.toml", changes)?;
    let toml = spec.to_toml();
    let again = ArraySpec::parse(&toml, "again").expect("what was written can be read");
    assert_eq!(again, spec, "{toml}");
    let bytes = spec.exported_bytes().to_string();
    Ok((toml, bytes))
}

/// Devices that have different sets of keys.
const BASES: [&[(&str, &str)]; 8] = [
    &[],
    &[("nand.copy_back", "false")],
    &[("nand.backend", "modern"), ("geometry.channels", "4")],
    &[
        ("nand.backend", "modern"),
        ("geometry.channels", "4"),
        ("nand.copy_back", "false"),
        ("ftl.placement", "dynamic"),
        ("ftl.summary_page", "false"),
        ("gc.granularity", "superblock"),
    ],
    &[("ftl.kind", "dftl"), ("buffer", "none")],
    &[("ftl.kind", "faster"), ("geometry.reserve_percent", "25")],
    &[
        ("buffer.policy", "gcar-cflru"),
        ("host.arbitration", "weighted"),
        ("host.queues", "4"),
    ],
    &[
        ("link.kind", "pcie"),
        ("wear.levelling", "static"),
        ("nand.backend", "modern"),
        ("geometry.channels", "4"),
    ],
];

/// Returns the settings of other keys that a key requires. For example, a parameter of a policy requires this policy.
fn needed(doc: &KeyDoc) -> Vec<(&str, &str)> {
    let only = doc.only.iter();
    only.filter_map(|(key, words)| Some((*key, *words.first()?)))
        .collect()
}

#[test]
fn keys_of_devices() {
    let demo = builtin("demo").expect("it is built in");
    let case = |doc: &KeyDoc| {
        let mut sum = Checksum::new();
        let needed = needed(doc);
        for base in BASES {
            for value in values(doc) {
                let mut changes = base.to_vec();
                changes.extend(&needed);
                changes.push((doc.key, &value));
                add(&mut sum, device(demo, &changes));
            }
        }
        (doc.key.to_owned(), sum.0)
    };
    hold("keys", &keys().iter().map(case).collect::<Vec<_>>());
}

#[test]
fn keys_of_arrays() {
    let text = builtin_array("harmonia-array").expect("it is built in");
    let case = |doc: &KeyDoc| {
        let mut sum = Checksum::new();
        let needed = needed(doc);
        for level in ["raid0", "raid1", "raid10", "raid5", "raid6", "swan"] {
            for value in values(doc) {
                let mut changes = vec![("array.level", level)];
                changes.extend(&needed);
                changes.push((doc.key, &value));
                add(&mut sum, array(text, &changes));
            }
        }
        (doc.key.to_owned(), sum.0)
    };
    hold(
        "keys_of_arrays",
        &array_keys().iter().map(case).collect::<Vec<_>>(),
    );
}

/// Returns a file without its comments and empty lines, so that a reworded comment changes no result. No string
/// of a file that is built in contains `#`.
fn uncommented(text: &str) -> String {
    let values = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim_end());
    values
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns a file in which one line is removed, moved or copied, or one character of a line is changed.
fn damaged(text: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let at = rng.below(lines.len() as u64) as usize;
    let other = rng.below(lines.len() as u64) as usize;
    match rng.below(5) {
        0 => drop(lines.remove(at)),
        1 => lines.swap(at, other),
        2 => lines.insert(at, lines[other].clone()),
        _ => {
            let mut letters: Vec<char> = lines[at].chars().collect();
            let place = rng.below(letters.len() as u64 + 1) as usize;
            match rng.below(3) {
                0 if place < letters.len() => drop(letters.remove(place)),
                1 => letters.insert(place, ['a', '7', '"', '.', '=', ' '][rng.below(6) as usize]),
                _ if place + 1 < letters.len() => letters.swap(place, place + 1),
                _ => {}
            }
            lines[at] = letters.into_iter().collect();
        }
    }
    lines.join("\n")
}

#[test]
fn damaged_files() {
    let mut all = Vec::new();
    for name in builtin_names().chain(builtin_array_names()) {
        let mut rng = Rng::new(7);
        let mut sum = Checksum::new();
        let text = builtin(name).or(builtin_array(name));
        let text = uncommented(text.expect("it is built in"));
        for _ in 0..60 {
            let text = damaged(&text, &mut rng);
            match flashtwin::spec::is_array(&text) {
                true => add(&mut sum, array(&text, &[])),
                false => add(&mut sum, device(&text, &[])),
            }
        }
        all.push((name.to_owned(), sum.0));
    }
    hold("damaged_files", &all);
}
