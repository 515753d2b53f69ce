//! Placement: the choice of the unit of flash into which a page is programmed. A unit consists of blocks that are
//! filled, collected and erased together.
//!
//! The host may attach a placement id to a write. The id selects a group of dies and a handle ([`ids`]). A *scheme*
//! assigns each page to a class ([`scheme`]; one file per scheme in `schemes/`). The pages of a class fill units of
//! their own. If a group has few free units, a victim rule (`gc/rules`) chooses a closed unit within the *scope* (one
//! file per scope in `scopes/`). The live pages of that unit, the *survivors*, are moved to other units, and the unit
//! is erased.
//!
//! The module [`device`] implements placement and collection for a device that is simulated without time. [`timed`] has
//! the steps for a back end that simulates time, and [`fdp`] the commands of NVMe flexible data placement. [`theory`]
//! has closed forms for comparison. [`script`] executes operations that are given as text.

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
