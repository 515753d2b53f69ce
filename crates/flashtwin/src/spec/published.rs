//! Published figures of a real drive, for comparison with the figures that the model measures.

use super::section::{section, KeyDoc, Values, OPTIONAL};
use super::tree::split;
use super::DeviceSpec;
use crate::component::{FromSetting, Kind, Value};

section! {
    /// Published figures of a real drive, for comparison with the figures that the model measures.
    #[derive(Default)]
    pub struct Published(v) in (spec: DeviceSpec => Some(&spec.published)) {
        source: String = "published.source", Kind::Text, Some("\"\""), &[],
            "Source of the figures of this section.", "ours",
            write source(&spec.published);
    } and {
        /// Names and values of the figures, in the order of the keys. If a name ends in `_min` or `_max`, the value is
        /// a bound of the figure with the rest of the name.
        figures: Vec<(&'static str, f64)> = figures(v);
    }
}

impl Published {
    /// Returns the value of a figure by its name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let found = self.figures.iter().find(|(known, _)| *known == name)?;
        Some(found.1)
    }
}

/// Returns the source of the figures. The source is written only if there are figures.
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

/// Creates the list of [`KeyDoc`]s of figures, all of the kind [`Kind::Figure`]. Each figure is given by its key, its
/// description and the source of its values.
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
    "published.write_cache_full_mbs", "Sequential writes of 128 KiB at depth 32 once the cache in SLC mode (`nand.pslc_percent`) is full, in MB/s.", "data sheets, reviews";
    "published.read_qd1_us", "Random reads of 4 KiB at depth 1: mean latency in us.", "data sheets";
    "published.read_p17_us", "Random reads of 4 KiB at depth 1: middle of the fastest third of the latencies (17th percentile), in us.", "measurements of drives with three page types";
    "published.read_p50_us", "Random reads of 4 KiB at depth 1: median latency in us.", "measurements of drives";
    "published.read_p83_us", "Random reads of 4 KiB at depth 1: middle of the slowest third of the latencies (83rd percentile), in us.", "measurements of drives with three page types";
    "published.read_qd32_iops", "Random reads of 4 KiB at depth 32, per second.", "data sheets";
    "published.write_qd1_us", "Random writes of 4 KiB at depth 1 into an empty buffer: mean latency in us.", "data sheets";
    "published.write_steady_iops", "Random writes of 4 KiB at depth 32 to a drive in the steady state of such writes, per second.", "data sheets";
    "published.write_steady_iops_min", "Smallest published value of `write_steady_iops` for such drives.", "data sheets, reviews";
    "published.write_steady_iops_max", "Largest published value of `write_steady_iops` for such drives.", "data sheets, reviews";
    "published.write_steady_p99_us", "The writes of `write_steady_iops`: 99th percentile of the latency, in us.", "data sheets, reviews";
    "published.write_steady_p99_us_max", "Largest published value of `write_steady_p99_us` for such drives.", "data sheets, reviews";
    "published.mixed_steady_iops", "Requests of 4 KiB at depth 32, 70 % of them random reads and the others random writes, on the drive of `write_steady_iops`, per second.", "data sheets, reviews";
    "published.mixed_steady_iops_min", "Smallest value of `mixed_steady_iops` for such drives that is published or follows from published values.", "data sheets, reviews";
    "published.mixed_steady_iops_max", "Largest value of `mixed_steady_iops` for such drives that is published or follows from published values.", "data sheets, reviews";
    "published.mixed_read_p99_us", "The reads of `mixed_steady_iops`: 99th percentile of the latency, in us.", "data sheets, reviews";
    "published.mixed_read_p99_us_max", "Largest published value of `mixed_read_p99_us` for such drives.", "data sheets, reviews";
    "published.beside_p50_us", "Random reads of 4 KiB at depth 1, beside a writer of 4 KiB that syncs after each write (D-67): median latency in us.", "measurements of drives";
    "published.beside_p75_us", "Random reads of 4 KiB at depth 1, beside a writer of 4 KiB that syncs after each write (D-67): 75th percentile of the latency, in us.", "measurements of drives";
    "published.beside_p90_us", "Random reads of 4 KiB at depth 1, beside a writer of 4 KiB that syncs after each write (D-67): 90th percentile of the latency, in us.", "measurements of drives";
    "published.beside_p95_us", "Random reads of 4 KiB at depth 1, beside a writer of 4 KiB that syncs after each write (D-67): 95th percentile of the latency, in us.", "measurements of drives";
    "published.beside_p99_us", "Random reads of 4 KiB at depth 1, beside a writer of 4 KiB that syncs after each write (D-67): 99th percentile of the latency, in us.", "measurements of drives";
    "published.beside_p995_us", "Random reads of 4 KiB at depth 1, beside a writer of 4 KiB that syncs after each write (D-67): 99.5th percentile of the latency, in us.", "measurements of drives";
    "published.beside_p999_us", "Random reads of 4 KiB at depth 1, beside a writer of 4 KiB that syncs after each write (D-67): 99.9th percentile of the latency, in us.", "measurements of drives";
};
