//! The scope `scan` with the scheme `gc`, compared with SSD-iq's rule of two regions.

use super::*;

/// Writes random pages. The fraction `writes` of the writes goes to the fraction 1 - `writes` of the pages (with 0.8,
/// 80 % of the writes go to 20 % of the pages). The other writes go to the other pages. Within each of the two parts,
/// writes are uniform.
pub(super) fn skewed(device: &mut Placed, writes: f64, capacities: u32, rng: &mut Rng) {
    let logical = device.setup().logical_pages;
    let hot = (f64::from(logical) * (1.0 - writes)).round() as u64;
    for _ in 0..capacities * logical {
        let lpn = match (rng.below(1 << 20) as f64) < writes * f64::from(1 << 20) {
            true => rng.below(hot),
            false => hot + rng.below(u64::from(logical) - hot),
        };
        device.write(Lpn(lpn as u32), 1, None, &[]).unwrap();
    }
}

fn two_regions() -> Placed {
    // Two units are open, and half full on average. One unit more than `low` is free. Live pages therefore fill 0.875
    // of the units in use.
    let mut device = device(
        "units=404 unit_pages=256 logical_pages=89600 low=2 handles=ii scheme=gc scope=scan",
    );
    for lpn in 0..device.setup().logical_pages {
        device.write(Lpn(lpn), 1, None, &[]).unwrap();
    }
    device
}

/// The expected values are those of `gc_theory` (VLDB 2025), computed from the published results.
#[test]
fn amplification_is_near_that_of_ssd_iq() {
    for (writes, published, tolerance) in [
        (0.5, 4.186, 0.03),
        (0.8, 4.120, 0.13),
        (0.9, 2.505, 0.06),
        (0.95, 2.055, 0.18),
    ] {
        let (mut device, mut rng) = (two_regions(), Rng::new(7));
        skewed(&mut device, writes, 3, &mut rng);
        let before = device.report();
        skewed(&mut device, writes, 6, &mut rng);
        device.check().unwrap();
        let found = device.report().write_amplification(&before).unwrap();
        println!("{writes}: {found:.3}, published {published}");
        assert!(
            (found / published - 1.0).abs() < tolerance,
            "{writes}: {found}"
        );
    }
}

#[test]
fn the_limit_falls_once_units_are_emptier() {
    let (mut device, mut rng) = (two_regions(), Rng::new(8));
    skewed(&mut device, 0.5, 3, &mut rng);
    let at = device.report();
    // When all pages are overwritten in order, all old units become empty.
    for _ in 0..4 {
        for lpn in 0..device.setup().logical_pages {
            device.write(Lpn(lpn), 1, None, &[]).unwrap();
        }
    }
    let ordered = device.report();
    let last = ordered.write_amplification(&at).unwrap();
    assert!(last < 1.5, "{last}");
}

#[test]
fn a_copy_from_a_snapshot_continues_alike() {
    let (mut device, mut rng) = (two_regions(), Rng::new(9));
    skewed(&mut device, 0.9, 2, &mut rng);
    let words = device.scope.words();
    let mut copy = device.clone();
    assert!(copy.scope.set_words(&words));
    let mut again = rng.clone();
    skewed(&mut device, 0.9, 1, &mut rng);
    skewed(&mut copy, 0.9, 1, &mut again);
    assert_eq!(script::state_text(&device), script::state_text(&copy));
    for n in 0..words.len() {
        assert!(!copy.scope.set_words(&words[..n]), "{n} words");
    }
    let mut wrong = words.clone();
    wrong[4] |= 0xffff_ffff;
    assert!(!copy.scope.set_words(&wrong));
}

/// A snapshot omits the host clock before which no background collection begins. A device that is loaded from the
/// snapshot therefore chooses a victim once more. If this victim is declined, nothing may have changed.
#[test]
fn a_declined_choice_leaves_no_trace() {
    for seed in crate::rng::seeds(4) {
        for scope in ["scan", "noisy quota=optimal", "save-sequential"] {
            let mut device = device(&format!(
                "units=120 unit_pages=32 logical_pages=3000 low=3 early=12 least_gain_percent=40 handles=ii,ii \
                 scheme=gc scope={scope}"
            ));
            let mut rng = Rng::new(seed);
            for lpn in 0..3000 {
                device.write(Lpn(lpn), 1, None, &[]).unwrap();
            }
            for _ in 0..30 {
                skewed_pages(&mut device, 40, &mut rng);
                let (mut loaded, mut again) = (device.clone(), rng.clone());
                loaded.rests_until.fill(0);
                skewed_pages(&mut device, 150, &mut rng);
                skewed_pages(&mut loaded, 150, &mut again);
                let (kept, loaded) = (script::state_text(&device), script::state_text(&loaded));
                assert_eq!(kept, loaded, "seed {seed}, {scope}");
            }
        }
    }
}

fn skewed_pages(device: &mut Placed, pages: u32, rng: &mut Rng) {
    for _ in 0..pages {
        let lpn = rng.below(3000) * rng.below(3000) / 3000;
        device.write(Lpn(lpn as u32), 1, None, &[]).unwrap();
    }
}
