//! Placement by the buffer policy: CDA-GC's dispatcher marks each page as hot or cold.

use super::{Class, Device, Entry, HostPage, MovedPage, Needs, Scheme, Shipped, Survivors};
use crate::component::{source, Component, Provenance, Settings};

/// The scheme `asked`: one class for hot and one for cold pages, as marked by the placement id.
#[derive(Clone, Debug)]
pub(crate) struct Asked;

impl Shipped for Asked {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "asked",
            line: "by the placement id that the host or the buffer gives: pages with id 1 are hot, all others cold",
            parameters: &[],
        },
        source: Some(source(
            "K. Wang, H. Tan, Z. He, J. Li, K. Li",
            "CDA-GC: An Effective Cache Data Allocation for Garbage Collection in Flash-Based Solid-State Drives",
            "Integration",
            2025,
        )),
        provenance: Provenance::Printed,
        rule: &[
            "Pages with placement id 1 are hot, class 1; all others are cold, class 0. Survivors join the cold unit.",
        ],
    };

    fn new(_settings: &Settings, _device: &Device) -> Result<Asked, String> {
        Ok(Asked)
    }
}

impl Scheme for Asked {
    fn needs(&self) -> Needs {
        Needs {
            survivors: Survivors::Scheme,
            ..Needs::classes(2)
        }
    }

    #[inline]
    fn host(&mut self, page: &HostPage) -> Class {
        Class::from(page.id == Some(1))
    }

    #[inline]
    fn moved(&mut self, _page: &MovedPage) -> Class {
        0
    }
}
