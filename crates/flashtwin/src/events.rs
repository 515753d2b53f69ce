//! The event queue: one pending instant per resource, the earliest on top.
//!
//! Each chip, channel and bus has at most one pending completion, so the queue is a heap of a few
//! dozen small numbers that never grows beyond the number of resources: nothing is allocated after
//! construction, and it stays in the first-level cache. What falls on one instant happens in the
//! order in which it was set, as in the reference's event queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::Time;

/// Bits of an entry that name the resource, and those above that give the place in the order of
/// setting; the instant stands on top. One comparison of two numbers orders entries.
const RESOURCE_BITS: u32 = 20;

/// Pending instants.
#[derive(Clone, Debug)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<u128>>,
    last_order: u64,
}

impl EventQueue {
    /// A queue for `resources` resources, numbered from 0.
    pub fn new(resources: usize) -> EventQueue {
        debug_assert!(resources < 1 << RESOURCE_BITS);
        EventQueue {
            heap: BinaryHeap::with_capacity(resources),
            last_order: 0,
        }
    }

    /// The next place in the order of setting, for an instant that is kept elsewhere.
    #[inline]
    pub fn take_order(&mut self) -> u64 {
        self.last_order += 1;
        self.last_order
    }

    /// Sets the pending instant of a resource that has none.
    #[inline]
    pub fn set(&mut self, resource: usize, at: Time) {
        let below = self.take_order() << RESOURCE_BITS | resource as u64;
        self.heap
            .push(Reverse(u128::from(at.0) << 64 | u128::from(below)));
    }

    /// The earliest pending instant, [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next_time(&self) -> Time {
        self.heap
            .peek()
            .map_or(Time::NEVER, |top| Time((top.0 >> 64) as u64))
    }

    /// Place in the order of setting of the earliest pending thing.
    pub fn next_order(&self) -> u64 {
        self.heap
            .peek()
            .map_or(u64::MAX, |top| top.0 as u64 >> RESOURCE_BITS)
    }

    /// Takes the resource of the earliest pending instant, which is not pending any more.
    #[inline]
    pub fn pop(&mut self) -> Option<usize> {
        let Reverse(top) = self.heap.pop()?;
        Some((top as u64 & ((1 << RESOURCE_BITS) - 1)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn earliest_first_and_equals_in_the_order_of_setting() {
        let mut rng = Rng::new(7);
        let mut queue = EventQueue::new(64);
        let mut plain: Vec<(Time, u64, usize)> = Vec::new();
        for _ in 0..20_000 {
            if rng.below(2) == 0 && plain.len() < 64 {
                let (resource, at) = (rng.below(64) as usize, Time(rng.below(9)));
                queue.set(resource, at);
                plain.push((at, queue.last_order, resource));
            } else if let Some(resource) = queue.pop() {
                let first = plain.iter().enumerate().min_by_key(|(_, p)| **p).unwrap().0;
                assert_eq!(resource, plain.swap_remove(first).2);
            } else {
                assert!(plain.is_empty());
            }
            let least = plain.iter().map(|p| p.0).min().unwrap_or(Time::NEVER);
            assert_eq!(queue.next_time(), least);
        }
    }
}
