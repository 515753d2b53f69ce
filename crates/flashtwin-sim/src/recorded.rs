//! The driver while a timeline is recorded.

use flashtwin::{Request, Time};

use crate::run::Driver;
use crate::Drivable;

impl<S: Drivable> Driver<'_, S> {
    /// Processes all events up to and including `until`. While the timeline's window is open, processes them one by
    /// one.
    #[cold]
    pub(crate) fn advance_recorded(&mut self, until: Time) {
        self.open_timeline(until);
        while self.timeline.as_ref().is_some_and(|t| t.is_open())
            && self.device.next_event().is_some_and(|at| at <= until)
        {
            self.device.step();
            self.look();
        }
        self.device.advance(until);
    }

    /// Opens the window of the timeline if the window starts at or before `at`.
    pub(crate) fn open_timeline(&mut self, at: Time) {
        let timeline = self.timeline.as_deref_mut();
        let Some((timeline, from)) = timeline.and_then(|t| t.begins_by(at).map(|from| (t, from)))
        else {
            return;
        };
        if from > self.device.now() {
            self.device.advance(Time(from.0 - 1));
        }
        timeline.open(self.device);
    }

    /// Records that a request is submitted next.
    #[cold]
    pub(crate) fn note_request(&mut self, request: &Request, at: Time) {
        self.open_timeline(at);
        if let Some(timeline) = self.timeline.as_deref_mut().filter(|t| t.is_open()) {
            timeline.submitted(self.submitted, request, at);
        }
    }

    /// Adds the events since the last call to the timeline.
    #[cold]
    pub(crate) fn look(&mut self) {
        if let Some(timeline) = self.timeline.as_deref_mut().filter(|t| t.is_open()) {
            timeline.look(self.device);
        }
    }
}
