//! Log of the intervals in which each member collects garbage. The log is off by default.

use crate::units::Time;

/// An interval in which at least one chip of a member is in GC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcInterval {
    /// The member.
    pub member: usize,
    /// Start of the interval. At this instant, the first chip of the member began to collect, or the preceding interval
    /// of the member was split.
    pub begin: Time,
    /// End of the interval. At this instant, the last collecting chip of the member finished, or the array lost data.
    /// An interval is split in two if the log is taken, or if the coordinator orders a collection while the member is
    /// already collecting without an order.
    pub end: Time,
    /// Whether the coordinator ordered the collection.
    pub forced: bool,
}

/// Records the intervals in which members collect.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// For each member that is collecting: the start of its interval, and whether the coordinator ordered the
    /// collection.
    open: Vec<Option<(Time, bool)>>,
    closed: Vec<GcInterval>,
}

impl Timeline {
    /// Creates a log in which no member is collecting.
    pub fn new(members: usize) -> Timeline {
        Timeline {
            open: vec![None; members],
            closed: Vec::new(),
        }
    }

    /// Closes the open interval of a member, if there is one. If `next_forced` is given, also opens a new interval,
    /// with this value of `forced`.
    fn turn(&mut self, member: usize, now: Time, next_forced: Option<bool>) {
        let next = next_forced.map(|forced| (now, forced));
        if let Some((begin, forced)) = std::mem::replace(&mut self.open[member], next) {
            if begin < now {
                self.closed.push(GcInterval {
                    member,
                    begin,
                    end: now,
                    forced,
                });
            }
        }
    }

    /// Records whether a member is collecting after an event, and whether the coordinator ordered it to.
    #[inline]
    pub fn note(&mut self, member: usize, collects: bool, ordered: bool, now: Time) {
        match (self.open[member], collects) {
            (None, true) => self.turn(member, now, Some(ordered)),
            (Some((_, forced)), true) if ordered && !forced => self.turn(member, now, Some(true)),
            (Some(_), false) => self.turn(member, now, None),
            _ => {}
        }
    }

    /// Returns the intervals since the last call, in the order of their ends. Intervals that are still open are split
    /// at `now`.
    pub fn take(&mut self, now: Time) -> Vec<GcInterval> {
        for member in 0..self.open.len() {
            let next_forced = self.open[member].map(|(_, forced)| forced);
            self.turn(member, now, next_forced);
        }
        std::mem::take(&mut self.closed)
    }

    /// Closes all intervals, because the array has lost data and its members receive nothing more.
    pub fn end(&mut self, now: Time) {
        for member in 0..self.open.len() {
            self.turn(member, now, None);
        }
    }
}
