//! Row locks: one job at a time holds a row. Other jobs wait for the row in order of arrival.

use std::collections::VecDeque;

use crate::buffer::{Directory, PageId};
use crate::units::Lpn;

/// Number of simultaneously locked rows for which the hash table is sized. With more locked rows, lookups take longer.
const ROWS: usize = 1024;

/// The locked rows, each with the jobs that wait for it.
#[derive(Clone, Debug)]
pub(super) struct RowLocks {
    /// Maps the number of a locked row to the row's lock. ([`Directory`] is made for page numbers; here its keys are
    /// row numbers.)
    locks: Directory,
    /// For each lock, the waiting jobs.
    waiting: Vec<VecDeque<u32>>,
    free: Vec<u32>,
}

impl RowLocks {
    pub fn new() -> RowLocks {
        RowLocks {
            locks: Directory::new(ROWS),
            waiting: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Locks a row for a job; returns false if another job holds it, and queues the job.
    #[inline(always)]
    pub fn take(&mut self, row: u32, job: u32) -> bool {
        if let Some(PageId(lock)) = self.locks.get(Lpn(row)) {
            self.wait(lock, job);
            return false;
        }
        let lock = self.free.pop().unwrap_or_else(|| self.new_lock());
        self.locks.insert(Lpn(row), PageId(lock));
        true
    }

    #[inline(never)]
    fn wait(&mut self, lock: u32, job: u32) {
        self.waiting[lock as usize].push_back(job);
    }

    #[cold]
    fn new_lock(&mut self) -> u32 {
        self.waiting.push(VecDeque::new());
        self.waiting.len() as u32 - 1
    }

    /// Releases a row and returns the job, if any, that holds it next.
    #[inline(always)]
    pub fn give_back(&mut self, row: u32) -> Option<u32> {
        let lock = self.locks.get(Lpn(row))?;
        let next = self.waiting[lock.0 as usize].pop_front();
        if next.is_none() {
            self.locks.remove(Lpn(row), lock);
            self.free.push(lock.0);
        }
        next
    }
}
