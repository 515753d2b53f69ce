//! The short text form of a generated load: `pattern:key=value,key=value`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::address::Address;
use super::arrival::Arrival;
use super::named::NAMED_LOADS;
use super::size::Size;
use super::spec::{GeneratorSpec, PRESETS};
use super::values::{bytes, count, flag, interval, number, range, rate, seconds, wrong};
use crate::error::WorkloadError;
use crate::trace::named::placement_id;
use flashtwin::PlacementId;

/// A word of the text form that selects a distribution or a pattern, and the keys that belong to it.
struct Choice<T> {
    name: &'static str,
    keys: &'static [&'static str],
    read: fn(&Given) -> Result<T, WorkloadError>,
}

/// The patterns of addresses.
const PATTERNS: &[Choice<Address>] = &[
    Choice {
        name: "uniform",
        keys: &["permute", "zoned"],
        read: |given| {
            Ok(Address::Uniform {
                permute: given.flag_or("permute", false)?,
                zoned: given.get("zoned").map_or(Ok(Vec::new()), zoned)?,
            })
        },
    },
    Choice {
        name: "normal",
        keys: &["sigma", "mean"],
        read: |given| {
            Ok(Address::Normal {
                sigma: bytes("sigma", given.needed("sigma", "40000k")?)?,
                mean: given.get("mean").map(|v| bytes("mean", v)).transpose()?,
            })
        },
    },
    Choice {
        name: "zipf",
        keys: &["theta", "scramble", "cluster", "ranks_per_place", "fio"],
        read: |given| {
            Ok(Address::Zipf {
                theta: given.number_or("theta", "0.99")?,
                scramble: given.flag_or("scramble", true)?,
                fio: given.flag_or("fio", false)?,
                cluster: given.whole_or_one("cluster")?,
                ranks_per_place: given.whole_or_one("ranks_per_place")?,
            })
        },
    },
    Choice {
        name: "hotcold",
        keys: &["hot_access", "hot_space"],
        read: |given| {
            Ok(Address::Hotcold {
                hot_access: given.number_or("hot_access", "0.8")?,
                hot_space: given.number_or("hot_space", "0.2")?,
            })
        },
    },
    Choice {
        name: "sequential",
        keys: &[],
        read: |_| Ok(Address::Sequential {}),
    },
    Choice {
        name: "stack",
        keys: &["distances"],
        read: |given| {
            let weights = given.needed("distances", "40+12+2+9+20")?;
            let weight = |w: &str| number("distances", w);
            Ok(Address::Stack {
                distances: weights.split('+').map(weight).collect::<Result<_, _>>()?,
            })
        },
    },
    Choice {
        name: "locality",
        keys: &["file"],
        read: |given| {
            Ok(Address::Locality {
                file: PathBuf::from(given.needed("file", "lba_freq.csv")?),
            })
        },
    },
];

/// The patterns of arrivals.
const ARRIVALS: &[Choice<Arrival>] = &[
    Choice {
        name: "none",
        keys: &[],
        read: |_| Ok(Arrival::None {}),
    },
    Choice {
        name: "constant",
        keys: &["rate", "interval"],
        read: |given| {
            let rate = given.rate_needed()?;
            Ok(Arrival::Constant { rate })
        },
    },
    Choice {
        name: "exponential",
        keys: &["rate", "interval"],
        read: |given| {
            let rate = given.rate_needed()?;
            Ok(Arrival::Exponential { rate })
        },
    },
    Choice {
        name: "hyper",
        keys: &["rate", "interval", "cv"],
        read: |given| {
            Ok(Arrival::Hyper {
                rate: given.rate_needed()?,
                cv: given.number_or("cv", "2")?,
            })
        },
    },
    Choice {
        name: "onoff",
        keys: &["on_rate", "on_length", "duty"],
        read: |given| {
            Ok(Arrival::Onoff {
                on_rate: rate("on_rate", given.needed("on_rate", "5k/s")?)?,
                on_length: given.number_or("on_length", "20")?,
                duty: given.number_or("duty", "0.1")?,
            })
        },
    },
    Choice {
        name: "schedule",
        keys: &["schedule"],
        read: |given| {
            let example = "20k/s*60s+0*5s";
            let text = given.needed("schedule", example)?;
            let steps = text.split('+').map(|step| match step.split_once('*') {
                Some((requests, time)) => {
                    let requests = rate("schedule", requests)?;
                    Ok((requests, seconds("schedule", time)?))
                }
                None => wrong(format!(
                    "schedule={text}: {step} is no rate and time, like {example}"
                )),
            });
            let steps = steps.collect::<Result<_, WorkloadError>>()?;
            Ok(Arrival::Schedule { steps })
        },
    },
];

