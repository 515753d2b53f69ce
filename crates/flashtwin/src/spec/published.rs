//! Published figures of a drive, to be compared with those measured.

use super::section::{section, KeyDoc, Values, OPTIONAL};
use super::tree::split;
use super::DeviceSpec;
use crate::component::{FromSetting, Kind, Value};

section! {
    /// Figures of a drive, to be compared with those measured.
    #[derive(Default)]
    pub struct Published(v) in (spec: DeviceSpec => Some(&spec.published)) {
        source: String = "published.source", Kind::Text, Some("\"\""), &[],
            "Source of the figures of this section.", "ours",
            write source(&spec.published);
    } and {
        /// Names and values in the order of the keys. `_min` and `_max` after the name of a figure is a bound of it.
        figures: Vec<(&'static str, f64)> = figures(v);
    }
}

impl Published {
    /// The value of a figure by its name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let found = self.figures.iter().find(|(known, _)| *known == name)?;
        Some(found.1)
    }
}

/// Written if anything is published.
fn source(published: &Published) -> Option<Value> {
    (*published != Published::default()).then(|| Value::Text(published.source.clone()))
}

fn figures(v: &Values) -> Vec<(&'static str, f64)> {
    let given = |doc: &KeyDoc| {
        let value = f64::from_setting(v.0.get(doc.key)?)?;
        Some((split(doc.key).1, value))
    };
    FIGURES.iter().filter_map(given).collect()
}

/// Rows of figures, which all are of one kind: key, description, source.
macro_rules! figures {
    ($($key:literal, $doc:literal, $from:literal;)+) => {
        &[$(KeyDoc {
            key: $key, kind: Kind::Figure, default: OPTIONAL, only: &[], doc: $doc, provenance: $from,
        }),+]
    };
}

/// The keys of figures.
pub(super) const FIGURES: &[KeyDoc] = figures! {
    "published.read_128k_mbs", "Sequential reads of 128 KiB at depth 32, in MB/s.", "data sheets";
    "published.write_128k_mbs", "Sequential writes of 128 KiB at depth 32 to a new drive, in MB/s.", "data sheets";
    "published.write_cache_full_mbs", "The same once the cache in SLC mode (`nand.pslc_percent`) is full.", "data sheets, reviews";
    "published.read_qd1_us", "Random reads of 4 KiB one at a time: the mean.", "data sheets";
    "published.read_p17_us", "The same: the middle of the fastest third.", "measurements of drives with three page types";
    "published.read_p50_us", "The same: the median.", "measurements of drives";
    "published.read_p83_us", "The same: the middle of the slowest third.", "measurements of drives with three page types";
    "published.read_qd32_iops", "Random reads of 4 KiB a second at depth 32.", "data sheets";
    "published.write_qd1_us", "Random writes of 4 KiB one at a time into an empty buffer: the mean.", "data sheets";
    "published.write_steady_iops", "Random writes of 4 KiB a second at depth 32 to a drive worn in by such writes.", "data sheets";
    "published.write_steady_iops_min", "The least of what is published of such drives.", "data sheets, reviews";
    "published.write_steady_iops_max", "The most of what is published of such drives.", "data sheets, reviews";
    "published.write_steady_p99_us", "The same: the 99th percentile.", "data sheets, reviews";
    "published.write_steady_p99_us_max", "The most of what is published of such drives.", "data sheets, reviews";
    "published.mixed_steady_iops", "The same drive, 70 % of the requests reads of 4 KiB, the others writes: requests a second at depth 32.", "data sheets, reviews";
    "published.mixed_steady_iops_min", "The least of what is published of such drives, or follows from it.", "data sheets, reviews";
    "published.mixed_steady_iops_max", "The most of what is published of such drives, or follows from it.", "data sheets, reviews";
    "published.mixed_read_p99_us", "The same: the 99th percentile of the reads.", "data sheets, reviews";
    "published.mixed_read_p99_us_max", "The most of what is published of such drives.", "data sheets, reviews";
    "published.beside_p50_us", "Random reads of 4 KiB one at a time, beside a writer of 4 KiB that syncs after each (D-67): the median.", "measurements of drives";
    "published.beside_p75_us", "The same: the 75th percentile.", "measurements of drives";
    "published.beside_p90_us", "The same: the 90th percentile.", "measurements of drives";
    "published.beside_p95_us", "The same: the 95th percentile.", "measurements of drives";
    "published.beside_p99_us", "The same: the 99th percentile.", "measurements of drives";
    "published.beside_p995_us", "The same: the 99.5th percentile.", "measurements of drives";
    "published.beside_p999_us", "The same: the 99.9th percentile.", "measurements of drives";
};
