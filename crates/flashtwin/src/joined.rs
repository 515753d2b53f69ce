//! Tables of many chips in one allocation, so that they share large memory pages.
//!
//! A chip's translation layer has tables of about one megabyte. An allocation of this size is too small for a large
//! memory page (2 MiB), so each random access to it would also need a page walk. [`join`] moves the tables of all chips
//! into one allocation. The owner of a table does not notice: it reads and writes its own entries only.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::memory::room_for;

/// Alignment of each table within the allocation: a cache line.
const ALIGNMENT: usize = 64;

/// A cache line of the allocation. Its alignment is sufficient for entries of every type.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

/// One allocation for several tables.
struct Whole(Vec<UnsafeCell<MaybeUninit<Line>>>);

// SAFETY: the lines are accessed only through the tables, each of which has lines of its own.
unsafe impl Send for Whole {}
// SAFETY: as above.
unsafe impl Sync for Whole {}

/// A table of fixed length, in an allocation of its own or in one that it shares with other tables.
pub(crate) struct JoinedTable<T> {
    first: NonNull<T>,
    len: usize,
    /// The allocation, which exists as long as any of its tables.
    _whole: Arc<Whole>,
}

// SAFETY: a table has exclusive access to its entries, as a `Vec` has. The shared allocation is only freed, never read.
unsafe impl<T: Send> Send for JoinedTable<T> {}
// SAFETY: as above; a shared reference to a table only reads its entries.
unsafe impl<T: Sync> Sync for JoinedTable<T> {}

impl<T: Copy> JoinedTable<T> {
    /// Creates a table of `n` copies of `value`.
    pub fn new(value: T, n: usize) -> JoinedTable<T> {
        JoinedTable::from_entries(&Arc::new(allocate(lines_of::<T>(n))), 0, n, |_| value)
    }

    /// Creates a table in the lines of an allocation from `line` on. The lines must belong to no other table.
    fn from_entries(
        whole: &Arc<Whole>,
        line: usize,
        n: usize,
        entry: impl Fn(usize) -> T,
    ) -> JoinedTable<T> {
        const { assert!(align_of::<T>() <= ALIGNMENT) };
        assert!(line + lines_of::<T>(n) <= whole.0.len(), "the lines exist");
        // SAFETY: the assertion above.
        let first = unsafe { whole.0.as_ptr().add(line) } as *mut T;
        let first = NonNull::new(first).expect("the address of an allocation");
        for i in 0..n {
            // SAFETY: the lines from `line` on have room for `n` entries, by the assertion above. An `UnsafeCell` may
            // be written through a shared reference, and no other table has these lines.
            unsafe { first.add(i).write(entry(i)) };
        }
        JoinedTable {
            first,
            len: n,
            _whole: Arc::clone(whole),
        }
    }
}

/// Returns the number of lines for `n` entries.
fn lines_of<T>(n: usize) -> usize {
    (n * size_of::<T>()).div_ceil(ALIGNMENT)
}

fn allocate(lines: usize) -> Whole {
    let mut all = room_for(lines);
    // SAFETY: the capacity is `lines`, and a `MaybeUninit` needs no value.
    unsafe { all.set_len(lines) };
    Whole(all)
}

impl<T> Deref for JoinedTable<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `from_entries` has written these entries, and `_whole` keeps their memory. Only this table has access
        // to them.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for JoinedTable<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T: Copy> Clone for JoinedTable<T> {
    /// Copies the entries into an allocation of their own.
    fn clone(&self) -> JoinedTable<T> {
        let whole = Arc::new(allocate(lines_of::<T>(self.len)));
        JoinedTable::from_entries(&whole, 0, self.len, |i| self[i])
    }
}

impl<T: fmt::Debug> fmt::Debug for JoinedTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A table that [`join`] can move, whatever the type of its entries.
pub(crate) trait Movable {
    /// Returns the number of cache lines of the table.
    fn lines(&self) -> usize;
    /// Moves the entries to the lines of an allocation from `line` on. No other table may have these lines.
    fn move_to(&mut self, place: &Place);
}

/// The lines of an allocation that a table receives.
pub(crate) struct Place<'a> {
    whole: &'a Arc<Whole>,
    line: usize,
}

impl<T: Copy> Movable for JoinedTable<T> {
    fn lines(&self) -> usize {
        lines_of::<T>(self.len)
    }

    fn move_to(&mut self, place: &Place) {
        *self = JoinedTable::from_entries(place.whole, place.line, self.len, |i| self[i]);
    }
}

/// Moves the tables into one allocation, one after the other.
pub(crate) fn join(tables: &mut [&mut dyn Movable]) {
    let lines = tables.iter().map(|table| table.lines()).sum();
    let whole = Arc::new(allocate(lines));
    let mut line = 0;
    for table in tables {
        table.move_to(&Place {
            whole: &whole,
            line,
        });
        line += table.lines();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_tables_keep_their_entries_and_do_not_affect_each_other() {
        let mut a = JoinedTable::new(7u32, 33);
        let mut b = JoinedTable::new((1u32, 2u32), 5);
        let mut empty = JoinedTable::new(0u64, 0);
        a[32] = 8;
        b[0].1 = 9;
        join(&mut [&mut a, &mut b, &mut empty]);
        assert!(Arc::ptr_eq(&a._whole, &b._whole) && Arc::ptr_eq(&a._whole, &empty._whole));
        assert_eq!((a[31], a[32], a.len()), (7, 8, 33));
        assert_eq!((b[0], b[4], b.len(), empty.len()), ((1, 9), (1, 2), 5, 0));
        a.fill(1);
        b.fill((3, 3));
        assert!(a.iter().all(|&entry| entry == 1) && b.iter().all(|&entry| entry == (3, 3)));
    }

    #[test]
    fn a_copy_has_its_own_entries_and_outlives_the_original() {
        let mut a = JoinedTable::new(1u16, 100);
        let mut b = JoinedTable::new(2u16, 100);
        join(&mut [&mut a, &mut b]);
        let copy = a.clone();
        a[0] = 5;
        drop(b);
        drop(a);
        assert!(copy.iter().all(|&entry| entry == 1));
    }
}
