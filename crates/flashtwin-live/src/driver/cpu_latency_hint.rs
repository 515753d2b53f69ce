//! Keeps idle cores from halting while calls come: waking a halted core takes 1 to 100 us, most on a virtual
//! machine, and every request or response that is passed to a thread there waits for it. The kernel keeps all
//! cores awake while a process holds its file open and has written a latency of 0; it decides which users may
//! write.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the kernel takes it from (its documentation: power/pm_qos_interface). It ends with the open file.
pub(super) const LATENCY_FILE: &str = "/dev/cpu_dma_latency";
/// No core may take longer to come back, in us.
const NO_HALT: i32 = 0;
/// Value that the kernel takes as no limit.
const ANY: i32 = 2_000_000_000;
/// Cores may halt again when there was no call for this long, or for twice as long.
pub(super) const HOLD_NS: u64 = 100_000_000;

/// A limit on the wake-up latency of cores, held while calls arrive.
#[derive(Debug)]
pub(super) struct Ready {
    /// None where that is not allowed.
    file: Option<File>,
    held: AtomicBool,
    /// Since the last look.
    called: AtomicBool,
}

impl Ready {
    pub fn by(path: &Path) -> Ready {
        Ready {
            file: OpenOptions::new().write(true).open(path).ok(),
            held: AtomicBool::new(false),
            called: AtomicBool::new(false),
        }
    }

    /// Whether the kernel lets us.
    pub fn is_allowed(&self) -> bool {
        self.file.is_some()
    }

    /// A call comes. True for the first one, from which on somebody is to look.
    #[inline]
    pub fn called(&self) -> bool {
        self.called.store(true, Ordering::Relaxed);
        !self.held.load(Ordering::Relaxed) && self.hold()
    }

    fn hold(&self) -> bool {
        self.file.is_some() && !self.held.swap(true, Ordering::Relaxed) && self.wish(NO_HALT)
    }

    /// Somebody is to look every now and then.
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Lets cores halt again if there was no call since the last check.
    pub fn look(&self) {
        if self.is_held() && !self.called.swap(false, Ordering::Relaxed) {
            self.wish(ANY);
            // A call that comes before this finds halting cores until the next call: late, not wrong.
            self.held.store(false, Ordering::Relaxed);
        }
    }

    /// True if the kernel took it.
    fn wish(&self, latency_us: i32) -> bool {
        self.file
            .as_ref()
            .is_some_and(|mut file| file.write_all(&latency_us.to_ne_bytes()).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(path: &Path) -> Vec<i32> {
        let bytes = std::fs::read(path).expect("written before");
        let words = bytes.chunks_exact(4);
        words
            .map(|word| i32::from_ne_bytes(word.try_into().expect("four bytes")))
            .collect()
    }

    #[test]
    fn cores_are_kept_while_calls_come_and_no_longer() {
        let path = std::env::temp_dir().join(format!("flashtwin-ready-{}", std::process::id()));
        std::fs::write(&path, "").expect("a file");
        let ready = Ready::by(&path);
        assert!(ready.is_allowed());
        ready.look();
        assert!(wishes(&path).is_empty(), "nobody has called");
        assert!(ready.called(), "the first call");
        assert!(!ready.called() && !ready.called());
        ready.look();
        ready.called();
        ready.look();
        assert!(ready.is_held(), "calls came");
        assert_eq!(wishes(&path), [NO_HALT]);
        ready.look();
        assert!(!ready.is_held(), "none since");
        ready.look();
        assert_eq!(wishes(&path), [NO_HALT, ANY]);
        assert!(ready.called());
        assert_eq!(wishes(&path), [NO_HALT, ANY, NO_HALT]);
        std::fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn where_it_is_not_allowed_nothing_is_held() {
        let ready = Ready::by(Path::new("/nowhere/latency"));
        assert!(!ready.is_allowed());
        assert!(!ready.called() && !ready.is_held());
        ready.look();
    }
}
