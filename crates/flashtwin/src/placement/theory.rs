//! Closed forms of write amplification, for many units of many pages.
//!
//! `load` is the share of live pages in the units in use: L / S, if L pages are live and the units have S pages.

/// Number of steps of a bisection, enough for all binary digits of a double.
const STEPS: usize = 56;

/// Returns the write amplification of first-in-first-out collection under independent uniform writes (Desnoyers, SYSTOR
/// 2012). This is 1 / (1 - x), where x below 1 solves x = exp(-(1 - x) / load). `load` must be at least 0 and below 1.
pub fn uniform_fifo(load: f64) -> f64 {
    if load <= 0.0 {
        return 1.0;
    }
    // x is the root of `excess` below 1; the other root is 1. From 0 to 1, `excess` falls to negative values, then
    // rises to 0.
    let excess = |x: f64| (-(1.0 - x) / load).exp() - x;
    let (mut low, mut high) = (0.0, load);
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        match excess(middle) > 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    1.0 / (1.0 - low)
}

/// Returns the write amplification of first-in-first-out collection if every page is written once per pass, in a new
/// random order for each pass. The result is 1 / y, where y solves y (1 + g(T) + g(2 T) + ...) = 1 and T = y / load is
/// a time in passes. g(t) is the probability that a page has not been written again a time t after its last write.
pub fn permuted_fifo(load: f64) -> f64 {
    if load <= 0.0 {
        return 1.0;
    }
    let alive = |t: f64| match t {
        t if t <= 1.0 => 1.0 - t * t / 2.0,
        t if t <= 2.0 => (2.0 - t) * (2.0 - t) / 2.0,
        _ => 0.0,
    };
    let sum = |y: f64| {
        let step = y / load;
        let ages = (1..).map(|n| f64::from(n) * step);
        y * (1.0 + ages.take_while(|&t| t < 2.0).map(alive).sum::<f64>())
    };
    let (mut low, mut high) = (1e-9, 1.0);
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        match sum(middle) < 1.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    1.0 / low
}

/// Returns the write amplification of greedy collection under independent uniform writes, for units of `pages` pages,
/// in the limit of many units (Desnoyers, SYSTOR 2012; Van Houdt, SIGMETRICS 2013). With fewer pages per unit, the
/// numbers of live pages vary more between units, and the emptiest unit is emptier.
pub fn uniform_greedy(load: f64, pages: u32) -> f64 {
    if load <= 0.0 {
        return 1.0;
    }
    // Let n be the number of pages of a unit, and v the number of live pages of a victim. The number of live pages of a
    // unit falls from n to v + 1 before the unit can be a victim. Each page becomes invalid at the same rate, so the
    // number of units with j live pages is proportional to 1 / j. The mean share of live pages over all units is the
    // load. This mean falls as v falls.
    let n = f64::from(pages);
    let (mut whole, mut weight) = (pages, 0.0);
    while whole > 0 {
        let next = weight + 1.0 / f64::from(whole);
        if (n - f64::from(whole - 1)) / (n * next) < load {
            break;
        }
        (whole, weight) = (whole - 1, next);
    }
    // v lies between `whole` - 1 and `whole`, so the weight of `whole` counts only in part. The mean share of live
    // pages is (n - v) / (n (weight + (whole - v) / whole)).
    let whole = f64::from(whole);
    let mean_of = |victim: f64| (n - victim) / (n * (weight + (whole - victim) / whole));
    let (mut low, mut high) = ((whole - 1.0).max(0.0), whole);
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        match mean_of(middle) < load {
            true => low = middle,
            false => high = middle,
        }
    }
    n / (n - low)
}

/// Returns the write amplification of collecting random units, under independent uniform writes. On average, a victim
/// has the same share of live pages as all units, so the result is 1 / (1 - load).
pub fn uniform_random(load: f64) -> f64 {
    1.0 / (1.0 - load.max(0.0))
}

/// Returns the write amplification of collecting, among `choices` random units, the one with the fewest live pages,
/// under independent uniform writes (Van Houdt, SIGMETRICS 2013). Units have `pages` pages. With one choice, the result
/// is that of random units. With many choices, the result approaches that of greedy collection.
pub fn uniform_d_choices(load: f64, pages: u32, choices: u32) -> f64 {
    if load <= 0.0 {
        return 1.0;
    }
    let (n, d) = (f64::from(pages), f64::from(choices));
    // Let n be the number of pages of a unit, and S_j the share of units with at least j live pages. With probability
    // S_j^d, all d random units have at least j live pages, and so does the victim. In equilibrium, units fall from j
    // to j - 1 live pages as often as victims with fewer than j live pages are refilled. Therefore c j (S_j - S_(j+1))
    // = 1 - S_j^d, where c is the number of invalidations of a page per victim. Starting from S_(n+1) = 0, each S_j is
    // a root of this equation. The mean share of live pages falls as c rises.
    let tails = |c: f64| {
        let (mut tail, mut live, mut moved) = (0.0, 0.0, 0.0);
        for j in (1..=pages).rev() {
            tail = tail_above(c * f64::from(j), tail, d);
            live += tail;
            moved += tail.powf(d);
        }
        (live / n, moved)
    };
    let (mut low, mut high) = (1e-9_f64, 1e3_f64);
    for _ in 0..STEPS {
        let middle = (low * high).sqrt();
        match tails(middle).0 > load {
            true => low = middle,
            false => high = middle,
        }
    }
    n / (n - tails(low).1)
}

