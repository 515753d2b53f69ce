//! Placement ids. With the 16 bits of a placement id, the host selects a group and a placement handle (NVMe data
//! placement directive).

/// The destination of a write, determined by its placement id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// The group. `None` if the device chooses the group.
    pub group: Option<u32>,
    /// Index of the placement handle in the namespace.
    pub placement_handle: u16,
    /// The reclaim unit handle.
    pub handle: u16,
    /// Whether the write has an invalid placement id.
    pub invalid: bool,
}

/// The groups and placement handles that a placement id can select.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    groups: u32,
    /// Number of bits of an id that select the group: the highest bits of the id.
    group_bits: u32,
    /// For each placement handle, its reclaim unit handle.
    namespace: Vec<u16>,
}

impl Ids {
    pub fn new(groups: u32, group_bits: u32, namespace: Vec<u16>) -> Ids {
        Ids {
            groups,
            group_bits,
            namespace,
        }
    }

    /// Returns the reclaim unit handle of each placement handle.
    pub fn namespace(&self) -> &[u16] {
        &self.namespace
    }

    /// Returns the group and the placement handle that an id selects; `None` if the id is invalid.
    #[inline]
    pub fn parts(&self, id: u16) -> Option<(u32, u16)> {
        let shift = 16 - self.group_bits;
        let group = u32::from(id) >> shift;
        let handle = u32::from(id) & ((1 << shift) - 1);
        let valid = group < self.groups && (handle as usize) < self.namespace.len();
        valid.then_some((group, handle as u16))
    }

    /// Returns the id that selects a group and a placement handle.
    pub fn id(&self, group: u32, placement_handle: u16) -> u16 {
        // With one group, no bit selects the group, and all 16 bits select the handle.
        ((group << (16 - self.group_bits)) as u16) | placement_handle
    }

    /// Determines the destination of a write with this id, or of a write without an id.
    #[inline(always)]
    pub fn resolve(&self, id: Option<u16>) -> Resolved {
        let found = id.and_then(|id| self.parts(id));
        let (group, placement_handle) = match found {
            Some((group, handle)) => (Some(group), handle),
            None => (None, 0),
        };
        Resolved {
            group: group.filter(|_| self.groups > 1),
            placement_handle,
            handle: self.namespace[usize::from(placement_handle)],
            invalid: id.is_some() && found.is_none(),
        }
    }

    /// Formats an id: as a decimal number if it selects the first group, otherwise as a hexadecimal number.
    pub fn show(&self, id: u16) -> String {
        match self.group_bits > 0 && u32::from(id) >> (16 - self.group_bits) > 0 {
            true => format!("{id:#06x}"),
            false => id.to_string(),
        }
    }
}
