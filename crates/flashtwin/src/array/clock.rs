//! The current instant, and alarms: each is a pending instant in the array's event queue.

use crate::events::EventQueue;
use crate::units::Time;

/// The current instant, and the event queue.
#[derive(Debug)]
pub(crate) struct Clock<'a> {
    pub now: Time,
    pub events: &'a mut EventQueue,
}

/// An alarm: the pending instant of one resource of the event queue.
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

    /// Sets the alarm to `at` if it is pending for a later instant or not at all. Otherwise does nothing.
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
