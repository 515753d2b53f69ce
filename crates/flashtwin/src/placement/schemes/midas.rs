//! A chain of groups of units, after MiDAS. Here, a group of the chain is a class of the scheme; moved pages go to the
//! next group. The number of groups and their sizes are computed from the times between successive writes of a page.

use super::{Class, Device, Entry, HostPage, MovedPage, Needs, Scheme, Shipped, Survivors};
use crate::component::{parameters, source, Component, Kind, Provenance, Settings};
use crate::placement::theory::uniform_fifo;
use crate::units::Lpn;

parameters! {
    /// Parameters of MiDAS.
    struct Parameters {
        /// Largest number of groups in the chain.
        classes: u32 = Kind::Count(2, 16), "5", "ours";
    }
}

/// Host clock of a page without a copy.
const NEVER: u64 = u64::MAX;

/// Least number of pages in the sample. If the device has fewer logical pages, all of them are in the sample.
const SAMPLE: u32 = 1 << 14;

/// Bins of the ages in one octave.
const BINS_OF_OCTAVE: usize = 8;

/// Number of bins for ages. An age is a number of pages that the host has written; it is below 2^32.
const BINS: usize = 32 * BINS_OF_OCTAVE;

/// Largest number of rounds of the search for the limits. The search ends earlier if a round finds no better limits.
const ROUNDS_MAX: usize = 16;

/// Fraction of the predicted programs that a longer chain must save, compared with the best shorter chain.
const SAVED_BY_GROUP: f64 = 0.02;

/// Statistics of page lives, for a sample of the pages. A life begins when the host writes a page, and ends when the
/// host writes or trims this page again.
#[derive(Clone, Debug)]
struct Lives {
    /// Number of logical pages per page of the sample.
    stride: u32,
    /// Host clock at the last write of each page of the sample; [`NEVER`] if the page has no copy.
    written_at: Vec<u64>,
    /// Value of the host clock up to which the lives that have not ended yet are included in `spent`.
    counted_to: u64,
    /// Number of lives that have begun in this epoch (the time since the last search for limits). `over` is the number
    /// of lives that have ended in this epoch.
    begun: u64,
    over: u64,
    /// Lower edges of the bins.
    edges: Vec<f64>,
    /// For each bin of ages, the total time that pages of the sample spent at ages within the bin. Time is counted in
    /// pages that the host writes.
    spent: Vec<f64>,
    /// For each bin, the number of lives that ended at an age within the bin.
    ended: Vec<f64>,
}

/// For each age, the share of the lives that are longer than this age. The number of moves of a chain is predicted from
/// these shares.
struct Survival {
    /// Two values for the lower edge of each bin: the share of the lives that are longer than this age, and the
    /// integral of this share from age 0 to this age.
    edges: Vec<(f64, f64)>,
}

/// The scheme `midas`.
#[derive(Clone, Debug)]
pub(crate) struct Midas {
    groups: usize,
    device: Device,
    lives: Box<Lives>,
    /// Host clock when the host last wrote a page.
    clock: u64,
    /// Host clock of the next search.
    due: u64,
    /// Number of units that each class except the last may hold in a group of dies. If the number is 0, the chain omits
    /// the class. The last class holds all other units.
    limits: Vec<u32>,
}

/// Returns the age at which a bin begins, in pages that the host has written. Ages plus 1 are divided into octaves, and
/// each octave into bins of equal width.
fn edge(bin: usize) -> f64 {
    let (octave, within) = (bin / BINS_OF_OCTAVE, bin % BINS_OF_OCTAVE);
    (1u64 << octave) as f64 * (1.0 + within as f64 / BINS_OF_OCTAVE as f64) - 1.0
}

/// Returns the bin of an age.
fn bin_of(pages: f64) -> usize {
    let value = pages.max(0.0) + 1.0;
    let octave = (value as u64).ilog2() as usize;
    let within = (value / (1u64 << octave) as f64 - 1.0) * BINS_OF_OCTAVE as f64;
    octave * BINS_OF_OCTAVE + within as usize
}

