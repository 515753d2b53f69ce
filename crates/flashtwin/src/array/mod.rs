//! An array: members behind one front end. An array is a device made of devices: the same driver runs it, and the
//! same buffer policies manage its controller's memory.
//!
//! Each file is called by those above it, and calls those below:
//!
//! ```text
//! array, ahead, untimed, state, faults    what a driver asks of an array
//! raid                                    the back end: executes operations, and reports them done
//! jobs, swan                              rows with their parity; volumes of segments
//! io                                      page operations in, requests to members out
//! coordinate                              the members' turns to collect garbage
//! member                                  an SSD, how much of it is there, what it holds back
//! layout, record                          where pages lie; what was done
//! features                                what an array may have: copies of the code above without it
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
