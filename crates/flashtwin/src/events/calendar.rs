//! The buckets of the event queue. One bit per bucket records whether the bucket has entries.

/// Means "no resource".
pub(super) const NONE: u32 = u32::MAX;

/// A bucket: a list of resources, sorted by their pending instants with the earliest first. A bucket is used for one
/// span of time in each round of the calendar, so these instants may be in spans of different rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// First resource of the list. If the bucket is empty, this is [`NONE`], and `last` is undefined.
    pub first: u32,
    pub last: u32,
}

const EMPTY: Bucket = Bucket {
    first: NONE,
    last: NONE,
};

/// Index of a bucket. Only [`Calendar::spot`] creates an index, which is therefore always below the number of buckets.
/// The number of buckets never changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot(usize);

impl Spot {
    #[inline(always)]
    pub fn number(self) -> usize {
        self.0
    }

    /// Returns the position of the bucket's bit in its word of 64 bits.
    #[inline(always)]
    pub fn bit(self) -> u32 {
        self.0 as u32 % u64::BITS
    }
}

/// Buckets for consecutive spans of time. The span after that of the last bucket uses the first bucket again; with it,
/// a new round begins. The number of buckets is a power of two, and at least 64.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    buckets: Vec<Bucket>,
    /// One bit for each bucket: 1 if the bucket has resources.
    occupied: Vec<u64>,
    /// Bit mask that turns the number of a span into the index of its bucket.
    wrap: usize,
}

impl Calendar {
    /// Creates a calendar of at least `least` empty buckets.
    pub fn new(least: usize) -> Calendar {
        let buckets = least.next_power_of_two().max(64);
        Calendar {
            buckets: vec![EMPTY; buckets],
            occupied: vec![0; buckets / 64],
            wrap: buckets - 1,
        }
    }

    /// Returns the bucket of a span.
    #[inline(always)]
    pub fn spot(&self, span: u64) -> Spot {
        Spot(span as usize & self.wrap)
    }

    /// Returns the number of steps forward from the bucket `start` to the bucket `spot`. After the last bucket, the
    /// first one is next.
    pub fn distance(&self, start: Spot, spot: Spot) -> u64 {
        (spot.0.wrapping_sub(start.0) & self.wrap) as u64
    }

    #[inline(always)]
    pub fn bucket(&self, spot: Spot) -> Bucket {
        // SAFETY: a spot is below the number of buckets (see `Spot`).
        unsafe { *self.buckets.get_unchecked(spot.0) }
    }

    #[inline(always)]
    pub fn bucket_mut(&mut self, spot: Spot) -> &mut Bucket {
        // SAFETY: a spot is below the number of buckets (see `Spot`).
        unsafe { self.buckets.get_unchecked_mut(spot.0) }
    }

    /// Returns the word that contains the bit of a bucket.
    #[inline(always)]
    pub fn word_mut(&mut self, spot: Spot) -> &mut u64 {
        // SAFETY: a spot is below the number of buckets (see `Spot`), and there is one word for each 64 of them.
        unsafe { self.occupied.get_unchecked_mut(spot.0 / 64) }
    }

    /// Returns the words with the bits of all buckets.
    pub fn words(&self) -> &[u64] {
        &self.occupied
    }

    /// Returns all buckets.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Empties all buckets.
    pub fn clear(&mut self) {
        self.buckets.fill(EMPTY);
        self.occupied.fill(0);
    }
}
