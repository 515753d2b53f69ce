//! A device in real time. A calling thread runs the device until the present time and submits its request. Unless the
//! request completes immediately, the thread waits (module `wait`).
//!
//! Most waiting threads poll the clock, and run the device when its next event is due. While no thread polls, a
//! background thread, the pacer, runs the device. The pacer sleeps until shortly before the next event and spins until
//! the event is due. Then it runs the device, and wakes the waiters whose calls have completed.
//!
//! The device never runs ahead of the wall clock, so a call that arrives is never too late for it. There are two
//! exceptions, in which the device runs on until it is idle. After a power loss, the clock is then advanced
//! ([`Clock::skip_to`]). After [`Driver::stop`], no further call can arrive.

mod core_affinity;
mod cpu_latency_hint;
mod pacer;
mod wait;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use flashtwin::{Op, PowerCut, Status, Time};

use crate::clock::Clock;
use crate::recording::Recording;
use crate::report::{Counts, LatenessLog};
use crate::undo::Undo;
use crate::{Call, Core, Dilation, Failure, Report, Response, Twin};

use core_affinity::CoreAffinity;
use cpu_latency_hint::{LatencyHint, LATENCY_FILE};
use wait::{Finished, Pollers, Waiter, WAITER};

/// Number of attempts to take the lock. After that, a thread sleeps until the lock is free.
const LOCK_TRIES: u32 = 100;

struct Inner {
    core: Core<Arc<Waiter>>,
    /// Buffer for completed calls, reused.
    finished: Finished,
    stopping: bool,
    /// Keeps earlier contents of pages, which a power loss may restore. It is notified of each page that the flash
    /// programs.
    undo: Arc<Undo>,
}

impl Inner {
    /// Passes the device's notifications of page programs to [`Undo`]. Must be called before any caller can observe the
    /// effects of these programs.
    fn notify_undo(&mut self) {
        let undo = &self.undo;
        self.core
            .twin_mut()
            .take_programs(&mut |program| undo.on_program(program));
    }
}

/// Error: no call can complete any more. The device's clock has reached its end, the user's placement rules have
/// failed, or a bug has broken the model.
struct Broken;

struct Shared {
    inner: Mutex<Inner>,
    lateness: Mutex<LatenessLog>,
    clock: Clock,
    /// Wall-clock time of the device's next event, in ns.
    target_ns: AtomicU64,
    /// Calls in flight.
    waiting: AtomicUsize,
    pollers: Pollers,
    affinity: CoreAffinity,
    hint: LatencyHint,
    pacer: OnceLock<Thread>,
    /// Wall-clock time at which the pacer's sleep ends, in ns. The value is 0 while the pacer is awake.
    asleep_until_ns: AtomicU64,
    spin_ns: AtomicU64,
    /// Whether the device accepts no more writes.
    read_only: AtomicBool,
    /// Number of power losses so far. A thread that changes it must hold the lock.
    cuts: AtomicU64,
    /// Whether new calls are rejected. A thread that changes the value must hold the lock.
    closed: AtomicBool,
    /// Set once the user's placement rules have failed.
    rules_failed: Arc<AtomicBool>,
}

/// Guard of a thread that runs the model. If the thread panics because of a bug in the model, dropping the guard fails
/// all waiting calls.
struct FailWaitersOnPanic<'a>(&'a Shared);

impl Drop for FailWaitersOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail_all();
        }
    }
}

