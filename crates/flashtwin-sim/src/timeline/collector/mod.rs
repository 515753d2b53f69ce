//! Converts the logs of a device to the slices of a timeline. A slice is an operation with its beginning, its end, and
//! the request that caused it. The module `array` converts an array's own log.

mod array;

use std::collections::{HashMap, HashSet};

use flashtwin::{Breakdown, BufferEvent, Completion, FlashEvent, Op, Place, Request, Time};

use super::slices::{Detail, Gauge, Instant, Shown, Slice, Slices, Track};
use crate::Logged;

/// Identifies a request: the member that received it (`None`: the device itself), and the number that the receiver gave
/// it.
type Asked = (Option<usize>, u32);

/// Slices collected so far. The number of a slice is its index.
#[derive(Debug)]
pub(super) struct Collector {
    pub all: Slices,
    from: Time,
    /// Time after which no slice begins.
    pub until: Time,
    /// Number of requests that the device received before the run. It is subtracted from the device's request numbers,
    /// so that the timeline counts from the start of the run.
    ahead: u32,
    open: HashMap<Track, u32>,
    /// For each track with a suspended operation, the slice of this operation.
    held: HashMap<Track, u32>,
    /// For each track, the most recent slice. Later log entries about its pages are added to it.
    last: HashMap<Track, u32>,
    requests: HashMap<Asked, u32>,
    /// Requests of the device that are not completed.
    waiting: HashSet<u32>,
    /// Slices of the requests to members that are in flight, by the number that the array gave the request.
    parts: HashMap<u32, u32>,
    /// For each operation of the array on a page, by number: the number of the request that caused it. `jobs` has, for
    /// each job of the array, the numbers of the requests that caused it.
    ops: HashMap<u32, u32>,
    jobs: HashMap<u32, Vec<u32>>,
    gauges: HashMap<Gauge, u64>,
}

impl Collector {
    pub fn new(from: Time, until: Time, ahead: u32) -> Collector {
        Collector {
            all: Slices::default(),
            from,
            until,
            ahead,
            open: HashMap::new(),
            held: HashMap::new(),
            last: HashMap::new(),
            requests: HashMap::new(),
            waiting: HashSet::new(),
            parts: HashMap::new(),
            ops: HashMap::new(),
            jobs: HashMap::new(),
            gauges: HashMap::new(),
        }
    }

    /// Returns the start of the window. No slice begins before it.
    pub fn from(&self) -> Time {
        self.from
    }

    /// Whether all slices have ended.
    pub fn is_complete(&self) -> bool {
        let open = self.open.len() + self.held.len() + self.waiting.len() + self.parts.len();
        open == 0
    }

    fn takes(&self, at: Time) -> bool {
        self.from <= at && at < self.until
    }

    fn add(&mut self, track: Track, name: &'static str, begin: Time) -> u32 {
        self.all.slices.push(Slice {
            track,
            name,
            begin,
            end: None,
            details: Vec::new(),
        });
        self.all.slices.len() as u32 - 1
    }

    fn slice(&mut self, id: u32) -> &mut Slice {
        &mut self.all.slices[id as usize]
    }

    fn detail(&mut self, id: u32, key: &'static str, detail: Detail) {
        self.slice(id).details.push((key, detail));
    }

    fn link(&mut self, from: Asked, to: u32) {
        if let Some(&from) = self.requests.get(&from) {
            if self.all.links.last() != Some(&(from, to)) {
                self.all.links.push((from, to));
            }
        }
    }

    fn instant(&mut self, track: Track, name: &'static str, at: Time) -> Option<&mut Instant> {
        if !self.takes(at) {
            return None;
        }
        self.all.instants.push(Instant {
            track,
            name,
            at,
            details: Vec::new(),
        });
        self.all.instants.last_mut()
    }

    // ---- requests ----

