//! Closed forms of write amplification, compared with long runs.

use super::*;

/// Returns the write amplification of a load; `next` draws a page and a handle for each write. The device is first
/// written once in order. Then the load writes `passes` times the capacity without measurement, and as much again with
/// measurement.
fn measured(device: &mut Placed, passes: u64, mut next: impl FnMut() -> (u32, u16)) -> f64 {
    let pages = u64::from(device.setup().logical_pages);
    // In a split load, the second part of the pages has a handle of its own, which is used from the start.
    let second = if device.setup().handles.len() > 1 {
        pages / 5
    } else {
        pages
    };
    for lpn in 0..pages {
        let id = u16::from(lpn >= second);
        device.write(Lpn(lpn as u32), 1, Some(id), &[]).unwrap();
    }
    let mut turn = |device: &mut Placed| {
        for _ in 0..passes * pages {
            let (lpn, id) = next();
            device.write(Lpn(lpn), 1, Some(id), &[]).unwrap();
        }
        device.report()
    };
    let before = turn(device);
    let after = turn(device);
    after.write_amplification(&before).unwrap()
}

fn near(name: &str, found: f64, expected: f64, share: f64) {
    println!("{name}: {found:.3} where the closed form has {expected:.3}");
    assert!(
        (found / expected - 1.0).abs() <= share,
        "{name}: {found} {expected}"
    );
}

/// Number of units in use, and number of pages of a unit. `LOGICAL` live pages fill 0.8 of the pages of these units.
const UNITS: u32 = 400;
const PAGES: u32 = 96;
const LOGICAL: u32 = UNITS * PAGES / 5 * 4;
/// Factor on the number of units, for tests whose result would change noticeably if a stream had one unit more or less.
const LARGE: u32 = 4;

/// Returns a device in which collection leaves `UNITS` units in use.
fn with(more: &str) -> Placed {
    times(1, more)
}

/// Returns a device with `scale` times as many units.
fn times(scale: u32, more: &str) -> Placed {
    let (units, logical) = (scale * UNITS + 2, scale * LOGICAL);
    device(&format!(
        "units={units} unit_pages={PAGES} logical_pages={logical} low=1 survivors=same {more}"
    ))
}

/// Returns the effective number of units in use. Each of the `frontiers` open units counts as half a unit, because it
/// is half full on average.
fn in_use(frontiers: u32) -> f64 {
    f64::from(UNITS) - 0.5 * f64::from(frontiers)
}

/// Returns the share of the pages in used units that `logical` live pages fill.
fn fill(logical: f64, frontiers: u32) -> f64 {
    logical / f64::from(PAGES) / in_use(frontiers)
}

/// Draws a write of the split load, as a page and a handle. 80 % of the writes go to the first fifth of the pages. Each
/// of the two parts of the pages has a handle of its own.
fn split(rng: &mut Rng) -> (u32, u16) {
    let hot = LOGICAL / 5;
    match rng.below(5) {
        0 => (hot + rng.below(u64::from(LOGICAL - hot)) as u32, 1),
        _ => (rng.below(hot.into()) as u32, 0),
    }
}

/// Draws a write of the split load over `LARGE` times as many pages.
fn spread(rng: &mut Rng) -> (u32, u16) {
    let (lpn, id) = split(rng);
    (LARGE * lpn + rng.below(LARGE.into()) as u32, id)
}

/// Returns the numbers of live pages of the two parts, expressed as numbers of full units.
fn live_of_split() -> [f64; 2] {
    [0.2, 0.8].map(|share| share * f64::from(LOGICAL) / f64::from(PAGES))
}

fn form_of_split(units: [f64; 2]) -> f64 {
    let live = live_of_split();
    let share = |i: usize, writes: f64| theory::StreamShare {
        live: live[i],
        writes,
        units: units[i],
    };
    theory::separate(&[share(0, 0.8), share(1, 0.2)])
}

#[test]
fn uniform_and_permuted_writes() {
    let (logical, mut rng) = (LOGICAL, Rng::new(1));
    let load = fill(logical.into(), 1);

    let mut fifo = with("handles=ii victim=fifo");
    let uniform = measured(&mut fifo, 6, || (rng.below(logical.into()) as u32, 0));
    near("uniform, fifo", uniform, theory::uniform_fifo(load), 0.02);

    let mut greedy = with("handles=ii victim=greedy");
    let uniform = measured(&mut greedy, 6, || (rng.below(logical.into()) as u32, 0));
    let expected = theory::uniform_greedy(load, PAGES);
    near("uniform, greedy", uniform, expected, 0.02);

    let mut fifo = with("handles=ii victim=fifo");
    let mut order: Vec<u32> = (0..logical).collect();
    let mut at = 0;
    let permuted = measured(&mut fifo, 6, || {
        if at == 0 {
            for i in (1..order.len()).rev() {
                order.swap(i, rng.below(i as u64 + 1) as usize);
            }
        }
        let lpn = order[at];
        at = (at + 1) % order.len();
        (lpn, 0)
    });
    near("permuted", permuted, theory::permuted_fifo(load), 0.02);
}

