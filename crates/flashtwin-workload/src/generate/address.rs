//! Addresses of requests: the patterns and their samplers.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

use super::fio_zipf::FioZipf;
use super::locality::Locality;
use super::permute::Passes;
use super::rng::{splitmix64, Rng};
use super::size::Size;
use super::space::Space;
use super::stack::Stack;
use crate::error::{ErrorKind, WorkloadError};

/// Pattern of the start addresses of requests. A *place* is an address at which a request may start: a multiple of the
/// alignment at which the request fits into the range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "pattern", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Address {
    /// Every place is equally likely.
    Uniform {
        /// Whether every place (possible start address) is chosen once per pass over the range, in a new random order
        /// for each pass. All requests must then have the same size.
        #[serde(default, skip_serializing_if = "is_false")]
        permute: bool,
        /// Consecutive parts of the range. For each part: its percentage of the accesses and its percentage of the
        /// range. Places (possible start addresses) within a part are equally likely. If the list is empty, the whole
        /// range is one part.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        zoned: Vec<(f64, f64)>,
    },
    /// Places (possible start addresses) are normally distributed; values outside the range are drawn again.
    Normal {
        /// Standard deviation, bytes.
        sigma: u64,
        /// Centre in bytes. The default is the middle of the range.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mean: Option<u64>,
    },
    /// Zipf distribution: the place (possible start address) of rank k is chosen with a frequency proportional to
    /// 1/k^theta.
    Zipf {
        /// Skew, from 0 (uniform) to 10.
        theta: f64,
        /// Whether the ranks are assigned to places in random order. If false, rank 1 is the first place of the range,
        /// rank 2 the second, and so on.
        #[serde(default = "yes")]
        scramble: bool,
        /// Number of consecutive ranks that have adjacent places. If it is above 1, groups of this size are put in
        /// random order, not single ranks.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        cluster: u64,
        /// Number of consecutive ranks that share a place. The load then has the skew of a range that has as many times
        /// more places.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        ranks_per_place: u64,
        /// Whether to draw as fio does. fio approximates the distribution of ranks, and hashes ranks to places (start
        /// addresses), so that several ranks may share a place.
        #[serde(default, skip_serializing_if = "is_false")]
        fio: bool,
    },
    /// The range has a hot part at its start; the rest is cold. Within each part, all places are equally likely.
    Hotcold {
        /// Share of the accesses that go to the hot part.
        hot_access: f64,
        /// Share of the range that is hot.
        hot_space: f64,
    },
    /// Each request starts where the previous one ended. After the end of the range, the requests continue at its
    /// start.
    Sequential {},
    /// The LRU stack model. A *unit* is a place with a fixed size. A request accesses either a new unit or a unit that
    /// was used before. In the second case, a *distance* is drawn: the number of other units used since the last use of
    /// the unit to access. Reads and writes have separate units.
    Stack {
        /// Weights: first the weight of a new place, then those of the distances 0, 1, 2 to 3, 4 to 7, and so on.
        distances: Vec<f64>,
    },
    /// Starts are drawn in proportion to counts in a file. A line of the file is `LBA,Frequency`: a byte offset and its
    /// count.
    Locality {
        /// Path of the file, which may be plain, gzip or zstd.
        file: PathBuf,
    },
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(flag: &bool) -> bool {
    !*flag
}

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_one(cluster: &u64) -> bool {
    *cluster == 1
}

/// Largest number of ranks that may share a place.
const RANKS_MAX: u64 = 1 << 20;

impl Address {
    /// The pattern in which every place (possible start address) is equally likely.
    pub(crate) const UNIFORM: Address = Address::Uniform {
        permute: false,
        zoned: Vec::new(),
    };
}

fn wrong<T>(text: String) -> Result<T, WorkloadError> {
    Err(WorkloadError::new(ErrorKind::Option, text))
}

