//! Commands of NVMe flexible data placement (update and status), and the counters of the NVMe log pages.

use std::fmt;

use super::device::{of_handle, Placed};
use super::events::{Event, EventType};
use super::setup::Isolation;

/// Largest number of placement ids in an update.
const UPDATE_MAX: usize = 128;

/// Error: a placement id of a command is not valid, or the command has too many ids. No part of the command takes
/// effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidField;

impl fmt::Display for InvalidField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid field")
    }
}

impl std::error::Error for InvalidField {}

/// The status of a placement handle in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandleStatus {
    /// The placement id that names both the group and the handle.
    pub id: u16,
    /// The id as it is printed.
    pub id_text: String,
    /// The reclaim unit handle.
    pub handle: u16,
    /// Number of pages that can still be written to the handle's open unit. If the handle has no open unit, the number
    /// of pages of a whole unit. The number is therefore never 0.
    pub pages_left: u32,
}

/// The sums of log page 22h of NVMe, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Pages that the host wrote (HBMW).
    pub host: u64,
    /// Pages programmed (MBMW).
    pub media: u64,
    /// Pages erased (MBE).
    pub erased: u64,
}

impl Placed {
    /// For each id, in order, closes the open unit of the handle that the id selects, even if the unit is not full.
    /// Skips handles without an open unit. Also skips groups in which a collection may need the open units for moved
    /// pages. If classes are not handles, closes nothing at all.
    ///
    /// # Errors
    /// Fails if an id is not valid, or if there are more than 128 ids. In both cases, no unit is closed.
    pub fn update(&mut self, ids: &[u16]) -> Result<(), InvalidField> {
        if ids.len() > UPDATE_MAX {
            return Err(InvalidField);
        }
        let parts: Option<Vec<_>> = ids.iter().map(|&id| self.ids.parts(id)).collect();
        for (&id, (group, at)) in ids.iter().zip(parts.ok_or(InvalidField)?) {
            let handle = self.ids.namespace()[usize::from(at)];
            if self.is_by_handle() && self.may_close(group) && self.close(group, handle) {
                let event = of_handle(handle, Some(id), group);
                self.raise(EventType::NotFullyWritten, event);
            }
        }
        Ok(())
    }

    /// Returns the status of each placement handle in each group.
    pub fn status(&self) -> Vec<HandleStatus> {
        let handles = self.ids.namespace().iter().copied().enumerate();
        let groups = 0..self.setup().groups;
        let of = |(at, handle): (usize, u16)| {
            groups.clone().map(move |group| {
                let id = self.ids.id(group, at as u16);
                let left = match self.is_by_handle() {
                    true => self.units.left(group, self.classes.host(handle)),
                    false => 0,
                };
                HandleStatus {
                    id,
                    id_text: self.ids.show(id),
                    handle,
                    pages_left: match left {
                        0 => self.setup().unit_pages,
                        left => left,
                    },
                }
            })
        };
        handles.flat_map(of).collect()
    }

    /// Returns the sums of log page 22h since the device was created.
    pub fn totals(&self) -> Totals {
        let host: u64 = self.accepted.iter().sum();
        Totals {
            host,
            media: self.classes.clock() + self.classes.moved(),
            erased: self.classes.erases() * u64::from(self.setup().unit_pages),
        }
    }

    /// Returns the last 63 events of the host or of the device, the oldest first.
    pub fn last_events(&self, of_host: bool) -> Vec<Event> {
        self.events.last(of_host)
    }

    /// Returns the number of events of a type since the device was created.
    pub fn event_total(&self, kind: EventType) -> u64 {
        self.events.total(kind)
    }

    /// Returns the number of pages that the host wrote through each handle.
    pub fn accepted(&self) -> &[u64] {
        &self.accepted
    }

    /// Returns the types of the handles.
    pub fn handle_types(&self) -> &[Isolation] {
        &self.setup().handles
    }
}
