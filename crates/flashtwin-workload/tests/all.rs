//! The integration tests of this crate, linked as one program, because linking one program per file takes longer than
//! its tests. Every file and directory here must be listed; `tests/python/test_sources.py` checks that.

mod ahead;
mod convert;
mod fio_jobs;
mod formats;
mod generator_text;
mod generators;
mod mutations;
mod placement;
mod reader;
mod streams;
mod tables;
mod units;