/// Returns the root s of rate (s - above) = 1 - s^d, between `above` and 1.
fn tail_above(rate: f64, above: f64, d: f64) -> f64 {
    // The difference of the two sides of the equation rises with s and is convex. Newton's method, which starts at 1,
    // therefore falls to the root without passing it.
    let mut s = 1.0_f64;
    for _ in 0..STEPS {
        let power = s.powf(d - 1.0);
        let next = s - (rate * (s - above) - 1.0 + power * s) / (rate + d * power);
        if s - next < 1e-15 {
            break;
        }
        s = next;
    }
    s.max(above)
}

/// Returns the write amplification of first-in-first-out collection if several classes of pages share units. Each class
/// is written independently and uniformly. `live` and `units` are as in [`optimal_split`].
///
/// First-in-first-out collection passes over the flash in turns. A page that is written once and moved m times is
/// programmed in 1 + m turns. The time T of a turn, counted in units that the host fills, is the same for all classes.
/// A class with a share f of the writes and live pages of l units is programmed 1 / (1 - exp(-f T / l)) times per
/// write. T follows from the condition that the programs of a turn fill the flash.
pub fn mixed_fifo(live: &[f64], writes: &[f64], units: f64) -> Option<f64> {
    if live.iter().sum::<f64>() >= units || !live.iter().zip(writes).any(|(l, f)| l * f > 0.0) {
        return None;
    }
    let programs = |turn: f64| -> f64 {
        let of = |(&l, &f): (&f64, &f64)| match l > 0.0 && f > 0.0 {
            true => f * turn / -(-f * turn / l).exp_m1(),
            false => l,
        };
        live.iter().zip(writes).map(of).sum()
    };
    let (mut low, mut high) = (0.0, units);
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        match programs(middle) < units {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(units / high)
}

/// A stream of writes with units that no other stream uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamShare {
    /// Amount of live pages, in units.
    pub live: f64,
    /// Share of the host's pages.
    pub writes: f64,
    /// Number of units of the stream.
    pub units: f64,
}

/// Returns the write amplification of streams that do not share units, if each stream is written uniformly. The result
/// is the sum of f_i W(L_i / S_i), where W is [`uniform_fifo`]. Stream i has a share f_i of the writes, live pages that
/// would fill L_i units, and S_i units.
pub fn separate(streams: &[StreamShare]) -> f64 {
    let of = |s: &StreamShare| s.writes * uniform_fifo(s.live / s.units);
    streams.iter().map(of).sum()
}

/// Returns the number of units of each stream for which [`separate`] is smallest. `None` if the flash cannot hold the
/// live pages. A stream that writes nothing gets only the units that its live pages fill.
pub fn optimal_split(live: &[f64], writes: &[f64], units: f64) -> Option<Vec<f64>> {
    let spare = units - live.iter().sum::<f64>();
    let writers = live
        .iter()
        .zip(writes)
        .filter(|(l, f)| **l > 0.0 && **f > 0.0);
    if spare <= 0.0 || writers.count() == 0 {
        return None;
    }
    // For each stream, the number of units at which one more unit would reduce the moves by `price`. The number falls
    // as the price rises.
    let at_price = |price: f64| -> Vec<f64> {
        let of = |(&l, &f): (&f64, &f64)| match l > 0.0 && f > 0.0 {
            true => units_at_price(l, f, price),
            false => l,
        };
        live.iter().zip(writes).map(of).collect()
    };
    let (mut low, mut high) = (1e-9_f64, 1e12_f64);
    for _ in 0..STEPS {
        let middle = (low * high).sqrt();
        match at_price(middle).iter().sum::<f64>() > units {
            true => low = middle,
            false => high = middle,
        }
    }
    let mut split = at_price(high);
    // Rounding leaves some units over. They are distributed in proportion to the spare units of the streams.
    let rest = units - split.iter().sum::<f64>();
    let spare: f64 = split.iter().zip(live).map(|(s, l)| s - l).sum();
    if spare > 0.0 {
        for (s, l) in split.iter_mut().zip(live) {
            *s += rest * (*s - l) / spare;
        }
    }
    Some(split)
}

