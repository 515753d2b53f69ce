//! Timeline of a run: a trace for Perfetto of all operations in a window of time. Each operation of chips, channels,
//! buffer and coordinator is shown with the request that caused it.
//!
//! While the window is open, the driver executes one event at a time and reads the device's logs after each event.
//! Operations that begin in the window are shown until they end. Outside the window, the device logs nothing.

mod collector;
mod encode;
mod lines;
mod proto;
mod rows;
mod slices;

#[cfg(test)]
mod tests;

use flashtwin::{Completion, Device, FlashEvent, Request, Time};

use crate::Drivable;
use collector::Collector;
pub use rows::Row;
use slices::{Gauge, Slices};

/// Largest number of slices, instants and counter values in a timeline (D-115).
const THINGS_MAX: usize = 500_000;

/// The part of a run that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the window, as time since the start of the measurement.
    pub from: Time,
    /// Length of the window.
    pub length: Time,
}

/// A timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// A trace for Perfetto.
    pub trace: Vec<u8>,
    /// Number of slices in the timeline.
    pub slices: u64,
    /// Time since the start of the measurement at which the timeline became full. `None` if it did not become full
    /// before the window ended.
    pub cut_at: Option<Time>,
    /// Start of the measurement.
    pub start: Time,
    all: Slices,
}

impl Timeline {
    /// Returns the rows of a table: one row for each slice, then one for each instant.
    pub fn rows(&self) -> Vec<Row> {
        rows::rows(&self.all, self.start)
    }
}

/// A timeline being recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    start: Time,
    until: Time,
    state: State,
    collector: Collector,
    /// Number of requests that the device received before this run.
    ahead: u64,
    cut_at: Option<Time>,
    /// Largest number of slices, instants and counter values.
    limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Open,
    Over,
}

impl Recording {
    /// Starts a recording at `start`. The device received `ahead` requests before this run.
    pub fn new(window: Window, start: Time, ahead: u64) -> Recording {
        let from = Time(start.0.saturating_add(window.from.0));
        let until = Time(from.0.saturating_add(window.length.0));
        Recording {
            start,
            until,
            state: State::Before,
            collector: Collector::new(from, until, u32::try_from(ahead).unwrap_or(u32::MAX)),
            ahead,
            cut_at: None,
            limit: THINGS_MAX,
        }
    }

    /// Whether the device is being logged.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Returns the start of the window if the window must be opened by `at`: it starts at or before `at` and has not
    /// been opened yet.
    #[inline]
    pub fn begins_by(&self, at: Time) -> Option<Time> {
        let from = self.collector.from();
        (self.state == State::Before && from <= at).then_some(from)
    }

    /// Opens the window: starts the device's logs.
    pub fn open<S: Drivable>(&mut self, device: &mut Device<S>) {
        S::set_logs(device, true);
        self.state = State::Open;
        self.look(device);
    }

    /// Records the submission of a request. `tag` is the number that the driver gave the request.
    pub fn submitted(&mut self, tag: u64, request: &Request, at: Time) {
        match self.number(tag) {
            Some(number) => self.collector.submitted(number, request, at),
            // The number exceeds the range of the logs, so the timeline ends as if it were full.
            None => self.limit = 0,
        }
    }

    /// Records the completions of requests.
    pub fn completed(&mut self, completions: &[Completion]) {
        for c in completions {
            if let Some(number) = self.number(c.tag) {
                self.collector.completed(number, c);
            }
        }
    }

    /// Converts the driver's number of a request to its number in the device's logs; `None` if that exceeds the range
    /// of the logs.
    fn number(&self, tag: u64) -> Option<u32> {
        let number = u32::try_from(tag.checked_add(self.ahead)?).ok()?;
        (number < FlashEvent::NO_REQUEST).then_some(number)
    }

    /// Adds the entries that the device has logged so far.
    pub fn look<S: Drivable>(&mut self, device: &mut Device<S>) {
        // The logs start when the window opens, even if the device's last event is earlier.
        let now = device.now().max(self.collector.from());
        S::take_logs(device, &mut |logged| self.collector.take(logged, now));
        let gauges = device.gauges();
        self.count(Gauge::Requests, gauges.requests, now);
        if S::describe(device).buffer.is_some() {
            self.count(Gauge::DirtyPages, gauges.dirty_pages, now);
        }
        S::each_drive(device, &mut |member, drive| {
            let blocks = drive.free_blocks();
            self.count(Gauge::FreeBlocks(member), blocks, now);
        });
        if self.cut_at.is_none() && self.collector.all.len() >= self.limit && now < self.until {
            self.cut_at = Some(now - self.start);
            self.until = now;
            self.collector.until = now;
        }
        if now >= self.until && self.collector.is_complete() {
            S::set_logs(device, false);
            self.state = State::Over;
        }
    }

    fn count(&mut self, gauge: Gauge, value: u32, now: Time) {
        self.collector.count(gauge, value.into(), now);
    }

    /// Ends the recording at the end of the run; returns the timeline.
    pub fn finish<S: Drivable>(mut self, device: &mut Device<S>) -> Timeline {
        if self.is_open() {
            self.look(device);
            S::set_logs(device, false);
        }
        let all = self.collector.finish(device.now());
        Timeline {
            slices: all.slices.len() as u64,
            cut_at: self.cut_at,
            trace: encode::encode(&all, self.start),
            all,
            start: self.start,
        }
    }
}
