//! Waiting for a response. A waiter polls the clock, and runs the device when its next event is due. It thus receives
//! most responses without having to be woken. This matters on a virtual machine, where waking a thread takes longer
//! than the response of many flash devices. Between two polls, the waiter yields the core. In three cases it sleeps
//! instead, and the pacer wakes it: other threads need the core, too many threads wait, or the wait is long.

use super::*;

/// Longest time in ns that a waiter polls. If the wait is longer, the time to wake a thread matters little.
const POLL_NS_MAX: u64 = 10_000_000;
/// Largest number of polling threads per core. Further waiting threads sleep.
const POLLERS_PER_CORE: usize = 8;
/// If a yield takes longer than this, in ns, the waiter's core counts as contended.
const CROWDED_NS: u64 = 500_000;
/// Time in ns after the detection of contention in which no thread may poll.
const CROWD_NS: u64 = 20_000_000;
/// A waiter does not yield the core if the next event of the device is nearer than this, in ns.
const NEAR_NS: u64 = 1_000;

/// A caller and its response.
#[derive(Debug)]
pub(super) struct Waiter {
    thread: Thread,
    completed: AtomicBool,
    status: AtomicU8,
    /// Completion time, in ns of the wall clock.
    due_ns: AtomicU64,
}

thread_local! {
    /// The waiter of this thread. A thread waits for only one call at a time, and reuses its waiter for the next call.
    pub(super) static WAITER: Arc<Waiter> = Arc::new(Waiter {
        thread: thread::current(),
        completed: AtomicBool::new(false),
        status: AtomicU8::new(0),
        due_ns: AtomicU64::new(0),
    });
}

impl Waiter {
    /// Begins to wait.
    pub fn expect(&self) {
        self.completed.store(false, Ordering::Relaxed);
    }

    /// Completes the call. `due_ns` is the wall-clock time at which the device completed it.
    pub fn complete(&self, status: Status, due_ns: u64) {
        self.status.store(status as u8, Ordering::Relaxed);
        self.due_ns.store(due_ns, Ordering::Relaxed);
        self.completed.store(true, Ordering::Release);
    }

    fn is_completed(&self) -> bool {
        self.completed.load(Ordering::Acquire)
    }

    /// Returns the wall-clock time, in ns, at which the device completed the call.
    pub fn due_ns(&self) -> u64 {
        self.due_ns.load(Ordering::Relaxed)
    }

    pub fn is(&self, status: Status) -> bool {
        self.status.load(Ordering::Relaxed) == status as u8
    }
}

/// The callers whose calls the device has completed. Dropping this value fails the calls of those callers that have not
/// been woken. Therefore no caller waits forever if the model panics first.
#[derive(Default)]
pub(super) struct Finished(pub Vec<(Arc<Waiter>, Response)>);

impl Finished {
    /// Wakes the callers whose calls have completed, except the caller of this function, `myself`.
    pub fn wake(&mut self, myself: Option<&Waiter>) {
        for (caller, _) in self.0.drain(..) {
            if myself.is_none_or(|me| !std::ptr::eq(me, &*caller)) {
                caller.thread.unpark();
            }
        }
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        for (caller, _) in &self.0 {
            caller.complete(Status::Failed, u64::MAX);
        }
        self.wake(None);
    }
}

/// Limits the number of polling waiters. Polling may also be forbidden for some time.
#[derive(Debug)]
pub(super) struct Pollers {
    most: usize,
    now: AtomicUsize,
    crowded_until_ns: AtomicU64,
}

impl Default for Pollers {
    fn default() -> Pollers {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        Pollers {
            most: cores * POLLERS_PER_CORE,
            now: AtomicUsize::new(0),
            crowded_until_ns: AtomicU64::new(0),
        }
    }
}

impl Pollers {
    pub fn none(&self) -> bool {
        self.now.load(Ordering::SeqCst) == 0
    }

    /// Forbids polling until `until_ns`, because the cores are contended.
    pub fn are_crowded(&self, until_ns: u64) {
        self.crowded_until_ns.store(until_ns, Ordering::Relaxed);
    }

    /// Returns a place among the polling threads; `None` if all places are occupied or polling is forbidden.
    fn join(&self, now_ns: u64) -> Option<Polling<'_>> {
        if now_ns < self.crowded_until_ns.load(Ordering::Relaxed) {
            return None;
        }
        let polling = Polling(self);
        (self.now.fetch_add(1, Ordering::SeqCst) < self.most).then_some(polling)
    }
}

/// A place among the polling threads. It is released even if a panic ends the wait.
struct Polling<'a>(&'a Pollers);

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    /// Returns when the call of `waiter` has completed.
    pub(super) fn wait(&self, waiter: &Waiter) {
        if waiter.is_completed() {
            return;
        }
        if let Some(polling) = self.pollers.join(self.clock.now_ns()) {
            self.poll(waiter);
            drop(polling);
        }
        // Other waiters may depend on the pacer now, because this thread has stopped polling.
        self.rely_on_pacer();
        while !waiter.is_completed() {
            thread::park();
        }
    }

    /// Polls until the call of `waiter` has completed or the thread should sleep.
    fn poll(&self, waiter: &Waiter) {
        let began_ns = self.clock.now_ns();
        let mut now_ns = began_ns;
        while !waiter.is_completed() && now_ns - began_ns < POLL_NS_MAX {
            let left_ns = self
                .target_ns
                .load(Ordering::Acquire)
                .saturating_sub(now_ns);
            if left_ns == 0 {
                self.try_run(waiter);
            } else if left_ns < NEAR_NS {
                std::hint::spin_loop();
            } else {
                thread::yield_now();
                let back_ns = self.clock.now_ns();
                if back_ns - now_ns > CROWDED_NS {
                    self.affinity.move_on();
                    self.pollers.are_crowded(back_ns + CROWD_NS);
                    return;
                }
            }
            now_ns = self.clock.now_ns();
        }
    }

    /// Runs the device until now, unless another thread is running it.
    fn try_run(&self, waiter: &Waiter) {
        match self.inner.try_lock() {
            Ok(mut inner) => {
                let mut finished = std::mem::take(&mut inner.finished);
                let ran = self.run(&mut inner, &mut finished);
                self.release_and_wake(inner, finished, Some(waiter));
                if ran.is_err() {
                    self.fail_all();
                }
            }
            Err(TryLockError::WouldBlock) => thread::yield_now(),
            Err(TryLockError::Poisoned(_)) => self.fail_all(),
        }
    }
}
