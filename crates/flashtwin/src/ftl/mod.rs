//! Flash translation: the page map, its initial states, and its form on disk.

mod fill;
mod page;
mod state;

pub(crate) use fill::coprime;
pub(crate) use page::PageMap;
pub use state::StateError;
