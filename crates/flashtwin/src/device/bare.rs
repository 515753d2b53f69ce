//! Bare devices: devices whose front end takes no time. They are used as members of an array.
//!
//! If neither the link nor the processor nor a buffer of a member takes time, its front end only splits requests into
//! pages, and the flash executes each page independently (D-35). The array then bypasses the front end and sends the
//! pages directly to the flash. The completion times are the same as with the front end.

use super::requests::number_in_logs;
use super::{Backend, Device};
use crate::units::Time;

impl<B: Backend> Device<B> {
    /// Whether the front end can be bypassed: requests pass it in no time and never wait in it.
    pub(crate) fn is_bare(&self) -> bool {
        let is_free = self.link.is_free_of_cost() && self.controller.is_free_of_cost();
        is_free && !self.queues.is_limited() && !self.cache.present
    }

    /// Sets the device's clock. Used if the array executes operations on the flash directly.
    #[inline]
    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Returns the number that the next request has in logs. An array uses this function when it bypasses the front
    /// end. When it has sent the request, it calls [`Device::take_number`].
    #[inline(always)]
    pub(crate) fn next_number(&self) -> u32 {
        number_in_logs(self.requests.next_number())
    }

    /// Advances the number of the next request.
    #[inline(always)]
    pub(crate) fn take_number(&mut self) {
        self.requests.take_number();
    }
}