/// The keys that are given, with their values.
pub(super) struct Given<'a> {
    /// Owner of the keys, for messages.
    of: String,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Given<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
    }

    /// Replaces the values of a preset by those in `changes`.
    fn change(&mut self, changes: Given<'a>) {
        for (key, _) in &changes.pairs {
            self.pairs.retain(|(k, _)| !replaces(key, k));
        }
        self.pairs.extend(changes.pairs);
    }

    pub(super) fn needed(&self, key: &str, example: &str) -> Result<&'a str, WorkloadError> {
        match self.get(key) {
            Some(value) => Ok(value),
            None => wrong(format!(
                "{}: {key} is missing, like {key}={example}",
                self.of
            )),
        }
    }

    pub(super) fn number_or(&self, key: &str, other: &str) -> Result<f64, WorkloadError> {
        number(key, self.get(key).unwrap_or(other))
    }

    /// Returns a whole number; 1 if the key is left out.
    fn whole_or_one(&self, key: &str) -> Result<u64, WorkloadError> {
        let Some(value) = self.get(key) else {
            return Ok(1);
        };
        let read = value.parse();
        read.or_else(|_| wrong(format!("{key}={value}: a whole number is expected, like 3")))
    }

    fn flag_or(&self, key: &str, other: bool) -> Result<bool, WorkloadError> {
        self.get(key).map_or(Ok(other), |value| flag(key, value))
    }

    /// Returns the rate in requests per second, from the key `rate` or `interval`.
    fn rate(&self) -> Result<Option<f64>, WorkloadError> {
        match (self.get("rate"), self.get("interval")) {
            (Some(value), _) => rate("rate", value).map(Some),
            (None, Some(value)) => interval("interval", value).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn rate_needed(&self) -> Result<f64, WorkloadError> {
        match self.rate()? {
            Some(rate) => Ok(rate),
            None => wrong(format!("{}: rate is missing, like rate=20k/s", self.of)),
        }
    }

    /// Returns the arrival process. If the key `arrival` is missing, the other keys determine the process.
    fn arrival(&mut self) -> Result<Arrival, WorkloadError> {
        let kind = self.get("arrival").unwrap_or({
            match (self.rate()?, self.get("on_rate"), self.get("schedule")) {
                (_, _, Some(_)) => "schedule",
                (_, Some(_), None) => "onoff",
                (Some(_), None, None) => "exponential",
                (None, None, None) => "none",
            }
        });
        let Some(choice) = ARRIVALS.iter().find(|choice| choice.name == kind) else {
            let names: Vec<&str> = ARRIVALS.iter().map(|choice| choice.name).collect();
            let (last, first) = names.split_last().unwrap_or((&"", &[]));
            let names = format!("{} or {last}", first.join(", "));
            return wrong(format!("arrival={kind}: {names} is expected"));
        };
        let mut all = ARRIVALS.iter().flat_map(|choice| choice.keys);
        let strange = |key: &&&str| self.get(key).is_some() && !choice.keys.contains(key);
        if let Some(key) = all.find(strange) {
            return wrong(format!("{key} does not go with arrival={kind}"));
        }
        self.of = format!("arrival={kind}");
        (choice.read)(self)
    }
}

/// Keys that are permitted with every pattern.
const COMMON: &[&str] = &[
    "write",
    "trim",
    "flush",
    "fua",
    "size",
    "rate",
    "interval",
    "arrival",
    "cv",
    "on_rate",
    "on_length",
    "duty",
    "schedule",
    "seq",
    "local",
    "local_range",
    "pinned",
    "stripe",
    "range",
    "placement",
    "align",
    "requests",
];

/// Key with a stream's share of the bytes, relative to the other streams.
const SHARE: &str = "bytes";

/// Names of keys in other tools, each with the corresponding key.
const SYNONYMS: &[(&str, &str)] = &[
    ("footprint", "range"),
    ("working_set", "range"),
    ("wss", "range"),
    ("span", "range"),
    ("bs", "size"),
    ("block_size", "size"),
    ("write_ratio", "write"),
    ("rwmixwrite", "write"),
    ("iops", "rate"),
    ("count", "requests"),
    ("skew", "theta"),
];

/// Returns the end of an error message about the unknown name `word`: the known name with the same meaning or the most
/// similar spelling. If no known name is similar, the end lists all known names.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == word);
    // A name is similar if at most a third of the letters differ.
    let spelled = || {
        known
            .iter()
            .map(|k| (distance(word, k), *k))
            .min()
            .filter(|(changes, _)| *changes <= word.chars().count().div_ceil(3))
    };
    match synonym.map(|(_, k)| *k).filter(|k| known.contains(k)) {
        Some(k) => format!("; did you mean {k}?"),
        None => spelled().map_or_else(
            || format!("; available: {}", known.join(", ")),
            |(_, k)| format!("; did you mean {k}?"),
        ),
    }
}

