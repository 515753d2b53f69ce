//! Device files. Any text is either rejected with a message, or describes a device that can be written as a file.
#![no_main]

use flashtwin::{DeviceSpec, Time};
use libfuzzer_sys::fuzz_target;

/// Separates an override from the text of the file. Thus one input tests both.
const OVERRIDE: &str = "\n--set ";

fuzz_target!(|text: &str| {
    let (text, setting) = text.split_once(OVERRIDE).unwrap_or((text, ""));
    let overrides: Vec<(&str, &str)> = setting.split_once('=').into_iter().collect();
    match DeviceSpec::with_overrides(text, "fuzz.toml", &overrides) {
        Ok(spec) => {
            let canonical = spec.to_toml();
            let again = DeviceSpec::parse(&canonical, "again.toml")
                .unwrap_or_else(|e| panic!("{e}\n{canonical}"));
            assert_eq!(again, spec);
            assert!(spec.exported_pages() > 0);
            assert!(spec.exported_pages() <= spec.physical_pages());
            assert!(spec.exported_bytes() <= spec.raw_bytes());
            assert!(spec.page_transfer() <= Time::from_s(1));
        }
        Err(error) => {
            assert!(!error.problems.is_empty());
            assert!(!error.to_string().is_empty());
        }
    }
});
