//! SIEVE: FIFO with a hand that sorts out pages not visited (Zhang et al., NSDI 2024, Algorithm 1).
//!
//! hit -> visited; miss -> newest end, not visited. The hand goes from the oldest page to the newest
//! and then begins again: visited -> not visited, the page stays where it is; not visited -> victim,
//! and the hand stays where it stood.

use super::clock::{flagged_text, set};
use super::policy::{Access, DeviceView, Eviction, Policy, Spare};
use super::{List, PageId, Setup};

/// FIFO with lazy promotion and quick demotion.
#[derive(Clone, Debug)]
pub struct Sieve {
    queue: List,
    /// Per page.
    visited: Vec<bool>,
    /// The page under the hand; none: the oldest.
    hand: Option<PageId>,
}

impl Sieve {
    /// An empty queue.
    pub fn new(_setup: &Setup) -> Sieve {
        Sieve {
            queue: List::default(),
            visited: Vec::new(),
            hand: None,
        }
    }

    /// The page that the hand is at next.
    fn after(&self, page: PageId) -> Option<PageId> {
        self.queue.newer(page).or(self.queue.oldest())
    }
}

impl Policy for Sieve {
    #[inline]
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        set(&mut self.visited, page, false);
        self.queue.push_newest(page);
    }

    #[inline]
    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.visited[page.0 as usize] = true;
    }

    fn forget(&mut self, page: PageId) {
        if self.hand == Some(page) {
            self.hand = self.queue.newer(page);
        }
        self.queue.remove(page);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        let mut at = self.hand.or(self.queue.oldest());
        let mut spared_in_a_row = 0;
        while let Some(page) = at {
            out.inspected += 1;
            if spare.page(device, page) {
                out.spared |= spare.page_by_chip(device, page);
                spared_in_a_row += 1;
                if spared_in_a_row == self.queue.len() {
                    return false;
                }
            } else if std::mem::take(&mut self.visited[page.0 as usize]) {
                spared_in_a_row = 0;
            } else {
                self.hand = Some(page);
                self.forget(page);
                out.victims.push(page);
                return true;
            }
            at = self.after(page);
        }
        false
    }

    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        let first = self.hand.or(self.queue.oldest());
        let second = first.and_then(|page| self.queue.newer(page));
        [
            first,
            second,
            second.and_then(|page| self.queue.newer(page)),
        ]
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let list = flagged_text(device, self.queue.iter_oldest_first(), |page| {
            self.visited[page.0 as usize].into()
        });
        let hand = self
            .hand
            .map_or(String::new(), |page| device.lpn(page).0.to_string());
        format!("{list} hand[{hand}]")
    }
}