    /// Records that a request was submitted with this number.
    pub fn submitted(&mut self, number: u32, request: &Request, at: Time) {
        if !self.takes(at) {
            return;
        }
        let track = Track {
            member: None,
            shown: Shown::Requests,
        };
        let id = self.add(track, name_of(request.op), at);
        self.requests.insert((None, number), id);
        self.waiting.insert(number);
        let shown = number.wrapping_sub(self.ahead);
        self.detail(id, "request", Detail::Number(shown.into()));
        self.detail(id, "offset_bytes", Detail::Number(request.offset));
        self.detail(id, "size_bytes", Detail::Number(request.bytes));
    }

    /// Ends the slice of the request with this number.
    pub fn completed(&mut self, number: u32, c: &Completion) {
        if !self.waiting.remove(&number) {
            return;
        }
        let id = self.requests[&(None, number)];
        self.slice(id).end = Some(c.done);
        self.detail(id, "pages", Detail::Number(c.pages.into()));
        self.detail(id, "hits", Detail::Number(c.hits.into()));
        for (key, time) in Breakdown::KEYS.into_iter().zip(c.breakdown.parts()) {
            if time > Time::ZERO {
                self.detail(id, key, Detail::Number(time.0));
            }
        }
    }

    // ---- logs ----

    /// Processes the log entries up to `now`.
    pub fn take(&mut self, logged: Logged, now: Time) {
        match logged {
            Logged::Flash(member, events) => events.iter().for_each(|e| self.flash(member, e)),
            Logged::Buffer(member, events) => events.iter().for_each(|e| self.buffer(member, e)),
            Logged::Array(events) => events.iter().for_each(|e| self.array(e, now)),
        }
    }

    fn begin(&mut self, track: Track, name: &'static str, at: Time) -> Option<u32> {
        self.last.remove(&track);
        if !self.takes(at) {
            return None;
        }
        let id = self.add(track, name, at);
        self.open.insert(track, id);
        self.last.insert(track, id);
        Some(id)
    }

    fn end(&mut self, track: Track, at: Time) -> Option<u32> {
        let id = self.open.remove(&track)?;
        self.slice(id).end = Some(at);
        Some(id)
    }

    /// Resumes a suspended operation as a new slice.
    fn resume(&mut self, before: u32, track: Track, at: Time) {
        let old = self.slice(before).clone();
        let id = self.add(track, old.name, at);
        let details = old.details.into_iter();
        self.slice(id).details = details.filter(|&(key, _)| key != "suspended").collect();
        self.all.links.push((before, id));
        self.open.insert(track, id);
    }

    /// Begins the slice of a flash operation.
    fn begin_flash(&mut self, member: Option<usize>, event: &FlashEvent) {
        let FlashEvent::Begin {
            at,
            place,
            cause,
            pages,
            lpn,
            block,
            request,
        } = *event
        else {
            return;
        };
        let name = match place {
            Place::Collection(_) => "gc",
            _ => cause.name(),
        };
        let shown = Shown::Flash(place);
        let Some(id) = self.begin(Track { member, shown }, name, at) else {
            return;
        };
        if pages > 1 || pages == 1 && block.is_some() {
            self.detail(id, "pages", Detail::Number(pages.into()));
        }
        if let Some(lpn) = lpn {
            self.slice(id).also("lpn", lpn.0.into());
        }
        if let Some(block) = block {
            self.detail(id, "block", Detail::Number(block.into()));
        }
        if !matches!(place, Place::Channel(_)) {
            self.link((member, request), id);
        }
    }

