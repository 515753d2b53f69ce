//! The event queue. Each resource (a chip, a channel or a bus) has at most one pending instant: the time of its next
//! event. The queue returns the instants in order of time.
//!
//! A resource is a chip, a channel or a bus. Its pending instant is the time at which its current operation completes.
//! The queue is a calendar queue (Brown 1988). It has a fixed number of buckets, which cover equally long spans of
//! time. After the last bucket, the first one is used again: a new round begins. A bucket is a sorted list, linked
//! through the table of resources. One bit per bucket records whether the bucket has entries.
//!
//! Setting an instant, or taking the earliest one, accesses one or two buckets, however many instants are pending.
//! Events of the same instant are processed in the order in which they were set, as in the reference simulator. A new
//! instant is therefore inserted after pending ones that are equal. No memory is allocated after construction.

mod calendar;

use std::num::NonZeroU64;

use self::calendar::{Bucket, Calendar, Spot, NONE};
use crate::memory::TrustedTable;
use crate::units::Time;

/// Number of bits for the resource in an entry. An entry has 128 bits: the upper 64 contain the instant, and the lowest
/// ones the resource. Between them is the entry's number in the *order of setting*: each instant that is set receives
/// the next number. Entries can therefore be compared as numbers.
const RESOURCE_BITS: u32 = 20;
/// Number of bits for the order of setting in an entry without a group. In an entry with a group, the order of setting
/// has only [`ORDER_BITS`], and the bits above it contain the group.
const ORDER_BITS_ALONE: u32 = u64::BITS - RESOURCE_BITS;
const ORDER_ALONE_MAX: u64 = (1 << ORDER_BITS_ALONE) - 1;
const ORDER_BITS: u32 = 36;
/// A value larger than every entry: no entry.
const NOTHING: u128 = u128::MAX;
/// Initial width of a bucket: 2^20 picoseconds, about a microsecond.
const SHIFT_FIRST: u32 = 20;
/// Number of buckets per resource. With fewer buckets of the initial width, the pending instants would be in several
/// rounds, and share buckets.
const BUCKETS_A_RESOURCE: usize = 16;
/// Binary logarithm of the ratio between the mean time from event to event and the width of a bucket. If the ratio were
/// 1, a bucket would have a second entry about half the time, which the processor cannot predict.
const NARROWER: u32 = 2;
/// Number of unsuccessful looks per resource after which the width of the buckets is chosen again. A look examines one
/// entry, or one word of bits.
const LOOKS_MAX: u32 = 16;

/// The pending instant of a resource.
#[derive(Clone, Copy, Debug)]
struct Slot {
    entry: u128,
    /// The next resource in the list of the bucket.
    next: u32,
}

/// The event queue: the pending instant of each resource.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Entry and successor of each resource.
    slots: TrustedTable<Slot>,
    calendar: Calendar,
    /// Binary logarithm of the width of a bucket in picoseconds.
    shift: u32,
    /// The earliest entry, or [`NOTHING`]. A copy is kept here because it is read more often than it changes.
    first: u128,
    /// The last number assigned in the order of setting, in the low bits that fit into an entry. All higher bits are
    /// ones. When the numbers are used up, the next increment therefore overflows.
    last_order: u64,
    /// The largest number of the order of setting that fits into an entry.
    order_max: u64,
    /// Number of unsuccessful looks since the width was last chosen. If it exceeds `looks_max`, the width is chosen
    /// again.
    looks: u32,
    looks_max: u32,
    /// Instant at which the width was last chosen. `chosen_order` is the value of `last_order` at that time.
    chosen_at: Time,
    chosen_order: u64,
    /// Group of each resource. Events of the same instant are ordered by group, and within a group in the order of
    /// setting. Empty if there are no groups.
    groups: Vec<u32>,
}

#[inline]
fn instant(entry: u128) -> u64 {
    (entry >> 64) as u64
}

