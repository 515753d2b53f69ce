//! Named loads: loads of several streams that papers have measured.
//!
//! `warp-1stream` and `warp-3stream` are the jobs of WARP (FAST 2026), from its published job files and logs. WARP's
//! streams were closed loops, so the share of the bytes that each stream moved depended on the device. The default
//! shares are from the logs of runs with the same addresses and handles.

use std::path::Path;

use super::fio_job::{self, FioJob};
use super::text::{read_keys, Given};
use super::values::{bytes, number, wrong};
use crate::error::WorkloadError;

/// The streams of a named load.
pub(super) enum Named {
    /// Text form of the load's streams, and text forms of the streams that fill the device before the load, one after
    /// the other.
    Written { load: String, fill: Vec<String> },
    /// Jobs of fio.
    Job(FioJob),
}

/// A named load and the keys that it accepts.
pub struct NamedLoad {
    /// The name.
    pub name: &'static str,
    /// Each key with its default value, or with a description of the default.
    pub keys: &'static [(&'static str, &'static str)],
    /// Description.
    pub line: &'static str,
    write: fn(&Given) -> Result<Named, WorkloadError>,
}

/// Number of requests.
const REQUESTS: (&str, &str) = ("requests", "no end");

/// All named loads. They have several streams, or they prescribe how the device is filled before.
pub const NAMED_LOADS: &[NamedLoad] = &[
    NamedLoad {
        name: "warp-1stream",
        keys: &[("handles", "none"), REQUESTS],
        line: "WARP's job of one stream: 128 KiB, each place once a pass in random order; at depth 128 there",
        write: warp_1stream,
    },
    NamedLoad {
        name: "warp-3stream",
        keys: &[
            ("dist", "uniform"),
            ("handles", "own"),
            ("shares", "as measured"),
            REQUESTS,
        ],
        line: "WARP's job of three streams: sequential 128 KiB and random 4 KiB (`dist`) over 90 % of the device, \
               random 4 KiB over the rest",
        write: warp_3stream,
    },
    NamedLoad {
        name: "cachelib",
        keys: &[
            ("soc", "4"),
            ("soc_bytes", "as measured"),
            ("skew", "0"),
            ("loc_io", "1M"),
            ("handles", "own"),
            REQUESTS,
        ],
        line: "writes of CacheLib: 4 KiB buckets of small objects at random in the first `soc` % of the device, large \
               objects as a log over the rest",
        write: cachelib,
    },
    NamedLoad {
        name: "fio-job",
        keys: &[("file", "needed"), ("bytes", "needed for jobs that run by time")],
        line: "jobs of a job file of fio",
        write: fio_job,
    },
];

/// Reads a named load; `None` if the text does not begin with the name of one.
pub(super) fn parse(text: &str) -> Option<Result<Named, WorkloadError>> {
    let (name, pairs) = text.split_once(':').unwrap_or((text, ""));
    let load = NAMED_LOADS.iter().find(|load| load.name == name)?;
    let keys: Vec<&'static str> = load.keys.iter().map(|(key, _)| *key).collect();
    Some(read_keys(load.name, &keys, pairs).and_then(|given| (load.write)(&given)))
}

/// Returns the value of a key. The value must be one of `words`.
fn word<'a>(
    given: &Given<'a>,
    key: &str,
    words: &[&'static str],
) -> Result<&'static str, WorkloadError> {
    let value = given.get(key).unwrap_or(words[0]);
    match words.iter().find(|word| **word == value) {
        Some(word) => Ok(word),
        None => wrong(format!(
            "{key}={value}: one of {} is expected",
            words.join(", ")
        )),
    }
}

/// Returns the key `requests` as the last part of a stream's text form. Empty if the key is not given.
fn requests(given: &Given) -> String {
    given
        .get("requests")
        .map_or(String::new(), |n| format!(",requests={n}"))
}

fn placement(id: Option<u16>) -> String {
    id.map_or(String::new(), |id| format!(",placement={id}"))
}

fn warp_1stream(given: &Given) -> Result<Named, WorkloadError> {
    let id = match word(given, "handles", &["none", "own"])? {
        "none" => None,
        _ => Some(0),
    };
    let load = format!(
        "uniform:permute=true,size=128k,write=1{}{}",
        placement(id),
        requests(given)
    );
    let fill = Vec::new();
    Ok(Named::Written { load, fill })
}

/// For each distribution and each setting of the handles: the shares of the bytes that the sequential stream, the
/// overwrites and the random stream moved in WARP's runs of three streams, from the logs. For some settings no run was
/// published; they have the shares of the nearest published run.
const MEASURED: &[(&str, &str, [f64; 3])] = &[
    ("uniform", "none", [0.567, 0.224, 0.209]),
    ("uniform", "own", [0.570, 0.214, 0.216]),
    ("uniform", "shared", [0.569, 0.215, 0.216]),
    ("zipf1.2", "none", [0.583, 0.204, 0.213]),
    ("zipf1.2", "own", [0.597, 0.199, 0.204]),
    ("zipf1.2", "shared", [0.597, 0.199, 0.204]),
    ("zipf2.2", "none", [0.601, 0.195, 0.204]),
    ("zipf2.2", "own", [0.619, 0.183, 0.198]),
    ("zipf2.2", "shared", [0.600, 0.193, 0.207]),
    ("zoned", "none", [0.577, 0.213, 0.210]),
    ("zoned", "own", [0.582, 0.209, 0.209]),
    ("zoned", "shared", [0.582, 0.209, 0.209]),
];