/// Returns the smallest number of letters that must be changed, added or removed to turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Parses pairs of percentages, of the accesses and of the range, such as `80/20:10/20:10/60`.
fn zoned(value: &str) -> Result<Vec<(f64, f64)>, WorkloadError> {
    let part = |part: &str| {
        match part.split_once('/') {
        Some((access, share)) => Ok((number("zoned", access)?, number("zoned", share)?)),
        None => wrong(format!(
            "zoned={value}: \"{part}\" is no share of the accesses / share of the range in percent, like \
             80/20:10/20:10/60"
        )),
    }
    };
    value.split(':').map(part).collect()
}

fn placement(value: &str) -> Result<u16, WorkloadError> {
    match placement_id(value.as_bytes(), false).and_then(PlacementId::get) {
        Some(id) => Ok(id),
        None => wrong(format!(
            "placement={value}: a placement id from 0 to 65534 is expected, decimal or hexadecimal after 0x"
        )),
    }
}

fn size(value: &str) -> Result<Size, WorkloadError> {
    let (kind, inner) = match value.split_once('(') {
        None => {
            return Ok(Size::Constant {
                bytes: bytes("size", value)?,
            })
        }
        Some((kind, rest)) => (kind, rest.strip_suffix(')')),
    };
    let form = || {
        wrong(format!(
            "size={value}: expected 4k, exp(32k), geometric(8k), uniform(4k..64k) or list(4k*70+64k*30)"
        ))
    };
    let Some(inner) = inner else { return form() };
    match kind {
        "exp" => Ok(Size::Exponential {
            mean: bytes("size", inner)?,
        }),
        "geometric" => Ok(Size::Geometric {
            mean: bytes("size", inner)?,
        }),
        "uniform" => match inner.split_once("..") {
            Some((min, max)) => Ok(Size::Uniform {
                min: bytes("size", min)?,
                max: bytes("size", max)?,
            }),
            None => form(),
        },
        "list" => {
            let choice = |part: &str| match part.split_once('*') {
                Some((b, weight)) => Ok((bytes("size", b)?, number("size", weight)?)),
                None => Ok((bytes("size", part)?, 1.0)),
            };
            Ok(Size::List {
                choices: inner.split('+').map(choice).collect::<Result<_, _>>()?,
            })
        }
        _ => form(),
    }
}

/// Reads a list `key=value,...`. Each key must be known.
pub(super) fn read_keys<'a>(
    name: &str,
    keys: &[&'static str],
    pairs: &'a str,
) -> Result<Given<'a>, WorkloadError> {
    let mut given: Vec<(&str, &str)> = Vec::new();
    for pair in pairs.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            return wrong(format!("{name}: \"{pair}\" is no key=value"));
        };
        if !keys.contains(&key) {
            return wrong(match key {
                "depth" => format!(
                    "{name}: depth is no key of a load: the queue depth is of the whole run (--queue-depth N), and \
                     streams have shares of the bytes, like bytes=0.5"
                ),
                SHARE => format!(
                    "{name}: bytes is the share of one of several streams, and this is the only one; leave it out, or \
                     join streams by \" + \""
                ),
                _ => format!(
                    "{name}: key \"{key}\" is not known{}",
                    nearest(key, keys.iter().copied())
                ),
            });
        }
        if let Some((earlier, _)) = given.iter().find(|(k, _)| replaces(key, k)) {
            return wrong(match *earlier == key {
                true => format!("{name}: {key} is given twice; leave one out"),
                false => format!("{name}: {earlier} and {key} are given; leave one out"),
            });
        }
        given.push((key, value));
    }
    Ok(Given {
        of: name.to_string(),
        pairs: given,
    })
}

