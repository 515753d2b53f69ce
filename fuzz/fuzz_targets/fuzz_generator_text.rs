//! The short text form of a generated load. Parsing never panics. If a parsed load is written as text, parsing this
//! text gives the same load.
#![no_main]

use flashtwin_workload::LoadSpec;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(spec) = LoadSpec::parse(text) {
        assert_eq!(LoadSpec::parse(&spec.to_string()).as_ref(), Ok(&spec));
        if !text.contains("locality") && !text.contains("fio-job") {
            if let Ok(mut workload) = spec.build(1 << 30, 1) {
                let _ = workload.next_batch(&mut Vec::new());
            }
        }
    }
});
