//! Classes by age: moved pages that were written long ago are kept apart from pages written recently.

use super::{Class, Device, Entry, HostPage, MovedPage, Needs, Scheme, Shipped, Survivors};
use crate::component::{parameters, Component, Kind, Provenance, Settings};

parameters! {
    /// Parameters of age classes.
    struct Parameters {
        /// Number of classes, including the class of the host's pages.
        classes: u32 = Kind::Count(2, 128), "5", "ours";
        /// Age below which survivors are in the first of their classes: pages written by the host, in percent of the
        /// number of logical pages.
        base_percent: f64 = Kind::Percent, "10", "ours";
        /// Factor between the age limits of two successive classes.
        factor: u32 = Kind::Count(2, 64), "4", "ours";
    }
}

/// The scheme `age`: moved pages are classified by the logarithm of their age.
#[derive(Clone, Debug)]
pub(crate) struct Age {
    classes: u16,
    base: u64,
    factor: u64,
}

impl Shipped for Age {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "age",
            line: "survivors by the time since their last write",
            parameters: Parameters::ROWS,
        },
        source: Option::None,
        provenance: Provenance::Ours,
        rule: &[
            "The host's pages are of class 0. The age of a survivor is the number of pages that the host has written \
             since it last wrote this page. If the age is below `base_percent` of the logical pages, the survivor is \
             of class 1. If the age is below `factor` times this limit, the survivor is of class 2, and so on.",
        ],
    };

    fn new(settings: &Settings, device: &Device) -> Result<Age, String> {
        let p = Parameters::of(settings);
        let base = (f64::from(device.logical_pages) * p.base_percent / 100.0) as u64;
        Ok(Age {
            classes: p.classes as u16,
            base: base.max(1),
            factor: p.factor.into(),
        })
    }
}

impl Scheme for Age {
    fn needs(&self) -> Needs {
        Needs {
            age: true,
            survivors: Survivors::Scheme,
            ..Needs::classes(self.classes)
        }
    }

    #[inline]
    fn host(&mut self, _page: &HostPage) -> Class {
        0
    }

    #[inline]
    fn moved(&mut self, page: &MovedPage) -> Class {
        let (mut class, mut end) = (1, self.base);
        while page.age >= end && class < self.classes - 1 {
            class += 1;
            end = end.saturating_mul(self.factor);
        }
        class
    }
}
