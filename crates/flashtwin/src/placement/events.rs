//! Events of flexible data placement (NVMe log page 23h): the last events of the host and the last events of the
//! device, and for each type the number of all events.

use std::collections::VecDeque;

/// Number of events that are kept in each of the two lists.
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
    /// 81h: a unit of the host became full, and its handle now refers to another unit.
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

    /// Returns the code in the notation of the standard.
    pub fn code(self) -> &'static str {
        match self {
            EventType::NotFullyWritten => "00h",
            EventType::ResetChanged => "02h",
            EventType::InvalidId => "03h",
            EventType::Reallocated => "80h",
            EventType::ImplicitChange => "81h",
        }
    }

    /// Returns the name in the log.
    pub fn name(self) -> &'static str {
        match self {
            EventType::NotFullyWritten => "reclaim unit not fully written",
            EventType::ResetChanged => "reset changed reclaim unit handles",
            EventType::InvalidId => "invalid placement identifier",
            EventType::Reallocated => "media reallocated",
            EventType::ImplicitChange => "implicitly modified reclaim unit handle",
        }
    }

    /// Whether events of this type are in the list of host events. Other events are in the list of device events.
    pub fn is_of_host(self) -> bool {
        !matches!(self, EventType::Reallocated | EventType::ImplicitChange)
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Type of the event.
    pub kind: EventType,
    /// The reclaim unit handle. `None` if classes are not handles, or if the event concerns units that several handles
    /// share.
    pub handle: Option<u16>,
    /// The placement id, if a command named one.
    pub id: Option<u16>,
    /// The group.
    pub group: u32,
    /// Number of pages that the host had written before the event.
    pub clock: u64,
    /// Number of pages moved; 0 for other events.
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

    /// Returns the events as a list of numbers, for a saved state.
    pub fn words(&self) -> Vec<u64> {
        let mut words = self.totals.to_vec();
        words.push(self.host.len() as u64);
        for event in self.host.iter().chain(&self.device) {
            words.extend([
                event.kind as u64,
                event.handle.map_or(NONE, u64::from),
                event.id.map_or(NONE, u64::from),
                event.group.into(),
                event.clock,
                event.moved.into(),
            ]);
        }
        words
    }

    /// Restores the events from a saved state. Returns false if the numbers are invalid.
    pub fn set_words(&mut self, words: &[u64]) -> bool {
        let totals = self.totals.len();
        if words.len() <= totals || !(words.len() - totals - 1).is_multiple_of(EVENT_WORDS) {
            return false;
        }
        self.totals.copy_from_slice(&words[..totals]);
        let events = words[totals + 1..].chunks_exact(EVENT_WORDS).map(of_words);
        let Some(mut events) = events.collect::<Option<VecDeque<Event>>>() else {
            return false;
        };
        let of_host = words[totals];
        if of_host > events.len() as u64 {
            return false;
        }
        self.device = events.split_off(of_host as usize);
        self.host = events;
        let fits = |kept: &VecDeque<Event>, of_host| {
            kept.len() <= KEPT && kept.iter().all(|e| e.kind.is_of_host() == of_host)
        };
        fits(&self.host, true) && fits(&self.device, false)
    }

    /// Returns the last events of the host or of the device, the oldest first.
    pub fn last(&self, of_host: bool) -> Vec<Event> {
        let kept = match of_host {
            true => &self.host,
            false => &self.device,
        };
        kept.iter().copied().collect()
    }

    /// Returns the number of events of a type.
    pub fn total(&self, kind: EventType) -> u64 {
        self.totals[kind as usize]
    }
}

/// Value for "none" in a saved event.
const NONE: u64 = u64::MAX;
/// Number of 64-bit words of a saved event.
const EVENT_WORDS: usize = 6;

fn of_words(words: &[u64]) -> Option<Event> {
    let optional = |word: u64| match word {
        NONE => Some(None),
        word => u16::try_from(word).ok().map(Some),
    };
    Some(Event {
        kind: *EventType::ALL.get(usize::try_from(words[0]).ok()?)?,
        handle: optional(words[1])?,
        id: optional(words[2])?,
        group: u32::try_from(words[3]).ok()?,
        clock: words[4],
        moved: u32::try_from(words[5]).ok()?,
    })
}
