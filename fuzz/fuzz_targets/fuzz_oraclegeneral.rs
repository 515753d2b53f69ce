//! The oraclegeneral reader never panics.
#![no_main]

use flashtwin_workload::Format;

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashtwin_fuzz::read(Some(Format::OracleGeneral), data));