    fn flash(&mut self, member: Option<usize>, event: &FlashEvent) {
        let track = |place| Track {
            member,
            shown: Shown::Flash(place),
        };
        match *event {
            FlashEvent::Begin { .. } => self.begin_flash(member, event),
            FlashEvent::Page {
                place: Some(place),
                lpn,
                plane,
                request,
                ..
            } => {
                let Some(&id) = self.last.get(&track(place)) else {
                    return;
                };
                self.slice(id).also("lpn", lpn.0.into());
                if let Some(plane) = plane {
                    self.slice(id).also("plane", plane.into());
                }
                self.link((member, request), id);
            }
            FlashEvent::End { at, place } => {
                self.end(track(place), at);
            }
            FlashEvent::Suspended { at, chip } => {
                let track = track(Place::Chip(chip));
                if let Some(id) = self.end(track, at) {
                    self.detail(id, "suspended", Detail::Yes);
                    self.held.insert(track, id);
                }
            }
            FlashEvent::Resumed { at, chip } => {
                let track = track(Place::Chip(chip));
                if let Some(id) = self.held.remove(&track) {
                    self.resume(id, track, at);
                }
            }
            FlashEvent::Moved { since, at, chip } => {
                if let Some(id) = self.end(track(Place::Ahead(chip)), at) {
                    self.resume(id, track(Place::Chip(chip)), since);
                }
            }
            FlashEvent::Victim {
                at,
                chip,
                plane,
                block,
                valid,
            } => {
                if let Some(victim) = self.instant(track(Place::Collection(chip)), "victim", at) {
                    for (key, number) in [("plane", plane), ("block", block), ("valid", valid)] {
                        victim.details.push((key, Detail::Number(number.into())));
                    }
                }
            }
            FlashEvent::Page { place: None, .. } | FlashEvent::Clean { .. } => {}
        }
    }

    fn buffer(&mut self, member: Option<usize>, event: &BufferEvent) {
        let track = |shown| Track { member, shown };
        match *event {
            BufferEvent::Accessed {
                at,
                lpn,
                request,
                write,
                hit,
            } => {
                let name = match (write, hit) {
                    (false, true) => "read hit",
                    (false, false) => "read miss",
                    (true, true) => "write hit",
                    (true, false) => "write miss",
                };
                self.access(track(Shown::Accesses), name, at, lpn.0, request);
            }
            BufferEvent::Evicted {
                at,
                lpn,
                dirty,
                request,
            } => {
                let name = match dirty {
                    true => "evict dirty",
                    false => "evict clean",
                };
                self.access(track(Shown::Accesses), name, at, lpn.0, request);
            }
            BufferEvent::Waited { since, at, lpn } => {
                if self.takes(since) {
                    let id = self.add(track(Shown::SlotWaits), "wait for a slot", since);
                    self.slice(id).end = Some(at);
                    self.detail(id, "lpn", Detail::Number(lpn.0.into()));
                }
            }
            BufferEvent::Written {
                since,
                at,
                lpn,
                cause,
                request,
            } => {
                if self.takes(since) {
                    let id = self.add(track(Shown::WriteBacks), cause.name(), since);
                    self.slice(id).end = Some(at);
                    self.detail(id, "lpn", Detail::Number(lpn.0.into()));
                    self.link((member, request), id);
                }
            }
        }
    }

    fn access(&mut self, track: Track, name: &'static str, at: Time, lpn: u32, request: u32) {
        let shown = match track.member {
            None => request.wrapping_sub(self.ahead),
            Some(_) => request,
        };
        if let Some(access) = self.instant(track, name, at) {
            for (key, number) in [("lpn", lpn), ("request", shown)] {
                access.details.push((key, Detail::Number(number.into())));
            }
        }
    }

    // ---- counters ----

    /// Records the present value of a counter.
    pub fn count(&mut self, gauge: Gauge, value: u64, now: Time) {
        if self.takes(now) && self.gauges.insert(gauge, value) != Some(value) {
            self.all.counts.push((now, gauge, value));
        }
    }

    /// Ends all open slices at `now`, the end of the run, and marks them as unfinished.
    pub fn finish(mut self, now: Time) -> Slices {
        for slice in &mut self.all.slices {
            if slice.end.is_none() {
                slice.end = Some(now.max(slice.begin));
                slice.details.push(("unfinished", Detail::Yes));
            }
        }
        self.all
    }
}

fn name_of(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Trim => "trim",
        Op::Flush => "flush",
    }
}
