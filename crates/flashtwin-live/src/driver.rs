//! A device on the clock of the wall. The calling thread lets the device run until now, hands in what it
//! asks and, unless that is done at once, waits; one thread, the pacer, sleeps until shortly before the
//! device's next event, spins for the rest, lets the device run and wakes those who are answered.
//!
//! The device is never let run beyond now, so that a call that comes meets the state of its instant.

mod pacer;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use flashtwin::{Op, PowerCut, Status, Time};

use crate::awake::Awake;
use crate::clock::Clock;
use crate::record::Recording;
use crate::report::{Counts, LatenessLog};
use crate::undo::Undo;
use crate::{Answer, Call, Core, Dilation, Failure, Report, Twin};

/// A caller and its answer.
#[derive(Debug)]
struct Waiter {
    thread: Thread,
    answered: AtomicBool,
    status: AtomicU8,
    due_ps: AtomicU64,
}

impl Waiter {
    fn answer(&self, answer: Answer) {
        self.status.store(answer.status as u8, Ordering::Relaxed);
        self.due_ps.store(answer.due.0, Ordering::Relaxed);
        self.answered.store(true, Ordering::Release);
    }
}

type Finished = Vec<(Arc<Waiter>, Answer)>;

thread_local! {
    /// Each thread waits for one call at a time, and keeps what it needs for that.
    static WAITER: Arc<Waiter> = Arc::new(Waiter {
        thread: thread::current(),
        answered: AtomicBool::new(false),
        status: AtomicU8::new(0),
        due_ps: AtomicU64::new(0),
    });
}

struct Inner {
    core: Core<Arc<Waiter>>,
    /// Room for those answered, used again.
    finished: Finished,
    stopping: bool,
    /// Hears what becomes of pages.
    undo: Arc<Undo>,
}

impl Inner {
    /// To be called whenever the device has been let run, before anybody can learn of it.
    fn tell_undo(&mut self) {
        let undo = &self.undo;
        self.core
            .twin_mut()
            .hear_programs(&mut |program| undo.hear(program));
    }
}

/// The clock is at its end, or a bug has broken the model: nothing can be answered any more.
struct Broken;

struct Shared {
    inner: Mutex<Inner>,
    lateness: Mutex<LatenessLog>,
    clock: Clock,
    /// Until when the pacer means to wait, in ns of the wall.
    target_ns: AtomicU64,
    /// It waits asleep and must be woken.
    asleep: AtomicBool,
    pacer: OnceLock<Thread>,
    spin_ns: AtomicU64,
    /// The device takes no more writes.
    read_only: AtomicBool,
    /// Power cuts so far; changed under the lock only.
    cuts: AtomicU64,
    awake: Awake,
}

/// A device that answers calls at their time.
pub struct Driver {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// At the last report.
    reported: Mutex<Counts>,
    exported_bytes: u64,
    page_bytes: u32,
    batch_bytes: u64,
}

impl Driver {
    /// Starts the device's clock and the pacer.
    pub(crate) fn start(
        twin: Box<dyn Twin>,
        dilation: Dilation,
        undo: Arc<Undo>,
        recording: Option<Arc<Recording>>,
    ) -> std::io::Result<Driver> {
        let mut core = Core::new(twin);
        if let Some(recording) = recording {
            core.record(recording);
        }
        let (exported_bytes, page_bytes) = (core.twin().exported_bytes(), core.twin().page_bytes());
        let batch_bytes = core.batch_bytes();
        let reported = Mutex::new(Counts {
            now: core.twin().now(),
            ..Counts::default()
        });
        let shared = Arc::new(Shared {
            clock: Clock::starting(core.twin().now(), dilation),
            lateness: Mutex::default(),
            target_ns: AtomicU64::new(u64::MAX),
            asleep: AtomicBool::new(false),
            pacer: OnceLock::new(),
            spin_ns: AtomicU64::new(pacer::SPIN_NS_MAX),
            read_only: AtomicBool::new(core.twin().is_read_only()),
            cuts: AtomicU64::new(0),
            awake: Awake::default(),
            inner: Mutex::new(Inner {
                core,
                finished: Vec::new(),
                stopping: false,
                undo,
            }),
        });
        let paced = shared.clone();
        let pacer = thread::Builder::new()
            .name("flashtwin-pacer".into())
            .spawn(move || {
                // A bug in the model must not leave callers waiting.
                if catch_unwind(AssertUnwindSafe(|| paced.pace())).is_err() {
                    paced.fail_all();
                }
            })?;
        // The pacer is woken by this handle alone; nothing can have been asked yet.
        let _ = shared.pacer.set(pacer.thread().clone());
        let kept = shared.clone();
        let keeper = thread::Builder::new()
            .name("flashtwin-awake".into())
            .spawn(move || kept.awake.keep(|| kept.clock.now_ns()))?;
        shared.awake.kept_by(keeper.thread().clone());
        Ok(Driver {
            shared,
            threads: Mutex::new(vec![pacer, keeper]),
            reported,
            exported_bytes,
            page_bytes,
            batch_bytes,
        })
    }