/// A pattern prepared for drawing. The range has `space.units()` places (possible start addresses), which are
/// `alignment` bytes apart.
pub(crate) enum Sampler {
    Uniform,
    Permuted {
        passes: Passes,
        /// Distance in bytes from one place to the next.
        step: u64,
    },
    /// Parts of the range, in order. Each has three numbers: the largest draw of [`Rng::units`] that selects the part,
    /// its first place, and its number of places.
    Zoned(Vec<(u64, u64, u64)>),
    Normal {
        sigma: f64,
        mean: f64,
    },
    Zipf {
        zipf: Zipf,
        /// Number of consecutive ranks that share a place.
        ranks_per_place: u64,
        /// Random order of groups of places, and the number of places in a group. `None` if the ranks are not spread.
        groups: Option<(Permutation, u64)>,
    },
    FioZipf(FioZipf),
    Hotcold {
        hot_access: f64,
        hot_units: u64,
    },
    Sequential {
        next: u64,
    },
    Locality(Locality),
    Stack(Stack),
}

impl Sampler {
    pub fn new(
        address: &Address,
        space: Space,
        size: &Size,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        Ok(match address {
            Address::Uniform { permute, zoned } => match (permute, zoned.is_empty()) {
                (false, true) => Sampler::Uniform,
                (true, true) => permuted(space, size, seed)?,
                (false, false) => Sampler::Zoned(parts(zoned, space)?),
                (true, false) => {
                    return wrong("permute and zoned are given; leave one out".to_string())
                }
            },
            Address::Normal { sigma, mean } => {
                let centre = mean.unwrap_or(space.bytes / 2);
                if *sigma == 0 || centre > space.bytes {
                    return wrong(format!(
                        "normal: sigma = {sigma} must be above 0 and mean = {centre} within the range of {}",
                        space.bytes
                    ));
                }
                Sampler::Normal {
                    sigma: *sigma as f64,
                    mean: centre as f64,
                }
            }
            Address::Zipf {
                theta,
                scramble,
                cluster,
                ranks_per_place,
                fio,
            } => {
                if !(0.0..=10.0).contains(theta) {
                    return wrong(format!(
                        "theta: {theta}; from 0 (uniform) to 10 is possible"
                    ));
                }
                if !(1..=space.units()).contains(cluster) || *cluster > 1 && !scramble {
                    return wrong(format!(
                        "cluster: {cluster} places; from 1 to the {} of the range are possible, and 1 without scramble",
                        space.units()
                    ));
                }
                if !(1..=RANKS_MAX).contains(ranks_per_place) {
                    return wrong(format!(
                        "ranks_per_place: {ranks_per_place}; from 1 to {RANKS_MAX} is possible"
                    ));
                }
                if *fio {
                    if *theta == 1.0 || !scramble || *cluster != 1 || *ranks_per_place != 1 {
                        return wrong(
                            "fio=true: the formula of fio has no theta of 1, and hashes all ranks; give another theta, \
                             and leave scramble, cluster and ranks_per_place out"
                                .to_string(),
                        );
                    }
                    return Ok(Sampler::FioZipf(FioZipf::new(space.units(), *theta, seed)));
                }
                let groups = space.units().div_ceil(*cluster);
                Sampler::Zipf {
                    zipf: Zipf::new(space.units().saturating_mul(*ranks_per_place), *theta),
                    ranks_per_place: *ranks_per_place,
                    groups: scramble.then(|| (Permutation::new(groups, seed), *cluster)),
                }
            }
            Address::Hotcold {
                hot_access,
                hot_space,
            } => {
                let space_fits = *hot_space > 0.0 && *hot_space < 1.0;
                if !(space_fits && (0.0..=1.0).contains(hot_access)) {
                    return wrong(format!(
                        "hotcold: hot_access = {hot_access} must be from 0 to 1, hot_space = {hot_space} \
                         above 0 and below 1"
                    ));
                }
                let hot = libm::round(space.units() as f64 * hot_space) as u64;
                let hot_units = hot.clamp(1, (space.units() - 1).max(1));
                Sampler::Hotcold {
                    hot_access: *hot_access,
                    hot_units,
                }
            }
            Address::Sequential {} => Sampler::Sequential { next: 0 },
            Address::Locality { file } => Sampler::Locality({
                let smallest = size.smallest(space.alignment);
                Locality::open(file, space, smallest)?
            }),
            Address::Stack { distances } => Sampler::Stack(Stack::new(distances, seed)?),
        })
    }

