//! The profiles of flashtwin: each can be read, written and read again, and exports the capacity that its paper states.

use crate::spec::{builtin, builtin_names, Nand};
use crate::{DeviceSpec, Time};

/// Returns a profile of flashtwin.
fn profile(name: &str) -> DeviceSpec {
    let text = builtin(name).unwrap_or_else(|| panic!("no profile {name}"));
    DeviceSpec::parse(text, name).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_profile_reads_and_reads_back_equal() {
    for name in builtin_names() {
        let spec = profile(name);
        assert_eq!(spec.name, name);
        let text = spec.to_toml();
        let again = DeviceSpec::parse(&text, "again").unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(again, spec, "{text}");
        assert_eq!(again.to_toml(), text);
    }
    assert_eq!(builtin("nand"), None);
}

/// The default logs of FASTER need more spare blocks than some drives have. The error message then states this.
#[test]
fn every_profile_takes_every_translation_layer() {
    for name in builtin_names() {
        for kind in ["dftl", "bast", "fast", "faster"] {
            let text = builtin(name).unwrap_or_else(|| panic!("no profile {name}"));
            match DeviceSpec::with_overrides(text, name, &[("ftl.kind", kind)]) {
                Ok(spec) => {
                    let text = spec.to_toml();
                    let again = DeviceSpec::parse(&text, "again");
                    assert_eq!(again.unwrap_or_else(|e| panic!("{e}\n{text}")), spec);
                }
                Err(e) => {
                    assert_eq!(kind, "faster", "{name}: {e}");
                    assert!(
                        e.to_string().contains("take fewer log blocks"),
                        "{name}: {e}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_paper_devices_have_the_sizes_of_their_papers() {
    const GIB: u64 = 1 << 30;
    for (name, raw, chips, exported_pages, buffer_pages) in [
        ("gcar", 28 * GIB, 7, 7 * 8 * 1741 * 63, Some(256)),
        ("gcar-14g", 14 * GIB, 7, 7 * 8 * 871 * 63, Some(256)),
        ("harmonia", 32 * GIB, 64, 64 * 4 * 436 * 63, None),
        ("ecr", 64 * GIB, 64, 64 * 8 * 436 * 63, Some(8192)),
    ] {
        let spec = profile(name);
        assert_eq!(spec.raw_bytes(), raw, "{name}");
        assert_eq!(spec.geometry.chips, chips, "{name}");
        assert_eq!(spec.exported_pages(), exported_pages, "{name}");
        assert_eq!(
            spec.buffer.as_ref().map(|b| b.capacity_pages),
            buffer_pages,
            "{name}"
        );
        assert_eq!(spec.page_transfer(), Time(102_400_000), "{name}");
        assert_eq!(spec.timing.read, Time::from_us(25), "{name}");
        assert_eq!(spec.timing.program, Time::from_us(200), "{name}");
        assert_eq!(spec.timing.erase, Time::from_us(1500), "{name}");
        assert!(
            matches!(&spec.nand, Nand::Msr(msr) if msr.copy_back),
            "{name}"
        );
    }
}

#[test]
fn demo_just_covers_four_gibibytes() {
    let exported = profile("demo").exported_bytes();
    assert!(
        (4 << 30..(4 << 30) + (64 << 20)).contains(&exported),
        "{exported}"
    );
}

#[test]
fn tlc_nvme_covers_what_is_sold_as_512_gb() {
    let whole = [("geometry.blocks_per_plane", "4096")];
    let text = builtin("tlc-client").expect("a profile");
    let spec = DeviceSpec::with_overrides(text, "tlc-client", &whole).expect("a sound profile");
    assert!((512_110_190_592..515_000_000_000).contains(&spec.exported_bytes()));
    assert!(matches!(spec.nand, Nand::Modern(_)));
    assert_eq!((spec.geometry.channels, spec.geometry.chips), (8, 32));
}
