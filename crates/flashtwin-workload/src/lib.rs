//! Block traces and generated loads.
//!
//! A [`Workload`] is a stream of requests in batches. [`open_trace`] reads a trace, and detects its compression and
//! format from the content. [`LoadSpec::build`] creates a generated load. A workload has no information about the
//! device: the driver handles pacing, queue depth and addresses beyond the device.
#![warn(missing_docs)]

mod ahead;
mod error;
mod generate;
mod partial;
mod repeat;
mod trace;

pub use ahead::read_ahead;
pub use error::{ErrorKind, WorkloadError};
pub use generate::address::Address;
pub use generate::arrival::Arrival;
pub use generate::load::{in_order, Handles, LoadSpec};
pub use generate::named::{NamedLoad, NAMED_LOADS};
pub use generate::popularity::Popularity;
pub use generate::size::Size;
pub use generate::spec::{GeneratorSpec, PRESETS};
pub use generate::stream::{Amount, StreamSpec};
pub use generate::values::{Part, Range};
pub use partial::{sync_directory, Partial};
pub use repeat::{repeat, Open, Shift};
pub use trace::convert::{convert, Converted};
pub use trace::csv::CsvColumns;
pub use trace::estimate::estimate_lines;
pub use trace::info::{trace_info, OpInfo, TraceInfo, VolumeInfo};
pub use trace::options::{AddressUnit, Addresses, BlkEvent, TimeUnit, TraceOptions, Volumes};
pub use trace::reader::{has_times, open_trace, read_bytes};
pub use trace::table::{set_table_reader, TableReader};
pub use trace::Format;

use flashtwin::Request;

/// A stream of requests in order of arrival. It returns batches, so that the driver can look ahead.
pub trait Workload: Send {
    /// Appends the next requests to `out`, at most a few thousand. Returns the number of requests appended, 0 at the
    /// end.
    ///
    /// # Errors
    /// Fails if the next requests cannot be read or generated. The workload ends with the error.
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError>;

    /// Returns the total number of requests if it is known in advance. A request that the load splits into pieces
    /// counts as one.
    fn requests_total(&self) -> Option<u64>;

    /// Returns a one-line description: the detected format and units, or the generator's parameters and seed.
    fn describe(&self) -> String;

    /// Returns the number of completed passes of a repeated workload. A pass is completed when all its requests have
    /// been returned. The requests of a batch all belong to one pass.
    fn passes(&self) -> u64 {
        0
    }

    /// Returns the warnings so far, for instance about skipped lines or doubtful units. Warnings do not stop a run.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
