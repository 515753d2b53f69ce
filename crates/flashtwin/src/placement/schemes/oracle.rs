//! Classes by the time of a page's next write, which no real drive can know.

use super::{Class, Device, Entry, HostPage, MovedPage, Needs, Scheme, Shipped, Survivors};
use crate::component::{parameters, Component, Kind, Provenance, Settings};

parameters! {
    /// Parameters of the oracle.
    struct Parameters {
        /// Classes.
        classes: u32 = Kind::Count(2, 128), "16", "ours";
    }
}

/// The scheme `oracle`: pages are classified by the logarithm of the time until their next write.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    classes: u16,
    unit_pages: u64,
}

impl Shipped for Oracle {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "oracle",
            line: "by the time until the page is written again, which is known from the load: a bound for schemes",
            parameters: Parameters::ROWS,
        },
        source: Option::None,
        provenance: Provenance::Reconstruction,
        rule: &[
            "The class of a page is floor(log2(r / P)), limited to the existing classes. Here r is the number of pages \
             that the host writes before it writes or trims the page again, and P is the number of pages of a unit. \
             For a moved page, r counts from its move. A page that is never written again is of the last class.",
        ],
    };

    fn new(settings: &Settings, device: &Device) -> Result<Oracle, String> {
        let Parameters { classes } = Parameters::of(settings);
        Ok(Oracle {
            classes: classes as u16,
            unit_pages: device.unit_pages.into(),
        })
    }
}

impl Oracle {
    fn class(&self, next: u64, clock: u64) -> Class {
        let units = next.saturating_sub(clock) / self.unit_pages;
        let class = units.checked_ilog2().unwrap_or(0) as u16;
        class.min(self.classes - 1)
    }
}

impl Scheme for Oracle {
    fn needs(&self) -> Needs {
        Needs {
            future: true,
            survivors: Survivors::Scheme,
            ..Needs::classes(self.classes)
        }
    }

    fn host(&mut self, page: &HostPage) -> Class {
        self.class(page.next, page.clock)
    }

    fn moved(&mut self, page: &MovedPage) -> Class {
        self.class(page.next, page.clock)
    }
}