/// A device in real time: a call completes when the wall clock reaches the completion time in the model.
pub struct Driver {
    shared: Arc<Shared>,
    pacer: Mutex<Option<JoinHandle<()>>>,
    /// Counts at the last report.
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
        rules_failed: Arc<AtomicBool>,
    ) -> std::io::Result<Driver> {
        let hint = LatencyHint::open(Path::new(LATENCY_FILE));
        Driver::start_with(hint, twin, dilation, undo, recording, rules_failed)
    }

    fn start_with(
        hint: LatencyHint,
        twin: Box<dyn Twin>,
        dilation: Dilation,
        undo: Arc<Undo>,
        recording: Option<Arc<Recording>>,
        rules_failed: Arc<AtomicBool>,
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
            waiting: AtomicUsize::new(0),
            pollers: Pollers::default(),
            affinity: CoreAffinity::default(),
            hint,
            pacer: OnceLock::new(),
            asleep_until_ns: AtomicU64::new(0),
            spin_ns: AtomicU64::new(pacer::SPIN_NS_MAX),
            read_only: AtomicBool::new(core.twin().is_read_only()),
            cuts: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            rules_failed,
            inner: Mutex::new(Inner {
                core,
                finished: Finished::default(),
                stopping: false,
                undo,
            }),
        });
        let paced = shared.clone();
        let pacer = thread::Builder::new()
            .name("flashtwin-pacer".into())
            .spawn(move || {
                // If a bug in the model makes the pacer panic, all calls fail, so that no caller waits forever.
                if catch_unwind(AssertUnwindSafe(|| paced.pace())).is_err() {
                    paced.fail_all();
                }
            })?;
        // The handle is stored early enough: only calls wake the pacer, and calls need the driver that is returned
        // below.
        let _ = shared.pacer.set(pacer.thread().clone());
        Ok(Driver {
            shared,
            pacer: Mutex::new(Some(pacer)),
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

    /// Whether the device has refused a write because it has become read-only.
    pub fn is_read_only(&self) -> bool {
        self.shared.read_only.load(Ordering::Relaxed)
    }

    /// Returns the number of power losses so far.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::Acquire)
    }

    /// Simulates a power loss. All calls in flight fail, and so do later calls with an earlier value of
    /// [`Driver::cuts`]. `then` receives the lost pages and the number of failed calls. It is called before any other
    /// operation on the device. The counters of the report start again at zero. Returns `None` if the device cannot be
    /// used after the loss.
    pub(crate) fn cut_power<T>(&self, then: impl FnOnce(&PowerCut, usize) -> T) -> Option<T> {
        let _guard = FailWaitersOnPanic(&self.shared);
        let mut reported = self.reported();
        let (done, counts) = self.shared.cut_power(then)?;
        *reported = counts;
        Some(done)
    }

    /// Runs the device until the present time, and then calls `how` on it. Returns `None` if a bug has broken the
    /// device.
    pub(crate) fn change<T>(&self, how: impl FnOnce(&mut dyn Twin) -> T) -> Option<T> {
        let _guard = FailWaitersOnPanic(&self.shared);
        self.shared.change(how)
    }

    /// Executes a call, and returns when the device has completed it. A long call is executed in parts, one after the
    /// other. `cuts` is the value of [`Driver::cuts`] when the connection of the caller was made. If the power was lost
    /// since then, the call fails.
    ///
    /// # Errors
    /// Fails if the call ends beyond the device, the device refuses it or has lost the data, the power was lost, or the
    /// server is stopping.
    pub fn call(&self, call: &Call, cuts: u64) -> Result<(), Failure> {
        let _guard = FailWaitersOnPanic(&self.shared);
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

    /// Returns the report. `exported_bytes` in the report is the size of the whole device, even if clients can access
    /// only a part.
    pub fn report(&self) -> Report {
        let mut reported = self.reported();
        let inner = self.shared.lock_ignoring_poison();
        let counts = self.shared.counts(&inner);
        let twin = inner.core.twin();
        let (device, waiting) = (twin.name(), inner.core.waiting());
        let read_only = twin.is_read_only();
        // The lock is released here, so that other threads can run the device while the rest of the report is computed.
        drop(inner);
        let recent = counts.since(&reported);
        let all = counts.since(&Counts::default());
        *reported = counts;
        Report {
            device,
            exported_bytes: self.exported_bytes,
            page_bytes: self.page_bytes,
            dilation: self.shared.clock.dilation.times(),
            elapsed_s: all.elapsed_s,
            waiting,
            read_only,
            dirty_pages: reported.flash.dirty_pages,
            pages_lost: reported.flash.pages_lost,
            dead_dies: reported.flash.dead_dies.clone(),
            spin_margin_us: self.shared.spin_ns.load(Ordering::Relaxed) as f64 / 1e3,
            cores_ready: self.shared.hint.is_allowed(),
            lateness: all.lateness,
            responses: all.responses,
            flash: all.flash,
            recent,
        }
    }

    fn reported(&self) -> MutexGuard<'_, Counts> {
        match self.reported.lock() {
            Ok(reported) => reported,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Rejects new calls and fails the calls in flight. The device still executes all requests submitted so far.
    pub(crate) fn close(&self) {
        let inner = self.shared.lock_ignoring_poison();
        self.shared.closed.store(true, Ordering::Release);
        self.shared.fail_all_of(inner);
    }

    /// Stops the pacer, completes all pending work of the device, and passes the device to `then`. Must be the last
    /// call on the driver. Returns `None` if the work does not end, the placement rules have failed, or a bug has
    /// broken the device.
    pub fn stop<T>(&self, then: impl FnOnce(&dyn Twin) -> T) -> Option<T> {
        {
            let mut inner = self.shared.lock_ignoring_poison();
            inner.stopping = true;
        }
        if let Some(pacer) = self.pacer.lock().ok()?.take() {
            pacer.thread().unpark();
            // Joining does not fail, because the pacer catches its own panics.
            let _ = pacer.join();
        }
        let mut inner = self.shared.inner.lock().ok()?;
        if self.shared.rules_failed.load(Ordering::Relaxed) {
            return None;
        }
        let twin = inner.core.twin_mut();
        let at_rest = twin.come_to_rest();
        twin.completions().clear();
        at_rest.then(|| then(twin))
    }
}

impl Shared {
    /// Returns the lock even if a thread panicked while it held the lock. The data may then be in an intermediate
    /// state.
    fn lock_ignoring_poison(&self) -> MutexGuard<'_, Inner> {
        match self.inner.lock() {
            Ok(inner) => inner,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn lock(&self) -> Result<MutexGuard<'_, Inner>, Broken> {
        if self.rules_failed.load(Ordering::Relaxed) {
            return Err(Broken);
        }
        // Threads hold the lock only briefly. Repeated attempts take less time than a sleep and a wake-up.
        for _ in 0..LOCK_TRIES {
            match self.inner.try_lock() {
                Ok(inner) => return Ok(inner),
                Err(TryLockError::WouldBlock) => thread::yield_now(),
                Err(TryLockError::Poisoned(_)) => return Err(Broken),
            }
        }
        self.inner.lock().map_err(|_| Broken)
    }

    /// Runs the device until the present time. Appends the completed calls to `finished`.
    fn run(&self, inner: &mut Inner, finished: &mut Finished) -> Result<Time, Broken> {
        let now = self.clock.device(self.clock.now_ns()).ok_or(Broken)?;
        inner.core.advance(now, &mut finished.0);
        self.ran(inner);
        self.complete(finished);
        Ok(now)
    }

    /// Processes the effects of a run of the device: its programs, the end of its life, the time of its next event, and
    /// the number of waiting calls. Must be called after each run of the device, before a caller can observe these
    /// effects.
    fn ran(&self, inner: &mut Inner) {
        inner.notify_undo();
        let twin = inner.core.twin();
        if twin.is_read_only() {
            self.read_only.store(true, Ordering::Relaxed);
        }
        let next_ns = twin
            .next_event()
            .map_or(u64::MAX, |at| self.clock.wall_ns(at));
        self.target_ns.store(next_ns, Ordering::SeqCst);
        self.waiting.store(inner.core.waiting(), Ordering::SeqCst);
    }

    fn complete(&self, finished: &Finished) {
        for (caller, response) in &finished.0 {
            caller.complete(response.status, self.clock.wall_ns(response.due));
        }
    }

    /// Returns all counts up to now.
    fn counts(&self, inner: &Inner) -> Counts {
        let twin = inner.core.twin();
        let lateness = match self.lateness.lock() {
            Ok(log) => log.clone(),
            Err(poisoned) => poisoned.into_inner().clone(),
        };
        Counts {
            elapsed_s: self.clock.now_ns() as f64 / 1e9,
            now: twin.now(),
            lateness,
            metrics: twin.metrics().clone(),
            flash: twin.flash_report(),
            page_bytes: twin.page_bytes(),
        }
    }

    /// Releases the lock, then wakes the callers whose calls have completed. Keeps the emptied list of calls for reuse.
    fn release_and_wake(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        mut finished: Finished,
        me: Option<&Waiter>,
    ) {
        if finished.0.is_empty() {
            inner.finished = finished;
            return;
        }
        drop(inner);
        finished.wake(me);
        if let Ok(mut inner) = self.inner.try_lock() {
            if inner.finished.0.capacity() < finished.0.capacity() {
                inner.finished = finished;
            }
        }
    }

    /// Wakes the pacer if no thread polls. Must be called by a thread that stops polling or running the device.
    fn rely_on_pacer(&self) {
        if self.pollers.none()
            && self.target_ns.load(Ordering::SeqCst) < self.asleep_until_ns.load(Ordering::SeqCst)
        {
            self.wake_pacer();
        }
    }

    fn wake_pacer(&self) {
        if let Some(pacer) = self.pacer.get() {
            pacer.unpark();
        }
    }

    /// Fails all waiting calls.
    fn fail_all(&self) {
        self.fail_all_of(self.lock_ignoring_poison());
    }

    fn fail_all_of(&self, mut inner: MutexGuard<'_, Inner>) {
        let mut finished = Finished::default();
        inner.core.abandon(&mut finished.0);
        drop(inner);
    }

    /// Simulates a power loss. Returns the value of `then`, and the counts directly after the loss. Returns `None` if
    /// the device cannot be used after the loss.
    fn cut_power<T>(&self, then: impl FnOnce(&PowerCut, usize) -> T) -> Option<(T, Counts)> {
        let mut inner = self.lock().ok()?;
        let mut finished = Finished::default();
        self.run(&mut inner, &mut finished).ok()?;
        let unfinished = inner.core.waiting();
        self.cuts.fetch_add(1, Ordering::AcqRel);
        let cut = inner.core.cut_power(&mut finished.0);
        self.complete(&finished);
        // After the loss, the flash has run until it is idle. This took device time, but no wall-clock time.
        self.clock.skip_to(inner.core.twin().now());
        self.ran(&mut inner);
        if cut.is_none() {
            // No more calls are admitted.
            self.cuts.store(u64::MAX, Ordering::Release);
        }
        let done = cut.map(|cut| (then(&cut, unfinished), self.counts(&inner)));
        self.release_and_wake(inner, finished, None);
        done
    }

    fn change<T>(&self, how: impl FnOnce(&mut dyn Twin) -> T) -> Option<T> {
        let mut inner = self.lock().ok()?;
        let mut finished = Finished::default();
        let now = self.run(&mut inner, &mut finished).ok()?;
        let done = how(inner.core.twin_mut());
        inner.core.advance(now, &mut finished.0);
        self.ran(&mut inner);
        self.complete(&finished);
        self.release_and_wake(inner, finished, None);
        // What comes next may have changed.
        self.rely_on_pacer();
        Some(done)
    }

    fn call(&self, call: &Call, cuts: u64, waiter: &Arc<Waiter>) -> Result<(), Failure> {
        self.affinity.follow();
        if self.hint.note_call() {
            self.wake_pacer();
        }
        waiter.expect();
        if let Err(Broken) = self.submit(call, cuts, waiter)? {
            self.fail_all();
            return Err(Failure::Lost);
        }
        self.wait(waiter);
        let late_ns = self.clock.now_ns().saturating_sub(waiter.due_ns());
        if let Ok(mut log) = self.lateness.lock() {
            log.record(late_ns);
        }
        if waiter.is(Status::Ok) {
            return Ok(());
        }
        if waiter.is(Status::ReadOnly) {
            return Err(Failure::ReadOnly);
        }
        match self.closed.load(Ordering::Acquire) {
            true => Err(Failure::Stopping),
            false => Err(Failure::Lost),
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
        if self.closed.load(Ordering::Acquire) {
            return Err(Failure::Stopping);
        }
        let Some(now) = self.clock.device(self.clock.now_ns()) else {
            return Err(Failure::Lost);
        };
        let mut finished = std::mem::take(&mut inner.finished);
        let submitted = inner
            .core
            .submit(now, call, waiter.clone(), &mut finished.0)
            .map_err(|_| Failure::Beyond);
        self.ran(&mut inner);
        self.complete(&finished);
        self.release_and_wake(inner, finished, Some(waiter));
        submitted.map(Ok)
    }
}

#[cfg(test)]
mod tests;