impl Lives {
    fn new(logical_pages: u32) -> Lives {
        let stride = (logical_pages / SAMPLE).max(1);
        Lives {
            stride,
            written_at: vec![NEVER; logical_pages.div_ceil(stride) as usize],
            counted_to: 0,
            begun: 0,
            over: 0,
            edges: (0..BINS).map(edge).collect(),
            spent: vec![0.0; BINS],
            ended: vec![0.0; BINS],
        }
    }

    /// Returns the index of a page in the sample; `None` if the page is not in the sample. The sample has one page of
    /// each run of `stride` consecutive pages, at a position that differs from run to run.
    #[inline]
    fn place(&self, lpn: Lpn) -> Option<usize> {
        let (place, position) = (lpn.0 / self.stride, lpn.0 % self.stride);
        let mixed = place.wrapping_mul(0x9e37_79b9) >> 8;
        (position == mixed % self.stride).then_some(place as usize)
    }

    /// Counts the end of a page's life, if the page had a copy. The next life of the page begins at the host clock
    /// `next`; with [`NEVER`], no life begins.
    #[inline]
    fn end(&mut self, lpn: Lpn, clock: u64, next: u64) {
        let Some(place) = self.place(lpn) else {
            return;
        };
        let begun = std::mem::replace(&mut self.written_at[place], next);
        self.begun += u64::from(next != NEVER);
        if begun != NEVER {
            self.over += 1;
            self.spend(begun, clock);
            self.ended[bin_of(clock.saturating_sub(begun) as f64).min(BINS - 1)] += 1.0;
        }
    }

    /// Adds the time of a life, up to `clock`, to the bins of its ages. The life began at the host clock `begun`. Time
    /// that was counted before is not counted again.
    fn spend(&mut self, begun: u64, clock: u64) {
        let from = self.counted_to.saturating_sub(begun) as f64;
        let until = clock.saturating_sub(begun) as f64;
        let first = bin_of(from).min(BINS - 1);
        let last = bin_of(until).min(BINS - 1);
        // Because of rounding, the first or last age may lie slightly outside its bin. That bin then receives the time
        // 0.
        for bin in first..=last {
            let end = if bin == last {
                until
            } else {
                self.edges[bin + 1].min(until)
            };
            self.spent[bin] += (end - from.max(self.edges[bin])).max(0.0);
        }
    }

    /// Counts the lives that have not ended.
    fn count_alive(&mut self, clock: u64) {
        for place in 0..self.written_at.len() {
            let begun = self.written_at[place];
            if begun != NEVER {
                self.spend(begun, clock);
            }
        }
        self.counted_to = clock;
    }

    /// Ends the epoch. With `is_filled`, halves all counts, so that earlier epochs count less. Otherwise, sets all
    /// counts to zero: while the device is being filled, few lives end, and their ages do not predict later ones.
    fn end_epoch(&mut self, is_filled: bool) {
        let factor = if is_filled { 0.5 } else { 0.0 };
        for count in self.spent.iter_mut().chain(&mut self.ended) {
            *count *= factor;
        }
        (self.begun, self.over) = (0, 0);
    }

    /// Whether at least half as many lives ended in this epoch as began. If not, the device was still being filled.
    fn is_filled(&self) -> bool {
        2 * self.over >= self.begun
    }

    /// Returns the share of the lives that are longer than each age. If no page of the sample has reached an age, no
    /// life is assumed to end at this age.
    fn survival(&self) -> Survival {
        let (mut left, mut integral) = (1.0f64, 0.0);
        let mut edges = vec![(left, integral)];
        for bin in 0..BINS {
            let width = edge(bin + 1) - edge(bin);
            let rate = match self.spent[bin] > 0.0 {
                true => self.ended[bin] / self.spent[bin],
                false => 0.0,
            };
            let next = left * (-rate * width).exp();
            integral += width * 0.5 * (left + next);
            left = next;
            edges.push((left, integral));
        }
        Survival { edges }
    }
}

impl Survival {
    /// Returns the share of the lives that are longer than `age`, and the integral of this share from age 0 to `age`.
    fn at(&self, age: f64) -> (f64, f64) {
        let last = self.edges.len() - 1;
        let bin = bin_of(age).min(last);
        let (share, integral) = self.edges[bin];
        if bin == last {
            return (share, integral + share * (age - edge(bin)).max(0.0));
        }
        let (width, into) = (edge(bin + 1) - edge(bin), age.max(0.0) - edge(bin));
        let next = self.edges[bin + 1].0;
        let here = share + (next - share) * (into / width).clamp(0.0, 1.0);
        (here, integral + into * 0.5 * (share + here))
    }
}

