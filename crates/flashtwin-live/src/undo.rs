//! Contents that a power loss restores. For each page whose newest contents are not yet safe, these are the last safe
//! contents.
//!
//! The store has the newest contents. This module keeps earlier contents of each page that a power loss could affect:
//! the contents on flash, and the contents that page programs in progress write. Contents are copied just before a
//! write replaces them. The newest contents are in the store itself and need no copy.
//!
//! Nothing is kept if the device's buffer survives a power loss, or if the server has no store.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use flashtwin::{Durable, Lpn, PageProgram, Rng};

use crate::store::Store;

/// Largest number of pages that are written at a time under the lock. The driver waits for the lock, so it must be held
/// only briefly.
const PAGES_AT_ONCE: u64 = 16;
const SECTOR_BYTES: usize = 512;

/// Contents of a page.
#[derive(Clone, Debug)]
enum Contents {
    /// The contents in the store.
    Current,
    Zeros,
    Bytes(Arc<[u8]>),
}

/// A page in flight.
#[derive(Debug)]
struct Page {
    /// The safe contents, then the contents in flight, oldest first. Each has the number of the flush that makes it
    /// safe, or 0 if the end of a page program makes it safe. [`Contents::Current`] and all contents after it are in
    /// the store.
    versions: VecDeque<(Contents, u64)>,
    /// Number of flushes that had been requested when the page was last written.
    written: u64,
}

#[derive(Debug, Default)]
struct Pages {
    of: HashMap<u64, Page>,
    /// Total number of flushes and forced writes requested so far.
    flushes: u64,
    /// Buffer into which a page is read.
    room: Vec<u8>,
}

/// Earlier contents of a store's pages.
#[derive(Debug)]
pub(crate) struct Undo {
    page_bytes: u64,
    size_bytes: u64,
    durable: Durable,
    pages: Mutex<Pages>,
}

impl Undo {
    pub fn new(durable: Durable, page_bytes: u32, size_bytes: u64) -> Undo {
        Undo {
            page_bytes: page_bytes.into(),
            size_bytes,
            durable,
            pages: Mutex::default(),
        }
    }

