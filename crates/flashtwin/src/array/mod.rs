//! An array: several SSDs (members) behind one front end. A driver uses an array like an SSD: both are devices. The
//! buffer in the array's controller has the same policies as the buffer of an SSD.
//!
//! A file calls only files below it:
//!
//! ```text
//! array, ahead, untimed, state, faults    the public API
//! raid                                    the back end: executes page operations and returns them
//! jobs, swan                              rows with their parity; volumes of segments
//! io                                      page operations in, requests to members out
//! coordinate                              coordination of the members' garbage collection
//! member                                  an SSD, its restored rows, its delayed responses
//! layout, record                          locations of pages; counters and logs
//! features                                copies of the code without optional features
//! ```

mod ahead;
#[allow(clippy::module_inception)] // The array as a device, beside what it is made of.
mod array;
mod clock;
mod coordinate;
mod executor;
mod faults;
mod features;
mod io;
mod jobs;
mod layout;
mod member;
mod raid;
mod record;
mod state;
mod swan;
mod table;
mod untimed;

pub use executor::{Executor, Sequential, Task};
pub use layout::plan::Method;
pub use raid::{Array, Raid};
pub use record::history::{Condition, MemberRebuild, Phase};
pub use record::log::{ArrayEvent, GcMessage, JobKind, SentFor};
pub use record::stats::RaidStats;
pub use record::timeline::GcInterval;
pub use untimed::Filling;
