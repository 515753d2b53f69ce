//! The scheme `midas` with the scope `chain`.

use super::two_regions::skewed;
use super::*;

/// Returns a device that was written once in order. As in SSD-iq's figures, 0.875 of the pages in the device's used
/// units are live.
fn filled(rules: &str) -> Placed {
    let mut device = device(&format!(
        "units=411 unit_pages=128 logical_pages=44800 low=6 handles=ii {rules}"
    ));
    for lpn in 0..device.setup().logical_pages {
        device.write(Lpn(lpn), 1, None, &[]).unwrap();
    }
    device
}

fn amplification(rules: &str, writes: f64) -> f64 {
    let (mut device, mut rng) = (filled(rules), Rng::new(3));
    skewed(&mut device, writes, 8, &mut rng);
    let before = device.report();
    skewed(&mut device, writes, 6, &mut rng);
    device.check().unwrap();
    let found = device.report().write_amplification(&before).unwrap();
    println!("{rules}, {writes}: {found:.3}, {}", device.scheme_state());
    found
}

const MIDAS: &str = "scheme=midas scope=chain";

/// Soon after the fill, no long life has ended yet. The scheme must therefore also use the ages of pages that have not
/// been overwritten.
#[test]
fn cold_pages_are_known_before_they_are_overwritten() {
    let (mut device, mut rng) = (filled(MIDAS), Rng::new(4));
    for capacity in 0..4 {
        let before = device.report();
        skewed(&mut device, 0.95, 1, &mut rng);
        let found = device.report().write_amplification(&before).unwrap();
        println!("capacity {capacity}: {found:.3}");
        assert!(found < 6.0, "capacity {capacity}: {found}");
    }
}

#[test]
fn a_skewed_load_moves_fewer_pages() {
    for writes in [0.8, 0.9, 0.95] {
        let (chain, mixed) = (
            amplification(MIDAS, writes),
            amplification("scheme=gc", writes),
        );
        assert!(chain < 0.9 * mixed, "{writes}: {chain} against {mixed}");
    }
}

/// Under uniform writes, a single group has the fewest moves, so the scheme must choose a chain of one group.
#[test]
fn a_uniform_load_has_one_group() {
    let (chain, greedy) = (amplification(MIDAS, 0.5), amplification("scheme=none", 0.5));
    assert!((chain / greedy - 1.0).abs() < 0.01, "{chain}, {greedy}");
}

#[test]
fn a_copy_from_a_snapshot_continues_alike() {
    let (mut device, mut rng) = (filled(MIDAS), Rng::new(9));
    skewed(&mut device, 0.9, 3, &mut rng);
    let words = device.scheme.words();
    let mut copy = filled(MIDAS).scheme;
    assert!(copy.set_words(&words));
    assert_eq!(copy.words(), words);
    assert_eq!(copy.limits(), device.scheme.limits());
    assert!(copy.limits().iter().any(|&limit| limit > 0));
    for n in 0..words.len() {
        assert!(!copy.set_words(&words[..n]), "{n} words");
    }
    for (place, value) in [
        (0, 1 << 62),
        (5, 406),
        (20, u64::MAX),
        (9 + 2 * 256, 1 << 60),
    ] {
        let mut wrong = words.clone();
        wrong[place] = value;
        assert!(!copy.set_words(&wrong), "word {place}");
    }
}

/// The fifth word of the state is the number of lives that ended in this epoch. Every second page is in the sample. The
/// first write after the fill begins a new epoch.
#[test]
fn a_trim_ends_the_life_of_a_page() {
    let mut device = filled(MIDAS);
    let ended = |device: &Placed| device.scheme.words()[4];
    assert_eq!(ended(&device), 0);
    device.trim(Lpn(0), 1000);
    assert_eq!(ended(&device), 500);
    for lpn in 0..1000 {
        device.write(Lpn(lpn), 1, None, &[]).unwrap();
    }
    assert_eq!(ended(&device), 0);
}

#[test]
fn a_scheme_without_limits_is_collected_as_a_whole() {
    let (chain, global) = (
        amplification("scheme=gc scope=chain", 0.8),
        amplification("scheme=gc", 0.8),
    );
    assert_eq!(chain, global);
}

/// Two classes; the first may hold two units.
#[derive(Clone)]
struct TwoUnits;

impl Scheme for TwoUnits {
    fn needs(&self) -> Needs {
        Needs {
            survivors: Survivors::Next,
            ..Needs::classes(2)
        }
    }

    fn host(&mut self, _page: &HostPage) -> Class {
        0
    }

    fn limits(&self) -> &[u32] {
        &[2]
    }
}

/// Units 0 to 4 hold pages of the host. The first class is above its limit, so its oldest unit, unit 0, is collected,
/// although unit 3 has fewer live pages. After that, unit 1 is the oldest, but has no invalid page. The rule therefore
/// chooses among all units, and chooses unit 3.
#[test]
fn a_class_above_its_limit_is_collected_in_order() {
    let words = words("units=8 unit_pages=4 logical_pages=16 low=2 handles=ii scope=chain");
    let setup = Setup::of_words(&words).unwrap();
    let mut device = Placed::with_scheme(&setup, Box::new(TwoUnits)).unwrap();
    device.keep_did(true);
    let victims = |device: &mut Placed| -> Vec<(u32, u32)> {
        let did = device.take_did().into_iter();
        did.filter_map(|did| match did {
            Did::Victim { unit, live, .. } => Some((unit, live)),
            _ => None,
        })
        .collect()
    };
    for lpn in (0..16).chain([0, 12, 13, 14, 1]) {
        device.write(Lpn(lpn), 1, None, &[]).unwrap();
    }
    assert_eq!(victims(&mut device), []);
    device.write(Lpn(15), 1, None, &[]).unwrap();
    assert_eq!(victims(&mut device), [(0, 2), (3, 1)]);
    device.check().unwrap();
}
