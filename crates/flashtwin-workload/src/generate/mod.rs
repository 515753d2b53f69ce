//! Generated loads. A spec, a range and a seed determine all requests.

pub(crate) mod address;
pub(crate) mod arrival;
mod columns;
mod fio_job;
mod fio_zipf;
pub(crate) mod generator;
mod in_order;
pub(crate) mod load;
pub(crate) mod locality;
mod mix;
pub(crate) mod named;
mod permute;
pub(crate) mod popularity;
pub(crate) mod rng;
pub(crate) mod size;
mod smaller;
pub(crate) mod space;
pub(crate) mod spec;
pub(crate) mod stack;
pub(crate) mod stream;
pub(crate) mod text;
pub(crate) mod values;
