//! Counters and histograms for all results that a run reports.

mod flash;
mod host;
mod series;
mod times;

pub use flash::{EraseSpread, FlashReport};
pub(crate) use host::Finished;
pub use host::{Metrics, OpMetrics};
pub use series::{Point, Series};
pub(crate) use times::{Parts, PartsSet};
