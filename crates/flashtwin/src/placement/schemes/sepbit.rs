//! SepBIT: pages are classified by the inferred time until they become invalid.

use super::{
    Class, Device, Entry, HostPage, MovedPage, Needs, Scheme, Shipped, Survivors, UnitView,
};
use crate::component::{parameters, source, Component, Kind, Provenance, Settings};

parameters! {
    /// Parameters of SepBIT.
    struct Parameters {
        /// The threshold is the mean lifespan of this number of erased units of class 0.
        sample: u32 = Kind::Count(1, 65_535), "16", "original: 16";
    }
}

/// The scheme `sepbit`: two classes of host pages, and four classes of moved pages.
#[derive(Clone, Debug)]
pub(crate) struct SepBit {
    sample: u32,
    /// Age limit in host pages: pages whose previous copy lived for a shorter time count as short-lived.
    threshold: u64,
    /// Number of units of class 0 that were erased since the threshold was last set. `sum` is the sum of the lifespans
    /// of these units.
    seen: u32,
    sum: u64,
}

impl Shipped for SepBit {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "sepbit",
            line: "by the expected life of a page, inferred from the life of its previous copy",
            parameters: Parameters::ROWS,
        },
        source: Some(source(
            "Q. Wang, J. Li, P. P. C. Lee, T. Ouyang, C. Shi, L. Huang",
            "Separating Data via Block Invalidation Time Inference for Write Amplification Reduction in Log-Structured Storage",
            "FAST",
            2022,
        )),
        provenance: Provenance::Original,
        rule: &[
            "The life of a copy is the time until the host writes the page again. A page of the host is of class 0 if its \
             previous copy lived shorter than a threshold l. Otherwise, and at its first write, it is of class 1. \
             Initially, l is infinite.",
            "A survivor from class 0 is of class 2. The class of all other survivors depends on their age g, the time since \
             their last write: class 3 if g < 4 l, class 4 if g < 16 l, otherwise class 5.",
            "After every `sample` erased units of class 0, l is the mean time from their opening to their erase. Times are \
             counted in pages written by the host. The article's queue of recent writes only saves memory and is not modelled.",
        ],
    };

    fn new(settings: &Settings, _device: &Device) -> Result<SepBit, String> {
        let Parameters { sample } = Parameters::of(settings);
        Ok(SepBit {
            sample,
            threshold: u64::MAX,
            seen: 0,
            sum: 0,
        })
    }
}

impl Scheme for SepBit {
    fn needs(&self) -> Needs {
        Needs {
            age: true,
            survivors: Survivors::Scheme,
            ..Needs::classes(6)
        }
    }

    #[inline]
    fn host(&mut self, page: &HostPage) -> Class {
        Class::from(page.age >= self.threshold)
    }

    #[inline]
    fn moved(&mut self, page: &MovedPage) -> Class {
        let times = |n: u64| self.threshold.saturating_mul(n);
        match page.from {
            0 => 2,
            _ if page.age < times(4) => 3,
            _ if page.age < times(16) => 4,
            _ => 5,
        }
    }

    fn erased(&mut self, unit: &UnitView, _valid: u32, clock: u64) {
        if unit.class != Some(0) {
            return;
        }
        self.seen += 1;
        self.sum += clock - unit.opened_at;
        if self.seen == self.sample {
            self.threshold = self.sum / u64::from(self.sample);
            (self.seen, self.sum) = (0, 0);
        }
    }

    fn words(&self) -> Vec<u64> {
        vec![self.threshold, self.seen.into(), self.sum]
    }

    fn set_words(&mut self, words: &[u64]) -> bool {
        let &[threshold, seen, sum] = words else {
            return false;
        };
        (self.threshold, self.seen, self.sum) = (threshold, seen as u32, sum);
        seen < self.sample.into() && sum < 1 << 62
    }

    fn state(&self) -> String {
        let threshold = match self.threshold {
            u64::MAX => "infinite".into(),
            l => l.to_string(),
        };
        format!("l {threshold}; {} of {}", self.seen, self.sample)
    }
}