impl GeneratorSpec {
    /// Reads the short text form `pattern:key=value,key=value`, as in `zipf:theta=0.9,write=0.8`. A preset's name may
    /// replace the pattern; keys then change the preset, as in `gcar-synthetic:write=0.5`.
    ///
    /// # Errors
    /// Fails if the pattern or a key is unknown, or a value is out of its range.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        Ok(parse(text, &[])?.0)
    }

    /// Reads one of several streams. Returns its spec, and its share of the bytes if the text has one.
    pub(super) fn parse_stream(text: &str) -> Result<(Self, Option<f64>), WorkloadError> {
        parse(text, &[SHARE])
    }
}

impl FromStr for GeneratorSpec {
    type Err = WorkloadError;
    fn from_str(s: &str) -> Result<Self, WorkloadError> {
        GeneratorSpec::parse(s)
    }
}

impl fmt::Display for GeneratorSpec {
    /// Formats the short text form, which `parse` converts back to an equal spec.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, f)
    }
}

/// Reads the text form, in which the keys `more_keys` are also permitted. Also returns the share of the bytes.
fn parse(
    text: &str,
    more_keys: &[&'static str],
) -> Result<(GeneratorSpec, Option<f64>), WorkloadError> {
    let (mut pattern, pairs) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
    let mut preset = "";
    if let Some((_, base, _)) = PRESETS.iter().find(|(name, ..)| *name == pattern) {
        (pattern, preset) = base.split_once(':').unwrap_or((base, ""));
    }
    let Some(choice) = PATTERNS.iter().find(|choice| choice.name == pattern) else {
        let names = PATTERNS.iter().map(|choice| choice.name);
        let names = names.chain(PRESETS.iter().map(|p| p.0));
        let names = names.chain(NAMED_LOADS.iter().map(|load| load.name));
        return wrong(format!(
            "unknown workload \"{pattern}\"{}",
            nearest(pattern, names)
        ));
    };
    let keys = [COMMON, choice.keys, more_keys].concat();
    let mut given = read_keys(choice.name, &keys, preset)?;
    given.change(read_keys(choice.name, &keys, pairs)?);
    let address = (choice.read)(&given)?;
    let arrival = given.arrival()?;
    let get = |key: &str| given.get(key);
    let share = |key: &str| given.number_or(key, "0");
    let mut spec = GeneratorSpec {
        address,
        arrival,
        write: share("write")?,
        trim: share("trim")?,
        flush: share("flush")?,
        fua: share("fua")?,
        sequential: share("seq")?,
        local: share("local")?,
        pinned: share("pinned")?,
        ..GeneratorSpec::default()
    };
    if let Some(value) = get("size") {
        spec.size = size(value)?;
    }
    if let Some(value) = get("local_range") {
        spec.local_range = bytes("local_range", value)?;
    }
    if let Some(value) = get("stripe") {
        spec.stripe = bytes("stripe", value)?;
    }
    if let Some(value) = get("align") {
        spec.alignment = bytes("align", value)?;
    }
    spec.range = get("range").map(|v| range("range", v)).transpose()?;
    spec.placement = get("placement").map(placement).transpose()?;
    if let Some(value) = get("requests") {
        let n = count("requests", value)?;
        if n.fract() != 0.0 || n > 1e18 {
            return wrong(format!(
                "requests={value}: a whole number is expected, like 1e6 or 200k"
            ));
        }
        spec.requests = Some(n as u64);
    }
    let share = get(SHARE).map(|v| number(SHARE, v)).transpose()?;
    Ok((spec, share))
}

/// Whether two keys set the same value, as `rate` and `interval` do.
fn replaces(key: &str, earlier: &str) -> bool {
    key == earlier || matches!((key, earlier), ("rate", "interval") | ("interval", "rate"))
}

/// Writes the text form. Omits values that equal the defaults.
fn write(spec: &GeneratorSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut keys: Vec<String> = Vec::new();
    let pattern = write_address(&spec.address, &mut keys);
    keys.push(write_size(&spec.size));
    let shares = [
        ("write", spec.write),
        ("trim", spec.trim),
        ("flush", spec.flush),
        ("fua", spec.fua),
        ("seq", spec.sequential),
        ("local", spec.local),
        ("pinned", spec.pinned),
    ];
    keys.extend(
        shares
            .iter()
            .filter(|s| s.1 != 0.0)
            .map(|(k, v)| format!("{k}={v}")),
    );
    if spec.local != 0.0 {
        keys.push(format!("local_range={}", spec.local_range));
    }
    if spec.pinned != 0.0 {
        keys.push(format!("stripe={}", spec.stripe));
    }
    keys.extend(write_arrival(&spec.arrival));
    keys.extend(spec.range.map(|r| format!("range={r}")));
    keys.extend(spec.placement.map(|id| format!("placement={id}")));
    if spec.alignment != 4096 {
        keys.push(format!("align={}", spec.alignment));
    }
    keys.extend(spec.requests.map(|n| format!("requests={n}")));
    write!(f, "{pattern}:{}", keys.join(","))
}

/// Returns the name of an address pattern, and adds its parameters to `keys`.
fn write_address(address: &Address, keys: &mut Vec<String>) -> &'static str {
    match address {
        Address::Uniform { permute, zoned } => {
            keys.extend(permute.then(|| "permute=true".to_string()));
            if !zoned.is_empty() {
                let parts: Vec<String> = zoned.iter().map(|(a, s)| format!("{a}/{s}")).collect();
                keys.push(format!("zoned={}", parts.join(":")));
            }
            "uniform"
        }
        Address::Normal { sigma, mean } => {
            keys.push(format!("sigma={sigma}"));
            keys.extend(mean.map(|m| format!("mean={m}")));
            "normal"
        }
        Address::Zipf {
            theta,
            scramble,
            cluster,
            ranks_per_place,
            fio,
        } => {
            keys.push(format!("theta={theta}"));
            keys.extend(fio.then(|| "fio=true".to_string()));
            keys.extend((!scramble).then(|| "scramble=false".to_string()));
            keys.extend((*cluster != 1).then(|| format!("cluster={cluster}")));
            keys.extend(
                (*ranks_per_place != 1).then(|| format!("ranks_per_place={ranks_per_place}")),
            );
            "zipf"
        }
        Address::Hotcold {
            hot_access,
            hot_space,
        } => {
            keys.push(format!("hot_access={hot_access},hot_space={hot_space}"));
            "hotcold"
        }
        Address::Sequential {} => "sequential",
        Address::Stack { distances } => {
            let weights: Vec<String> = distances.iter().map(f64::to_string).collect();
            keys.push(format!("distances={}", weights.join("+")));
            "stack"
        }
        Address::Locality { file } => {
            keys.push(format!("file={}", file.display()));
            "locality"
        }
    }
}

