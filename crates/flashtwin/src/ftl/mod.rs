//! Flash translation: the page map, its initial states, and its form on disk.

mod fill;
mod page;
mod state;
#[cfg(test)]
mod vectors;

pub(crate) use fill::coprime;
pub(crate) use page::{PageMap, Pool};
pub use state::StateError;
