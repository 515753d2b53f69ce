//! Detecting compression and format, then reading, never panics.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashtwin_fuzz::read(None, data));