    /// Returns the lock even if a thread panicked while it held the lock. The pages are then still in a valid state.
    fn lock(&self) -> MutexGuard<'_, Pages> {
        match self.pages.lock() {
            Ok(pages) => pages,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Changes bytes of the store by calls of `put`. Each call changes one part of the bytes.
    pub fn change(
        &self,
        store: &Store,
        bytes: Range<u64>,
        mut put: impl FnMut(Range<u64>) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.durable == Durable::AtOnce {
            return put(bytes);
        }
        let mut at = bytes.start;
        while at < bytes.end {
            let first = at / self.page_bytes;
            let end = ((first + PAGES_AT_ONCE) * self.page_bytes).min(bytes.end);
            let mut pages = self.lock();
            for page in first..end.div_ceil(self.page_bytes) {
                self.keep(&mut pages, store, page)?;
            }
            put(at..end)?;
            at = end;
        }
        Ok(())
    }

    /// Returns the numbers of the whole pages within `bytes`. If the bytes are trimmed, the device drops these pages.
    fn whole_pages(&self, bytes: &Range<u64>) -> Range<u64> {
        let end = match bytes.end == self.size_bytes {
            true => bytes.end.div_ceil(self.page_bytes),
            false => bytes.end / self.page_bytes,
        };
        bytes.start.div_ceil(self.page_bytes)..end
    }

    /// Returns the whole pages within `bytes`, as a range of bytes. If there is no whole page, returns the empty range
    /// at `bytes.start`.
    pub fn whole(&self, bytes: &Range<u64>) -> Range<u64> {
        let pages = self.whole_pages(bytes);
        match pages.is_empty() {
            true => bytes.start..bytes.start,
            false => pages.start * self.page_bytes..(pages.end * self.page_bytes).min(bytes.end),
        }
    }

    /// Calls `put`, which fills trimmed bytes with zeros. From then on, a power loss does not restore the earlier
    /// contents of whole pages within the bytes.
    pub fn forget(
        &self,
        bytes: Range<u64>,
        put: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        if self.durable == Durable::AtOnce {
            return put();
        }
        let forgotten = self.whole_pages(&bytes);
        let mut pages = self.lock();
        put()?;
        pages.of.retain(|at, page| {
            if !forgotten.contains(at) {
                return true;
            }
            // Page programs of these pages are still in progress, but the contents that they write are no longer
            // needed.
            page.versions
                .iter_mut()
                .for_each(|(contents, _)| *contents = Contents::Current);
            page.versions.len() > 1 && self.durable == Durable::Programmed
        });
        Ok(())
    }

    /// Copies the present contents of a page from the store. Called before a write replaces them.
    fn keep(&self, pages: &mut Pages, store: &Store, at: u64) -> io::Result<()> {
        let (flushes, room) = (pages.flushes, &mut pages.room);
        let Some(page) = pages.of.get_mut(&at) else {
            let page = Page {
                versions: VecDeque::from([(self.contents(store, at, room)?, 0)]),
                written: flushes,
            };
            pages.of.insert(at, page);
            return Ok(());
        };
        if self.durable == Durable::Flushed && page.written < flushes {
            page.versions
                .push_back((Contents::Current, page.written + 1));
        }
        page.written = flushes;
        let is_current =
            |(contents, _): &&mut (Contents, u64)| matches!(contents, Contents::Current);
        if page.versions.iter_mut().any(|version| is_current(&version)) {
            let now = self.contents(store, at, room)?;
            let current = page.versions.iter_mut().filter(is_current);
            current.for_each(|(contents, _)| *contents = now.clone());
        }
        Ok(())
    }

    fn range(&self, page: u64) -> Range<u64> {
        let start = page * self.page_bytes;
        start..(start + self.page_bytes).min(self.size_bytes)
    }

    fn contents(&self, store: &Store, page: u64, room: &mut Vec<u8>) -> io::Result<Contents> {
        let range = self.range(page);
        room.resize((range.end - range.start) as usize, 0);
        store.read(room, range.start)?;
        Ok(match room.iter().all(|&byte| byte == 0) {
            true => Contents::Zeros,
            false => Contents::Bytes(room.as_slice().into()),
        })
    }

    fn bytes_of(&self, store: &Store, page: u64, contents: &Contents) -> io::Result<Vec<u8>> {
        let range = self.range(page);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        match contents {
            Contents::Current => store.read(&mut bytes, range.start)?,
            Contents::Zeros => {}
            Contents::Bytes(kept) => bytes.copy_from_slice(kept),
        }
        Ok(bytes)
    }

    /// Processes the device's notification of a page program. Notifications must be processed in the order in which the
    /// device makes them.
    pub fn on_program(&self, program: PageProgram) {
        if self.durable != Durable::Programmed {
            return;
        }
        let mut pages = self.lock();
        let (PageProgram::Queued(lpn) | PageProgram::Ended(lpn) | PageProgram::Failed(lpn)) =
            program;
        let at = u64::from(lpn.0);
        if let PageProgram::Queued(_) = program {
            let page = pages.of.entry(at).or_insert_with(|| Page {
                versions: VecDeque::from([(Contents::Current, 0)]),
                written: 0,
            });
            return page.versions.push_back((Contents::Current, 0));
        }
        // If the page has no entry, its programs are not tracked.
        let Some(page) = pages.of.get_mut(&at) else {
            return;
        };
        match program {
            PageProgram::Ended(_) if page.versions.len() > 1 => page.versions.pop_front(),
            _ => page.versions.remove(1),
        };
        if matches!(page.versions.make_contiguous(), [(Contents::Current, _)]) {
            pages.of.remove(&at);
        }
    }

    /// Counts a flush or a forced write. Must be called before it is submitted. Returns its number.
    pub fn flush_asked(&self) -> u64 {
        if self.durable != Durable::Flushed {
            return 0;
        }
        let mut pages = self.lock();
        pages.flushes += 1;
        pages.flushes
    }

    /// Marks those writes as safe that precede the flush with the number `number`. If `bytes` is given, only writes to
    /// pages within these bytes.
    pub fn flush_ended(&self, number: u64, bytes: Option<Range<u64>>) {
        if self.durable != Durable::Flushed {
            return;
        }
        let of = bytes.map_or(0..u64::MAX, |bytes| {
            bytes.start / self.page_bytes..bytes.end.div_ceil(self.page_bytes)
        });
        self.lock().of.retain(|at, page| {
            if !of.contains(at) {
                return true;
            }
            while page
                .versions
                .get(1)
                .is_some_and(|&(_, safe_by)| safe_by <= number)
            {
                page.versions.pop_front();
            }
            page.written >= number
        });
    }

    /// Simulates a power loss. Calls `put` to replace contents that are not safe by the last safe contents. `lost` are
    /// the pages that the device reports as lost. Returns the pages that lost data, in ascending order. With `torn`, a
    /// page with a program in progress gets the new contents in a random number of its first sectors.
    ///
    /// # Errors
    /// Fails if pages cannot be restored. The error has their number and the first cause. All other pages are restored,
    /// and all kept contents are dropped.
    pub fn cut(
        &self,
        store: &Store,
        lost: &[Lpn],
        mut torn: Option<&mut Rng>,
        mut put: impl FnMut(&[u8], u64) -> io::Result<()>,
    ) -> Result<Vec<u64>, (usize, io::Error)> {
        if self.durable == Durable::AtOnce {
            // The buffer survives the loss, so no earlier contents were kept. `lost` only has pages that could not be
            // written to flash.
            return Ok(lost.iter().map(|lpn| u64::from(lpn.0)).collect());
        }
        let mut pages = self.lock();
        let lost: HashSet<u64> = lost.iter().map(|lpn| u64::from(lpn.0)).collect();
        // With [`Durable::Programmed`], contents become safe page by page, when their program ends. Every page in this
        // table may then be restored. Otherwise flushes make contents safe, and only pages that the device reports as
        // lost are restored.
        let is_lost = |at: &u64| self.durable == Durable::Programmed || lost.contains(at);
        let mut put_back: Vec<u64> = Vec::new();
        for (&at, page) in &pages.of {
            let safe = page.versions.front().map(|(contents, _)| contents);
            if is_lost(&at) && !matches!(safe, None | Some(Contents::Current)) {
                put_back.push(at);
            }
        }
        put_back.sort_unstable();
        let mut failed = None;
        for &at in &put_back {
            let versions = &pages.of[&at].versions;
            let safe = self.after_cut(store, at, versions, torn.as_deref_mut());
            if let Err(e) = safe.and_then(|safe| put(&safe, self.range(at).start)) {
                let (pages, _) = failed.get_or_insert((0, e));
                *pages += 1;
            }
        }
        pages.of.clear();
        failed.map_or(Ok(put_back), Err)
    }

    /// Returns the contents of a page after a power loss in which the page lost writes.
    fn after_cut(
        &self,
        store: &Store,
        at: u64,
        versions: &VecDeque<(Contents, u64)>,
        torn: Option<&mut Rng>,
    ) -> io::Result<Vec<u8>> {
        let mut safe = self.bytes_of(store, at, &versions[0].0)?;
        if let (Some(rng), Some((carried, _))) = (torn, versions.get(1)) {
            let carried = self.bytes_of(store, at, carried)?;
            let sectors = (safe.len() / SECTOR_BYTES) as u64;
            let new = rng.below(sectors + 1) as usize * SECTOR_BYTES;
            safe[..new].copy_from_slice(&carried[..new]);
        }
        Ok(safe)
    }
}

#[cfg(test)]
mod tests;
