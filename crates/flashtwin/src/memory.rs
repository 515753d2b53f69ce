//! Hints to the processor and the operating system about memory, and tables without bounds checks. The hints do not
//! affect results.
//!
//! A flash operation causes a few cache misses in tables of many megabytes. They are most of its cost. Large memory
//! pages halve the cost of a miss, because they avoid page walks. Prefetching hides most of the remaining cost.

use std::ops::{Deref, DerefMut, Index, IndexMut};

/// A table of records that is accessed by the most frequent operations. Its indices are checked only in builds with
/// debug assertions. A table of this type cannot shrink. All other tables are `Vec`s, and their indices are always
/// checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrustedTable<T>(Vec<T>);

impl<T> TrustedTable<T> {
    /// Creates a table of the given records.
    ///
    /// # Safety
    /// All code that can access the table must use only valid indices. An index is valid if it is below the table's
    /// length, or was returned by [`TrustedTable::push`].
    pub unsafe fn new(records: Vec<T>) -> TrustedTable<T> {
        TrustedTable(records)
    }

    /// Returns the records.
    pub fn into_records(self) -> Vec<T> {
        self.0
    }

    /// Appends a record. Its index is the previous length of the table.
    #[inline(always)]
    pub fn push(&mut self, record: T) {
        self.0.push(record);
    }

    /// Extends the table with copies of `value` until the index `i` is valid.
    #[inline(always)]
    pub fn reach(&mut self, i: usize, value: T)
    where
        T: Clone,
    {
        reach(&mut self.0, i, value);
    }

    /// Returns the `n` records from `first` on.
    #[inline(always)]
    pub fn part(&self, first: usize, n: usize) -> &[T] {
        debug_assert!(first <= self.0.len() && n <= self.0.len() - first);
        // SAFETY: the contract of `TrustedTable::new`.
        unsafe { self.0.get_unchecked(first..first + n) }
    }

    /// Returns the `n` records from `first` on, mutably.
    #[inline(always)]
    pub fn part_mut(&mut self, first: usize, n: usize) -> &mut [T] {
        debug_assert!(first <= self.0.len() && n <= self.0.len() - first);
        // SAFETY: the contract of `TrustedTable::new`.
        unsafe { self.0.get_unchecked_mut(first..first + n) }
    }
}

impl<T> Deref for TrustedTable<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for TrustedTable<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> Index<usize> for TrustedTable<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, i: usize) -> &T {
        debug_assert!(i < self.0.len(), "number {i} of {}", self.0.len());
        // SAFETY: the contract of `TrustedTable::new`.
        unsafe { self.0.get_unchecked(i) }
    }
}

impl<T> IndexMut<usize> for TrustedTable<T> {
    #[inline(always)]
    fn index_mut(&mut self, i: usize) -> &mut T {
        debug_assert!(i < self.0.len(), "number {i} of {}", self.0.len());
        // SAFETY: the contract of `TrustedTable::new`.
        unsafe { self.0.get_unchecked_mut(i) }
    }
}

/// Prefetches `table[i]`. The index may be beyond the end of the table, since a prefetch cannot fail.
#[inline(always)]
pub(crate) fn prefetch<T>(table: &[T], i: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        let entry = table.as_ptr().wrapping_add(i).cast::<i8>();
        // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
        unsafe { _mm_prefetch(entry, _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, i);
}

/// Prefetches `table[i]`, even if the entry extends over two cache lines.
#[inline(always)]
pub(crate) fn prefetch_whole<T>(table: &[T], i: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        let first = table.as_ptr().wrapping_add(i).cast::<i8>();
        // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
        unsafe {
            _mm_prefetch(first, _MM_HINT_T0);
            _mm_prefetch(
                first.wrapping_add(size_of::<T>().saturating_sub(1)),
                _MM_HINT_T0,
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, i);
}

/// Creates a table of `n` copies of `value`, on large memory pages if the system has any.
pub(crate) fn large_table<T: Clone>(value: T, n: usize) -> Vec<T> {
    let mut table = room_for(n);
    table.resize(n, value);
    table
}

/// Creates an empty table with capacity for `n` entries, on large memory pages if the system has any.
pub(crate) fn room_for<T>(n: usize) -> Vec<T> {
    let table = Vec::with_capacity(n);
    advise_large_pages(&table);
    table
}

/// Extends `table` with copies of `value` until it has an entry `i`. The capacity grows by doubling.
#[inline(always)]
pub(crate) fn reach<T: Clone>(table: &mut Vec<T>, i: usize, value: T) {
    if i >= table.len() {
        lengthen(table, i + 1, value);
    }
}

#[cold]
fn lengthen<T: Clone>(table: &mut Vec<T>, n: usize, value: T) {
    if n > table.capacity() {
        table.reserve(n - table.len());
        advise_large_pages(table);
    }
    table.resize(n, value);
}

#[cfg(target_os = "linux")]
fn advise_large_pages<T>(table: &Vec<T>) {
    const SMALL_PAGE: usize = 4096;
    let start = (table.as_ptr() as usize).next_multiple_of(SMALL_PAGE);
    let end = table.as_ptr() as usize + table.capacity() * size_of::<T>();
    if end > start + 512 * SMALL_PAGE {
        let length = (end - start) / SMALL_PAGE * SMALL_PAGE;
        // SAFETY: the range is within the allocation of `table`. The advice changes how the system provides the
        // memory pages, not their contents. If the system ignores the advice, the memory pages are merely small.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_large_pages<T>(_table: &Vec<T>) {}
