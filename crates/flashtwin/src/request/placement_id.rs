//! Placement ids, with which a host marks writes that belong together.

/// Placement id of a write, or the mark for a write without an id. Depending on the device, an id is a placement
/// handle, a stream, or an expected lifetime.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PlacementId(u16);

impl PlacementId {
    /// Mark for a write without an id.
    pub const NONE: PlacementId = PlacementId(u16::MAX);

    /// The largest id.
    pub const MAX: u16 = u16::MAX - 1;

    /// Returns the placement id with this number. `None` for 0xFFFF, which marks writes without an id.
    pub const fn new(id: u16) -> Option<PlacementId> {
        if id > PlacementId::MAX {
            return None;
        }
        Some(PlacementId(id))
    }

    /// Returns the number of the id; `None` if it is the mark for no id.
    #[inline]
    pub const fn get(self) -> Option<u16> {
        if self.0 == PlacementId::NONE.0 {
            return None;
        }
        Some(self.0)
    }
}

impl Default for PlacementId {
    fn default() -> Self {
        PlacementId::NONE
    }
}

impl std::fmt::Debug for PlacementId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() {
            Some(id) => write!(f, "{id}"),
            None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PlacementId;

    #[test]
    fn every_id_but_the_last_is_an_id() {
        assert_eq!(PlacementId::default().get(), None);
        assert_eq!(PlacementId::new(0).and_then(PlacementId::get), Some(0));
        assert_eq!(
            PlacementId::new(PlacementId::MAX).and_then(PlacementId::get),
            Some(0xFFFE)
        );
        assert_eq!(PlacementId::new(0xFFFF), None);
    }
}
