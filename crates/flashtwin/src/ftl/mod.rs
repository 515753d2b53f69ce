//! Flash translation: the page map, its initial states, and its saved form. [`chip`] has the translation layers that
//! map a chip in other ways.

mod check;
pub mod chip;
mod fill;
mod foresight;
mod frontier;
mod least;
mod levelling;
mod page;
mod pools;
mod retire;
mod rows;
mod sets;
mod shape;
mod slc;
mod state;
#[cfg(test)]
mod tests;
mod units;
mod units_state;
#[cfg(test)]
mod vectors;
mod wear;
mod wear_aware;
mod write;

pub(crate) use fill::coprime;
pub(crate) use frontier::PoolFull;
pub(crate) use levelling::{
    Levelling, DYNAMIC as DYNAMIC_LEVELLING, LEVELLING, NONE as NO_LEVELLING,
    REFERENCE as REFERENCE_LEVELLING, STATIC as STATIC_LEVELLING,
};
pub(crate) use page::{Foresight, LiveFrom, PageMap};
pub(crate) use sets::LEAD_MAX;
pub(crate) use shape::{Apart, Shape};
pub(crate) use state::{read_u32, read_u64, write_u32, write_u64};
pub use state::{StateError, StateLength};
pub(crate) use units::{Owner, Reuse, Unit, UnitShape, Units};