impl Midas {
    /// Returns the predicted number of pages that collection moves per page that the host writes. Class i holds
    /// `limits[i]` units in each group of dies, and the last class holds all other units.
    ///
    /// The prediction assumes that all classes except the last collect their units in the order of opening. A page then
    /// stays in a class until the class has filled as many units as its limit. For the last class, whose pages have
    /// survived longest, uniform writes are assumed.
    fn moves(&self, survival: &Survival, limits: &[u32]) -> f64 {
        let group_pages = f64::from(self.device.unit_pages) * f64::from(self.device.groups);
        let (mut age, mut entering, mut moves, mut live) = (0.0, 1.0, 0.0, 0.0);
        let mut units = self.device.units.saturating_sub(self.device.low);
        for &limit in limits.iter().filter(|&&limit| limit > 0) {
            if entering < 1e-9 {
                return moves;
            }
            let before = survival.at(age).1;
            age += f64::from(limit) * group_pages / entering;
            let (left, until) = survival.at(age);
            live += until - before;
            units = units.saturating_sub(limit);
            entering = left;
            moves += entering;
        }
        let rest = (f64::from(self.device.logical_pages) - live).max(0.0);
        let load = rest / (f64::from(units) * group_pages);
        match load < 0.999 {
            true => moves + entering * (uniform_fifo(load) - 1.0),
            false => f64::INFINITY,
        }
    }

    /// Sets the limits to those with the fewest predicted moves. Chains with more classes are tried in ascending order.
    /// A longer chain is chosen only if it saves at least the fraction [`SAVED_BY_GROUP`] of the predicted programs,
    /// because a smaller saving would be within the error of the prediction.
    fn search(&mut self) {
        let survival = self.lives.survival();
        let mut best = vec![0; self.groups - 1];
        let mut programs = 1.0 + self.moves(&survival, &best);
        for groups in 1..self.groups {
            let mut limits = vec![0; self.groups - 1];
            let with = 1.0 + self.fit(&survival, &mut limits, groups);
            if with < programs * (1.0 - SAVED_BY_GROUP) {
                (best, programs) = (limits, with);
            }
        }
        self.limits = best;
    }

    /// Changes the first `groups` limits, one at a time, as long as the predicted number of moves falls. Returns the
    /// predicted number of moves with the final limits, per page that the host writes.
    fn fit(&self, survival: &Survival, limits: &mut [u32], groups: usize) -> f64 {
        let most = self.device.units.saturating_sub(self.device.low);
        let mut sizes = vec![0, 1, 2, 3];
        while let Some(&last) = sizes.last().filter(|&&last| last < most) {
            sizes.push((last + last.div_ceil(8)).min(most));
        }
        let mut best = self.moves(survival, limits);
        for _ in 0..ROUNDS_MAX {
            let before = best;
            for group in 0..groups {
                let mut chosen = limits[group];
                for &size in &sizes {
                    limits[group] = size;
                    let moves = self.moves(survival, limits);
                    if moves < best {
                        (best, chosen) = (moves, size);
                    }
                }
                limits[group] = chosen;
            }
            if best >= before {
                break;
            }
        }
        best
    }

    /// Returns the first class that the chain does not omit, starting at `class`.
    #[inline]
    fn first_from(&self, class: usize) -> Class {
        let mut class = class;
        while self.limits.get(class) == Some(&0) {
            class += 1;
        }
        class.min(self.groups - 1) as Class
    }
}

