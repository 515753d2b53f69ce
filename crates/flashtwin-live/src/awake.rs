//! Keeps a core from falling asleep while an answer is near: on a virtual machine waking it takes longer
//! than many a flash device takes to answer. The thread that does it is of the scheduling class that runs
//! only where nothing else wants to, so that it takes nothing from anybody.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;
use std::thread::{self, Thread};

/// An answer nearer than this is near.
const NEAR_NS: u64 = 200_000;
/// After the last one a core stays awake so long: the next is often on its way.
const LINGER_NS: u64 = 500_000;

/// Shared between the pacer, who knows what is near, and the thread that stays awake for it.
#[derive(Debug, Default)]
pub(crate) struct Awake {
    until_ns: AtomicU64,
    asleep: AtomicBool,
    ended: AtomicBool,
    keeper: OnceLock<Thread>,
}

impl Awake {
    /// Names the thread that runs [`Awake::keep`].
    pub fn kept_by(&self, keeper: Thread) {
        // Named once, at the start.
        let _ = self.keeper.set(keeper);
    }

    /// The pacer waits until `target_ns`.
    pub fn ask(&self, now_ns: u64, target_ns: u64) {
        if target_ns.saturating_sub(now_ns) > NEAR_NS {
            return;
        }
        self.until_ns
            .store(target_ns.max(now_ns) + LINGER_NS, Ordering::Release);
        if self.asleep.swap(false, Ordering::AcqRel) {
            if let Some(keeper) = self.keeper.get() {
                keeper.unpark();
            }
        }
    }

    /// Lets [`Awake::keep`] return, once its thread is woken.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.until_ns.store(0, Ordering::Release);
    }

    /// Stays awake while that is asked for, until the end.
    pub fn keep(&self, now_ns: impl Fn() -> u64) {
        if !run_only_where_idle() {
            return;
        }
        while !self.ended.load(Ordering::Acquire) {
            while now_ns() < self.until_ns.load(Ordering::Acquire) {
                // Without this, whoever is woken on this core would wait until its time slice ends.
                thread::yield_now();
            }
            self.asleep.store(true, Ordering::Release);
            // Asked for in between: there will be no other call.
            if now_ns() < self.until_ns.load(Ordering::Acquire)
                || self.ended.load(Ordering::Acquire)
            {
                continue;
            }
            thread::park();
        }
    }
}

/// Has this thread run only where no other wants to; false where that cannot be had.
fn run_only_where_idle() -> bool {
    let alone = thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads `param`, which is there until it returns; 0 is this thread.
    !alone && unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &param) } == 0
}
