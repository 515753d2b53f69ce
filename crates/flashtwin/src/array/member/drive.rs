//! The SSD of a member. If the front end of the SSD takes no time, the array bypasses the front end and submits single
//! pages to the flash. Otherwise it submits whole requests to the SSD.

use super::response::Response;
use crate::array::features::{Every, Features};
use crate::chips::ChipSet;
use crate::device::Work;
use crate::events::EventQueue;
use crate::gc::Force;
use crate::nand::{Cause, Owner, PageOp};
use crate::request::{Op, Request};
use crate::spec::DeviceSpec;
use crate::ssd::{Flash, Ssd};
use crate::units::{Lpn, Stream, Time};

/// A request to a member: pages to read, write or trim, or a flush.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    /// First page on the member, and number of pages.
    pub first: u32,
    pub pages: u32,
    pub op: Op,
    pub fua: bool,
    /// The receiver of the response.
    pub owner: Owner,
}

/// An SSD as the drive of a member. Requests go to its front end, or directly to its flash.
#[derive(Clone, Debug)]
pub(crate) struct Drive {
    pub ssd: Ssd,
    /// Whether the front end of the SSD takes no time, so that the array submits pages directly to the flash.
    pub is_bare: bool,
    /// Number of the first resource of the flash in the array's event queue; `None` if the events of the flash are in
    /// the SSD's own queue.
    pub first_resource: Option<usize>,
    /// Responses that the array has not taken yet. [`Drive::advance`] adds them. A request that completes immediately
    /// adds its response when it is submitted.
    pub responses: Vec<Response>,
}

impl Drive {
    pub fn new(spec: &DeviceSpec) -> Drive {
        let mut ssd = Ssd::new(spec);
        ssd.leave_measuring();
        Drive {
            is_bare: ssd.is_bare(),
            ssd,
            first_resource: None,
            responses: Vec::new(),
        }
    }

    /// Selects the queue that holds the events of the flash. If `first` is given, this is the array's queue, where the
    /// resources of the flash have numbers from `first` on. If it is `None`, this is the SSD's own queue. No event of
    /// the flash may be pending.
    pub fn set_first_resource(&mut self, first: Option<usize>) {
        self.first_resource = first;
        self.ssd.backend.set_first_resource(first.unwrap_or(0));
    }

