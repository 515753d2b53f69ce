//! Contents of a timeline: slices and instants on tracks, links between slices, counters.

use flashtwin::{Place, Time};

/// Kind of slices that a track shows. If they overlap, the track has several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Shown {
    /// Requests to the device or to the member.
    Requests,
    /// Messages of an array's coordinator.
    Messages,
    /// Times in which a member is ordered to run GC.
    Ordered,
    /// Page accesses to the buffer (hits and misses) and evicted pages.
    Accesses,
    /// Accesses that wait for a slot of the buffer.
    SlotWaits,
    /// Pages that are being written back.
    WriteBacks,
    /// Operations of the flash.
    Flash(Place),
}

impl Shown {
    /// Whether slices of the track may overlap.
    pub fn overlaps(self) -> bool {
        matches!(self, Shown::Requests | Shown::SlotWaits | Shown::WriteBacks)
    }
}

/// A track of the device itself, or of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Track {
    pub member: Option<usize>,
    pub shown: Shown,
}

/// Quantity that a counter shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Gauge {
    /// Requests in the device.
    Requests,
    /// Pages whose contents flash does not have.
    DirtyPages,
    /// Free blocks of the device, or of a member.
    FreeBlocks(Option<usize>),
}

/// A detail of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    Number(u64),
    Numbers(Vec<u64>),
    Word(&'static str),
    Yes,
}

/// An activity with a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub track: Track,
    pub name: &'static str,
    pub begin: Time,
    /// End of the slice; `None` if it has not ended.
    pub end: Option<Time>,
    pub details: Vec<(&'static str, Detail)>,
}

impl Slice {
    /// Adds a number to the detail with this key. A detail may have several numbers.
    pub fn also(&mut self, key: &'static str, number: u64) {
        let found = self.details.iter_mut().find(|(name, _)| *name == key);
        match found {
            None => self.details.push((key, Detail::Number(number))),
            Some((_, Detail::Numbers(all))) => all.push(number),
            Some((_, detail)) => {
                if let Detail::Number(first) = *detail {
                    *detail = Detail::Numbers(vec![first, number]);
                }
            }
        }
    }
}

/// An event without a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instant {
    pub track: Track,
    pub name: &'static str,
    pub at: Time,
    pub details: Vec<(&'static str, Detail)>,
}

/// All parts of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Slices {
    pub slices: Vec<Slice>,
    pub instants: Vec<Instant>,
    /// Links from a slice to a slice that it caused: pairs of indices in `slices`.
    pub links: Vec<(u32, u32)>,
    pub counts: Vec<(Time, Gauge, u64)>,
}

impl Slices {
    /// Returns the number of slices, instants and counter values.
    pub fn len(&self) -> usize {
        self.slices.len() + self.instants.len() + self.counts.len()
    }
}
