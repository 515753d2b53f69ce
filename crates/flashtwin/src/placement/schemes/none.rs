//! No distinction between pages.

use super::{Class, Device, Entry, HostPage, Needs, Scheme, Shipped, Survivors};
use crate::component::{Component, Provenance, Settings};

/// The scheme `none`: a single class.
#[derive(Clone, Debug)]
pub(crate) struct None;

impl Shipped for None {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "none",
            line: "all pages alike",
            parameters: &[],
        },
        source: Option::None,
        provenance: Provenance::Ours,
        rule: &[
            "Every page is of class 0, whatever its placement id. Survivors join the host's pages.",
        ],
    };

    fn new(_settings: &Settings, _device: &Device) -> Result<None, String> {
        Ok(None)
    }
}

impl Scheme for None {
    fn needs(&self) -> Needs {
        Needs {
            survivors: Survivors::Same,
            ..Needs::classes(1)
        }
    }

    #[inline]
    fn host(&mut self, _page: &HostPage) -> Class {
        0
    }
}
