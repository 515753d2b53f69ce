//! Tasks of the model run on threads.

use std::sync::{Mutex, PoisonError};

use flashtwin::{Executor, Task};

/// Largest number of threads that run tasks. The thread of the caller is one of them.
#[derive(Clone, Copy, Debug)]
pub struct Threads(pub usize);

impl Threads {
    /// Returns the number of threads that the machine can run at the same time.
    pub fn available() -> Threads {
        Threads(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

impl Executor for Threads {
    fn run(&self, tasks: Vec<Task<'_>>) {
        let threads = self.0.clamp(1, tasks.len().max(1));
        let left = Mutex::new(tasks.into_iter());
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some(task) = next() {
                task();
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
    }
}
