//! Classes chosen by the host: the class of a page is the handle that its placement id selects
//! (NVMe flexible data placement, streams).

use super::{Class, Device, Entry, HostPage, Isolated, Needs, Scheme, Shipped};
use crate::component::{Component, Provenance, Settings};

/// The scheme `handle`: one class per handle.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    handles: u16,
}

impl Shipped for Handle {
    const ENTRY: Entry = Entry {
        component: Component {
            name: "handle",
            line: "by the handle that the host's placement id names: flexible data placement, or streams",
            parameters: &[],
        },
        source: Option::None,
        provenance: Provenance::Original,
        rule: &[
            "The placement id of a write names a handle (NVMe: reclaim unit handle), which is the class of the page. A write \
             without an id, or with an invalid id, goes to placement handle 0.",
            "The type of the handle decides where its survivors go. Survivors of all initially isolated handles (`ii`) share \
             units. Survivors of a persistently isolated handle (`pi`) have units of their own.",
        ],
    };

    fn new(_settings: &Settings, device: &Device) -> Result<Handle, String> {
        let handles = device.handles;
        Ok(Handle { handles })
    }
}

impl Scheme for Handle {
    fn needs(&self) -> Needs {
        Needs {
            isolated: Isolated::ByHandle,
            ..Needs::classes(self.handles)
        }
    }

    #[inline]
    fn host(&mut self, page: &HostPage) -> Class {
        page.handle
    }
}