    /// Bytes the device can hold.
    pub fn exported_bytes(&self) -> u64 {
        self.exported_bytes
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// The device has refused a write: it takes none any more.
    pub fn is_read_only(&self) -> bool {
        self.shared.read_only.load(Ordering::Relaxed)
    }

    /// Power cuts so far.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::Acquire)
    }

    /// Cuts the power and gives it back: all calls under way fail, and so do those that are asked with an
    /// earlier number of [`Driver::cuts`]. `then` is done with what is lost, and how many calls there were,
    /// before anything else happens. `None`: the device cannot be used any more.
    pub(crate) fn cut_power<T>(&self, then: impl FnOnce(&PowerCut, usize) -> T) -> Option<T> {
        self.shared.cut_power(then)
    }

    /// Does something to the device at this instant; `None` if a bug has broken it.
    pub(crate) fn change<T>(&self, how: impl FnOnce(&mut dyn Twin) -> T) -> Option<T> {
        self.shared.change(how)
    }

    /// Returns when the device has done what is asked, or the power is cut for another time than `cuts`.
    /// Long calls are done one part after the other.
    pub fn call(&self, call: &Call, cuts: u64) -> Result<(), Failure> {
        let mut part = *call;
        let end = call.offset.checked_add(call.bytes);
        let end = end
            .filter(|&end| end <= self.exported_bytes)
            .ok_or(Failure::Beyond)?;
        loop {
            let next = (part.offset / self.batch_bytes + 1) * self.batch_bytes;
            part.bytes = end.min(next) - part.offset;
            WAITER.with(|waiter| self.shared.call(&part, cuts, waiter))?;
            part.offset = next;
            if part.offset >= end || call.op == Op::Flush {
                return Ok(());
            }
        }
    }

    /// How it goes; `exported_bytes` as the device has it.
    pub fn report(&self) -> Report {
        let clock = &self.shared.clock;
        let lateness = match self.shared.lateness.lock() {
            Ok(log) => log.clone(),
            Err(poisoned) => poisoned.into_inner().clone(),
        };
        let mut reported = match self.reported.lock() {
            Ok(reported) => reported,
            Err(poisoned) => poisoned.into_inner(),
        };
        let (inner, _) = self.shared.lock_broken_or_not();
        let twin = inner.core.twin();
        let counts = Counts {
            elapsed_s: clock.now_ns() as f64 / 1e9,
            now: twin.now(),
            lateness,
            metrics: twin.metrics().clone(),
            flash: twin.flash_report(),
        };
        let (device, waiting) = (twin.name(), inner.core.waiting());
        let read_only = twin.is_read_only();
        // The device goes on while the rest is worked out.
        drop(inner);
        let recent = counts.since(&reported);
        let all = counts.since(&Counts::default());
        *reported = counts;
        Report {
            device,
            exported_bytes: self.exported_bytes,
            page_bytes: self.page_bytes,
            dilation: clock.dilation.times(),
            elapsed_s: all.elapsed_s,
            waiting,
            read_only,
            dirty_pages: reported.flash.dirty_pages,
            spin_margin_us: self.shared.spin_ns.load(Ordering::Relaxed) as f64 / 1e3,
            lateness: all.lateness,
            responses: all.responses,
            flash: all.flash,
            recent,
        }
    }

    /// Ends the pacer and lets the device come to rest, then gives it to `then`; `None` if it does
    /// not or a bug has broken it. Nothing may be asked of the driver any more.
    pub fn stop<T>(&self, then: impl FnOnce(&dyn Twin) -> T) -> Option<T> {
        {
            let (mut inner, _) = self.shared.lock_broken_or_not();
            inner.stopping = true;
        }
        self.shared.awake.end();
        for thread in self.threads.lock().ok()?.drain(..) {
            thread.thread().unpark();
            // The pacer catches its own panics.
            let _ = thread.join();
        }
        let mut inner = self.shared.inner.lock().ok()?;
        let twin = inner.core.twin_mut();
        let at_rest = twin.come_to_rest();
        twin.completions().clear();
        at_rest.then(|| then(twin))
    }
}

impl Shared {
    /// The lock, and whether a bug has left what is behind it in the middle of something.
    fn lock_broken_or_not(&self) -> (MutexGuard<'_, Inner>, bool) {
        match self.inner.lock() {
            Ok(inner) => (inner, false),
            Err(poisoned) => (poisoned.into_inner(), true),
        }
    }

