//! The event queue: one pending instant per resource, the earliest on top.
//!
//! Each chip, channel and bus has at most one pending completion, so the queue is a heap of a few
//! dozen small numbers that never grows beyond the number of resources: nothing is allocated after
//! construction, and it stays in the first-level cache. What falls on one instant happens in the
//! order in which it was set, as in the reference's event queue.

use crate::units::Time;

/// Bits of an entry that name the resource, and those above that give the place in the order of
/// setting; the instant stands on top. One comparison of two numbers orders entries.
const RESOURCE_BITS: u32 = 20;
/// Bits of the place in the order of setting where a group stands above it.
const ORDER_BITS: u32 = 36;
/// Children of an entry of the heap.
const ARITY: usize = 4;
/// Later than every entry.
const NOTHING: u128 = u128::MAX;

/// Pending instants.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// No entry is less than the one it is a child of.
    heap: Vec<u128>,
    /// The earliest entry, [`NOTHING`] if there is none: it is looked at more often than it changes.
    first: u128,
    /// The root has been taken: what is set next takes its place, as most often a resource
    /// whose instant has come goes on to another. The earliest entry is this child of it.
    taken: Option<usize>,
    last_order: u64,
    /// At one instant things happen in the order of groups, and only then of setting.
    by_group: bool,
    /// Added to the numbers of resources.
    base: usize,
    /// The group of what is set now; none: each resource is its own.
    group: Option<u64>,
}

impl EventQueue {
    /// A queue for `resources` resources, numbered from 0.
    pub fn new(resources: usize) -> EventQueue {
        debug_assert!(resources < 1 << RESOURCE_BITS);
        EventQueue {
            heap: Vec::with_capacity(resources + 1),
            first: NOTHING,
            taken: None,
            last_order: 0,
            by_group: false,
            base: 0,
            group: None,
        }
    }

    /// From now on what falls on one instant happens in the order of groups, and within a group in the
    /// order of setting.
    pub fn order_by_group(&mut self) {
        debug_assert!(self.heap.is_empty(), "set before anything is pending");
        self.by_group = true;
    }

    /// Until [`EventQueue::leave`] resources are those of a group, numbered from `first` on.
    #[inline]
    pub fn enter(&mut self, first: usize, group: usize) {
        debug_assert!(self.group.is_none(), "a group within a group");
        self.base = first;
        self.group = Some(group as u64);
    }

    /// Resources are what they are again.
    #[inline]
    pub fn leave(&mut self) {
        self.base = 0;
        self.group = None;
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
        let entry = self.entry(self.base + resource, at);
        match self.taken.take() {
            Some(_) if entry < self.first => self.heap[0] = entry,
            Some(child) => {
                self.heap[0] = self.first;
                return self.settle(child, entry);
            }
            None => {
                self.heap.push(entry);
                self.rise(self.heap.len() - 1, 0, entry);
            }
        }
        self.first = self.first.min(entry);
    }

    /// Moves the pending instant of a resource, which must have one, to an earlier one. Looks at the
    /// resources one by one: for queues of few.
    #[inline]
    pub fn bring_forward(&mut self, resource: usize, at: Time) {
        let resource = self.base + resource;
        let entry = self.entry(resource, at);
        let of = |&other: &u128| other as u64 & ((1 << RESOURCE_BITS) - 1) == resource as u64;
        let root = usize::from(self.taken.is_some());
        let Some(place) = self.heap[root..].iter().position(of) else {
            debug_assert!(false, "nothing is pending of resource {resource}");
            return;
        };
        let place = self.rise(root + place, root, entry);
        if entry < self.first {
            self.first = entry;
            self.taken = self.taken.map(|_| place);
        }
    }

    #[inline]
    fn entry(&mut self, resource: usize, at: Time) -> u128 {
        let mut order = self.take_order();
        if self.by_group {
            let group = self.group.unwrap_or(resource as u64);
            order = group << ORDER_BITS | order & ((1 << ORDER_BITS) - 1);
        }
        let below = order << RESOURCE_BITS | resource as u64;
        u128::from(at.0) << 64 | u128::from(below)
    }

    /// Puts `entry` at a place or above it, where it belongs, but not above `root`. Returns its place.
    #[inline]
    fn rise(&mut self, mut at: usize, root: usize, entry: u128) -> usize {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if parent < root || entry >= self.heap[parent] {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
        at
    }

    /// Puts `entry` at a place that is free, or below it.
    #[inline]
    fn settle(&mut self, mut at: usize, entry: u128) {
        while let Some((child, least)) = self.least_child(at) {
            if entry < least {
                break;
            }
            self.heap[at] = least;
            at = child;
        }
        self.heap[at] = entry;
    }

    #[inline]
    fn least_child(&self, of: usize) -> Option<(usize, u128)> {
        let first = ARITY * of + 1;
        let end = (first + ARITY).min(self.heap.len());
        let children = self.heap.get(first..end)?;
        let (mut which, mut least) = (first, *children.first()?);
        for (i, &child) in children.iter().enumerate().skip(1) {
            if child < least {
                (which, least) = (first + i, child);
            }
        }
        Some((which, least))
    }

    /// The earliest pending instant, [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next_time(&self) -> Time {
        Time((self.first >> 64) as u64)
    }

    /// Place in the order of setting of the earliest pending thing.
    #[inline]
    pub fn next_order(&self) -> u64 {
        self.first as u64 >> RESOURCE_BITS
    }

    /// Takes the resource of the earliest pending instant, which is not pending any more.
    #[inline]
    pub fn pop(&mut self) -> Option<usize> {
        if self.first == NOTHING {
            return None;
        }
        let resource = self.first as u64 & ((1 << RESOURCE_BITS) - 1);
        if let Some(child) = self.taken {
            self.heap[0] = self.first;
            // The last entry goes where the earliest one was.
            let last = self.heap.pop()?;
            if child < self.heap.len() {
                self.settle(child, last);
            }
        }
        match self.least_child(0) {
            Some((child, least)) => (self.taken, self.first) = (Some(child), least),
            None => {
                self.heap.clear();
                (self.taken, self.first) = (None, NOTHING);
            }
        }
        Some(resource as usize)
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
            let what = rng.below(5);
            if what < 2 && plain.len() < 64 {
                let free = (0..64).filter(|r| plain.iter().all(|p| p.2 != *r));
                let free: Vec<usize> = free.collect();
                let resource = free[rng.below(free.len() as u64) as usize];
                let at = Time(rng.below(9));
                queue.set(resource, at);
                plain.push((at, queue.last_order, resource));
            } else if what == 2 && plain.iter().any(|p| p.0 > Time::ZERO) {
                let later: Vec<usize> = (0..plain.len())
                    .filter(|&i| plain[i].0 > Time::ZERO)
                    .collect();
                let p = &mut plain[later[rng.below(later.len() as u64) as usize]];
                let at = Time(rng.below(p.0 .0));
                queue.bring_forward(p.2, at);
                (p.0, p.1) = (at, queue.last_order);
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
