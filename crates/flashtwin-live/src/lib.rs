//! The live driver: a block device whose response times are those of the model, in real time. A server of a block
//! protocol calls a [`Server`] from any number of threads. Each call returns when the modelled device would have
//! responded.
//!
//! [`Core`] has the device and the calls in flight, but no clock. [`Driver`] runs it in real time. [`Store`] has the
//! data. [`Server`] combines these, reads the settings and writes the report.

mod clock;
mod control;
mod core;
mod disturb;
mod driver;
mod error;
mod orders;
mod recording;
mod report;
mod server;
mod session;
mod settings;
mod store;
mod twin;
mod undo;

pub use crate::clock::Dilation;
pub use crate::control::Control;
pub use crate::core::{Call, Core, Response, BATCH_PIECES};
pub use crate::disturb::Disturbance;
pub use crate::driver::Driver;
pub use crate::error::{Failure, LiveError};
pub use crate::orders::{LiveKeys, Orders};
pub use crate::report::{CallCounts, FlashCounts, Lateness, Recent, Report, Responses};
pub use crate::server::{Cut, Extent, InFlight, PreparedServer, Server};
pub use crate::session::Session;
pub use crate::settings::{Kept, Settings};
pub use crate::store::Store;
pub use crate::twin::Twin;
pub use flashtwin::PlacementId;
