//! Which member collects when: a log of intervals, kept when asked for.

use crate::units::Time;

/// A span of time in which chips of a member were in GC, one or more at any instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcInterval {
    /// The member.
    pub member: usize,
    /// The first chip began.
    pub begin: Time,
    /// The last one was done; or the member was ordered to go on, or the log was taken.
    pub end: Time,
    /// By order of the coordinator; else a pool of its own was at its watermark.
    pub forced: bool,
}

/// The log.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// Of each collecting member: since when, and whether by order.
    open: Vec<Option<(Time, bool)>>,
    closed: Vec<GcInterval>,
}

impl Timeline {
    /// None of the members collects.
    pub fn new(members: usize) -> Timeline {
        Timeline {
            open: vec![None; members],
            closed: Vec::new(),
        }
    }

    /// The interval of a member ends here, if there is one; another begins, if it goes on.
    fn turn(&mut self, member: usize, now: Time, goes_on: Option<bool>) {
        let next = goes_on.map(|forced| (now, forced));
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

    /// Something happened to a member: it may have begun to collect, or have done so.
    #[inline]
    pub fn note(&mut self, member: usize, collects: bool, told: bool, now: Time) {
        match (self.open[member], collects) {
            (None, true) => self.turn(member, now, Some(told)),
            (Some((_, forced)), true) if told && !forced => self.turn(member, now, Some(true)),
            (Some(_), false) => self.turn(member, now, None),
            _ => {}
        }
    }

    /// The intervals since the last call, in the order of their ends. What goes on is cut here.
    pub fn take(&mut self, now: Time) -> Vec<GcInterval> {
        for member in 0..self.open.len() {
            let goes_on = self.open[member].map(|(_, forced)| forced);
            self.turn(member, now, goes_on);
        }
        std::mem::take(&mut self.closed)
    }

    /// No member does anything any more.
    pub fn end(&mut self, now: Time) {
        for member in 0..self.open.len() {
            self.turn(member, now, None);
        }
    }
}
