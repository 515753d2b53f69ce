//! Classes by the number of collections that a page has survived.

use super::{Class, Device, Entry, HostPage, Needs, Scheme, Shipped, Survivors};
use crate::component::{parameters, Component, Kind, Provenance, Settings};

parameters! {
    /// Parameters of generations.
    struct Parameters {
        /// Number of generations, including that of the host's pages.
        classes: u32 = Kind::Count(2, 128), "4", "ours";
    }
}

/// The scheme `generations`: a chain of classes.
#[derive(Clone, Debug)]
pub(crate) struct Generations {
    classes: u16,
}

impl Shipped for Generations {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "generations",
            line: "by the number of collections that a page has survived",
            parameters: Parameters::ROWS,
        },
        source: Option::None,
        provenance: Provenance::Original,
        rule: &[
            "The host's pages are of class 0. Each time a page is moved, its class rises by one, up to the last \
             class.",
        ],
    };

    fn new(settings: &Settings, _device: &Device) -> Result<Generations, String> {
        let Parameters { classes } = Parameters::of(settings);
        Ok(Generations {
            classes: classes as u16,
        })
    }
}

impl Scheme for Generations {
    fn needs(&self) -> Needs {
        Needs {
            survivors: Survivors::Next,
            ..Needs::classes(self.classes)
        }
    }

    #[inline]
    fn host(&mut self, _page: &HostPage) -> Class {
        0
    }
}
