//! Replacement of the policy of a running device (D-144).
//!
//! Victims are requested from the old policy until it has none left. The new policy receives the pages in this order,
//! the next victim first. Pages in flight, which are never victims, are last. Each page is inserted as if a request of
//! its own had just accessed it: a write if flash lacks the page's contents, otherwise a read. Dirty pages are always
//! admitted. A clean page is evicted if the new policy does not admit reads into the buffer. Slots, programs and the
//! requests that wait for them do not change.

use super::page::{Page, Pool, Rank};
use super::view::{with_view, View};
use crate::buffer::{Access, AnyPolicy, ChosenPolicy, Eviction, PageId, Policy, Setup, Skip, Way};
use crate::device::{Backend, Device};
use crate::units::Lpn;

impl<B: Backend> Device<B> {
    /// Replaces the buffer's policy by `policy`, with the device parameters `setup`. The new policy must have room for
    /// as many pages as the old one.
    pub(crate) fn exchange_policy(&mut self, policy: &ChosenPolicy, setup: &Setup) {
        let now = self.now;
        self.advance(now);
        let order = self.eviction_order();
        let policy = AnyPolicy::of(policy, setup);
        self.cache.uses_idle = policy.wants_idle();
        self.exchange_quiet(&policy);
        with_view!(self, |cache, view| cache.room.exchange(&view, policy));
        self.follow_times();
        let mut leaving = Vec::new();
        for (page, number) in order.into_iter().zip(1..) {
            let p = self.page(page.0);
            // A page whose program is running counts as dirty. When the program ends, the policy is notified that the
            // page is clean.
            let dirty = p.is_unstable();
            let access = Access {
                lpn: p.lpn,
                write: dirty,
                dirty,
                // These numbers are larger than those of all host requests. `u64::MAX` itself is the number of the
                // access for which `eviction_order` requested the victims.
                request: u64::MAX - number,
                request_pages: 1,
            };
            if self.cache.room.way(&access) != Way::Policy {
                self.leave_policy(page.0);
                leaving.push(page.0);
                continue;
            }
            with_view!(self, |cache, view| cache.room.insert(
                &view,
                Way::Policy,
                page,
                &access
            ));
            if dirty {
                self.backend.note_write(access.lpn, now);
            }
        }
        self.renew_claims(setup.pages_per_block);
        // The copy of the request path is chosen now, because the choice depends on whether the policy claims slots for
        // blocks.
        self.find_path();
        for page in leaving {
            self.pump(page);
        }
        for unit in 0..self.backend.units_in_gc().of() {
            self.idle_chip(unit as usize);
        }
        self.note_host_access();
        // The new policy may be able to evict pages that the old one could not evict.
        self.cache.may_retry = true;
        self.admit_pending();
        self.backend.settle(now, &mut self.events);
    }

    /// Returns the pages of the policy, the next victim first. The policy must not be used afterwards.
    fn eviction_order(&mut self) -> Vec<PageId> {
        let cache = &self.cache;
        let is_in = |p: &Page| p.rank != Rank::Left && p.pool == Pool::Policy;
        let mut left: Vec<bool> = cache.pages.iter().map(is_in).collect();
        let pages = left.iter().filter(|&&is_in| is_in).count();
        // The access for which victims are requested: a write of a page that is not cached, in a block without cached
        // pages.
        let incoming = Access {
            lpn: Lpn(u32::MAX),
            write: true,
            dirty: true,
            request: u64::MAX,
            request_pages: 1,
        };
        let mut order = Vec::with_capacity(pages);
        let mut out = Eviction::default();
        while order.len() < pages {
            out.clear();
            let found = with_view!(self, |cache, view| {
                let policy = &mut cache.room.policy;
                policy.evict(&view, &incoming, Skip::Nothing, &mut out)
            });
            if !found || out.victims.is_empty() {
                break;
            }
            let victims = out.victims.drain(..);
            order.extend(victims.filter(|page| std::mem::take(&mut left[page.0 as usize])));
        }
        // Pages in flight are never victims, nor are blocks with such pages. They are last in the order, as if most
        // recently accessed.
        let rest = (0..).zip(left).filter(|&(_, left)| left);
        let mut rest: Vec<u32> = rest.map(|(page, _)| page).collect();
        debug_assert!(
            rest.is_empty() || self.cache.in_flight > 0,
            "the policy keeps pages"
        );
        let pages = &self.cache.pages;
        rest.sort_by_key(|&page| pages[page as usize].by);
        order.extend(rest.into_iter().map(PageId));
        order
    }
}
