//! A page's life: slot, data from flash, program, and leaving.
//!
//! [`Device::pump`] looks at one page and does the next thing its state allows; everything that changes
//! a page ends by calling it.

use super::view::{with_view, View};
use super::*;
use crate::device::{flash_parts, Backend, Device};
use crate::metrics::Breakdown;
use crate::nand::Done;

impl<B: Backend> Device<B> {
    /// The page gets its slot.
    pub(super) fn give_slot(&mut self, id: u32) {
        let now = self.now;
        let p = self.page(id);
        debug_assert!(p.stage == Stage::NoSlot, "a slot for a page that has one");
        p.stage = Stage::Ready;
        p.slot_at = now;
        let writer = std::mem::replace(&mut p.writer, NONE);
        if writer != NONE {
            let since = self.requests[ReqId(writer)].dispatched;
            let slot = now - since;
            self.cache().count_slot_wait(id, since, slot);
            self.page_done(
                ReqId(writer),
                Breakdown {
                    slot,
                    ..Breakdown::default()
                },
            );
        }
        if self.page(id).waiters != NONE {
            self.serve_waiters(id, None, false);
            let p = self.page(id);
            if p.waiters != NONE && p.stage == Stage::Ready {
                self.fill_if_wanted(id);
            }
        }
        // One that is being read from flash now is in flight still.
        self.stage_changed(id);
        let p = self.page(id);
        if p.evicted || p.wants_flush {
            self.pump(id);
        }
    }

    /// Reads the page from flash if somebody waits for sectors it lacks.
    fn fill_if_wanted(&mut self, id: u32) {
        let cache = self.cache();
        let mut at = cache.pages[id as usize].waiters;
        while at != NONE {
            let w = cache.waiters[at as usize];
            if let Wants::Data(sectors) = w.wants {
                if sectors & !cache.pages[id as usize].valid != 0 {
                    return self.fill(id);
                }
            }
            at = w.next;
        }
    }

    /// Reads what the page lacks from flash; at once if flash has nothing of it. What its older copy is
    /// reading already comes with that.
    pub(super) fn fill(&mut self, id: u32) {
        let p = self.page(id);
        let (lpn, for_padding) = (p.lpn, p.rewrite && p.why == Cause::Padding);
        let older = p.older;
        if older != NONE && self.page(older).stage == Stage::Filling {
            return;
        }
        let Some(chip) = self.backend.unit_of_copy(lpn) else {
            return self.filled(id, None);
        };
        self.page(id).stage = Stage::Filling;
        self.stage_changed(id);
        let cause = if for_padding {
            Cause::PaddingRead
        } else {
            Cause::Fill
        };
        self.queue_flash(chip, lpn, cause, id);
    }

    /// The page has all its sectors now, and so have the copies of the same logical page that came after it;
    /// `done` is the read that has brought them, if one has.
    fn filled(&mut self, id: u32, done: Option<&Done>) {
        let whole = self.cache.whole;
        let first = self.page(id).younger;
        self.page(id).valid = whole;
        let mut younger = first;
        while younger != NONE {
            let p = self.page(younger);
            p.valid = whole;
            younger = p.younger;
        }
        self.serve_waiters(id, done, false);
        self.pump(id);
        younger = first;
        while younger != NONE {
            let next = self.page(younger).younger;
            self.serve_waiters(younger, done, false);
            self.pump(younger);
            younger = next;
        }
    }

    /// Does the next thing that the page's state allows.
    pub(super) fn pump(&mut self, id: u32) {
        let background = self.cache.background;
        let whole = self.cache.whole;
        let p = self.page(id);
        if p.stage != Stage::Ready || p.programming {
            return;
        }
        if p.group != NONE {
            if (p.dirty || p.rewrite) && p.valid != whole {
                return self.fill(id);
            }
            return self.whole_in_group(id);
        }
        if !p.dirty && !p.rewrite {
            p.wants_flush = false;
            let evicted = p.evicted;
            self.end_write_back(id);
            if evicted {
                self.release(id);
            }
            return;
        }
        if !p.evicted && !p.wants_flush {
            return;
        }
        if p.older != NONE {
            p.behind_older = true;
            return;
        }
        if p.valid != whole {
            return self.fill(id);
        }
        let lpn = p.lpn;
        let evicted = p.evicted;
        if let (true, Some(depth)) = (evicted && !p.slot_gone, background) {
            let cache = self.cache();
            if cache.writing_back == depth {
                return cache.write_back_queue.push_back(id);
            }
            cache.writing_back += 1;
            let p = self.page(id);
            p.slot_gone = true;
            p.credit = true;
        }
        let p = self.page(id);
        let cause = match (p.rewrite, evicted) {
            (true, _) => p.why,
            (false, true) => Cause::Destage,
            (false, false) => p.why,
        };
        p.fresh = p.dirty;
        p.dirty = false;
        p.rewrite = false;
        p.programming = true;
        let fua = std::mem::take(&mut p.wants_flush);
        let hand_on = p.credit;
        if cause != Cause::WriteBack {
            // It was evicted first.
            self.end_write_back(id);
            self.page(id).why = Cause::Flush;
        }
        let chip = self.backend.unit_for_write(lpn);
        let stream = self.cache.room.policy.stream(PageId(id));
        self.queue_program(chip, lpn, cause, id, stream, fua);
        if hand_on {
            self.hand_on_slot(id);
        }
    }

