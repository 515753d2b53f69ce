//! Bare devices: devices whose front end takes no time. They are used as members of an array.
//!
//! If a member has no link, processor or buffer that takes time, a request to it consists of its pages only, and the
//! flash executes each page independently (D-35). The array then sends the pages directly to the flash, bypassing the
//! front end. The completion times are the same as with the front end.

use super::requests::number_in_logs;
use super::{Backend, Device};
use crate::units::Time;

impl<B: Backend> Device<B> {
    /// Whether requests pass the front end in no time and are never stored in it.
    pub(crate) fn is_bare(&self) -> bool {
        let is_free = self.link.is_free_of_cost() && self.controller.is_free_of_cost();
        is_free && !self.queues.is_limited() && !self.cache.present
    }

    /// Sets the device's clock. Used if the array executes operations on the flash directly.
    #[inline]
    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Returns the number that the next request has in logs. A caller that stores the request elsewhere uses this
    /// function; [`Device::take_number`] then advances the number.
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
