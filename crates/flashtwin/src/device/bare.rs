//! A device whose front end takes no time, used as the member of an array.
//!
//! If a member has no link, processor or buffer that takes time, a request is equal to its pages, each of which waits
//! independently (D-35). The array then sends these pages directly to the flash, with the same instants as through
//! the front end.

use super::requests::number_in_logs;
use super::{Backend, Device};
use crate::units::Time;

impl<B: Backend> Device<B> {
    /// Requests pass the front end in no time and are kept nowhere in it.
    pub(crate) fn is_bare(&self) -> bool {
        let is_free = self.link.is_free_of_cost() && self.controller.is_free_of_cost();
        is_free && !self.queues.is_limited() && !self.cache.present
    }

    /// Sets the device's time, for a device whose flash is used from outside.
    #[inline]
    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Returns the number that logs give the next request, for a request that is not stored in this device;
    /// [`Device::take_number`] uses the number up.
    #[inline(always)]
    pub(crate) fn next_number(&self) -> u32 {
        number_in_logs(self.requests.next_number())
    }

    /// Uses up the number of a request.
    #[inline(always)]
    pub(crate) fn take_number(&mut self) {
        self.requests.take_number();
    }
}
