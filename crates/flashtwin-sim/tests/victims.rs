//! Write amplification of the victim rules, compared with closed forms and with mean-field models.

use crate::common::{assert_near, load, one_pool, run_all};
use flashtwin::{Rng, Ssd};
use flashtwin_sim::{Pacing, RunConfig};

const PAGES: usize = 64;
const LOADS: [f64; 4] = [0.9, 0.85, 0.8, 0.6667];

/// Returns the write amplification of the FIFO rule, which is 1 / (1 - x). The fraction x of valid pages in a block at
/// its collection is a solution of x = exp(-(1 - x) / rho).
fn fifo(rho: f64) -> f64 {
    let x = (0..10_000).fold(0.5, |x: f64, _| (-(1.0 - x) / rho).exp());
    1.0 / (1.0 - x)
}

/// Returns the write amplification of the rule `d-choices`: the fixed point of Van Houdt's mean-field model (SIGMETRICS
/// 2013), computed by Euler's method.
fn d_choices(d: i32, rho: f64) -> f64 {
    let b = PAGES as f64;
    // `pi[i]`: fraction of the blocks that have i valid pages.
    let mut pi = [0.0; PAGES + 1];
    let mean = rho * b;
    let below = mean.floor();
    pi[below as usize] = 1.0 - (mean - below);
    pi[below as usize + 1] = mean - below;
    let mut written = b;
    for _ in 0..20_000 {
        let mut tail = 1.0;
        let victim = pi.map(|share| {
            let above: f64 = tail - share;
            let chance = tail.powi(d) - above.max(0.0).powi(d);
            tail = above;
            chance
        });
        let live = |shares: &[f64]| -> f64 {
            shares
                .iter()
                .enumerate()
                .map(|(i, share)| i as f64 * share)
                .sum()
        };
        written = b - live(&victim);
        let rate = written / (b * rho);
        let step = 0.01;
        let before = pi;
        for i in 0..=PAGES {
            let from_above = match before.get(i + 1) {
                Some(above) => (i + 1) as f64 * above,
                None => 0.0,
            };
            let decayed = rate * (from_above - i as f64 * before[i]);
            let new = f64::from(u8::from(i == PAGES));
            pi[i] += step * (decayed - victim[i] + new);
        }
    }
    b / written
}

/// Returns a device with one pool and the given victim rule.
fn ssd(backend: &str, rho: f64, of: &[(&str, &str)]) -> Ssd {
    Ssd::new(&one_pool(backend, 2048, rho, of))
}

/// Returns the write amplification of a device under uniform writes, in the steady state.
fn uniform(mut ssd: Ssd, seed: u64) -> f64 {
    let mut rng = Rng::new(seed);
    let pages = u64::from(ssd.spec().exported_pages());
    ssd.fill_sequential();
    assert!(ssd.write_random(&mut rng, 6 * pages));
    ssd.reset_metrics(None);
    assert!(ssd.write_random(&mut rng, 6 * pages));
    ssd.check().expect("a consistent map");
    ssd.flash_report().gc_write_amplification().unwrap()
}

#[test]
fn fifo_amplifies_as_its_closed_form() {
    for seed in flashtwin::seeds(1) {
        assert!((fifo(0.9) - 5.179).abs() < 1e-3, "{}", fifo(0.9));
        for backend in ["msr", "modern"] {
            for rho in LOADS {
                let got = uniform(ssd(backend, rho, &[("gc.victim", "fifo")]), seed);
                assert_near(&format!("{backend}, rho {rho}"), got, fifo(rho), 0.01);
            }
        }
    }
}

#[test]
fn d_choices_amplify_as_their_mean_field() {
    for seed in flashtwin::seeds(1) {
        assert!(
            (d_choices(2, 0.9) - 6.852).abs() < 2e-3,
            "{}",
            d_choices(2, 0.9)
        );
        for (backend, d) in [("msr", 2), ("modern", 2), ("modern", 10)] {
            for rho in LOADS {
                let choices = d.to_string();
                let of = [("gc.victim", "d-choices"), ("gc.choices", choices.as_str())];
                let got = uniform(ssd(backend, rho, &of), seed);
                let what = format!("{backend}, d {d}, rho {rho}");
                assert_near(&what, got, d_choices(d, rho), 0.01);
            }
        }
    }
}

