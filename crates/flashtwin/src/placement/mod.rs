//! Placement: which unit of flash a page is programmed into.
//!
//! The host may put a placement id on a write, which names a group of dies and a handle ([`ids`]). A *scheme* decides
//! for each page its class ([`scheme`]; one file each in `schemes/`); pages of a class fill units of their own. When
//! a group runs out of free units, a victim rule (`gc/rules`) picks a closed unit among those of the *scope* (one
//! file each in `scopes/`), and its live pages move to units of survivors. [`device`] is the whole without time,
//! [`fdp`] its commands (NVMe flexible data placement), [`theory`] the closed forms to compare it with, and
//! [`script`] steps it through a line of operations.

mod choices;
mod device;
mod events;
mod fdp;
mod ids;
mod report;
mod saved;
mod scheme;
mod schemes;
mod scopes;
pub mod script;
mod setup;
mod state;
#[cfg(test)]
mod tests;
pub mod theory;
mod timed;
mod victims;

pub use choices::{components, Choice};
pub(crate) use choices::{handles, namespace};
pub(crate) use device::{Collection, PageToPut, Untimed};
pub use device::{Did, NoRoom, Placed, UserRules};
pub use events::{Event, EventType};
pub use fdp::{HandleStatus, InvalidField, Totals};
pub use report::{OwnerReport, PlacementReport};
pub use scheme::{
    Class, Entry, HostPage, Isolated, MovedPage, Needs, Scheme, Survivors, UnitView, UserScheme,
    CLASSES_MAX, NEVER, NO_AGE,
};
pub use schemes::SCHEMES;
pub use setup::{FreeUnit, Isolation, Setup, SetupError};
pub use state::{OwnerCounts, LIFESPAN_BINS, LIVE_BINS};
pub use victims::{UserVictim, VictimPool, VictimUnit};
