//! The live driver: the same model as offline, paced by the wall clock, with the data that a block device keeps. A
//! server of a block protocol calls a [`Server`] from any number of threads; each call returns when the modelled
//! device would have responded.
//!
//! [`Core`] knows the calls in flight and has no clock; [`Driver`] runs it in real time; [`Store`] holds the data;
//! [`Server`] combines the three and reads the settings and writes the report.

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
pub use crate::orders::{Orders, PolicyKeys};
pub use crate::report::{CallCounts, FlashCounts, Lateness, Recent, Report, Responses};
pub use crate::server::{Cut, Extent, InFlight, PreparedServer, Server};
pub use crate::session::Session;
pub use crate::settings::{Kept, Settings};
pub use crate::store::Store;
pub use crate::twin::Twin;