/// Rules coincide at the limits of their parameters. A window of all blocks equals greedy, a window of one block equals
/// FIFO, and random equals `d` choices with d = 1.
#[test]
fn selections_meet_at_their_ends() {
    for seed in flashtwin::seeds(1) {
        let of = |of: &[(&str, &str)]| uniform(Ssd::new(&one_pool("modern", 1024, 0.8, of)), seed);
        let greedy = of(&[]);
        let all = of(&[("gc.victim", "windowed"), ("gc.window_percent", "99.99")]);
        let one = of(&[("gc.victim", "windowed"), ("gc.window_percent", "0.01")]);
        assert_eq!(all, greedy);
        assert_eq!(one, of(&[("gc.victim", "fifo")]));
        let random = of(&[("gc.victim", "random")]);
        assert_eq!(
            random,
            of(&[("gc.victim", "d-choices"), ("gc.choices", "1")])
        );
        assert!(random > one, "{random} {one}");
    }
}

// ---- hot and cold pages ----

/// Fraction of the pages that are hot. Hot pages get four fifths of the writes.
const HOT_PAGES: f64 = 0.2;
const HOT_WRITES: f64 = 0.8;

/// Returns the rates at which a valid hot page and a valid cold page become invalid. In a unit of time, the host writes
/// as many pages as the pool has blocks.
fn decays(rho: f64) -> [f64; 2] {
    let live = rho * PAGES as f64;
    [
        HOT_WRITES / (HOT_PAGES * live),
        (1.0 - HOT_WRITES) / ((1.0 - HOT_PAGES) * live),
    ]
}

/// Collects some or all of the blocks that have the same number of valid pages, and returns the fraction of them that
/// is collected. `level` is the share of these blocks among all blocks, and each of them frees `gain` pages. `owed` is
/// the number of pages, per block of the pool, that must still be freed. The function subtracts the pages freed.
fn share_taken(level: f64, gain: usize, owed: &mut f64) -> f64 {
    if level * gain as f64 <= *owed {
        *owed -= level * gain as f64;
        return 1.0;
    }
    std::mem::take(owed) / (level * gain as f64)
}

/// Returns the write amplification of greedy collection with hot and cold pages in separate blocks. The model describes
/// blocks by class (hot or cold), position in the pool and number of valid pages. Victims are taken in ascending order
/// of valid pages until they free as many pages as the host writes. Among blocks with equally many valid pages, the
/// first in the pool is the victim. A block at the end of the pool therefore stays until it has one valid page less.
/// This affects the result, because victims have many valid pages here. A freed position is reused by a block of either
/// class.
fn separated(rho: f64) -> f64 {
    const PLACES: usize = 16;
    let b = PAGES as f64;
    let decays = decays(rho);
    // [class][place][valid]
    let [mut hot, mut cold] = [[0.0; PAGES + 1]; 2];
    hot[PAGES] = rho * HOT_PAGES / PLACES as f64;
    cold[PAGES] = rho * (1.0 - HOT_PAGES) / PLACES as f64;
    // The spare blocks begin empty.
    hot[0] = (1.0 - rho) / PLACES as f64;
    let mut blocks = [[hot; PLACES], [cold; PLACES]];
    let (step, mut moved_mean, mut steps) = (0.02, 0.0, 0);
    for at in 0..120_000 {
        for (class, decay) in blocks.iter_mut().zip(decays) {
            for place in class {
                let mut from_above = 0.0;
                for i in (0..=PAGES).rev() {
                    let leaves = place[i] * (i as f64 * decay * step);
                    place[i] += from_above - leaves;
                    from_above = leaves;
                }
            }
        }
        let (mut owed, mut moved, mut freed) = (step, [0.0; 2], [0.0; PLACES]);
        'victims: for i in 0..PAGES {
            for place in 0..PLACES {
                let level = blocks[0][place][i] + blocks[1][place][i];
                let taken = share_taken(level, PAGES - i, &mut owed);
                for (class, moved) in blocks.iter_mut().zip(&mut moved) {
                    *moved += class[place][i] * taken * i as f64;
                    class[place][i] *= 1.0 - taken;
                }
                freed[place] += level * taken;
                if owed <= 0.0 {
                    break 'victims;
                }
            }
        }
        let opened = [
            (HOT_WRITES * step + moved[0]) / b,
            ((1.0 - HOT_WRITES) * step + moved[1]) / b,
        ];
        let all: f64 = freed.iter().sum();
        for (class, opened) in blocks.iter_mut().zip(opened) {
            for (place, freed) in class.iter_mut().zip(freed) {
                place[PAGES] += opened * freed / all;
            }
        }
        if at >= 90_000 {
            moved_mean += (moved[0] + moved[1]) / step;
            steps += 1;
        }
    }
    1.0 + moved_mean / f64::from(steps)
}

