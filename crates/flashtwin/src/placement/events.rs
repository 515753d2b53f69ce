//! Events of flexible data placement: the last of each kind, and the number of all (NVMe log page 23h).

use std::collections::VecDeque;

/// Events of a kind that are kept.
const KEPT: usize = 63;

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// 00h: the host closed a unit that was not full.
    NotFullyWritten,
    /// 02h: a power loss closed a unit of the host.
    ResetChanged,
    /// 03h: a write named a placement id that is not valid.
    InvalidId,
    /// 80h: collection moved pages.
    Reallocated,
    /// 81h: a unit of the host became full, and its handle refers to another one.
    ImplicitChange,
}

impl EventType {
    /// All types, in the order of their codes.
    pub const ALL: [EventType; 5] = [
        EventType::NotFullyWritten,
        EventType::ResetChanged,
        EventType::InvalidId,
        EventType::Reallocated,
        EventType::ImplicitChange,
    ];

    /// Code in the notation of the standard.
    pub fn code(self) -> &'static str {
        match self {
            EventType::NotFullyWritten => "00h",
            EventType::ResetChanged => "02h",
            EventType::InvalidId => "03h",
            EventType::Reallocated => "80h",
            EventType::ImplicitChange => "81h",
        }
    }

    /// Name in the log.
    pub fn name(self) -> &'static str {
        match self {
            EventType::NotFullyWritten => "reclaim unit not fully written",
            EventType::ResetChanged => "reset changed reclaim unit handles",
            EventType::InvalidId => "invalid placement identifier",
            EventType::Reallocated => "media reallocated",
            EventType::ImplicitChange => "implicitly modified reclaim unit handle",
        }
    }

    /// The event belongs to the host's, not to the device's.
    pub fn is_of_host(self) -> bool {
        !matches!(self, EventType::Reallocated | EventType::ImplicitChange)
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Type of the event.
    pub kind: EventType,
    /// The reclaim unit handle; `None` if it is of units that all handles share.
    pub handle: Option<u16>,
    /// The placement id, where a command named one.
    pub id: Option<u16>,
    /// The group.
    pub group: u32,
    /// Pages that the host had written.
    pub clock: u64,
    /// Pages moved; 0 for other events.
    pub moved: u32,
}

/// The events of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    host: VecDeque<Event>,
    device: VecDeque<Event>,
    totals: [u64; EventType::ALL.len()],
}

impl Events {
    pub fn add(&mut self, event: Event) {
        self.totals[event.kind as usize] += 1;
        let kept = match event.kind.is_of_host() {
            true => &mut self.host,
            false => &mut self.device,
        };
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(event);
    }

    /// The last events of the host, or of the device, the oldest first.
    pub fn last(&self, of_host: bool) -> Vec<Event> {
        let kept = match of_host {
            true => &self.host,
            false => &self.device,
        };
        kept.iter().copied().collect()
    }

    /// Number of events of a type.
    pub fn total(&self, kind: EventType) -> u64 {
        self.totals[kind as usize]
    }
}