    /// A page that was to be written back in idle time is no more.
    fn end_write_back(&mut self, id: u32) {
        let p = self.page(id);
        if p.why == Cause::WriteBack {
            p.why = Cause::Flush;
            self.cache().active_write_backs -= 1;
        }
    }

    /// A flash operation of a cached page has finished.
    pub(in crate::device) fn cached_flash_done(&mut self, done: &Done) {
        let id = done.op.owner;
        if done.op.is_read() {
            let whole = self.cache.whole;
            self.page(id).stage = Stage::Ready;
            self.stage_changed(id);
            let p = self.page(id);
            if done.failed && p.valid != whole {
                return self.fill_failed(id, done);
            }
            return self.filled(id, Some(done));
        }
        if self.cache.is_logged() {
            self.cache.log_written(&done.op, self.now);
        }
        let p = self.page(id);
        p.programming = false;
        let (trimmed, dirty, evicted, lpn) = (p.trimmed, p.dirty, p.evicted, p.lpn);
        let (fresh, credit) = (p.fresh, std::mem::take(&mut p.credit));
        p.fresh = false;
        if !done.written && fresh && !trimmed {
            self.lose(id, Status::ReadOnly);
        }
        if trimmed && !dirty {
            self.backend.trim(lpn, self.now, &mut self.events);
        }
        self.cache().note_stability(id);
        if done.op.cause == Cause::WriteBack {
            self.end_write_back(id);
        }
        self.tell_policy(id, lpn, !evicted && !dirty && fresh);
        self.serve_waiters(id, Some(done), true);
        self.pump(id);
        if credit {
            let cache = self.cache();
            cache.writing_back -= 1;
            let depth = cache.background.unwrap_or(0);
            while self.cache.writing_back < depth {
                let Some(next) = self.cache().write_back_queue.pop_front() else {
                    break;
                };
                self.pump(next);
            }
        }
    }

    /// What the page lacks cannot be read (D-146), and whoever waits for that hears it. A page that was to be
    /// written is as flash has it then: what was written of it is lost. Later copies of the same logical page
    /// keep what they hold, and read themselves what they lack.
    #[cold]
    fn fill_failed(&mut self, id: u32, done: &Done) {
        let p = self.page(id);
        let mut younger = p.younger;
        if p.evicted || p.wants_flush {
            self.drop_contents(id);
        }
        self.serve_waiters(id, Some(done), false);
        self.pump(id);
        while younger != NONE {
            let p = self.page(younger);
            let (stage, next) = (p.stage, p.younger);
            if stage == Stage::Ready {
                self.fill_if_wanted(younger);
                self.pump(younger);
            }
            younger = next;
        }
    }

    /// The page is to be programmed and cannot be.
    fn drop_contents(&mut self, id: u32) {
        let p = self.page(id);
        let was_dirty = std::mem::take(&mut p.dirty);
        let (lpn, evicted) = (p.lpn, p.evicted);
        p.rewrite = false;
        p.valid = 0;
        self.end_write_back(id);
        self.cache().note_stability(id);
        if was_dirty {
            self.lose(id, Status::Failed);
            self.tell_policy(id, lpn, !evicted);
        }
    }

    /// What was written to the page and answered will not come to flash. Flushes and forced writes that wait
    /// for it are about to hear that; if none does, the next one will (D-148).
    #[cold]
    fn lose(&mut self, id: u32, how: Status) {
        let cache = self.cache();
        cache.counters.lost_pages += 1;
        if let Some(lost) = &mut cache.lost {
            lost.push(cache.pages[id as usize].lpn);
        }
        if !cache.is_program_awaited(id) {
            cache.untold = Some(how);
        }
    }

    /// A program has ended: a page that stays is clean now, and the flash copy of the cached page
    /// may have come to another chip.
    fn tell_policy(&mut self, id: u32, lpn: Lpn, cleaned: bool) {
        if cleaned {
            with_view!(self, |cache, view| cache
                .room
                .policy
                .cleaned(&view, PageId(id)));
        }
        if !self.cache.chips_move {
            return;
        }
        if let Some(PageId(cached)) = self.cache.find(lpn) {
            let p = self.page(cached);
            if !p.evicted && p.pool == Pool::Policy {
                with_view!(self, |cache, view| cache
                    .room
                    .policy
                    .moved(&view, PageId(cached)));
            }
        }
    }