impl Shipped for Midas {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "midas",
            line: "by a chain of groups that survivors pass through; their sizes minimise the predicted moves",
            parameters: Parameters::ROWS,
        },
        source: Some(source(
            "S. Oh, J. Kim, S. Han, J. Kim, S. Lee, S. H. Noh",
            "MIDAS: Minimizing Write Amplification in Log-Structured Systems through Adaptive Group Number and Size Configuration",
            "FAST",
            2024,
        )),
        provenance: Provenance::Reconstruction,
        rule: &[
            "The host's pages are of the first class of a chain of at most `classes` classes. A survivor goes to the next \
             class of the chain, or stays in the last one.",
            "With the scope `chain`, the oldest unit of a class is collected while the class holds more units than its size; \
             otherwise, the victim rule chooses among the units of the last class.",
            "Each time that the host has written as much as the capacity, the sizes are determined anew. They depend \
             on the rate of overwrites by age, measured in a sample of at least 16 384 pages. With each capacity \
             written, the weight of earlier samples is halved; a sample in which less than half of the writes \
             overwrite a page is forgotten. The prediction assumes that a page survives a class if it is not \
             overwritten before the class is filled, and that writes to the last class are uniform. Sizes are changed \
             one at a time as long as the predicted number of moves falls. A group is added if this saves 2 % of the \
             predicted programs. The chain omits classes of size 0.",
            "At first, all pages are of the last class. The article also has a group of hot pages, which is not modelled.",
        ],
    };

    fn new(settings: &Settings, device: &Device) -> Result<Midas, String> {
        let Parameters { classes } = Parameters::of(settings);
        let groups = classes as usize;
        Ok(Midas {
            groups,
            device: *device,
            lives: Box::new(Lives::new(device.logical_pages)),
            clock: 0,
            due: u64::from(device.logical_pages),
            limits: vec![0; groups - 1],
        })
    }
}

impl Scheme for Midas {
    fn needs(&self) -> Needs {
        Needs {
            survivors: Survivors::Scheme,
            ..Needs::classes(self.groups as u16)
        }
    }

    fn host(&mut self, page: &HostPage) -> Class {
        if page.clock >= self.due {
            self.lives.count_alive(page.clock);
            let is_filled = self.lives.is_filled();
            if is_filled {
                self.search();
            }
            self.lives.end_epoch(is_filled);
            self.due = page.clock + u64::from(self.device.logical_pages);
        }
        self.clock = page.clock;
        self.lives.end(page.lpn, page.clock, page.clock);
        self.first_from(0)
    }

    #[inline]
    fn moved(&mut self, page: &MovedPage) -> Class {
        self.first_from(usize::from(page.from) + 1)
    }

    fn trimmed(&mut self, lpn: Lpn) {
        // The host clock counts written pages, so a trim does not advance it.
        self.lives.end(lpn, self.clock, NEVER);
    }

    fn limits(&self) -> &[u32] {
        &self.limits
    }

    fn words(&self) -> Vec<u64> {
        let lives = &self.lives;
        let mut words = vec![
            self.clock,
            self.due,
            lives.counted_to,
            lives.begun,
            lives.over,
        ];
        words.extend(self.limits.iter().map(|&limit| u64::from(limit)));
        let counts = self.lives.spent.iter().chain(&self.lives.ended);
        words.extend(counts.map(|count| count.to_bits()));
        words.extend(&self.lives.written_at);
        words
    }

    fn set_words(&mut self, words: &[u64]) -> bool {
        let (groups, sample) = (self.limits.len(), self.lives.written_at.len());
        if words.len() != 5 + groups + 2 * BINS + sample {
            return false;
        }
        let (clocks, words) = words.split_at(5);
        let (limits, words) = words.split_at(groups);
        let (counts, written_at) = words.split_at(2 * BINS);
        let most = u64::from(self.device.units.saturating_sub(self.device.low));
        let counts: Vec<f64> = counts.iter().map(|&count| f64::from_bits(count)).collect();
        let fits = clocks.iter().all(|&clock| clock < 1 << 62)
            && limits.iter().all(|&limit| limit <= most)
            && counts.iter().all(|count| (0.0..1e300).contains(count))
            && written_at.iter().all(|&at| at <= clocks[0] || at == NEVER);
        if !fits {
            return false;
        }
        (self.clock, self.due, self.lives.counted_to) = (clocks[0], clocks[1], clocks[2]);
        (self.lives.begun, self.lives.over) = (clocks[3], clocks[4]);
        self.limits = limits.iter().map(|&limit| limit as u32).collect();
        self.lives.spent = counts[..BINS].to_vec();
        self.lives.ended = counts[BINS..].to_vec();
        self.lives.written_at = written_at.to_vec();
        true
    }

    fn state(&self) -> String {
        let sizes: Vec<String> = self.limits.iter().map(u32::to_string).collect();
        format!("sizes {}, rest", sizes.join(", "))
    }
}
