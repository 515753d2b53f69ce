//! Detecting compression and format of any input, and then reading it, never panics.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashtwin_fuzz::read(None, data));