    /// Answers the accesses that the page can answer now. `done` is the flash operation that just
    /// ended, if one did; `program` that it was a program.
    pub(super) fn serve_waiters(&mut self, id: u32, done: Option<&Done>, program: bool) {
        let now = self.now;
        let failed = done.is_some_and(|done| done.failed);
        let refused = program && done.is_some_and(|done| !done.written);
        let cache = self.cache();
        let p = &mut cache.pages[id as usize];
        let mut at = p.waiters;
        if at == NONE {
            return;
        }
        p.waiters = NONE;
        while at != NONE {
            let cache = self.cache();
            let w = cache.waiters[at as usize];
            let p = &cache.pages[id as usize];
            let (slot_at, valid) = (p.slot_at, p.valid);
            let stable = !p.dirty && !p.programming;
            cache.free_waiters.push(at);
            at = w.next;
            let has_slot = p.stage != Stage::NoSlot;
            if refused && matches!(w.wants, Wants::Programs(_)) {
                self.requests[w.request].status = Status::ReadOnly;
            }
            let again = match w.wants {
                Wants::Slot | Wants::SlotThenProgram | Wants::Data(_) if !has_slot => Some(w.wants),
                Wants::Slot => None,
                Wants::SlotThenProgram => {
                    self.want_flush_since(w.request, id, w.since);
                    continue;
                }
                Wants::Data(sectors) if sectors & !valid == 0 => None,
                Wants::Data(_) | Wants::Programs(_) if failed => {
                    self.requests[w.request].status = Status::Failed;
                    None
                }
                Wants::Data(_) => Some(w.wants),
                Wants::Programs(_) if stable => None,
                Wants::Programs(1) if program => None,
                Wants::Programs(n) if program => Some(Wants::Programs(n - 1)),
                Wants::Programs(_) => Some(w.wants),
            };
            match again {
                Some(wants) => self.cache().wait(id, w.request, w.since, wants),
                None => {
                    let parts = wait_parts(w.since, slot_at, done, now);
                    self.cache().count_slot_wait(id, w.since, parts.slot);
                    self.page_done(w.request, parts);
                }
            }
        }
    }

    /// An evicted page is done with: its slot goes to its heir.
    fn release(&mut self, id: u32) {
        let cache = self.cache();
        let p = &mut cache.pages[id as usize];
        debug_assert!(
            p.waiters == NONE && p.writer == NONE,
            "a page leaves while somebody waits for it"
        );
        // Whoever still names this place finds nothing to do there.
        p.stage = Stage::NoSlot;
        let (lpn, slot_gone, older, younger) = (p.lpn, p.slot_gone, p.older, p.younger);
        cache.directory.remove(lpn, PageId(id));
        // All links are mended before the slot is handed on, which may release further pages.
        let mut wake = false;
        if older != NONE {
            // Trimmed before its turn: the copies around it now follow each other.
            cache.pages[older as usize].younger = younger;
        }
        if younger != NONE {
            let y = &mut cache.pages[younger as usize];
            y.older = older;
            wake = older == NONE && std::mem::take(&mut y.behind_older);
        }
        cache.note_stability(id);
        if !slot_gone {
            self.hand_on_slot(id);
        }
        self.cache().free_pages.push(id);
        if wake {
            self.pump(younger);
        }
    }

    fn hand_on_slot(&mut self, id: u32) {
        let heir = std::mem::replace(&mut self.page(id).heir, NONE);
        if heir != NONE {
            return self.give_slot(heir);
        }
        let cache = self.cache();
        let pool = cache.pages[id as usize].pool as usize;
        match cache.waiting[pool].pop_front() {
            Some(waiting) => self.give_slot(waiting),
            None => cache.free_slots[pool] += 1,
        }
    }
}

/// Where the time of an access went that waited since `since` for a page which got its slot at
/// `slot_at`; the last wait was for `done`, if for any flash operation.
pub(super) fn wait_parts(since: Time, slot_at: Time, done: Option<&Done>, now: Time) -> Breakdown {
    let mut parts = done.map_or(Breakdown::default(), |d| flash_parts(d, now));
    let waited = now - since;
    // An access that came later than the operation waited only for its end.
    let mut over = parts.total().saturating_sub(waited);
    for part in [
        &mut parts.queue_gc,
        &mut parts.queue_host,
        &mut parts.array,
        &mut parts.transfer,
    ] {
        let cut = over.min(*part);
        *part -= cut;
        over -= cut;
    }
    // What was before the operation: first the slot, then other work on the page.
    let before = waited - parts.total();
    parts.slot = before.min(slot_at.saturating_sub(since));
    parts.queue_host += before - parts.slot;
    parts
}
