//! On a machine with two cores, all threads that serve run on one core, and the other core is left to clients. Work is
//! then passed between threads without waking a core. On a virtual machine, waking a core takes longer than the
//! device's response. If a thread finds its core contended, all serving threads move to the other core.

use std::cell::Cell;
use std::mem::{size_of, zeroed};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of cores of a machine on which the serving threads share one core.
const CORES_MAX: usize = 2;

/// The core that the threads share.
#[derive(Debug)]
pub(super) struct CoreAffinity {
    /// Cores that this process may use. Empty if the threads are not bound to a core.
    cores: Vec<usize>,
    /// Number of moves to another core.
    moves: AtomicUsize,
}

thread_local! {
    /// One more than the number of moves (changes of all serving threads to the other core) that this thread has made;
    /// 0 before the thread's first call.
    static FOLLOWED: Cell<usize> = const { Cell::new(0) };
}

impl Default for CoreAffinity {
    fn default() -> CoreAffinity {
        let cores = allowed();
        CoreAffinity {
            cores: if cores.len() == CORES_MAX {
                cores
            } else {
                Vec::new()
            },
            moves: AtomicUsize::new(0),
        }
    }
}

impl CoreAffinity {
    /// Binds the calling thread to the shared core.
    #[inline]
    pub fn follow(&self) {
        if self.cores.is_empty() {
            return;
        }
        let moves = self.moves.load(Ordering::Relaxed);
        if FOLLOWED.get() != moves + 1 {
            FOLLOWED.set(moves + 1);
            stay_on(self.cores[moves % self.cores.len()]);
        }
    }

    /// Orders all threads to move to the next core, because other programs use the present one. Each thread moves at
    /// its next call.
    pub fn move_on(&self) {
        // If several threads report contention at the same time, only one move results.
        let moves = FOLLOWED.get().wrapping_sub(1);
        let _ = self.moves.compare_exchange(
            moves,
            moves.wrapping_add(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}

/// Returns the cores that this thread may use.
fn allowed() -> Vec<usize> {
    // SAFETY: all zeros is a valid set of cores, and the kernel writes at most the given size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        set
    };
    // SAFETY: all numbers are below the number of bits in a set.
    (0..libc::CPU_SETSIZE as usize)
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect()
}

/// Binds this thread to one core. If the system refuses, the thread may still use all its cores.
fn stay_on(core: usize) {
    // SAFETY: all zeros is a valid set, and `core` is below the number of bits in a set.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_follow_the_first_to_another_core() {
        let cores = allowed();
        let two = vec![cores[0], cores[cores.len() - 1]];
        let affinity = CoreAffinity {
            cores: two.clone(),
            moves: AtomicUsize::new(0),
        };
        let arrive = || {
            affinity.follow();
            allowed()
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                let before = arrive();
                affinity.move_on();
                // The value 1 makes this thread behave like one that has not moved yet. It then reports contention of
                // the core that the other threads have already left, and this must not cause another move.
                FOLLOWED.set(1);
                affinity.move_on();
                (before, arrive())
            });
            let first = first.join().expect("no panic");
            assert_eq!(first, (vec![two[0]], vec![two[1]]));
            let second = scope.spawn(arrive).join().expect("no panic");
            assert_eq!(second, [two[1]]);
        });
        let free = CoreAffinity {
            cores: Vec::new(),
            moves: AtomicUsize::new(0),
        };
        free.follow();
        assert_eq!(allowed(), cores, "left alone");
    }
}