/// Returns the number of units of a stream at which one more unit would reduce the moves by `price`.
fn units_at_price(live: f64, writes: f64, price: f64) -> f64 {
    // Let y be the share of invalid pages in a victim. Then the write amplification W is 1 / y, and the number of units
    // S is live * -ln(1 - y) / y. One more unit saves writes * -dW/dS = writes * (1 / y^2) / (dS/dy).
    let saving = |y: f64| {
        let log = -(1.0 - y).ln();
        let slope = live * ((1.0 / (1.0 - y)) / y - log / (y * y));
        writes / (y * y) / slope
    };
    let units = |y: f64| live * -(1.0 - y).ln() / y;
    let (mut low, mut high) = (1e-9, 1.0 - 1e-12);
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        match saving(middle) > price {
            true => low = middle,
            false => high = middle,
        }
    }
    units(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, share: f64) -> bool {
        (a / b - 1.0).abs() <= share
    }

    /// Returns the write amplification of two streams. One stream has a share `hot` of the writes, and 1 - `hot` of the
    /// pages.
    fn skewed(load: f64, hot: f64) -> f64 {
        let live = [load * (1.0 - hot), load * hot];
        let writes = [hot, 1.0 - hot];
        let units = optimal_split(&live, &writes, 1.0).unwrap();
        let of = |i: usize| StreamShare {
            live: live[i],
            writes: writes[i],
            units: units[i],
        };
        separate(&[of(0), of(1)])
    }

    #[test]
    fn splits_are_those_of_the_specification() {
        let rows = [
            (0.875, [4.043, 3.627, 2.938, 1.987, 1.440]),
            (0.8, [2.615, 2.382, 1.998, 1.481, 1.201]),
            (0.9, [5.000, 4.463, 3.571, 2.336, 1.612]),
        ];
        for (load, expected) in rows {
            for (hot, expected) in [0.6, 0.7, 0.8, 0.9, 0.95].into_iter().zip(expected) {
                let found = skewed(load, hot);
                assert!(
                    close(found, expected, 0.0005),
                    "{load} {hot}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn permutations_are_those_of_the_specification() {
        let rows = [
            (0.7, 1.692),
            (0.75, 2.0),
            (0.8, 2.5),
            (0.85, 3.325),
            (0.875, 4.0),
            (0.9, 5.0),
        ];
        for (load, expected) in rows {
            let found = permuted_fifo(load);
            assert!(close(found, expected, 0.002), "{load}: {found} {expected}");
        }
    }

    #[test]
    fn uniform_forms_agree_with_each_other() {
        // A split of 50/50 equals uniform writes. Greedy collection of very large units equals first in, first out.
        for load in [0.5, 0.7, 0.8, 0.875, 0.9, 0.95] {
            assert!(close(skewed(load, 0.5), uniform_fifo(load), 1e-6));
            assert!(close(
                uniform_greedy(load, 1 << 16),
                uniform_fifo(load),
                0.001
            ));
            assert!(uniform_greedy(load, 64) < uniform_fifo(load));
        }
        assert!(close(uniform_fifo(0.8), 2.69, 0.01));
    }

    /// Compares the closed form with the table in docs/theory.md. The table was computed with an independent mean-field
    /// model, by Euler's method, for blocks of 64 pages.
    #[test]
    fn d_choices_are_those_of_the_mean_field() {
        let rows = [
            (0.9, [6.852, 5.000, 4.845]),
            (0.85, [4.648, 3.464, 3.368]),
            (0.8, [3.533, 2.675, 2.608]),
            (0.6667, [2.190, 1.721, 1.686]),
        ];
        for (load, expected) in rows {
            for (d, expected) in [2, 10, 40].into_iter().zip(expected) {
                let found = uniform_d_choices(load, 64, d);
                assert!(close(found, expected, 0.001), "{load} {d}: {found}");
            }
            let one = uniform_d_choices(load, 64, 1);
            assert!(close(one, uniform_random(load), 1e-6), "{one}");
            let greedy = uniform_d_choices(load, 64, 1 << 14);
            assert!(close(greedy, uniform_greedy(load, 64), 0.002), "{greedy}");
        }
    }

    #[test]
    fn mixed_classes_agree_with_one_class_and_lose_to_separate_ones() {
        for load in [0.6, 0.8, 0.9] {
            let halves = [load / 2.0, load / 2.0];
            let one = mixed_fifo(&halves, &[0.5, 0.5], 1.0).unwrap();
            assert!(close(one, uniform_fifo(load), 1e-9));
            let skew = mixed_fifo(&[load * 0.2, load * 0.8], &[0.8, 0.2], 1.0).unwrap();
            assert!(skew > skewed(load, 0.8), "{skew}");
            // Cold pages occupy room, and are moved in each turn of the collection over the flash.
            let cold = mixed_fifo(&[load, 0.05], &[1.0, 0.0], 1.0).unwrap();
            assert!(cold > uniform_fifo(load));
        }
        assert_eq!(mixed_fifo(&[0.5, 0.5], &[0.5, 0.5], 1.0), None);
    }

    #[test]
    fn no_better_split_is_near_the_optimal_one() {
        let (live, writes) = ([0.3, 0.4, 0.1], [0.2, 0.1, 0.7]);
        let best = optimal_split(&live, &writes, 1.0).unwrap();
        assert!((best.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let cost = |units: &[f64]| {
            let of = |i: usize| StreamShare {
                live: live[i],
                writes: writes[i],
                units: units[i],
            };
            separate(&[of(0), of(1), of(2)])
        };
        for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)] {
            let mut other = best.clone();
            other[from] -= 0.003;
            other[to] += 0.003;
            assert!(cost(&other) > cost(&best));
        }
    }
}
