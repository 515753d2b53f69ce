//! Parts of the response time of a request.

use crate::units::Time;

/// Parts of a response time. They sum to the whole, exactly, for every request.
///
/// A request of several pages carries the parts of the page that finished last: the one the host
/// waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// Host interface: waiting for a place in the queue, command overhead, waiting for the host bus, the host
    /// bus itself.
    pub link: Time,
    /// Waiting for a buffer slot, that is for the write-back of a victim.
    pub slot: Time,
    /// Waiting for the chip or channel behind other host work.
    pub queue_host: Time,
    /// Waiting for the chip behind garbage collection.
    pub queue_gc: Time,
    /// Moving data between the controller and the chip.
    pub transfer: Time,
    /// The flash array: read, program, summary page.
    pub array: Time,
    /// The buffer memory itself.
    pub buffer: Time,
    /// The controller's processor: waiting for it or for the queue's turn, the request's own work, the search for a victim.
    pub cpu: Time,
}

impl Breakdown {
    /// Names of the parts, in the order of [`Breakdown::parts`].
    pub const NAMES: [&'static str; 8] = [
        "link",
        "slot",
        "queue_host",
        "queue_gc",
        "transfer",
        "array",
        "buffer",
        "cpu",
    ];

    /// The parts in the order of [`Breakdown::NAMES`].
    #[inline(always)]
    pub fn parts(&self) -> [Time; 8] {
        [
            self.link,
            self.slot,
            self.queue_host,
            self.queue_gc,
            self.transfer,
            self.array,
            self.buffer,
            self.cpu,
        ]
    }

    /// Adds the parts before or after.
    pub(crate) fn add(&mut self, other: &Breakdown) {
        self.link += other.link;
        self.slot += other.slot;
        self.queue_host += other.queue_host;
        self.queue_gc += other.queue_gc;
        self.transfer += other.transfer;
        self.array += other.array;
        self.buffer += other.buffer;
        self.cpu += other.cpu;
    }

    /// Sum of all parts.
    pub fn total(&self) -> Time {
        self.parts().into_iter().fold(Time::ZERO, |a, b| a + b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_added_to_its_own() {
        let of = |first: u64| Breakdown {
            link: Time(first),
            slot: Time(2 * first),
            queue_host: Time(4 * first),
            queue_gc: Time(8 * first),
            transfer: Time(16 * first),
            array: Time(32 * first),
            buffer: Time(64 * first),
            cpu: Time(128 * first),
        };
        let mut sum = of(3);
        sum.add(&of(5));
        assert_eq!(sum, of(8));
        assert_eq!(sum.total(), Time(255 * 8));
    }
}
