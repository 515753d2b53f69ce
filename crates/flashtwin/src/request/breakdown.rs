//! Parts of the response time of a request.

use std::ops::Range;

use crate::units::Time;

/// Defines the type [`Breakdown`] and its constants from a list of its parts. The list has a description and a name for
/// each part.
macro_rules! parts {
    ($($(#[doc = $text:literal])+ $name:ident,)+) => {
        /// Latency breakdown of a request: the parts of its response time. For every request, the parts sum to exactly
        /// the response time.
        ///
        /// The parts of a request for several pages are those of the page that finished last, because the host waited
        /// for that page.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Breakdown<T = Time> {
            $($(#[doc = $text])+ pub $name: T,)+
        }

        /// Number of parts of a response time.
        pub const PARTS: usize = [$(stringify!($name)),+].len();

        impl Breakdown {
            /// Names of the parts, in the order of [`Breakdown::parts`].
            pub const NAMES: [&'static str; PARTS] = [$(stringify!($name)),+];
            /// Names of the parts in logs, with the suffix of their unit.
            pub const KEYS: [&'static str; PARTS] = [$(concat!(stringify!($name), "_ps")),+];
            /// Descriptions of the parts, in the order of [`Breakdown::parts`].
            pub const TEXTS: [&'static str; PARTS] = [$(concat!($($text),+).trim_ascii_start()),+];
        }

        impl<T: Copy> Breakdown<T> {
            /// Returns the parts in the order of [`Breakdown::NAMES`].
            #[inline(always)]
            pub fn parts(&self) -> [T; PARTS] {
                [$(self.$name),+]
            }

            /// Creates a breakdown from parts in the order of [`Breakdown::NAMES`].
            pub fn from_parts(parts: [T; PARTS]) -> Breakdown<T> {
                let [$($name),+] = parts;
                Breakdown { $($name),+ }
            }
        }

        impl Breakdown {
            /// Adds each part of another breakdown, for example that of another step of the same request.
            #[inline(always)]
            pub(crate) fn add(&mut self, other: &Breakdown) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

parts! {
    /// Host interface: waiting for a place in the submission queue, command overhead, waiting for the host bus, the bus.
    link,
    /// In the submission queue: waiting for a command slot, for the queue's turn, for the busy processor.
    submission,
    /// The controller's processor: the request's own work, the search for a victim.
    controller,
    /// Waiting for a buffer slot: behind other accesses and pages whose turn is first, as at the limit of write-backs.
    slot_order,
    /// Waiting for a buffer slot: the operation that freed it waited for chip or channel behind other host work.
    slot_queue_host,
    /// Waiting for a buffer slot: the operation that freed it waited for the chip behind garbage collection.
    slot_queue_gc,
    /// Waiting for a buffer slot: the operation that freed it moved data between the controller and the chip.
    slot_transfer,
    /// Waiting for a buffer slot: the operation that freed it occupied the flash array, as a program does.
    slot_array,
    /// Waiting for the chip or channel behind other host work.
    queue_host,
    /// Waiting for the chip behind garbage collection.
    queue_gc,
    /// Moving data between the controller and the chip.
    transfer,
    /// The flash array: read, program, summary page.
    array,
    /// The buffer memory itself.
    buffer,
}

impl Breakdown {
    /// Positions of the parts of the wait for a slot, in the order of [`Breakdown::NAMES`].
    pub(crate) const SLOT: Range<usize> = 3..8;

    /// Returns the total time of waiting for a buffer slot.
    #[inline(always)]
    pub fn slot(&self) -> Time {
        let waiting = self.slot_order + self.slot_queue_host + self.slot_queue_gc;
        waiting + self.slot_transfer + self.slot_array
    }

    /// Returns the time of waiting for garbage collection: that of the request's own flash operation, plus that of the
    /// operation that freed its buffer slot.
    #[inline]
    pub fn gc(&self) -> Time {
        self.queue_gc + self.slot_queue_gc
    }

    /// Returns the sum of all parts.
    pub fn total(&self) -> Time {
        self.parts().into_iter().fold(Time::ZERO, |a, b| a + b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_added_to_its_own() {
        let of = |first: u64| Breakdown::from_parts(std::array::from_fn(|i| Time(first << i)));
        let mut sum = of(3);
        sum.add(&of(5));
        assert_eq!(sum, of(8));
        assert_eq!(sum.total(), Time(8 * ((1 << PARTS) - 1)));
        assert_eq!(sum.parts(), std::array::from_fn(|i| Time(8 << i)));
    }

    #[test]
    fn wait_for_a_slot_is_the_sum_of_its_parts() {
        let parts = Breakdown::from_parts(std::array::from_fn(|i| Time(1 << i)));
        let of_slot = (0..PARTS).filter(|&i| Breakdown::NAMES[i].starts_with("slot_"));
        assert!(of_slot.clone().eq(Breakdown::SLOT));
        assert_eq!(parts.slot(), Time(of_slot.map(|i| 1 << i).sum()));
    }

    #[test]
    fn each_part_has_a_description() {
        for (name, text) in Breakdown::NAMES.iter().zip(Breakdown::TEXTS) {
            assert!(
                text.ends_with('.') && !text.starts_with(' '),
                "{name}: {text}"
            );
        }
    }
}
