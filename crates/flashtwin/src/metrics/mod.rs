//! Counters, histograms and the latency breakdown: everything a run reports.

mod breakdown;
mod flash;
mod host;
mod series;

pub use breakdown::Breakdown;
pub use flash::{EraseSpread, FlashReport};
pub use host::{Metrics, OpMetrics};
pub use series::{Point, Series};
