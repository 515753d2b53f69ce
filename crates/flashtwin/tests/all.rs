//! The integration tests of this crate as one program. A program for each file would take longer to link than its
//! tests take to run. Every file and directory here must be listed; a test in `tests/python/test_sources.py` checks
//! this.

mod advance;
mod array;
mod array_data;
mod array_members;
mod catalog;
mod counters;
mod ftls;
mod in_flight;
mod log;
mod pauses;
mod policies;
mod served;
mod slot_waits;
mod smaller;
mod streams;
mod trim;
