//! Power loss, for a server that stores the host's data outside the model. The model reports the event after which the
//! contents of a page survive a power loss. After a power loss, the model is restarted.

use super::cache::Cache;
use super::controller::Controller;
use super::link::Link;
use super::partial_write::PageWrites;
use super::queues::Queues;
use super::requests::Requests;
use super::{Backend, Device, Front, PowerCut};
use crate::metrics::Metrics;
use crate::nand::{Done, PageOp};
use crate::units::Lpn;

/// The event after which the contents of a page survive a power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// The write is acknowledged. The buffer's memory survives a power loss.
    AtOnce,
    /// A program with the contents ends.
    Programmed,
    /// A flush or a forced write ends. Before that, even a programmed page may be only in the volatile memory of an
    /// array's member.
    Flushed,
}

/// Progress of the programs (writes to flash) of a page. The programs of one page are reported, and take effect, in the
/// order in which they were queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageProgram {
    /// A program was queued. It will write the contents that the page has at this instant.
    Queued(Lpn),
    /// The oldest queued program of the page has ended, so its contents are in flash.
    Ended(Lpn),
    /// The oldest queued program of the page failed, so flash keeps the earlier contents. If the program had begun on a
    /// die that then failed, the earlier contents cannot be read.
    Failed(Lpn),
}

/// The log of program progress; empty unless it is enabled.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramLog {
    on: bool,
    programs: Vec<PageProgram>,
}

impl ProgramLog {
    pub fn is_on(&self) -> bool {
        self.on
    }

    #[inline]
    pub fn queued(&mut self, op: &PageOp) {
        if self.on && !op.is_read() {
            self.programs.push(PageProgram::Queued(op.lpn));
        }
    }

    #[inline]
    pub fn done(&mut self, done: &Done) {
        if self.on && !done.op.is_read() {
            self.programs.push(match done.written {
                true => PageProgram::Ended(done.op.lpn),
                false => PageProgram::Failed(done.op.lpn),
            });
        }
    }
}

impl<B: Backend> Device<B> {
    /// Returns the event after which written contents survive a power loss.
    pub fn durable(&self) -> Durable {
        match (
            self.backend.is_volatile(),
            self.cache.present && self.cache.protected,
        ) {
            (true, _) => Durable::Flushed,
            (false, true) => Durable::AtOnce,
            (false, false) => Durable::Programmed,
        }
    }

    /// Starts or stops the log of programs of the host's pages.
    pub fn set_program_log(&mut self, on: bool) {
        self.programs = ProgramLog {
            on,
            programs: Vec::new(),
        };
        self.find_path();
    }

    /// Returns the programs logged since the last call, in order.
    pub fn take_program_log(&mut self) -> std::vec::Drain<'_, PageProgram> {
        self.programs.programs.drain(..)
    }

    /// Simulates a power loss at this instant, and restarts the device with a new, empty front end as `front`
    /// specifies. The data that [`Device::power_cut`] lists are lost. Requests in flight never complete. After the
    /// power loss and before the restart, two things happen:
    ///
    /// - The flash completes the operations that were passed to it and any running garbage collection, with their
    ///   effects on map and wear.
    /// - Protected memory is written to flash. A page is lost if flash has no room for it, or if a part of the page was
    ///   only on a dead die.
    ///
    /// [`Device::now`] advances during these operations, and the counters are reset to zero after them (D-135). Returns
    /// `None` if the operations take more than `steps` events.
    pub(crate) fn start_again(&mut self, front: &Front, mut steps: u64) -> Option<PowerCut> {
        let mut cut = self.power_cut();
        if self.cache.present && self.cache.protected {
            steps = self.write_protected(&mut cut, steps);
        }
        steps = self.backend_to_rest(steps)?;
        self.queues = Queues::new(front.host);
        self.link = Link::new(front.link);
        self.controller = Controller::new(front.controller);
        self.cache = Cache::new(front, None);
        self.requests = Requests::default();
        self.writes = PageWrites::new(front);
        self.in_buffer.clear();
        self.find_path();
        if self.backend.is_volatile() {
            steps = self.shut_down(steps);
            self.backend_to_rest(steps)?;
        }
        self.completions.clear();
        self.programs.programs.clear();
        self.metrics = Metrics::new(self.now, None);
        self.backend.reset_stats(self.now);
        self.find_path();
        self.follow_times();
        Some(cut)
    }

    /// Processes all pending events of the back end. Returns how many of the `steps` are left, or `None` if they do
    /// not suffice.
    fn backend_to_rest(&mut self, mut steps: u64) -> Option<u64> {
        while self.backend_step() {
            steps = steps.checked_sub(1)?;
        }
        Some(steps)
    }

    /// Processes the next event of the back end without notifying the front end.
    fn backend_step(&mut self) -> bool {
        let at = self.events.next_time();
        let Some(resource) = self.events.pop() else {
            return false;
        };
        self.now = at;
        let now = self.now;
        let unit = (self.backend).on_event(resource, now, &mut self.events, &mut None);
        while self.backend.more_done().is_some() {}
        if let Some(unit) = unit {
            self.backend.activate(unit, self.now, &mut self.events);
        }
        self.backend.settle(self.now, &mut self.events);
        true
    }
}