/// The greedy rule keeps the units of all streams equally full. If streams have separate units but no quotas, write
/// amplification therefore equals that of uniform writes, whatever the skew.
#[test]
fn greedy_over_separate_streams_is_as_uniform_writes() {
    let mut rng = Rng::new(2);
    let mut greedy = times(LARGE, "handles=pi,pi");
    let mixed = measured(&mut greedy, 6, || spread(&mut rng));
    let load = fill(LOGICAL.into(), 0);
    near(
        "greedy over streams",
        mixed,
        theory::uniform_greedy(load, PAGES),
        0.02,
    );
}

#[test]
fn streams_with_fixed_shares_of_the_flash() {
    for quota in [[120, 280], [90, 310]] {
        let mut rng = Rng::new(3);
        let [hot, cold] = quota;
        let set = format!(
            "handles=pi,pi victim=fifo scope=noisy quota={},{} tolerance_percent=none",
            LARGE * hot,
            LARGE * cold
        );
        let mut fixed = times(LARGE, &set);
        let found = measured(&mut fixed, 6, || spread(&mut rng));
        let units = quota.map(f64::from);
        near(&format!("{quota:?}"), found, form_of_split(units), 0.02);
    }
}

#[test]
fn the_optimal_split() {
    let mut rng = Rng::new(4);
    let mut optimal = with("handles=pi,pi victim=fifo scope=noisy quota=optimal");
    let best = measured(&mut optimal, 10, || split(&mut rng));
    let units = theory::optimal_split(&live_of_split(), &[0.8, 0.2], in_use(2)).unwrap();
    near(
        "optimal split",
        best,
        form_of_split([units[0], units[1]]),
        0.03,
    );
}

/// Each stream overwrites all its pages in order, through a handle of its own.
#[test]
fn streams_in_order_move_nothing() {
    let mut rng = Rng::new(5);
    let mut in_order = with("handles=ii,ii victim=greedy");
    let (mut a, mut b) = (0, 0);
    let half = (LOGICAL / 2 / PAGES) * PAGES;
    let sequential = measured(&mut in_order, 4, || match rng.below(3) {
        0 => {
            a = (a + 1) % half;
            (a, 0)
        }
        _ => {
            b = (b + 1) % half;
            (half + b, 1)
        }
    });
    near("in order", sequential, 1.0, 0.03);
}

/// If a constant share of the logical pages is trimmed, the closed form is valid for the other pages.
#[test]
fn trimmed_pages_are_reserve() {
    for trimmed in [0.1, 0.3] {
        let mut rng = Rng::new(6);
        let mut fifo = with("handles=ii victim=fifo");
        let kept = ((1.0 - trimmed) * f64::from(LOGICAL)) as usize;
        let mut mapped: Vec<u32> = (0..LOGICAL).collect();
        let mut place: Vec<Option<usize>> = (0..LOGICAL as usize).map(Some).collect();
        for lpn in 0..LOGICAL {
            fifo.write(Lpn(lpn), 1, None, &[]).unwrap();
        }
        let mut turn = |device: &mut Placed| {
            for _ in 0..6 * LOGICAL {
                let lpn = rng.below(LOGICAL.into()) as u32;
                device.write(Lpn(lpn), 1, None, &[]).unwrap();
                if place[lpn as usize].is_none() {
                    place[lpn as usize] = Some(mapped.len());
                    mapped.push(lpn);
                }
                while mapped.len() > kept {
                    let at = rng.below(mapped.len() as u64) as usize;
                    let gone = mapped.swap_remove(at);
                    device.trim(Lpn(gone), 1);
                    place[gone as usize] = None;
                    if let Some(&moved) = mapped.get(at) {
                        place[moved as usize] = Some(at);
                    }
                }
            }
            device.report()
        };
        let before = turn(&mut fifo);
        let after = turn(&mut fifo);
        let found = after.write_amplification(&before).unwrap();
        let expected = theory::uniform_fifo(fill(kept as f64, 1));
        near(&format!("{trimmed} trimmed"), found, expected, 0.02);
    }
}