    fn lock(&self) -> Result<MutexGuard<'_, Inner>, Broken> {
        self.inner.lock().map_err(|_| Broken)
    }

    /// Tells all who wait that there will be no answer.
    fn fail_all(&self) {
        let (mut inner, _) = self.lock_broken_or_not();
        let mut finished = Vec::new();
        inner.core.abandon(&mut finished);
        for (who, answer) in &finished {
            who.answer(*answer);
        }
        drop(inner);
        wake(&mut finished, None);
    }

    fn cut_power<T>(&self, then: impl FnOnce(&PowerCut, usize) -> T) -> Option<T> {
        let mut inner = self.lock().ok()?;
        let now = self.clock.device(self.clock.now_ns())?;
        let mut finished = Vec::new();
        inner.core.advance(now, &mut finished);
        inner.tell_undo();
        let unfinished = inner.core.waiting();
        self.cuts.fetch_add(1, Ordering::AcqRel);
        let cut = inner.core.cut_power(&mut finished);
        for (who, answer) in &finished {
            who.answer(*answer);
        }
        if cut.is_none() {
            // Nobody is let in any more.
            self.cuts.store(u64::MAX, Ordering::Release);
        }
        let done = cut.map(|cut| then(&cut, unfinished));
        drop(inner);
        wake(&mut finished, None);
        done
    }

    fn change<T>(&self, how: impl FnOnce(&mut dyn Twin) -> T) -> Option<T> {
        let mut inner = self.lock().ok()?;
        let now = self.clock.device(self.clock.now_ns())?;
        let mut finished = Vec::new();
        inner.core.advance(now, &mut finished);
        let done = how(inner.core.twin_mut());
        inner.core.advance(now, &mut finished);
        inner.tell_undo();
        for (who, answer) in &finished {
            who.answer(*answer);
        }
        drop(inner);
        wake(&mut finished, None);
        // What comes next may have changed: the pacer looks for itself.
        self.target_ns.store(0, Ordering::Release);
        if let Some(pacer) = self.pacer.get() {
            pacer.unpark();
        }
        Some(done)
    }

    fn call(&self, call: &Call, cuts: u64, waiter: &Arc<Waiter>) -> Result<(), Failure> {
        waiter.answered.store(false, Ordering::Relaxed);
        let submitted = self.submit(call, cuts, waiter);
        if let Err(Broken) = submitted? {
            self.fail_all();
            return Err(Failure::Lost);
        }
        while !waiter.answered.load(Ordering::Acquire) {
            thread::park();
        }
        let due_ns = self
            .clock
            .wall_ns(Time(waiter.due_ps.load(Ordering::Relaxed)));
        let late_ns = self.clock.now_ns().saturating_sub(due_ns);
        if let Ok(mut log) = self.lateness.lock() {
            log.record(late_ns);
        }
        match waiter.status.load(Ordering::Relaxed) {
            status if status == Status::Ok as u8 => Ok(()),
            status if status == Status::ReadOnly as u8 => {
                self.read_only.store(true, Ordering::Relaxed);
                Err(Failure::ReadOnly)
            }
            _ => Err(Failure::Lost),
        }
    }

    fn submit(
        &self,
        call: &Call,
        cuts: u64,
        waiter: &Arc<Waiter>,
    ) -> Result<Result<(), Broken>, Failure> {
        let Ok(mut inner) = self.lock() else {
            return Ok(Err(Broken));
        };
        if self.cuts.load(Ordering::Acquire) != cuts {
            return Err(Failure::Cut);
        }
        let Some(now) = self.clock.device(self.clock.now_ns()) else {
            return Err(Failure::Lost);
        };
        let mut finished = std::mem::take(&mut inner.finished);
        let submitted = inner
            .core
            .submit(now, call, waiter.clone(), &mut finished)
            .map_err(|_| Failure::Beyond);
        inner.tell_undo();
        for (who, answer) in &finished {
            who.answer(*answer);
        }
        let target = inner.core.twin().next_event();
        let target_ns = target.map_or(u64::MAX, |at| self.clock.wall_ns(at));
        let sooner = target_ns < self.target_ns.load(Ordering::Relaxed);
        if sooner {
            self.target_ns.store(target_ns, Ordering::Release);
        }
        if finished.is_empty() {
            // Nobody to wake: the room goes back at once.
            inner.finished = finished;
            drop(inner);
        } else {
            drop(inner);
            wake(&mut finished, Some(waiter));
            self.give_back(finished);
        }
        if sooner && self.asleep.swap(false, Ordering::AcqRel) {
            if let Some(pacer) = self.pacer.get() {
                pacer.unpark();
            }
        }
        submitted.map(Ok)
    }

    /// Keeps the room for the next who has somebody to wake.
    fn give_back(&self, finished: Finished) {
        if let Ok(mut inner) = self.lock() {
            if inner.finished.capacity() < finished.capacity() {
                inner.finished = finished;
            }
        }
    }
}

/// Wakes those answered, but for `myself`, who is awake.
fn wake(finished: &mut Finished, myself: Option<&Arc<Waiter>>) {
    for (who, _) in finished.drain(..) {
        if myself.is_none_or(|me| !Arc::ptr_eq(me, &who)) {
            who.thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests;