#[inline]
fn resource(entry: u128) -> usize {
    entry as usize & ((1 << RESOURCE_BITS) - 1)
}

impl EventQueue {
    /// Creates a queue for `resources` resources, numbered from 0.
    pub fn new(resources: usize) -> EventQueue {
        debug_assert!(resources < 1 << RESOURCE_BITS);
        let slot = Slot {
            entry: NOTHING,
            next: NONE,
        };
        EventQueue {
            // SAFETY: every resource number in a bucket, a slot or an entry was checked by `EventQueue::entry`.
            slots: unsafe { TrustedTable::new(vec![slot; resources]) },
            calendar: Calendar::new(BUCKETS_A_RESOURCE * resources),
            shift: SHIFT_FIRST,
            first: NOTHING,
            last_order: !ORDER_ALONE_MAX,
            order_max: ORDER_ALONE_MAX,
            looks: 0,
            looks_max: LOOKS_MAX * resources.max(64) as u32,
            chosen_at: Time::ZERO,
            chosen_order: !ORDER_ALONE_MAX,
            groups: Vec::new(),
        }
    }

    /// Sets the group of each resource. Events of the same instant are then ordered by group, and within a group in the
    /// order of setting.
    pub fn order_by_group(&mut self, groups: Vec<u32>) {
        debug_assert!(self.first == NOTHING, "set before anything is pending");
        debug_assert_eq!(groups.len(), self.slots.len());
        debug_assert!(groups
            .iter()
            .all(|group| group >> (ORDER_BITS_ALONE - ORDER_BITS) == 0));
        self.groups = groups;
        self.order_max = (1 << ORDER_BITS) - 1;
        (self.last_order, self.chosen_order) = (!self.order_max, !self.order_max);
    }

    /// Assigns the next number in the order of setting to an instant that is stored outside the queue. Returns the
    /// number.
    #[inline]
    pub fn take_order(&mut self) -> u64 {
        self.take_place() & self.order_max
    }

    /// Assigns the next number in the order of setting. In the result, all bits that do not fit into an entry are ones.
    #[inline(always)]
    fn take_place(&mut self) -> u64 {
        let (next, carry) = self.last_order.overflowing_add(1);
        self.last_order = next;
        if carry {
            self.number_anew();
        }
        self.last_order
    }

    /// Called when all numbers of the order of setting are used up. Renumbers the pending entries from 1 in the same
    /// order, then assigns the next number. An instant that is stored outside the queue keeps its old, larger number,
    /// so pending entries of the same instant precede it.
    #[cold]
    fn number_anew(&mut self) {
        let order = u128::from(self.order_max) << RESOURCE_BITS;
        let mut pending = self.pending();
        pending.sort_unstable_by_key(|&entry| entry & order);
        let mut place = 0;
        for entry in &mut pending {
            place += 1;
            *entry = *entry & !order | place << RESOURCE_BITS;
        }
        self.first = pending.iter().copied().min().unwrap_or(NOTHING);
        self.last_order = !self.order_max | (place as u64 + 1);
        self.chosen_order = !self.order_max;
        self.fill(pending);
    }

    /// Sets the pending instant of a resource. The resource must have none.
    #[inline(always)]
    pub fn set(&mut self, resource: usize, at: Time) {
        let entry = self.entry(resource, at);
        self.put(entry, resource);
        self.note(entry);
    }

    /// Records the new entry as the earliest one if it is earlier than all others, which is rare.
    #[inline(always)]
    fn note(&mut self, entry: u128) {
        if entry < self.first {
            self.first = entry;
        }
    }

    /// Replaces the pending instant of a resource by an earlier one. The resource must have a pending instant.
    #[inline]
    pub fn bring_forward(&mut self, resource: usize, at: Time) {
        let entry = self.entry(resource, at);
        debug_assert!(
            instant(self.slots[resource].entry) > at.0,
            "resource {resource} has nothing pending later"
        );
        self.take_out(resource as u32);
        self.put(entry, resource);
        self.note(entry);
    }

