//! The pacer: lets the device run when its time has come, sleeping as long as that is precise and spinning for
//! the rest.

use super::*;

/// The pacer spins no longer than this before an instant: it takes the core from those it serves.
pub(super) const SPIN_NS_MAX: u64 = 60_000;
const SPIN_NS_MIN: u64 = 2_000;
/// Between two looks at a device that works while nobody waits for it.
const IDLE_NS: u64 = 1_000_000;

impl Shared {
    pub(super) fn pace(&self) {
        sleep_precisely();
        let spin_ns = measured_spin_ns();
        self.spin_ns.store(spin_ns, Ordering::Relaxed);
        let mut finished: Finished = Vec::new();
        loop {
            let Ok(mut inner) = self.lock() else {
                return self.fail_all();
            };
            if inner.stopping {
                return;
            }
            let now_ns = self.clock.now_ns();
            let Some(now) = self.clock.device(now_ns) else {
                drop(inner);
                return self.fail_all();
            };
            inner.core.advance(now, &mut finished);
            inner.tell_undo();
            for (who, answer) in &finished {
                who.answer(*answer);
            }
            let next = inner.core.twin().next_event();
            let next_ns = next.map_or(u64::MAX, |at| self.clock.wall_ns(at));
            // What nobody waits for need not be looked at in time.
            let idle = inner.core.waiting() == 0;
            let target_ns = if idle {
                next_ns.max(now_ns + IDLE_NS)
            } else {
                next_ns
            };
            self.awake.ask(now_ns, target_ns);
            let asleep = idle || target_ns.saturating_sub(now_ns) > spin_ns;
            self.target_ns.store(target_ns, Ordering::Release);
            self.asleep.store(asleep, Ordering::Release);
            drop(inner);
            wake(&mut finished, None);
            if asleep {
                self.sleep(target_ns, if idle { 0 } else { spin_ns });
            }
            if !idle {
                self.spin();
            }
        }
    }

    /// Until `margin_ns` before the target, or until it is moved.
    fn sleep(&self, target_ns: u64, margin_ns: u64) {
        match target_ns {
            u64::MAX => thread::park(),
            _ => {
                let left = target_ns.saturating_sub(self.clock.now_ns());
                thread::park_timeout(Duration::from_nanos(left.saturating_sub(margin_ns)));
            }
        }
        self.asleep.store(false, Ordering::Release);
    }

    /// Until the target. Not by yielding: whoever has much to do would have the core for milliseconds.
    fn spin(&self) {
        loop {
            let left_ns = self
                .target_ns
                .load(Ordering::Acquire)
                .saturating_sub(self.clock.now_ns());
            if left_ns == 0 || left_ns > SPIN_NS_MAX {
                return;
            }
            std::hint::spin_loop();
        }
    }
}

/// Has the kernel end this thread's sleeps when they are to end, not up to 50 us later.
fn sleep_precisely() {
    // SAFETY: this option takes a number and touches no memory of ours. Where it is refused, sleeps are
    // less precise and that is all.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// How much too long nine of ten short sleeps are here.
fn measured_spin_ns() -> u64 {
    const SLEEP: Duration = Duration::from_micros(100);
    let mut late_ns: Vec<u64> = (0..50)
        .map(|_| {
            let start = Instant::now();
            thread::sleep(SLEEP);
            start.elapsed().saturating_sub(SLEEP).as_nanos() as u64
        })
        .collect();
    late_ns.sort_unstable();
    late_ns[late_ns.len() * 9 / 10].clamp(SPIN_NS_MIN, SPIN_NS_MAX)
}