    /// Returns the flash and the queue that holds its events: `shared`, which is the array's queue, if given, otherwise
    /// the SSD's own queue.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn flash<'a, F: Features>(
        &'a mut self,
        now: Time,
        shared: Option<&'a mut EventQueue>,
    ) -> (&'a mut Flash, &'a mut EventQueue) {
        debug_assert_eq!(shared.is_some(), self.first_resource.is_some());
        self.assume::<F>();
        self.ssd.set_now(now);
        let own = &mut self.ssd.events;
        (&mut self.ssd.backend, shared.unwrap_or(own))
    }

    /// Informs the compiler of the kind of the flash, so that the compiler omits the code for other kinds.
    #[inline(always)]
    fn assume<F: Features>(&self) {
        let flash = &self.ssd.backend;
        debug_assert!(F::KIND == 0 || flash.kind() == F::KIND);
        // SAFETY: `Io::find_copy` chooses a copy of the code for one kind of flash only if the flash of all members is
        // of this kind. `find_copy` runs again whenever a member is replaced. No method of a flash changes the kind of
        // the flash (see `Work`).
        unsafe { flash.assume(F::KIND) };
    }

    /// Returns the chips that are in GC.
    #[inline(always)]
    pub fn chips_in_gc<F: Features>(&self) -> &ChipSet {
        self.assume::<F>();
        self.ssd.chips_in_gc()
    }

    /// Prefetches the entries of the flash's tables that an operation on a page accesses first.
    #[inline(always)]
    pub fn prefetch<F: Features>(&self, lpn: Lpn) {
        self.assume::<F>();
        self.ssd.backend.prefetch(lpn);
    }

    /// Prefetches the entries of the flash's tables about the old copy of a page, which a write of the page accesses.
    #[inline(always)]
    pub fn prefetch_old_copy<F: Features>(&self, lpn: Lpn) {
        self.assume::<F>();
        self.ssd.backend.prefetch_old_copy(lpn);
    }

    /// Submits a request, and adds the responses that are available immediately. `shared` is the array's event queue if
    /// this queue holds the events of the flash.
    #[inline(never)]
    pub fn submit(&mut self, ask: &Ask, now: Time, mut shared: Option<&mut EventQueue>) {
        if !self.is_bare {
            return self.submit_request(ask, now);
        }
        let number = self.ssd.next_number();
        self.ssd.take_number();
        for lpn in ask.first..ask.first + ask.pages {
            let lpn = Lpn(lpn);
            let shared = shared.as_deref_mut();
            let done = match cause_of(ask.op) {
                Some(cause) => {
                    let op = page_op(ask, lpn, cause, number);
                    if self.submit_page::<Every>(op, now, shared) {
                        continue;
                    }
                    // The page completes immediately: it is the read of a page that was never written, or a refused
                    // write.
                    ask.op == Op::Read
                }
                None => self.trim_page(lpn, now, shared),
            };
            self.responses.push(Response::at_once(ask.owner, now, done));
        }
    }

    /// Submits the read or write of one page to the flash. Does nothing and returns false in three cases: the operation
    /// is a trim or a flush, the page to read was never written, or the write is refused.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn submit_one<F: Features>(
        &mut self,
        ask: &Ask,
        now: Time,
        shared: &mut EventQueue,
    ) -> bool {
        let Some(cause) = cause_of(ask.op) else {
            return false;
        };
        let op = page_op(ask, Lpn(ask.first), cause, self.ssd.next_number());
        let is_sent = self.submit_page::<F>(op, now, Some(shared));
        if is_sent {
            self.ssd.take_number();
        }
        is_sent
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn submit_page<F: Features>(
        &mut self,
        op: PageOp,
        now: Time,
        shared: Option<&mut EventQueue>,
    ) -> bool {
        let read_only = self.ssd.read_only;
        let (flash, events) = self.flash::<F>(now, shared);
        let unit = match op.is_read() {
            true => flash.unit_of_copy(op.lpn),
            false if read_only => None,
            false => Some(flash.unit_for_write(op.lpn)),
        };
        if let Some(unit) = unit {
            flash.enqueue_on_member(unit as usize, op, now, events);
        }
        unit.is_some()
    }

    /// Trims a page; returns false if the trim is refused.
    fn trim_page(&mut self, lpn: Lpn, now: Time, shared: Option<&mut EventQueue>) -> bool {
        let read_only = self.ssd.read_only;
        if !read_only {
            let (flash, events) = self.flash::<Every>(now, shared);
            flash.trim(lpn, now, events);
        }
        !read_only
    }

    fn submit_request(&mut self, ask: &Ask, now: Time) {
        let page_bytes = u64::from(self.ssd.spec().geometry.page_bytes);
        let request = Request {
            arrival: now,
            offset: u64::from(ask.first) * page_bytes,
            bytes: u64::from(ask.pages) * page_bytes,
            op: ask.op,
            fua: ask.fua,
            ..Request::default()
        };
        (self.ssd.submit(now, &request, ask.owner.tag()))
            .expect("the layout stays within its members");
        self.take_completions();
    }

    fn take_completions(&mut self) {
        let completed = self.ssd.completions().drain(..);
        self.responses.extend(completed.map(Response::of_request));
    }

    /// Processes an event of the flash. `resource` is the number of the event's resource, counted from the first
    /// resource of the flash. Returns the chip to activate, as [`Work::on_event`] does. If the event finishes a page,
    /// stores the response to this page in `response`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn on_event<F: Features>(
        &mut self,
        resource: usize,
        now: Time,
        shared: Option<&mut EventQueue>,
        response: &mut Option<Response>,
    ) -> Option<usize> {
        let (flash, events) = self.flash::<F>(now, shared);
        let chip = flash.process_event(resource, now, events, response);
        if let Some(response) = response {
            if !response.written {
                self.ssd.read_only = true;
            }
        }
        chip
    }

    /// Starts the next operation of a chip, as [`Work::activate`] does.
    #[inline(always)]
    pub fn activate<F: Features>(
        &mut self,
        chip: usize,
        now: Time,
        shared: Option<&mut EventQueue>,
    ) {
        let (flash, events) = self.flash::<F>(now, shared);
        flash.activate_on_member(chip, now, events);
    }

    /// Processes all events in the SSD's own queue that are due by `now`.
    pub fn advance(&mut self, now: Time) {
        if !self.is_bare {
            self.ssd.advance(now);
            return self.take_completions();
        }
        while self.ssd.events.next_time() <= now {
            let at = self.ssd.events.next_time();
            let Some(resource) = self.ssd.events.pop() else {
                break;
            };
            let mut response = None;
            let chip = self.on_event::<Every>(resource, at, None, &mut response);
            self.responses.extend(response);
            if let Some(chip) = chip {
                self.activate::<Every>(chip, at, None);
            }
        }
        self.ssd.set_now(self.ssd.now().max(now));
    }

    /// Returns the instant of the next event in the SSD's own queue; [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub fn next_event(&self) -> Time {
        match self.is_bare {
            true => self.ssd.events.next_time(),
            false => self.ssd.next_time(),
        }
    }

    /// Orders the SSD to collect garbage. `force` is the order of the coordinator.
    pub fn force_gc(&mut self, force: Force, now: Time, shared: Option<&mut EventQueue>) {
        let (flash, events) = self.flash::<Every>(now, shared);
        flash.force_gc(force, now, events);
    }

    /// Orders the SSD, or one of its dies, to collect a block. The caller has checked that the SSD can execute the
    /// order.
    pub fn collect(&mut self, die: Option<u32>, now: Time, shared: Option<&mut EventQueue>) {
        let (flash, events) = self.flash::<Every>(now, shared);
        flash.collect(die, now, events);
    }
}

/// Returns the cause that the flash records for a read or write of the host; `None` for other operations.
#[inline(always)]
fn cause_of(op: Op) -> Option<Cause> {
    match op {
        Op::Read => Some(Cause::HostRead),
        Op::Write => Some(Cause::HostWrite),
        Op::Trim | Op::Flush => None,
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn page_op(ask: &Ask, lpn: Lpn, cause: Cause, request: u32) -> PageOp {
    PageOp {
        lpn,
        owner: ask.owner,
        cause,
        request,
        stream: Stream::Cold,
        fua: ask.fua && ask.op == Op::Write,
        again: 0,
        enqueued: Time::ZERO,
        gc_before: Time::ZERO,
    }
}