    /// Draws a start for a request of `bytes` bytes. Returns `None` if the request does not fit at this start. The
    /// caller must then draw again.
    #[inline]
    pub fn draw(&mut self, rng: &mut Rng, space: Space, bytes: u64) -> Option<u64> {
        let start = match self {
            Sampler::Uniform => space.draw(rng, bytes),
            Sampler::Permuted { passes, step } => passes.draw() * *step,
            Sampler::Zoned(parts) => {
                let drawn = rng.units();
                let (_, first, places) = (parts.iter())
                    .find(|(up_to, ..)| drawn <= *up_to)
                    .unwrap_or(&parts[parts.len() - 1]);
                (first + rng.below(*places)) * space.alignment
            }
            Sampler::FioZipf(zipf) => zipf.draw(rng) * space.alignment,
            Sampler::Normal { sigma, mean } => {
                let at = *mean + *sigma * rng.normal();
                if at < 0.0 || at >= space.bytes as f64 {
                    return None;
                }
                at as u64 / space.alignment * space.alignment
            }
            Sampler::Zipf {
                zipf,
                ranks_per_place,
                groups,
            } => {
                let rank = match *ranks_per_place {
                    1 => zipf.draw(rng),
                    ranks => zipf.draw(rng) / ranks,
                };
                // The last group may extend beyond the range. A place beyond the range is rejected by `fits`, and then
                // drawn again.
                let place = match groups {
                    None => rank,
                    Some((order, 1)) => order.at(rank),
                    Some((order, places)) => order.at(rank / *places) * *places + rank % *places,
                };
                place * space.alignment
            }
            Sampler::Hotcold {
                hot_access,
                hot_units,
            } => {
                let cold_units = space.units() - *hot_units;
                let unit = if cold_units == 0 || rng.chance(*hot_access) {
                    rng.below(*hot_units)
                } else {
                    *hot_units + rng.below(cold_units)
                };
                unit * space.alignment
            }
            Sampler::Sequential { next } => {
                let start = if space.fits(*next, bytes) { *next } else { 0 };
                *next = (start + bytes).next_multiple_of(space.alignment);
                start
            }
            Sampler::Locality(locality) => locality.draw(rng),
            // In the stack model, a unit has a fixed size. `Generator::draw` therefore draws place and size together.
            Sampler::Stack(_) => return None,
        };
        space.fits(start, bytes).then_some(start)
    }

    /// Returns a remark for `describe` if entries of the file were omitted.
    pub fn remark(&self) -> String {
        match self {
            Sampler::Locality(locality) => locality.remark(),
            _ => String::new(),
        }
    }
}

/// Creates the sampler for `permute`. It has as many places (start addresses) as requests fit side by side into the
/// range.
fn permuted(space: Space, size: &Size, seed: u64) -> Result<Sampler, WorkloadError> {
    let Size::Constant { bytes } = *size else {
        return wrong(
            "permute=true: all requests must have one size, like size=128k; give one, or leave permute out"
                .to_string(),
        );
    };
    let step = bytes.next_multiple_of(space.alignment);
    let places = (space.bytes - bytes) / step + 1;
    Ok(Sampler::Permuted {
        passes: Passes::new(places, seed),
        step,
    })
}

/// Returns the parts of the range for `zoned`. The bounds of the parts are rounded to places.
fn parts(zoned: &[(f64, f64)], space: Space) -> Result<Vec<(u64, u64, u64)>, WorkloadError> {
    const PERCENT: f64 = 100.0;
    let is_share = |share: &f64| (0.0..=PERCENT).contains(share);
    let sums = zoned
        .iter()
        .fold((0.0, 0.0), |sums, part| (sums.0 + part.0, sums.1 + part.1));
    let fits = |sum: f64| (sum - PERCENT).abs() < 1e-6;
    if !zoned
        .iter()
        .all(|(access, share)| is_share(access) && is_share(share))
        || !fits(sums.0)
        || !fits(sums.1)
    {
        return wrong(format!(
            "zoned: the shares of accesses sum to {} %, those of the range to {} %; each must be from 0 to 100 and sum \
             to 100, like zoned=80/20:10/20:10/60",
            sums.0, sums.1
        ));
    }
    let mut parts: Vec<(u64, u64, u64)> = Vec::new();
    let (mut access, mut share) = (0.0, 0.0);
    for (index, part) in zoned.iter().enumerate() {
        (access, share) = (access + part.0, share + part.1);
        let first = parts.last().map_or(0, |(_, first, places)| first + places);
        let end = match index + 1 == zoned.len() {
            true => space.units(),
            false => (space.units() as f64 * (share / PERCENT)) as u64,
        };
        if end <= first && part.0 > 0.0 {
            return wrong(format!(
                "zoned: {}/{}: this part of the range of {} bytes has no place for a request; give it a larger share",
                part.0, part.1, space.bytes
            ));
        }
        parts.push((
            Rng::units_up_to(access / PERCENT),
            first,
            end.saturating_sub(first),
        ));
    }
    // Parts without places are removed; they have no accesses. The sum of the remaining shares may be a little below 1.
    parts.retain(|(_, _, places)| *places > 0);
    Ok(parts)
}