/// Returns the write amplification of greedy collection with hot and cold pages mixed. The model describes blocks by
/// the numbers of their hot and cold valid pages. In a new block, the number of hot pages is distributed as if each
/// page were drawn independently from all written pages.
fn mixed(rho: f64) -> f64 {
    const STATES: usize = PAGES + 1;
    let b = PAGES as f64;
    let [hot_decay, cold_decay] = decays(rho);
    // [hot][cold]
    let mut blocks = vec![[0.0f64; STATES]; STATES];
    let fresh = |q: f64| {
        let mut chances = [0.0; STATES];
        chances[0] = (1.0 - q).powi(PAGES as i32);
        for i in 1..STATES {
            chances[i] = chances[i - 1] * (STATES - i) as f64 / i as f64 * q / (1.0 - q);
        }
        chances
    };
    let mut composition = fresh(HOT_PAGES);
    for (hot, chance) in composition.iter().enumerate() {
        blocks[hot][PAGES - hot] = rho * chance;
    }
    blocks[0][0] += 1.0 - rho;
    let (step, mut moved_mean, mut steps) = (0.04, 0.0, 0);
    for at in 0..60_000 {
        for hot in 0..STATES {
            for cold in 0..STATES - hot {
                let share = blocks[hot][cold];
                if share == 0.0 {
                    continue;
                }
                let hot_dies = share * hot as f64 * hot_decay * step;
                let cold_dies = share * cold as f64 * cold_decay * step;
                blocks[hot][cold] -= hot_dies + cold_dies;
                if hot > 0 {
                    blocks[hot - 1][cold] += hot_dies;
                }
                if cold > 0 {
                    blocks[hot][cold - 1] += cold_dies;
                }
            }
        }
        let (mut owed, mut moved) = (step, [0.0; 2]);
        for live in 0..PAGES {
            let level: f64 = (0..=live).map(|hot| blocks[hot][live - hot]).sum();
            let taken = share_taken(level, PAGES - live, &mut owed);
            for hot in 0..=live {
                let of = &mut blocks[hot][live - hot];
                moved[0] += *of * taken * hot as f64;
                moved[1] += *of * taken * (live - hot) as f64;
                *of *= 1.0 - taken;
            }
            if owed <= 0.0 {
                break;
            }
        }
        let written = step + moved[0] + moved[1];
        if at % 25 == 0 {
            composition = fresh((HOT_WRITES * step + moved[0]) / written);
        }
        for (hot, chance) in composition.iter().enumerate() {
            blocks[hot][PAGES - hot] += written / b * chance;
        }
        if at >= 45_000 {
            moved_mean += (moved[0] + moved[1]) / step;
            steps += 1;
        }
    }
    1.0 + moved_mean / f64::from(steps)
}

#[test]
fn greedy_under_hot_and_cold_writes_amplifies_as_two_classes_do() {
    for rho in [0.9, 0.8] {
        let mut got = Vec::new();
        for separation in ["none", "region"] {
            let mut of = vec![("ftl.separation", separation)];
            if separation == "region" {
                of.push(("ftl.region_percent", "20"));
            }
            let mut ssd = Ssd::new(&one_pool("modern", 1024, rho, &of));
            ssd.fill_steady(2);
            let pages = u64::from(ssd.spec().exported_pages());
            let config = RunConfig {
                pacing: Pacing::Closed { depth: 4 },
                warmup_requests: 60 * pages,
                ..RunConfig::default()
            };
            let text = format!(
                "hotcold:hot_access={HOT_WRITES},hot_space={HOT_PAGES},write=1,requests={}",
                90 * pages
            );
            let mut workload = load(&text, &ssd, 4);
            let outcome = run_all(&mut ssd, &mut *workload, &config).0;
            got.push(outcome.flash.gc_write_amplification().unwrap());
        }
        assert_near(&format!("mixed, rho {rho}"), got[0], mixed(rho), 0.01);
        assert_near(
            &format!("separated, rho {rho}"),
            got[1],
            separated(rho),
            0.01,
        );
    }
}
