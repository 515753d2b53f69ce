//! Traces: opening, guessing the format, reading, measuring, converting.

pub(crate) mod binary;
pub(crate) mod blk;
pub(crate) mod cachesim;
pub(crate) mod cloud;
pub(crate) mod columns;
pub(crate) mod compact;
pub(crate) mod convert;
pub(crate) mod csv;
pub(crate) mod cursor;
pub(crate) mod detect;
pub(crate) mod estimate;
pub(crate) mod fio;
pub(crate) mod fiu;
pub(crate) mod info;
pub(crate) mod input;
pub(crate) mod lines;
pub(crate) mod msr;
pub(crate) mod named;
pub(crate) mod options;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod units;
pub(crate) mod vscsi;
