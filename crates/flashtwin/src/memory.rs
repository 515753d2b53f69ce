//! Memory: hints to the processor and the operating system, which change no result, and tables without bounds checks.
//!
//! The cost of a flash operation is mainly a few cache misses in tables of many megabytes. Large memory pages halve
//! the cost of a miss, since they avoid page walks; prefetching hides most of the rest.

use std::ops::{Deref, DerefMut, Index, IndexMut};

/// A table of records on the hottest paths. Its indices are only checked in builds with debug assertions. It cannot
/// shrink. Any other table is a `Vec`, which is checked in every build.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrustedTable<T>(Vec<T>);

impl<T> TrustedTable<T> {
    /// Creates a table of the given records.
    ///
    /// # Safety
    /// All code that can reach the table must index it only with numbers of its records, that is, below its length or
    /// returned by [`TrustedTable::push`].
    pub unsafe fn new(records: Vec<T>) -> TrustedTable<T> {
        TrustedTable(records)
    }

    /// Returns the records.
    pub fn into_records(self) -> Vec<T> {
        self.0
    }

    /// Appends a record; its number is the previous length.
    #[inline(always)]
    pub fn push(&mut self, record: T) {
        self.0.push(record);
    }

    /// Extends the table with copies of `value`, if necessary, so that `i` is the number of a record.
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

/// Prefetches `table[i]`. There may be no such entry, since a prefetch cannot fail.
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

/// Prefetches an entry that may extend over two cache lines.
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

/// Extends `table`, if necessary, so that it has an entry `i`; new entries are `value`. The capacity grows by
/// doubling.
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
        // SAFETY: the range is within one allocation of ours. The advice changes how its memory pages are provided,
        // not what they contain. If the system refuses, nothing is lost.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_large_pages<T>(_table: &Vec<T>) {}
