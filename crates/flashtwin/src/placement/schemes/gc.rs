//! Separation by origin: pages that the host writes, and pages that collection moves.

use super::{Class, Device, Entry, HostPage, Needs, Scheme, Shipped};
use crate::component::{Component, Provenance, Settings};

/// The scheme `gc`: one class for all pages. Moved pages have units of their own.
#[derive(Clone, Debug)]
pub(crate) struct Gc;

impl Shipped for Gc {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "gc",
            line: "by origin: moved pages are kept apart from pages that the host writes",
            parameters: &[],
        },
        source: Option::None,
        provenance: Provenance::Original,
        rule: &[
            "All pages that the host writes are of class 0; survivors share units of their own.",
        ],
    };

    fn new(_settings: &Settings, _device: &Device) -> Result<Gc, String> {
        Ok(Gc)
    }
}

impl Scheme for Gc {
    fn needs(&self) -> Needs {
        Needs::classes(1)
    }

    #[inline]
    fn host(&mut self, _page: &HostPage) -> Class {
        0
    }
}
