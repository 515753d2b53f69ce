//! The pacer runs the device when its next event is due. It sleeps until shortly before the event, because sleeps end
//! late, and spins for the rest.

use super::cpu_latency_hint::HOLD_NS;
use super::*;

/// Longest time in ns that the pacer spins before an event. A spinning pacer occupies a core that the server's other
/// threads may need.
pub(super) const SPIN_NS_MAX: u64 = 60_000;
const SPIN_NS_MIN: u64 = 2_000;
/// Shortest interval, in ns, at which the pacer runs the device while no caller relies on the pacer.
const IDLE_NS: u64 = 1_000_000;

impl Shared {
    pub(super) fn pace(&self) {
        sleep_precisely();
        let spin_ns = measured_spin_ns();
        self.spin_ns.store(spin_ns, Ordering::Relaxed);
        let mut look_ns = 0;
        loop {
            self.affinity.follow();
            if self.clock.now_ns() >= look_ns {
                self.hint.release_if_idle();
                look_ns = self.clock.now_ns() + HOLD_NS;
            }
            let Ok(mut inner) = self.lock() else {
                return self.fail_all();
            };
            if inner.stopping {
                return;
            }
            let mut finished = std::mem::take(&mut inner.finished);
            let ran = self.run(&mut inner, &mut finished);
            self.release_and_wake(inner, finished, None);
            if ran.is_err() {
                return self.fail_all();
            }
            if self.sleep(spin_ns, look_ns) {
                self.spin();
            }
        }
    }

    /// Sleeps until `margin_ns` before the next event if a caller relies on the pacer for this event. Otherwise sleeps
    /// for at least [`IDLE_NS`]. While the cores are kept awake, the sleep ends at `look_ns` at the latest. Returns
    /// whether a caller relies on the pacer.
    fn sleep(&self, margin_ns: u64, look_ns: u64) -> bool {
        let now_ns = self.clock.now_ns();
        let unhurried_ns = now_ns + IDLE_NS;
        // `asleep_until_ns` is stored before `waiting`, `pollers` and `target_ns` are read. A thread that changes one
        // of these three reads `asleep_until_ns` after its change, so the pacer or the thread notices each change.
        self.asleep_until_ns.store(u64::MAX, Ordering::SeqCst);
        let waiting = self.waiting.load(Ordering::SeqCst) > 0;
        let target_ns = self.target_ns.load(Ordering::SeqCst);
        let relied_on = waiting && self.pollers.none();
        let until_ns = if relied_on {
            target_ns.saturating_sub(margin_ns)
        } else if waiting {
            unhurried_ns
        } else {
            target_ns.max(unhurried_ns)
        };
        let until_ns = if self.hint.is_held() {
            until_ns.min(look_ns)
        } else {
            until_ns
        };
        self.asleep_until_ns.store(until_ns, Ordering::SeqCst);
        if until_ns == u64::MAX {
            thread::park();
        } else if until_ns > now_ns {
            thread::park_timeout(Duration::from_nanos(until_ns - now_ns));
        }
        self.asleep_until_ns.store(0, Ordering::SeqCst);
        relied_on
    }

    /// Spins until the next event if it is near. Does not yield the core: a busy thread could then keep the core for
    /// milliseconds.
    fn spin(&self) {
        while self.pollers.none() {
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

/// Makes the sleeps of this thread precise. By default, the kernel ends them up to 50 µs late.
fn sleep_precisely() {
    // SAFETY: the option takes a number and no pointer. If the system refuses it, sleeps are less precise, which does
    // no harm.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Measures how late sleeps of 100 µs end. Returns the 90th percentile of the delay in ns, at least [`SPIN_NS_MIN`] and
/// at most [`SPIN_NS_MAX`].
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