    /// Clears the pending instant of a resource, if it has one.
    pub fn forget(&mut self, resource: usize) {
        let slots = &*self.slots;
        let entry = slots[resource].entry;
        if entry == NOTHING {
            return;
        }
        if entry == self.first {
            self.pop();
        } else if (self.linked_from(self.calendar.bucket(self.spot(entry)).first))
            .any(|at| at as usize == resource)
        {
            self.take_out(resource as u32);
        }
    }

    /// Returns a resource and all resources after it in the list of its bucket.
    fn linked_from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let next = |&at: &u32| Some(self.slots[at as usize].next).filter(|&at| at != NONE);
        std::iter::successors(Some(first).filter(|&at| at != NONE), next)
    }

    #[inline(always)]
    fn entry(&mut self, resource: usize, at: Time) -> u128 {
        assert!(resource < self.slots.len(), "no such resource");
        // The shift below removes the bits that do not fit into an entry.
        let mut order = self.take_place();
        if let Some(&group) = self.groups.get(resource) {
            order = u64::from(group) << ORDER_BITS | order & self.order_max;
        }
        let below = order << RESOURCE_BITS | resource as u64;
        u128::from(at.0) << 64 | u128::from(below)
    }

    /// Returns the number of the span that contains the instant of an entry.
    #[inline(always)]
    fn span(&self, entry: u128) -> u64 {
        instant(entry) >> self.shift
    }

    #[inline(always)]
    fn spot(&self, entry: u128) -> Spot {
        self.calendar.spot(self.span(entry))
    }

    /// Inserts an entry into the list of its bucket.
    #[inline(always)]
    fn put(&mut self, entry: u128, resource: usize) {
        let (at, new) = (self.spot(entry), resource as u32);
        let bucket = self.calendar.bucket_mut(at);
        if bucket.first == NONE {
            *bucket = Bucket {
                first: new,
                last: new,
            };
            *self.calendar.word_mut(at) |= 1 << at.bit();
        } else if entry > self.slots[bucket.last as usize].entry {
            self.slots[bucket.last as usize].next = new;
            bucket.last = new;
        } else {
            return self.put_before_last(at, entry, new);
        }
        self.slots[resource] = Slot { entry, next: NONE };
    }

    /// Inserts an entry that is earlier than the last entry of its bucket.
    #[inline(never)]
    fn put_before_last(&mut self, at: Spot, entry: u128, new: u32) {
        if self.looks > self.looks_max {
            self.choose_width();
            return self.put(entry, new as usize);
        }
        let mut before = NONE;
        let mut after = self.calendar.bucket(at).first;
        while self.slots[after as usize].entry < entry {
            (before, after) = (after, self.slots[after as usize].next);
            self.looks += 1;
        }
        match before {
            NONE => self.calendar.bucket_mut(at).first = new,
            before => self.slots[before as usize].next = new,
        }
        let next = after;
        self.slots[new as usize] = Slot { entry, next };
    }

    /// Removes the entry of a resource from the list of its bucket.
    fn take_out(&mut self, resource: u32) {
        // If the resource is not in the bucket, the loop reaches the end of the list. The end is not a valid index, so
        // the next access panics.
        let slots = &*self.slots;
        let slot = slots[resource as usize];
        let at = self.spot(slot.entry);
        let mut before = NONE;
        let mut this = self.calendar.bucket(at).first;
        while this != resource {
            (before, this) = (this, slots[this as usize].next);
        }
        match before {
            NONE => self.calendar.bucket_mut(at).first = slot.next,
            before => self.slots[before as usize].next = slot.next,
        }
        if slot.next == NONE {
            self.calendar.bucket_mut(at).last = before;
        }
        if self.calendar.bucket(at).first == NONE {
            *self.calendar.word_mut(at) &= !(1 << at.bit());
        }
    }

    /// Returns the earliest entry. No entry may be in a span before `span`. The lowest bit of `ahead` stands for the
    /// bucket of `span`, and the next bits for the next buckets. A bit is 1 if its bucket has entries.
    #[inline(always)]
    fn find_first(&mut self, span: u64, ahead: u64) -> u128 {
        if let Some(bits) = NonZeroU64::new(ahead) {
            let next = span + u64::from(bits.trailing_zeros());
            let bucket = self.calendar.bucket(self.calendar.spot(next));
            let entry = self.slots[bucket.first as usize].entry;
            if self.span(entry) == next {
                return entry;
            }
        }
        self.search(span)
    }

    /// Finds the earliest entry in the cases that [`EventQueue::find_first`] does not handle: the bucket of the entry
    /// is in another word of bits, or an earlier bucket in the word has only entries of later rounds.
    #[inline(never)]
    fn search(&mut self, span: u64) -> u128 {
        if self.looks > self.looks_max {
            let shift = self.shift;
            self.choose_width();
            return self.look_through(span << shift >> self.shift);
        }
        self.look_through(span)
    }

    fn look_through(&mut self, span: u64) -> u128 {
        let words = self.calendar.words();
        let start = self.calendar.spot(span);
        let mut word = start.number() / 64;
        let mut bits = words[word] & (u64::MAX << start.bit());
        // Earliest of the examined entries of later rounds.
        let mut later = NOTHING;
        // The word of `start` is examined twice, first from the bit of `start` on. The second time, only the bits
        // before it can have an entry of this round.
        for looks in 0..=words.len() {
            while bits != 0 {
                let at = word as u64 * 64 + u64::from(bits.trailing_zeros());
                let at = self.calendar.spot(at);
                let entry = self.slots[self.calendar.bucket(at).first as usize].entry;
                if self.span(entry) - span == self.calendar.distance(start, at) {
                    self.looks += looks as u32;
                    return entry;
                }
                later = later.min(entry);
                bits &= bits - 1;
                self.looks += 1;
            }
            word = (word + 1) % words.len();
            bits = words[word];
        }
        self.looks += words.len() as u32;
        later
    }

    /// Chooses the width of the buckets from the mean time between events since the width was last chosen.
    #[cold]
    fn choose_width(&mut self) {
        let now = Time(instant(self.first));
        let events = (self.last_order - self.chosen_order).max(1);
        let apart = (now.0.saturating_sub(self.chosen_at.0) / events).max(1);
        (self.looks, self.chosen_at, self.chosen_order) = (0, now, self.last_order);
        let shift = apart.ilog2().saturating_sub(NARROWER);
        if shift == self.shift {
            return;
        }
        let pending = self.pending();
        self.shift = shift;
        self.fill(pending);
    }

    /// Returns all pending entries, not in order.
    fn pending(&self) -> Vec<u128> {
        (self.calendar.buckets().iter())
            .flat_map(|bucket| self.linked_from(bucket.first))
            .map(|at| self.slots[at as usize].entry)
            .collect()
    }

    /// Inserts all entries into their buckets.
    fn fill(&mut self, mut pending: Vec<u128>) {
        // The entries are inserted in sorted order, so that each is appended at the end of its bucket.
        pending.sort_unstable();
        self.calendar.clear();
        for entry in pending {
            self.put(entry, resource(entry));
        }
    }

    /// Returns the earliest pending instant; [`Time::NEVER`] if nothing is pending.
    #[inline]
    pub fn next_time(&self) -> Time {
        Time(instant(self.first))
    }

    /// Returns the number that the earliest entry has in the order of setting.
    #[inline]
    pub fn next_order(&self) -> u64 {
        self.first as u64 >> RESOURCE_BITS
    }

    /// Removes the earliest entry and returns its resource; `None` if nothing is pending.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<usize> {
        (self.next_time() != Time::NEVER).then(|| self.pop_first())
    }

    /// Removes the earliest entry and returns its resource. The queue must not be empty.
    #[inline(always)]
    pub fn pop_first(&mut self) -> usize {
        assert!(self.next_time() != Time::NEVER, "nothing is pending");
        let (span, taken) = (self.span(self.first), resource(self.first));
        let at = self.calendar.spot(span);
        // The earliest entry is the first in its bucket.
        let next = self.slots[taken].next;
        self.calendar.bucket_mut(at).first = next;
        let word = self.calendar.word_mut(at);
        let mut ahead = *word >> at.bit();
        if next == NONE {
            *word ^= 1 << at.bit();
            ahead ^= 1;
        }
        self.first = self.find_first(span, ahead);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{seeds, Rng};

    #[test]
    #[should_panic(expected = "no such resource")]
    fn resource_beyond_the_queue_is_refused() {
        EventQueue::new(4).set(4, Time(1));
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn resource_beyond_the_queue_is_not_forgotten() {
        EventQueue::new(4).forget(4);
    }

    #[test]
    #[should_panic(expected = "nothing is pending")]
    fn empty_queue_has_no_first_event() {
        EventQueue::new(4).pop_first();
    }

    #[test]
    fn earliest_first_and_equals_in_the_order_of_setting() {
        seeds(3).for_each(|seed| compare(seed, None));
    }

    #[test]
    fn equal_instants_keep_their_order_after_renumbering() {
        seeds(3).for_each(|seed| compare(seed, Some(255)));
    }

    /// Compares a queue with a sorted list. `every` is a number of steps. Once in this many steps, the last number of
    /// the order of setting is raised, so that the numbers are soon used up.
    fn compare(seed: u64, every: Option<usize>) {
        let mut rng = Rng::new(seed);
        let mut queue = EventQueue::new(64);
        let mut anew = 0;
        let mut order = 0;
        let mut plain: Vec<(Time, u64, usize)> = Vec::new();
        // Instant of the entry that was taken last.
        let mut last = Time::ZERO;
        let mut widths = std::collections::BTreeSet::new();
        for step in 0..30_000 {
            order += 1;
            if every.is_some_and(|every| step % every == 0) {
                queue.last_order = u64::MAX - rng.below(100);
                anew += 1;
            }
            // Largest distance of a new instant from the last one: within one bucket of the initial width, over many
            // buckets, or so far that the width is chosen again.
            let apart = [9, 1 << 24, 1 << 40][step / 1_000 % 3];
            let what = rng.below(6);
            if what == 5 {
                let resource = rng.below(64) as usize;
                queue.forget(resource);
                plain.retain(|p| p.2 != resource);
            } else if what < 2 && plain.len() < 64 {
                let free = (0..64).filter(|r| plain.iter().all(|p| p.2 != *r));
                let free: Vec<usize> = free.collect();
                let resource = free[rng.below(free.len() as u64) as usize];
                let at = last + Time(rng.below(apart));
                queue.set(resource, at);
                plain.push((at, order, resource));
            } else if what == 2 && plain.iter().any(|p| p.0 > last) {
                let later: Vec<usize> = (0..plain.len()).filter(|&i| plain[i].0 > last).collect();
                let p = &mut plain[later[rng.below(later.len() as u64) as usize]];
                let at = Time(last.0 + rng.below(p.0 .0 - last.0));
                queue.bring_forward(p.2, at);
                (p.0, p.1) = (at, order);
            } else if let Some(resource) = queue.pop() {
                let first = plain.iter().enumerate().min_by_key(|(_, p)| **p).unwrap().0;
                let taken = plain.swap_remove(first);
                assert_eq!(resource, taken.2);
                last = taken.0;
            } else {
                assert!(plain.is_empty());
            }
            let least = plain.iter().map(|p| p.0).min().unwrap_or(Time::NEVER);
            assert_eq!(queue.next_time(), least);
            widths.insert(queue.shift);
        }
        assert!(widths.len() > 2, "seed {seed}: {widths:?}");
        assert!(every.is_none() || anew > 100);
    }
}
