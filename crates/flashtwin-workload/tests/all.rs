//! The integration tests of this crate as one program, since linking one for each file takes longer than its tests.
//! Every file and directory here must be listed; a test in `tests/python/test_sources.py` checks that.

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
