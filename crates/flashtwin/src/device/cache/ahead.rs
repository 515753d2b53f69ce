//! Write-backs ahead of eviction. Pages are written back while a chip is idle, or when the host has not accessed the
//! device for some time (*silence*).

use super::page::Want;
use super::view::{with_view, View};
use crate::buffer::{AnyPolicy, DeviceView, PageId, Policy};
use crate::device::link::QUIET;
use crate::device::{Backend, Device};
use crate::nand::FlashEvent;
use crate::units::{ChipId, Time};

/// The timer of a policy that writes pages back after a *silence*: a time without accesses of the host.
#[derive(Clone, Debug)]
pub(super) struct Quiet {
    /// The length of the silence; `None` if the policy does not write pages back after a silence.
    after: Option<Time>,
    /// Instant of the last access of the host.
    last_access: Time,
    /// Whether the timer is set. Further accesses do not change the timer. If there were any when it ends, it is set
    /// again.
    is_set: bool,
}

impl Quiet {
    pub fn new(policy: &AnyPolicy) -> Quiet {
        Quiet {
            after: policy.ahead_after(),
            last_access: Time::ZERO,
            is_set: false,
        }
    }

    /// Whether the policy writes pages back after a silence.
    pub fn is_used(&self) -> bool {
        self.after.is_some()
    }
}

impl<B: Backend> Device<B> {
    /// Adapts the timer to a new policy. If the policy does not write pages back after a silence, the timer is cleared.
    pub(super) fn exchange_quiet(&mut self, policy: &AnyPolicy) {
        let quiet = &mut self.cache.quiet;
        quiet.after = policy.ahead_after();
        if quiet.after.is_none() && std::mem::take(&mut quiet.is_set) {
            self.link.pending.clear(QUIET);
        }
    }

    /// Records an access of the host, for a policy that writes pages back after a silence (a time without accesses).
    #[inline(always)]
    pub(super) fn note_host_access(&mut self) {
        if B::AHEAD {
            if let Some(after) = self.cache.quiet.after {
                self.wait_for_silence(after);
            }
        }
    }

    #[inline(always)]
    fn wait_for_silence(&mut self, after: Time) {
        let quiet = &mut self.cache.quiet;
        quiet.last_access = self.now;
        if !std::mem::replace(&mut quiet.is_set, true) {
            let order = self.events.take_order();
            self.link.pending.set(QUIET, self.now + after, order);
        }
    }

    /// Processes the end of the timer. If the host has made an access since the timer was set, sets it again.
    #[cold]
    pub(in crate::device) fn host_was_quiet(&mut self) {
        self.link.pending.clear(QUIET);
        let quiet = &mut self.cache.quiet;
        let after = quiet
            .after
            .expect("the timer of a policy that writes ahead");
        let due = quiet.last_access + after;
        if due > self.now {
            let order = self.events.take_order();
            return self.link.pending.set(QUIET, due, order);
        }
        quiet.is_set = false;
        self.write_ahead();
    }

    /// If the chip is idle, lets the policy choose pages to write back.
    #[inline(always)]
    pub(in crate::device) fn idle_chip(&mut self, chip: usize) {
        let is_used = match B::PLAIN {
            true => B::AHEAD,
            false => self.cache.uses_idle || self.cache.quiet.is_used(),
        };
        if is_used && self.backend.is_idle(chip) {
            self.chip_is_idle(chip);
        }
    }

    #[inline(never)]
    fn chip_is_idle(&mut self, chip: usize) {
        if !B::PLAIN && self.cache.uses_idle {
            let chip = ChipId(chip as u16);
            self.write_back(|policy, view, in_flight, busy| {
                policy.idle(view, chip, in_flight, busy)
            });
        }
        if self.cache.quiet.is_used() {
            self.write_ahead();
        }
    }

    /// Writes back pages ahead of their eviction, one after the other, until the policy chooses no further page.
    #[inline(never)]
    fn write_ahead(&mut self) {
        while self.write_back(|policy, view, in_flight, busy| policy.ahead(view, in_flight, busy)) {
        }
    }

    /// Writes back the page that `choose` returns. Returns false if `choose` returns no page, or if the limit on
    /// write-backs in flight is reached. At the limit, a further write-back would only wait behind others, so `choose`
    /// is not called.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn write_back(
        &mut self,
        choose: impl FnOnce(
            &mut AnyPolicy,
            &dyn DeviceView,
            u32,
            &dyn Fn(PageId) -> bool,
        ) -> Option<PageId>,
    ) -> bool {
        let depth = self.background();
        if depth.is_some_and(|depth| self.cache.writing_back >= depth) {
            return false;
        }
        let in_flight = self.cache.active_write_backs;
        let chosen = with_view!(self, |cache, view| {
            let pages = &cache.pages;
            let busy = |page: PageId| {
                let p = &pages[page.0 as usize];
                p.is_programming() || p.want != Want::Nothing || !p.is_ready()
            };
            choose(&mut cache.room.policy, &view, in_flight, &busy)
        });
        let Some(PageId(id)) = chosen else {
            return false;
        };
        let p = self.cache.pages.get_mut(id as usize);
        let p = p.expect("a policy names pages that it holds");
        p.want = Want::WriteBack;
        p.by = FlashEvent::NO_REQUEST;
        self.cache.active_write_backs += 1;
        self.pump(id);
        true
    }
}
