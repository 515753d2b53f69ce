//! Write lifetime hints: the placement id is one of Linux's numbers for lifetimes
//! (`RWH_WRITE_LIFE_*`).

use super::{Class, Device, Entry, HostPage, Needs, Scheme, Shipped};
use crate::component::{parameters, Component, Kind, Provenance, Settings};

parameters! {
    /// Parameters of write hints.
    struct Parameters {
        /// Class of pages without a hint (0 not set, 1 none).
        no_hint: u32 = Kind::Count(0, 127), "1", "ours: as medium";
        /// Class of pages with a short life (2).
        short: u32 = Kind::Count(0, 127), "0", "ours";
        /// Class of pages with a medium life (3).
        medium: u32 = Kind::Count(0, 127), "1", "ours";
        /// Class of pages with a long life (4).
        long: u32 = Kind::Count(0, 127), "2", "ours";
        /// Class of pages with an extremely long life (5).
        extreme: u32 = Kind::Count(0, 127), "3", "ours";
    }
}

/// The scheme `hints`: a class for each lifetime.
#[derive(Clone, Debug)]
pub(crate) struct Hints {
    /// Class for each hint. Entry 0 is for pages without a hint.
    class: [Class; 5],
}

impl Shipped for Hints {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "hints",
            line: "by the write lifetime hint: none, short, medium, long, extreme",
            parameters: Parameters::ROWS,
        },
        source: Option::None,
        provenance: Provenance::Original,
        rule: &[
            "The placement id is the number that Linux gives to a write lifetime: 0 not set, 1 none, 2 short, 3 \
             medium, 4 long, 5 extreme. The parameters give the class of each lifetime; any other id counts as none.",
        ],
    };

    fn new(settings: &Settings, _device: &Device) -> Result<Hints, String> {
        let p = Parameters::of(settings);
        let class = [p.no_hint, p.short, p.medium, p.long, p.extreme];
        Ok(Hints {
            class: class.map(|class| class as Class),
        })
    }
}

impl Scheme for Hints {
    fn needs(&self) -> Needs {
        let last = self.class.iter().max().copied().unwrap_or(0);
        Needs::classes(last + 1)
    }

    fn host(&mut self, page: &HostPage) -> Class {
        match page.id {
            Some(hint @ 2..=5) => self.class[usize::from(hint) - 1],
            _ => self.class[0],
        }
    }
}
