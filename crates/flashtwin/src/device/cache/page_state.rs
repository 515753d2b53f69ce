//! The states of a page in the buffer: it gets a slot, is filled from flash, is programmed, and is released.
//!
//! [`Device::pump`] executes the next step that a page's state permits. It must be called after every change of a
//! page.

use super::page::{Membership, Page, Pool, Program, Residency, Slot, Want};
use super::pause::Held;
use super::view::{with_view, View};
use super::Cache;
use crate::buffer::{PageId, Policy};
use crate::device::requests::ReqId;
use crate::device::{Backend, Device, NO_HOME};
use crate::nand::{Cause, Done, Owner};
use crate::request::Status;
use crate::units::Lpn;

impl<B: Backend> Device<B> {
    #[inline]
    pub(super) fn cache(&mut self) -> &mut Cache {
        &mut self.cache
    }

    #[inline]
    pub(super) fn page(&mut self, id: u32) -> &mut Page {
        &mut self.cache.pages[id as usize]
    }

    /// Whether events of the buffer are logged.
    #[inline(always)]
    pub(super) fn logs_buffer(&self) -> bool {
        !B::PLAIN && self.cache.is_logged()
    }

    /// Returns the largest number of write-backs in flight in background mode; `None` in blocking mode.
    #[inline(always)]
    pub(super) fn background(&self) -> Option<u32> {
        match B::PLAIN {
            true => None,
            false => self.cache.background,
        }
    }

    /// Gives the page its slot, and continues the accesses and programs that waited for this.
    #[inline(never)]
    pub(super) fn give_slot(&mut self, id: u32) {
        self.give_slot_now(id);
    }

