//! Bare devices: devices whose front end takes no time, used as members of an array.
//!
//! If a member has no link, processor or buffer that takes time, a request is no more than its pages, each of which
//! waits independently (D-35). The array then sends these pages directly to the flash. The instants are the same as
//! through the front end.

use super::requests::number_in_logs;
use super::{Backend, Device};
use crate::units::Time;

impl<B: Backend> Device<B> {
    /// Whether requests pass the front end in no time and are never stored in it.
    pub(crate) fn is_bare(&self) -> bool {
        let is_free = self.link.is_free_of_cost() && self.controller.is_free_of_cost();
        is_free && !self.queues.is_limited() && !self.cache.present
    }

    /// Sets the device's time, for a device whose flash is used from outside.
    #[inline]
    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Returns the number that logs give to the next request, for a request that the caller stores elsewhere.
    /// [`Device::take_number`] advances the number.
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
