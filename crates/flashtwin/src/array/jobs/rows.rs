//! Rows as locks: each is one job's at a time, and the others wait for it in their order.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Rows are numbers without pattern enough: one multiplication spreads them.
#[derive(Clone, Copy, Debug, Default)]
struct RowHasher(u64);

impl Hasher for RowHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }
    fn write_u32(&mut self, row: u32) {
        self.0 = (self.0 ^ u64::from(row)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Of each row that is a job's, the jobs that wait for it.
#[derive(Clone, Debug, Default)]
pub(super) struct RowLocks {
    waiting: HashMap<u32, VecDeque<u32>, BuildHasherDefault<RowHasher>>,
    /// Queues of waiting jobs to be used again.
    spare: Vec<VecDeque<u32>>,
}

impl RowLocks {
    /// The row is the job's now; else, if false, the job waits for it.
    pub fn take(&mut self, row: u32, job: u32) -> bool {
        if let Some(waiting) = self.waiting.get_mut(&row) {
            waiting.push_back(job);
            return false;
        }
        let none = self.spare.pop().unwrap_or_default();
        self.waiting.insert(row, none);
        true
    }

    /// A job gives a row back: the next one has it.
    pub fn give_back(&mut self, row: u32) -> Option<u32> {
        let waiting = self.waiting.get_mut(&row);
        let next = waiting.and_then(VecDeque::pop_front);
        if next.is_none() {
            let empty = self.waiting.remove(&row);
            self.spare.extend(empty);
        }
        next
    }
}
