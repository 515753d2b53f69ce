//! The array's clock: the current instant, and alarms that the array sets in its event queue.

use crate::events::EventQueue;
use crate::units::Time;

/// The current instant, and the event queue.
#[derive(Debug)]
pub(crate) struct Clock<'a> {
    pub now: Time,
    pub events: &'a mut EventQueue,
}

/// An alarm: an event of one resource in the event queue. The alarm is pending from its setting to its instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm {
    resource: usize,
    at: Time,
}

impl Alarm {
    pub fn of(resource: usize) -> Alarm {
        Alarm {
            resource,
            at: Time::NEVER,
        }
    }

    /// Sets the alarm to `at`, unless it is already pending for this instant or an earlier one.
    #[inline]
    pub fn set(&mut self, at: Time, clock: &mut Clock) {
        if at >= self.at {
            return;
        }
        match std::mem::replace(&mut self.at, at) {
            Time::NEVER => clock.events.set(self.resource, at),
            _ => clock.events.bring_forward(self.resource, at),
        }
    }

    /// Clears the alarm after it fired.
    pub fn went_off(&mut self) {
        self.at = Time::NEVER;
    }
}
