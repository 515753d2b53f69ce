//! Trim: removes a page from the buffer and from flash.

use super::page::{Index, Program, Want};
use crate::buffer::PageId;
use crate::device::{Backend, Device};
use crate::units::Lpn;

impl<B: Backend> Device<B> {
    /// Removes a page from the buffer and from flash.
    pub(in crate::device) fn trim(&mut self, lpn: Lpn) {
        let cache = &mut self.cache;
        let Some(PageId(id)) = cache.find(lpn) else {
            self.backend.trim(lpn, self.now, &mut self.events);
            return;
        };
        if !cache.pages[id as usize].has_left() {
            cache.room.forget(PageId(id), lpn);
            self.leave_policy(id);
        }
        self.backend.trim(lpn, self.now, &mut self.events);
        // This copy and the older copies that are not in flash yet need not be programmed any more.
        let mut next = Some(id);
        while let Some(at) = next {
            let cache = self.cache();
            let whole = cache.whole;
            let p = &mut cache.pages[at as usize];
            p.dirty = false;
            if p.want.writes_clean() {
                p.want = Want::Nothing;
            }
            p.valid = whole;
            if let Program::Running { trimmed, .. } = &mut p.program {
                *trimmed = true;
            }
            next = p.older.map(Index::get);
            cache.note_stability(at);
            // Flushes no longer have to wait for the page. Accesses still wait for the page's slot and data.
            self.serve_waiters(at, None, false);
        }
        self.pump(id);
    }
}