/// Draws Zipf ranks by rejection-inversion (Hörmann and Derflinger 1996), which needs no table and permits any skew.
pub(crate) struct Zipf {
    n: u64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    pub fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Zipf {
            n,
            theta,
            integral_first: 0.0,
            integral_last: 0.0,
            shortcut: 0.0,
        };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(n as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// Returns x^-theta, not normalised.
    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// Returns the integral of x^-theta from 1 to x. For theta near 1, this is the logarithm.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let t = (1.0 - self.theta) * log;
        let ratio = if t.abs() > 1e-8 {
            libm::expm1(t) / t
        } else {
            1.0 + t * 0.5
        };
        ratio * log
    }

    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.theta)).max(-1.0);
        let ratio = if t.abs() > 1e-8 {
            libm::log1p(t) / t
        } else {
            1.0 - t * 0.5
        };
        libm::exp(ratio * y)
    }

    /// Draws a rank from 0 (the most frequent) to n - 1.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.integral_last + rng.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let k = ((x + 0.5) as u64).clamp(1, self.n);
            let kf = k as f64;
            if kf - x <= self.shortcut || u >= self.integral(kf + 0.5) - self.density(kf) {
                return k - 1;
            }
        }
    }
}

/// A fixed permutation of 0..n without a table. A Feistel network permutes a larger range and is applied repeatedly
/// until the result is below n.
pub(crate) struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    pub fn new(n: u64, seed: u64) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let mut state = seed;
        let keys = std::array::from_fn(|_| splitmix64(&mut state));
        Permutation {
            n,
            half_bits: bits.div_ceil(2).max(1),
            keys,
        }
    }

    pub fn at(&self, index: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let mut x = index;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for key in self.keys {
                let mut state = right ^ key;
                (left, right) = (right, left ^ (splitmix64(&mut state) & mask));
            }
            x = left << self.half_bits | right;
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_frequencies_follow_the_law() {
        for seed in flashtwin::seeds(3) {
            for theta in [0.5, 0.99, 1.0, 1.5] {
                let n = 1000;
                let zipf = Zipf::new(n, theta);
                let mut rng = Rng::new(seed, 0);
                let draws = 400_000;
                let mut counts = vec![0u32; n as usize];
                for _ in 0..draws {
                    counts[zipf.draw(&mut rng) as usize] += 1;
                }
                let total: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
                for k in [1u64, 2, 3, 10] {
                    let expected = f64::from(draws) * (k as f64).powf(-theta) / total;
                    let got = f64::from(counts[k as usize - 1]);
                    let error = (got - expected).abs() / expected.sqrt();
                    assert!(
                        error < 5.0,
                        "theta {theta}, rank {k}: {got} drawn, {expected:.0} expected"
                    );
                }
            }
        }
    }

    #[test]
    fn zipf_of_zero_skew_is_uniform_and_one_place_is_enough() {
        for seed in flashtwin::seeds(3) {
            let mut rng = Rng::new(seed, 0);
            let zipf = Zipf::new(4, 0.0);
            let mut counts = [0u32; 4];
            for _ in 0..40_000 {
                counts[zipf.draw(&mut rng) as usize] += 1;
            }
            assert!(
                counts.iter().all(|c| (9_500..10_500).contains(c)),
                "{counts:?}"
            );
            assert_eq!(Zipf::new(1, 0.99).draw(&mut rng), 0);
        }
    }

    #[test]
    fn a_permutation_hits_every_place_once() {
        for seed in flashtwin::seeds(3) {
            for n in [1u64, 2, 3, 7, 64, 1000, 4097] {
                let p = Permutation::new(n, seed);
                let mut seen = vec![false; n as usize];
                for i in 0..n {
                    let at = p.at(i) as usize;
                    assert!(!seen[at], "{at} twice in 0..{n}");
                    seen[at] = true;
                }
            }
        }
    }
}