fn warp_3stream(given: &Given) -> Result<Named, WorkloadError> {
    let dist = word(given, "dist", &["uniform", "zipf1.2", "zipf2.2", "zoned"])?;
    let handles = word(given, "handles", &["own", "shared", "none"])?;
    let [sequential, overwrite, random] = match given.get("shares") {
        Some(text) => three_shares(text)?,
        None => {
            let row = MEASURED
                .iter()
                .find(|row| (row.0, row.1) == (dist, handles));
            row.map_or([1.0; 3], |row| row.2)
        }
    };
    // In the published runs, the random stream has handle 1 and the overwrites have handle 2.
    let [of_sequential, of_overwrite, of_random] = match handles {
        "own" => [Some(0), Some(2), Some(1)],
        "shared" => [Some(0), Some(0), Some(1)],
        _ => [None; 3],
    };
    let addresses = match dist {
        "zipf1.2" => "zipf:theta=1.2,fio=true,",
        "zipf2.2" => "zipf:theta=2.2,fio=true,",
        "zoned" => "uniform:zoned=80/20:10/20:10/60,",
        _ => "uniform:",
    };
    let (large, small) = ("0%..90%", "90%..100%");
    let of_sequential = placement(of_sequential);
    let (of_overwrite, of_random) = (placement(of_overwrite), placement(of_random));
    let load = format!(
        "sequential:size=128k,write=1,range={large}{of_sequential},bytes={sequential}{} + \
         {addresses}write=1,range={large}{of_overwrite},bytes={overwrite} + \
         uniform:write=1,range={small}{of_random},bytes={random}",
        requests(given)
    );
    let fill = vec![
        format!("sequential:size=128k,write=1,range={large}{of_sequential}"),
        format!("uniform:write=1,range={small}{of_random}"),
    ];
    Ok(Named::Written { load, fill })
}

/// Parses the shares of the bytes of the three streams, such as `0.57/0.22/0.21`.
fn three_shares(text: &str) -> Result<[f64; 3], WorkloadError> {
    let parts: Vec<Option<f64>> = text.split('/').map(|part| part.parse().ok()).collect();
    match parts[..] {
        [Some(a), Some(b), Some(c)] if [a, b, c].iter().all(|share| *share > 0.0 && share.is_finite()) => {
            Ok([a, b, c])
        }
        _ => wrong(format!(
            "shares={text}: the shares of the bytes of the sequential stream, the overwrites and the random stream are \
             expected, each above 0, like 0.57/0.22/0.21"
        )),
    }
}

/// Pairs from the logs of CacheLib on WARP's emulator: the percentage of the flash that stores small objects, and the
/// fraction of all written bytes that belong to small objects.
const SOC_BYTES: &[(f64, f64)] = &[(4.0, 0.067), (20.0, 0.119), (40.0, 0.127)];

fn cachelib(given: &Given) -> Result<Named, WorkloadError> {
    let percent = given.get("soc").unwrap_or("4");
    let soc = number("soc", percent.strip_suffix('%').unwrap_or(percent))?;
    if !(soc > 0.0 && soc < 100.0) {
        return wrong(format!(
            "soc={soc}: percent of the device for small objects; above 0 and below 100 is possible"
        ));
    }
    let measured = SOC_BYTES.iter().find(|(percent, _)| *percent == soc);
    let share = match (given.get("soc_bytes"), measured) {
        (Some(_), _) => given.number_or("soc_bytes", "")?,
        (None, Some((_, share))) => *share,
        (None, None) => {
            return wrong(format!(
                "soc={soc}: the share of the bytes is known for 4, 20 and 40; give it, like soc_bytes=0.1"
            ))
        }
    };
    if !(share > 0.0 && share < 1.0) {
        return wrong(format!(
            "soc_bytes={share}: share of the bytes written to small objects; above 0 and below 1 is possible"
        ));
    }
    let [of_small, of_large] = match word(given, "handles", &["own", "shared", "none"])? {
        "own" => [Some(0), Some(1)],
        "shared" => [Some(0), Some(0)],
        _ => [None; 2],
    };
    let skew = given.number_or("skew", "0")?;
    let addresses = match skew == 0.0 {
        true => "uniform:".to_string(),
        false => format!("zipf:theta={skew},"),
    };
    let io = bytes("loc_io", given.get("loc_io").unwrap_or("1M"))?;
    let (of_small, of_large) = (placement(of_small), placement(of_large));
    let load = format!(
        "{addresses}write=1,range=0%..{soc}%{of_small},bytes={share}{} + \
         sequential:size={io},write=1,range={soc}%..100%{of_large},bytes={}",
        requests(given),
        1.0 - share
    );
    let fill = vec![
        format!("sequential:size=128k,write=1,range=0%..{soc}%{of_small}"),
        format!("sequential:size={io},write=1,range={soc}%..100%{of_large}"),
    ];
    Ok(Named::Written { load, fill })
}

fn fio_job(given: &Given) -> Result<Named, WorkloadError> {
    let file = Path::new(given.needed("file", "job.fio")?);
    let moved = given
        .get("bytes")
        .map(|value| bytes("bytes", value))
        .transpose()?;
    Ok(Named::Job(fio_job::open(file, moved)?))
}
