//! Smaller devices keep the ratios of the included devices.

use flashtwin::spec::{builtin, builtin_names};
use flashtwin::theory::Pool;
use flashtwin::DeviceSpec;

/// Returns the share of live pages in the blocks in use. Layers with logs keep blocks free by rules of their own, so for
/// them, it is the share in all blocks.
fn share(spec: &DeviceSpec) -> f64 {
    match spec.chip_setup() {
        None => Pool::of(spec).load(),
        Some(setup) => {
            f64::from(setup.logical_pages) / f64::from(setup.blocks * setup.pages_per_block)
        }
    }
}

fn of_pool(pool: &Pool, part: u32) -> f64 {
    f64::from(part) / f64::from(pool.units)
}

#[test]
fn included_devices_keep_their_shares_of_live_pages_and_of_free_blocks() {
    let mut seen = 0;
    for name in builtin_names() {
        let text = builtin(name).unwrap();
        // Included devices are small. A device of real size has more blocks.
        let spec = DeviceSpec::parse(text, name).unwrap();
        let blocks = (spec.geometry.blocks_per_plane * 8).to_string();
        let set = [("geometry.blocks_per_plane", blocks.as_str())];
        let Ok(large) = DeviceSpec::with_overrides(text, name, &set) else {
            continue;
        };
        for factor in [2, 4, 8] {
            let Some(smaller) = large.smaller(factor) else {
                continue;
            };
            let set: Vec<(&str, String)> = smaller
                .keys()
                .map(|(key, value)| (key, value.to_string()))
                .collect();
            let set: Vec<(&str, &str)> = set.iter().map(|(k, v)| (*k, v.as_str())).collect();
            let small = match DeviceSpec::with_overrides(text, name, &set) {
                Ok(small) => small,
                // A small FASTER has no room for its log.
                Err(_) if large.chip_setup().is_some() => continue,
                Err(e) => panic!("{name} at 1/{factor}: {e}"),
            };
            let ratio = f64::from(large.exported_pages()) / f64::from(small.exported_pages());
            let factor = f64::from(factor);
            assert!(
                (ratio / factor - 1.0).abs() < 0.3,
                "{name}: {ratio} for {factor}"
            );
            let (of_large, of_small) = (Pool::of(&large), Pool::of(&small));
            assert!(of_small.units >= 64, "{name}");
            let shares = (share(&large), share(&small));
            // A whole number of reserved blocks does not give every share.
            let most = 0.25 / f64::from(small.geometry.blocks_per_plane) + 1e-4;
            assert!(
                (shares.0 - shares.1).abs() < most,
                "{name} at 1/{factor}: {shares:?}"
            );
            let low = (
                of_pool(&of_large, of_large.low),
                of_pool(&of_small, of_small.low),
            );
            let block = 1.0 / f64::from(of_small.units);
            assert!(
                (low.0 - low.1).abs() < block,
                "{name} at 1/{factor}: {low:?}"
            );
            seen += 1;
        }
    }
    assert!(seen >= 30, "{seen}");
}

#[test]
fn a_pool_has_at_least_64_blocks() {
    let ecr = DeviceSpec::parse(builtin("ecr").unwrap(), "ecr").unwrap();
    assert_eq!(ecr.geometry.blocks_per_plane, 512);
    assert!(ecr
        .smaller(8)
        .is_some_and(|smaller| smaller.blocks_per_plane >= 64));
    assert_eq!(ecr.smaller(20), None);
    assert_eq!(ecr.smaller(u32::MAX), None);
    assert_eq!(ecr.smaller(1).map(|s| s.blocks_per_plane), Some(512));
}
