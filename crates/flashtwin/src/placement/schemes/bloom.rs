//! Separation of hot pages, which are detected by a Bloom filter of recent writes.

use super::{Class, Device, Entry, HostPage, Isolated, Needs, Scheme, Shipped};
use crate::component::{parameters, Component, Kind, Provenance, Settings};
use crate::units::Lpn;

/// Number of hash functions of the filter.
const HASHES: u64 = 8;

parameters! {
    /// Parameters of the filter.
    struct Parameters {
        /// Bits of the filter.
        filter_bits: u32 = Kind::Count(64, 1_073_741_824), "8388608", "ours: 8 bits for each of 2^20 pages";
        /// Number of pages that are inserted into the filter before it is emptied.
        filter_items: u32 = Kind::Count(1, 1_073_741_824), "1048576", "ours";
    }
}

/// The scheme `bloom`, with two classes: pages that the filter contains when they are written, and all other pages.
#[derive(Clone, Debug)]
pub(crate) struct Bloom {
    bits: Vec<u64>,
    n: u64,
    items: u32,
    items_max: u32,
}

impl Shipped for Bloom {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "bloom",
            line: "pages written again within a window are hot: a Bloom filter of the writes since its last reset",
            parameters: Parameters::ROWS,
        },
        source: Option::None,
        provenance: Provenance::Reconstruction,
        rule: &[
            "If the filter contains a written page, the page is hot: class 0. Otherwise it is cold, class 1, and is added to the \
             filter. The filter has 8 hashes and is emptied once `filter_items` pages have been added.",
            "CDA-GC's dispatcher (section 3.2.2) separates the pages of a buffer in this way; this scheme needs no buffer.",
        ],
    };

    fn new(settings: &Settings, _device: &Device) -> Result<Bloom, String> {
        let p = Parameters::of(settings);
        Ok(Bloom {
            bits: vec![0; (p.filter_bits as usize).div_ceil(64)],
            n: p.filter_bits.into(),
            items: 0,
            items_max: p.filter_items,
        })
    }
}

impl Bloom {
    /// Returns the positions of a page's bits in the filter, by double hashing.
    fn places(&self, lpn: Lpn) -> impl Iterator<Item = (usize, u64)> {
        let mix = |z: u64| {
            let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let first = mix(u64::from(lpn.0).wrapping_add(0x9e37_79b9_7f4a_7c15));
        let (step, n) = (mix(first) | 1, self.n);
        (0..HASHES).map(move |i| {
            let hash = first.wrapping_add(step.wrapping_mul(i));
            let bit = ((u128::from(hash) * u128::from(n)) >> 64) as u64;
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }
}

impl Scheme for Bloom {
    fn needs(&self) -> Needs {
        Needs {
            isolated: Isolated::All,
            ..Needs::classes(2)
        }
    }

    fn host(&mut self, page: &HostPage) -> Class {
        let mut places = self.places(page.lpn);
        if places.all(|(word, bit)| self.bits[word] & bit != 0) {
            return 0;
        }
        for (word, bit) in self.places(page.lpn) {
            self.bits[word] |= bit;
        }
        self.items += 1;
        if self.items == self.items_max {
            self.bits.fill(0);
            self.items = 0;
        }
        1
    }

    fn words(&self) -> Vec<u64> {
        let items = u64::from(self.items);
        self.bits.iter().copied().chain([items]).collect()
    }

    fn set_words(&mut self, words: &[u64]) -> bool {
        let Some((&items, bits)) = words.split_last() else {
            return false;
        };
        if bits.len() != self.bits.len() || items >= self.items_max.into() {
            return false;
        }
        self.bits.copy_from_slice(bits);
        self.items = items as u32;
        true
    }

    fn state(&self) -> String {
        format!("{} of {} pages", self.items, self.items_max)
    }
}
