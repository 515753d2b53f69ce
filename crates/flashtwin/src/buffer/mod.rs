//! The buffer in front of the flash: one directory of cached pages, and the policies that rank them.
//!
//! A policy fits in one file and only orders pages. The directory, pages in flight, waiting host
//! requests and statistics exist once, in [`crate::ssd`].

mod cflru;
mod directory;
mod gcar;
mod list;
mod lru;
mod policy;
pub mod trace;

pub use cflru::Cflru;
pub(crate) use directory::Directory;
pub use gcar::Gcar;
pub use list::List;
pub use lru::Lru;
pub(crate) use policy::AnyPolicy;
pub use policy::{DeviceView, PageId, Policy};
