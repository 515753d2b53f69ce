//! The integration tests of this crate as one program, since linking one for each file takes longer than its tests.
//! Every file and directory here must be listed; a test in `tests/python/test_sources.py` checks that.

mod advance;
mod array;
mod array_data;
mod array_members;
mod catalog;
mod counters;
mod ftls;
mod in_flight;
mod log;
mod policies;
mod served;
mod slot_waits;
mod trim;