    /// Gives the page its slot; inlined for the most frequent caller.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn give_slot_now(&mut self, id: u32) {
        let now = self.now;
        let p = self.page(id);
        let Residency::Awaiting { writer } = p.residency else {
            unreachable!("a slot for a page that has one");
        };
        let is_usual = p.is_plain_arrival();
        p.residency = Residency::Ready(Slot::Held);
        p.slot_at = now;
        if let Some(writer) = writer {
            let writer = ReqId(writer.get());
            let since = self.requests[writer].dispatched;
            let is_logged = self.logs_buffer();
            (self.cache).count_slot_wait(id, since, now - since, is_logged);
            self.page_done_in_slot(writer);
        }
        if is_usual {
            return self.has_arrived(id);
        }
        self.cache.keep_slot_end(id);
        if self.cache.lacks_for_lone_waiter(id) {
            self.fill(id);
        } else if !self.page(id).waiters.is_empty() {
            self.serve_waiters(id, None, false);
            if self.page(id).is_ready() {
                self.fill_if_wanted(id);
            }
        }
        // A page that is now being read from flash stays in flight.
        self.residency_changed(id);
        let p = self.page(id);
        if p.has_left() || p.want != Want::Nothing {
            self.pump(id);
        }
    }

    /// If an access waits for sectors that are missing in the page, reads the page from flash.
    fn fill_if_wanted(&mut self, id: u32) {
        if self.cache.is_fill_awaited(id) {
            self.fill(id);
        }
    }

    /// Completes the page by reading its missing sectors from flash. If flash has no copy, the page is complete
    /// immediately. If an older copy of the logical page is being read, no second read is needed.
    #[inline(never)]
    pub(super) fn fill(&mut self, id: u32) {
        let p = self.page(id);
        let (lpn, want, older) = (p.lpn, p.want, p.older);
        let Residency::Ready(slot) = p.residency else {
            unreachable!("a page without a place is filled");
        };
        if let Some(older) = older {
            if matches!(self.page(older.get()).residency, Residency::Filling(_)) {
                return;
            }
        }
        let Some(chip) = self.backend.unit_of_copy(lpn) else {
            return self.filled(id, None);
        };
        self.page(id).residency = Residency::Filling(slot);
        self.residency_changed(id);
        let cause = match want {
            Want::Padding => Cause::PaddingRead,
            Want::Nothing | Want::Flush | Want::WriteBack | Want::Merge => Cause::Fill,
        };
        self.queue_flash(chip, lpn, cause, Owner::cached_page(id));
    }

    /// Marks all sectors of the page as valid, and also those of younger copies of the same logical page. `done` is the
    /// flash read that returned the sectors, if there was one.
    #[inline(never)]
    fn filled(&mut self, id: u32, done: Option<&Done>) {
        let whole = self.cache.whole;
        let first = self.page(id).younger;
        self.page(id).valid = whole;
        let mut next = first;
        while let Some(younger) = next {
            let p = self.page(younger.get());
            p.valid = whole;
            next = p.younger;
        }
        self.serve_waiters(id, done, false);
        self.pump(id);
        next = first;
        while let Some(younger) = next {
            let younger = younger.get();
            next = self.page(younger).younger;
            self.serve_waiters(younger, done, false);
            self.pump(younger);
        }
    }

    /// Performs the next step that the page's state allows.
    #[inline(never)]
    pub(super) fn pump(&mut self, id: u32) {
        self.pump_on(id);
    }

    /// Performs the next step that the page's state allows; inlined for frequent callers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn pump_on(&mut self, id: u32) {
        let whole = self.cache.whole;
        let p = self.page(id);
        let Residency::Ready(slot) = p.residency else {
            return;
        };
        if p.is_programming() {
            return;
        }
        if p.group != Membership::None {
            return self.pump_in_group(id);
        }
        let left = p.has_left();
        if !p.dirty && !p.want.writes_clean() {
            self.drop_want(id);
            if left {
                self.release(id);
            }
            return;
        }
        if !left && !p.want.writes_cached() {
            return;
        }
        if p.older.is_some() {
            p.program = Program::BehindOlder;
            return;
        }
        if p.valid != whole {
            return self.fill(id);
        }
        let is_write_back = left && slot == Slot::Held || p.want == Want::WriteBack;
        if let (true, Some(depth)) = (is_write_back, self.background()) {
            return self.write_back_in_background(id, depth);
        }
        self.start_program(id);
    }

    /// Executes the next step of a page that is programmed together with the other pages of its group.
    #[inline(never)]
    fn pump_in_group(&mut self, id: u32) {
        let whole = self.cache.whole;
        let p = self.page(id);
        if (p.dirty || p.want.writes_clean()) && p.valid != whole {
            return self.fill(id);
        }
        self.whole_in_group(id);
    }

    /// Starts the write-back of a page in background mode: after its eviction, or ahead of it. If `depth` write-backs
    /// are in flight, the page is queued instead. When its program starts, an evicted page passes on its slot.
    #[inline(never)]
    fn write_back_in_background(&mut self, id: u32, depth: u32) {
        let now = self.now;
        let cache = self.cache();
        if cache.writing_back == depth {
            cache.at_limit_since.get_or_insert(now);
            return cache.write_back_queue.push_back(id);
        }
        cache.writing_back += 1;
        self.start_program(id);
        if self.page(id).has_left() {
            self.page(id).residency = Residency::Ready(Slot::PassedOn);
            self.pass_on_slot(id);
        }
    }

    /// Queues the program of the page.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn start_program(&mut self, id: u32) {
        let p = self.page(id);
        let (lpn, want) = (p.lpn, p.want);
        let cause = match want {
            Want::Padding => Cause::Padding,
            Want::Merge => Cause::Merge,
            _ if p.has_left() => Cause::Destage,
            Want::WriteBack => Cause::WriteBack,
            Want::Flush | Want::Nothing => Cause::Flush,
        };
        p.program = Program::Running {
            fresh: p.dirty,
            trimmed: false,
        };
        p.dirty = false;
        if cause == Cause::WriteBack {
            // The page counts in `active_write_backs` until its program ends.
            p.want = Want::Nothing;
        } else {
            self.drop_want(id);
        }
        self.cache.note_unsettled(id);
        let stream = self.cache.room.policy.stream(PageId(id), lpn);
        let program = Held {
            lpn,
            cause,
            owner: Owner::cached_page(id),
            stream,
            fua: want.writes_cached(),
        };
        if !self.is_held(program) {
            self.queue_program(lpn, cause, program.owner, stream, program.fua);
        }
    }

    /// Cancels all reasons to program the page, except its eviction.
    #[inline(always)]
    fn drop_want(&mut self, id: u32) {
        let want = std::mem::replace(&mut self.page(id).want, Want::Nothing);
        if want == Want::WriteBack {
            self.cache.active_write_backs -= 1;
        }
    }

    /// Processes the end of a flash operation of a cached page.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::device) fn cached_flash_done(&mut self, done: &Done) {
        let id = done.op.owner.number();
        let is_read = done.op.is_read();
        let now = self.now;
        self.cache.note_end(done, is_read, now);
        if is_read {
            self.page_read(id, done);
        } else {
            self.page_programmed(id, done);
        }
    }

    #[inline(never)]
    fn page_read(&mut self, id: u32, done: &Done) {
        let whole = self.cache.whole;
        let p = self.page(id);
        let Residency::Filling(slot) = p.residency else {
            unreachable!("a read of a page that was not being filled");
        };
        p.residency = Residency::Ready(slot);
        self.residency_changed(id);
        if done.failed && self.page(id).valid != whole {
            return self.fill_failed(id, done);
        }
        self.filled(id, Some(done));
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn page_programmed(&mut self, id: u32, done: &Done) {
        if self.logs_buffer() {
            self.cache.log_written(&done.op, self.now);
        }
        let p = self.page(id);
        if done.op.cause == Cause::Destage && done.written && p.is_held_by_program() {
            p.program = Program::None;
            let (lpn, home) = (p.lpn, p.home);
            if home == NO_HOME && self.cache.room.heeds_chips() {
                self.notify_policy(id, lpn, false);
            }
            return self.release_to::<true>(id);
        }
        self.program_ended(id, done);
    }

    /// Processes the end of a program in the general case, for example of a page that stays cached or must be
    /// programmed once more.
    #[inline(never)]
    fn program_ended(&mut self, id: u32, done: &Done) {
        let p = self.page(id);
        let program = std::mem::replace(&mut p.program, Program::None);
        let Program::Running { fresh, trimmed } = program else {
            unreachable!("the end of a program that was not running");
        };
        let (lpn, home, stays) = (p.lpn, p.home, !p.has_left());
        let is_clean = !p.dirty;
        let is_active = done.op.cause == Cause::WriteBack;
        let counted = p.residency == Residency::Ready(Slot::PassedOn)
            || is_active && self.background().is_some();
        if !done.written && fresh && !trimmed {
            self.lose(id, Status::ReadOnly);
        }
        if trimmed {
            self.backend.trim(lpn, self.now, &mut self.events);
        }
        self.cache().note_stability(id);
        if is_active {
            self.cache.active_write_backs -= 1;
        }
        let cleaned = stays && is_clean && fresh;
        if cleaned || home == NO_HOME {
            self.notify_policy(id, lpn, cleaned);
        }
        if !self.page(id).waiters.is_empty() {
            self.serve_waiters(id, Some(done), true);
        }
        if self.page(id).is_pending() {
            self.pump(id);
        }
        if counted {
            self.next_write_back();
        }
    }

    /// In background mode, starts waiting write-backs after one has ended.
    #[inline(never)]
    fn next_write_back(&mut self) {
        self.cache.writing_back -= 1;
        let depth = self.cache.background.unwrap_or(0);
        while self.cache.writing_back < depth {
            let Some(next) = self.cache().write_back_queue.pop_front() else {
                break;
            };
            self.pump(next);
        }
        if self.cache.write_back_queue.is_empty() {
            if let Some(since) = self.cache.at_limit_since.take() {
                self.cache.counters.at_limit += self.now - since;
            }
        }
    }

    /// Processes a failed read of a page from flash (D-146). Accesses that wait for the missing sectors fail. If the
    /// page had to be programmed, its writes are lost, and flash keeps the old contents. Younger copies of the same
    /// logical page keep their contents, and read their missing sectors themselves.
    #[cold]
    fn fill_failed(&mut self, id: u32, done: &Done) {
        let p = self.page(id);
        let mut next = p.younger;
        if p.has_left() || p.want != Want::Nothing {
            self.drop_contents(id);
        }
        self.serve_waiters(id, Some(done), false);
        self.pump(id);
        while let Some(younger) = next {
            let younger = younger.get();
            let p = self.page(younger);
            next = p.younger;
            if p.is_ready() {
                self.fill_if_wanted(younger);
                self.pump(younger);
            }
        }
    }

    /// Drops the contents of a page that should be programmed, but whose missing sectors cannot be read.
    fn drop_contents(&mut self, id: u32) {
        let p = self.page(id);
        let was_dirty = std::mem::take(&mut p.dirty);
        let (lpn, left) = (p.lpn, p.has_left());
        p.valid = 0;
        self.drop_want(id);
        self.cache().note_stability(id);
        if was_dirty {
            self.lose(id, Status::Failed);
            self.notify_policy(id, lpn, !left);
        }
    }

    /// Records that acknowledged writes of a page are lost, because they will not reach flash. Flushes and forced
    /// writes that wait for the page fail. If none waits, the next flush or forced write fails (D-148).
    #[cold]
    fn lose(&mut self, id: u32, how: Status) {
        let cache = self.cache();
        cache.counters.lost_pages += 1;
        if let Some(lost) = &mut cache.lost {
            lost.push(cache.pages[id as usize].lpn);
        }
        if !cache.is_program_awaited(id) {
            cache.unreported_error = Some(how);
        }
    }

    /// Notifies the policy after a program has ended: if `cleaned`, that the page stays cached and is clean now; if a
    /// program can put the page on another chip, also that the page may have moved.
    #[inline(never)]
    fn notify_policy(&mut self, id: u32, lpn: Lpn, cleaned: bool) {
        if cleaned {
            with_view!(self, |cache, view| cache
                .room
                .policy
                .cleaned(&view, PageId(id)));
        }
        if self.page(id).home != NO_HOME {
            return;
        }
        if let Some(PageId(cached)) = self.cache.find(lpn) {
            self.report_unit(cached);
        }
    }

    /// Releases an evicted page that needs no program.
    #[inline(never)]
    pub(super) fn release_clean(&mut self, id: u32) {
        self.release(id);
    }

    /// Releases an evicted page: frees its record, and passes on its slot to its slot successor.
    #[inline(always)]
    pub(super) fn release(&mut self, id: u32) {
        self.release_to::<false>(id);
    }

    /// Releases an evicted page. With `INLINED`, the code that passes on the slot is inlined.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn release_to<const INLINED: bool>(&mut self, id: u32) {
        let cache = self.cache();
        let p = &mut cache.pages[id as usize];
        debug_assert!(
            p.waiters.is_empty(),
            "a page is released while an access waits for it"
        );
        // The write-back queue may still contain the number of this record. A free record in the queue is passed over.
        let residency = std::mem::replace(&mut p.residency, Residency::Free);
        let (lpn, has_copies) = (p.lpn, p.older.is_some() || p.younger.is_some());
        cache.directory.remove(lpn, PageId(id));
        cache.clear_unstable(id);
        // All links between copies must be updated before the slot is passed on, because this may release further
        // pages.
        let wake = match has_copies {
            true => cache.unlink_copies(id),
            false => None,
        };
        if residency == Residency::Ready(Slot::Held) {
            self.pass_on_slot_to::<INLINED>(id);
        }
        self.cache().free_pages.push(id);
        if let Some(younger) = wake {
            self.pump(younger);
        }
    }

    #[inline(always)]
    fn pass_on_slot(&mut self, id: u32) {
        self.pass_on_slot_to::<false>(id);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pass_on_slot_to<const INLINED: bool>(&mut self, id: u32) {
        let p = self.page(id);
        let pool = p.pool as usize;
        if let Some(successor) = p.slot_successor.take() {
            return match INLINED {
                true => self.give_slot_now(successor.get()),
                false => self.give_slot(successor.get()),
            };
        }
        if !B::PLAIN && pool == Pool::Policy as usize && self.cache.claims.is_some() {
            return self.return_claimed_slot(id);
        }
        let cache = self.cache();
        match cache.waiting[pool].pop_front() {
            Some(waiting) => self.give_slot(waiting),
            None => cache.free_slots[pool] += 1,
        }
    }
}

impl Cache {
    /// Removes a page from the list of copies of the same logical page. If the next younger copy waited to be
    /// programmed, returns it.
    #[inline(never)]
    fn unlink_copies(&mut self, id: u32) -> Option<u32> {
        let p = &self.pages[id as usize];
        let (older, younger) = (p.older, p.younger);
        if let Some(older) = older {
            // The page was trimmed before it was programmed. Its older and its younger copy now follow each other in
            // the list.
            self.pages[older.get() as usize].younger = younger;
        }
        let younger = younger?.get();
        let y = &mut self.pages[younger as usize];
        y.older = older;
        let waited = older.is_none() && y.program == Program::BehindOlder;
        if waited {
            y.program = Program::None;
        }
        waited.then_some(younger)
    }
}
