//! Which member collects when: a log of intervals, kept when asked for.

use super::raid::Raid;
use super::Array;
use crate::units::Time;

/// A span of time in which chips of a member were in GC, one or more at any instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcInterval {
    /// The member.
    pub member: usize,
    /// The first chip began.
    pub begin: Time,
    /// The last one was done; or the member was told to go on, or the log was taken.
    pub end: Time,
    /// It was told to, by the coordinator; else a pool of its own was at its watermark.
    pub forced: bool,
}

/// The log.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    /// Of each member that collects: since when, and whether it was told to.
    open: Vec<Option<(Time, bool)>>,
    closed: Vec<GcInterval>,
}

impl Array {
    /// Starts or stops the log of when members collect.
    pub fn set_gc_timeline(&mut self, on: bool) {
        let now = self.now();
        let members = self.backend.members.len();
        self.backend.timeline = on.then(|| Timeline {
            open: vec![None; members],
            closed: Vec::new(),
        });
        for member in 0..members {
            self.backend.note_interval(member, now);
        }
    }

    /// Takes the intervals since the last call or [`crate::Device::reset_metrics`], in the order of
    /// their ends. What goes on is cut here.
    pub fn take_gc_intervals(&mut self) -> Vec<GcInterval> {
        let now = self.now();
        self.backend.cut_intervals(now);
        let timeline = self.backend.timeline.as_mut();
        timeline.map_or(Vec::new(), |t| std::mem::take(&mut t.closed))
    }
}

impl Timeline {
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
}

impl Raid {
    /// Something happened to a member: it may have begun to collect, or have done so.
    #[inline]
    pub(super) fn note_interval(&mut self, member: usize, now: Time) {
        let Some(timeline) = &mut self.timeline else {
            return;
        };
        let collects = self.members[member].ssd.is_in_gc();
        let told = self.views[member].told;
        match (timeline.open[member], collects) {
            (None, true) => timeline.turn(member, now, Some(told)),
            (Some((_, forced)), true) if told && !forced => {
                timeline.turn(member, now, Some(true));
            }
            (Some(_), false) => timeline.turn(member, now, None),
            _ => {}
        }
    }

    fn cut_intervals(&mut self, now: Time) {
        if let Some(timeline) = &mut self.timeline {
            for member in 0..timeline.open.len() {
                let goes_on = timeline.open[member].map(|(_, forced)| forced);
                timeline.turn(member, now, goes_on);
            }
        }
    }

    /// No member does anything any more.
    pub(super) fn end_intervals(&mut self, now: Time) {
        if let Some(timeline) = &mut self.timeline {
            for member in 0..timeline.open.len() {
                timeline.turn(member, now, None);
            }
        }
    }

    /// What was before is forgotten.
    pub(super) fn reset_timeline(&mut self, now: Time) {
        self.cut_intervals(now);
        if let Some(timeline) = &mut self.timeline {
            timeline.closed.clear();
        }
    }
}
