//! Keeps idle cores from halting while calls arrive. Waking a halted core takes 1 to 100 µs, and longer on a virtual
//! machine. Each request or response passed to a thread on a halted core is delayed by this time. The kernel keeps all
//! cores awake while a process has [`LATENCY_FILE`] open and has written a latency of 0 to it. The permissions of the
//! file determine which users may do so.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// File that sets a limit on the wake-up latency of cores. The limit applies while the file is open (kernel
/// documentation: power/pm_qos_interface).
pub(super) const LATENCY_FILE: &str = "/dev/cpu_dma_latency";
/// Limit that forbids halting: the longest time, in µs, that a core may take to wake up.
const NO_HALT: i32 = 0;
/// Value that means no limit to the kernel.
const ANY: i32 = 2_000_000_000;
/// Time in ns without a call after which cores may halt again. It is also the interval between two checks, so cores may
/// stay awake for up to twice this time.
pub(super) const HOLD_NS: u64 = 100_000_000;

/// A limit on the wake-up latency of cores. It is held while calls arrive.
#[derive(Debug)]
pub(super) struct LatencyHint {
    /// The open file; `None` if the process has no permission for it.
    file: Option<File>,
    held: AtomicBool,
    /// Whether a call was noted since the last check.
    called: AtomicBool,
}

impl LatencyHint {
    pub fn open(path: &Path) -> LatencyHint {
        LatencyHint {
            file: OpenOptions::new().write(true).open(path).ok(),
            held: AtomicBool::new(false),
            called: AtomicBool::new(false),
        }
    }

    /// Whether this process may set the limit.
    pub fn is_allowed(&self) -> bool {
        self.file.is_some()
    }

    /// Records that a call has arrived. Returns true if this call makes the cores stay awake. The caller must then
    /// ensure that [`Self::release_if_idle`] is called regularly.
    #[inline]
    pub fn note_call(&self) -> bool {
        self.called.store(true, Ordering::Relaxed);
        !self.held.load(Ordering::Relaxed) && self.hold()
    }

    fn hold(&self) -> bool {
        self.file.is_some() && !self.held.swap(true, Ordering::Relaxed) && self.set_latency(NO_HALT)
    }

    /// Whether [`Self::release_if_idle`] must be called regularly.
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Allows cores to halt again if no call has arrived since the last check.
    pub fn release_if_idle(&self) {
        if self.is_held() && !self.called.swap(false, Ordering::Relaxed) {
            self.set_latency(ANY);
            // A call that arrives just before this line does not keep the cores awake. This only delays responses until
            // the next call.
            self.held.store(false, Ordering::Relaxed);
        }
    }

    /// Sets the limit. Returns true if the kernel accepted it.
    fn set_latency(&self, latency_us: i32) -> bool {
        self.file
            .as_ref()
            .is_some_and(|mut file| file.write_all(&latency_us.to_ne_bytes()).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(path: &Path) -> Vec<i32> {
        let bytes = std::fs::read(path).expect("written before");
        let words = bytes.chunks_exact(4);
        words
            .map(|word| i32::from_ne_bytes(word.try_into().expect("four bytes")))
            .collect()
    }

    #[test]
    fn the_hint_is_held_while_calls_arrive() {
        let path = std::env::temp_dir().join(format!("flashtwin-ready-{}", std::process::id()));
        std::fs::write(&path, "").expect("a file");
        let hint = LatencyHint::open(&path);
        assert!(hint.is_allowed());
        hint.release_if_idle();
        assert!(latencies(&path).is_empty(), "no call yet");
        assert!(hint.note_call(), "the first call");
        assert!(!hint.note_call() && !hint.note_call());
        hint.release_if_idle();
        hint.note_call();
        hint.release_if_idle();
        assert!(hint.is_held(), "calls arrived");
        assert_eq!(latencies(&path), [NO_HALT]);
        hint.release_if_idle();
        assert!(!hint.is_held(), "none since");
        hint.release_if_idle();
        assert_eq!(latencies(&path), [NO_HALT, ANY]);
        assert!(hint.note_call());
        assert_eq!(latencies(&path), [NO_HALT, ANY, NO_HALT]);
        std::fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn without_permission_no_hint_is_held() {
        let hint = LatencyHint::open(Path::new("/nowhere/latency"));
        assert!(!hint.is_allowed());
        assert!(!hint.note_call() && !hint.is_held());
        hint.release_if_idle();
    }
}