fn write_size(size: &Size) -> String {
    match size {
        Size::Constant { bytes } => format!("size={bytes}"),
        Size::Exponential { mean } => format!("size=exp({mean})"),
        Size::Geometric { mean } => format!("size=geometric({mean})"),
        Size::Uniform { min, max } => format!("size=uniform({min}..{max})"),
        Size::List { choices } => {
            let parts: Vec<String> = choices.iter().map(|(b, w)| format!("{b}*{w}")).collect();
            format!("size=list({})", parts.join("+"))
        }
    }
}

fn write_arrival(arrival: &Arrival) -> Option<String> {
    match *arrival {
        Arrival::Schedule { ref steps } => {
            let steps: Vec<String> = steps.iter().map(|(r, s)| format!("{r}*{s}s")).collect();
            Some(format!("schedule={}", steps.join("+")))
        }
        Arrival::None {} => None,
        Arrival::Constant { rate } => Some(format!("arrival=constant,rate={rate}")),
        Arrival::Exponential { rate } => Some(format!("rate={rate}")),
        Arrival::Hyper { rate, cv } => Some(format!("arrival=hyper,rate={rate},cv={cv}")),
        Arrival::Onoff {
            on_rate,
            on_length,
            duty,
        } => Some(format!(
            "on_rate={on_rate},on_length={on_length},duty={duty}"
        )),
    }
}
