//! Slots under a policy whose blocks each occupy the room of all their pages, cached or not (`room = "whole"`, D-209).
//!
//! A block is *open* from its first access to its eviction. It *claims* a slot for each of its N pages, cached or not.
//! Free slots are granted to claims in the order in which the claims were made, and the pages of a block use the slots
//! of its claim. When the block is evicted, each page returns its slot at the end of its write-back. The last page also
//! returns the slots that no page used. If a block is opened and another one is evicted to make room, the new block
//! thus receives its slots one by one, as the write-backs of the other block complete. Evictions of single pages pass
//! on their slots in the same way (D-41).
//!
//! Pages outside blocks (those of BPAC's page list) claim one slot each. The policy reserves some slots for its blocks.
//! While write-backs are running, these slots are not granted to pages outside blocks.

use std::collections::{HashMap, VecDeque};

const NONE: u32 = u32::MAX;

/// A claim: the slots of a block, or of a single page.
#[derive(Clone, Debug, Default)]
struct Claim {
    /// The block that the claim belongs to. `None` for a single page, and after the block was evicted.
    block: Option<u32>,
    /// Whether the block was evicted, so that no more pages are written to it.
    closed: bool,
    /// Number of slots that were granted to the claim and are not used by a page.
    unused: u32,
    /// Number of slots that are still to be granted to the claim.
    missing: u32,
    /// Number of pages that have a slot of this claim or wait for one.
    pages: u32,
    waiting: VecDeque<u32>,
}

/// All claims, and the free slots.
#[derive(Clone, Debug)]
pub(super) struct Claims {
    /// Pages of a block.
    block_pages: u32,
    free: u32,
    claims: Vec<Claim>,
    /// Indices in `claims` of entries that are not in use. New claims reuse these entries.
    spare: Vec<u32>,
    of_block: HashMap<u32, u32>,
    /// For each page, its claim.
    of_page: Vec<u32>,
    /// Claims with missing slots, in the order in which slots are granted to them.
    queue: VecDeque<u32>,
    /// Number of pages of closed claims: evicted pages that have not returned their slots yet.
    draining: u32,
    /// Pages that a slot has been granted to, and that have not taken it yet.
    ready: VecDeque<u32>,
}

impl Claims {
    /// Creates an empty table with `slots` free slots, for blocks of `block_pages` pages.
    pub fn new(slots: u32, block_pages: u32) -> Claims {
        Claims {
            block_pages,
            free: slots,
            claims: Vec::new(),
            spare: Vec::new(),
            of_block: HashMap::new(),
            of_page: Vec::new(),
            queue: VecDeque::new(),
            draining: 0,
            ready: VecDeque::new(),
        }
    }

    fn add(&mut self, claim: Claim) -> u32 {
        match self.spare.pop() {
            Some(at) => {
                self.claims[at as usize] = claim;
                at
            }
            None => {
                self.claims.push(claim);
                self.claims.len() as u32 - 1
            }
        }
    }

    fn claim_of(&self, page: u32) -> u32 {
        self.of_page.get(page as usize).map_or(NONE, |&at| at)
    }

    fn set_claim(&mut self, page: u32, claim: u32) {
        let at = page as usize;
        if at >= self.of_page.len() {
            self.of_page.resize(at + 1, NONE);
        }
        self.of_page[at] = claim;
    }

    /// Adds a page of `block`, or a page outside blocks. The page uses a slot of its claim, or waits for one.
    pub fn enter(&mut self, page: u32, block: Option<u32>) {
        let known = block.and_then(|block| self.of_block.get(&block).copied());
        let at = known.unwrap_or_else(|| {
            let at = self.add(Claim {
                block,
                missing: block.map_or(1, |_| self.block_pages),
                ..Claim::default()
            });
            self.of_block.extend(block.map(|block| (block, at)));
            self.queue.push_back(at);
            at
        });
        self.set_claim(page, at);
        let claim = &mut self.claims[at as usize];
        claim.pages += 1;
        if claim.unused > 0 {
            claim.unused -= 1;
            return self.ready.push_back(page);
        }
        claim.waiting.push_back(page);
        // Trimmed pages of the block may still use slots. The claim may therefore need more slots than the block has
        // pages.
        if claim.waiting.len() > claim.missing as usize {
            self.miss_one_more(at);
        }
    }

    fn miss_one_more(&mut self, at: u32) {
        self.claims[at as usize].missing += 1;
        if !self.queue.contains(&at) {
            self.queue.push_back(at);
        }
    }

    /// Records that pages are evicted together. If `is_block`, they occupied the room of a whole block in the buffer.
    pub fn evict(&mut self, pages: impl Iterator<Item = u32>, is_block: bool) {
        let mut together = None;
        for page in pages {
            let at = self.claim_of(page);
            if at == NONE || self.claims[at as usize].closed {
                continue;
            }
            if self.claims[at as usize].block.is_some() {
                self.close(at);
                continue;
            }
            // Pages outside blocks have one claim each. If they are evicted together, these claims are joined to one.
            self.drop_claim(at);
            let at = *together.get_or_insert_with(|| {
                self.add(Claim {
                    closed: true,
                    ..Claim::default()
                })
            });
            self.claims[at as usize].pages += 1;
            self.draining += 1;
            self.set_claim(page, at);
        }
        if let (Some(at), true) = (together, is_block) {
            let claim = &mut self.claims[at as usize];
            claim.unused = self.block_pages.saturating_sub(claim.pages).min(self.free);
            self.free -= claim.unused;
        }
    }

    /// Closes the claim of an evicted block. From then on, slots are granted to the claim only for its trimmed pages
    /// that still wait for one.
    fn close(&mut self, at: u32) {
        let claim = &mut self.claims[at as usize];
        claim.closed = true;
        claim.missing = claim.waiting.len() as u32;
        self.draining += claim.pages;
        let (block, is_served) = (claim.block.take(), claim.missing == 0);
        if let Some(block) = block {
            self.of_block.remove(&block);
        }
        if is_served {
            self.queue.retain(|&other| other != at);
        }
    }

    fn drop_claim(&mut self, at: u32) {
        let claim = std::mem::take(&mut self.claims[at as usize]);
        self.free += claim.unused;
        if let Some(block) = claim.block {
            self.of_block.remove(&block);
        }
        self.queue.retain(|&other| other != at);
        self.spare.push(at);
    }

    /// Called when a page gives up its slot. If the page's claim is open and has other pages, the slot is granted to
    /// the claim again. Otherwise the slot becomes free.
    pub fn leave(&mut self, page: u32) {
        let at = self.claim_of(page);
        if at == NONE {
            self.free += 1;
            return;
        }
        self.of_page[page as usize] = NONE;
        let claim = &mut self.claims[at as usize];
        claim.pages -= 1;
        let (pages, closed) = (claim.pages, claim.closed);
        self.draining -= u32::from(closed);
        if pages > 0 && !closed {
            return self.give(at);
        }
        self.free += 1;
        if pages == 0 {
            self.drop_claim(at);
        }
    }

    /// Grants a slot to a claim.
    fn give(&mut self, at: u32) {
        let claim = &mut self.claims[at as usize];
        match claim.waiting.pop_front() {
            Some(page) => self.ready.push_back(page),
            None => claim.unused += 1,
        }
    }

    /// Grants free slots to claims, and returns the next page that can take its slot; `None` if there is none. `kept`
    /// is the number of slots that the policy reserves for its blocks.
    pub fn next(&mut self, kept: u32) -> Option<u32> {
        let kept = match self.draining {
            0 => {
                while self.serve_waiting() {}
                0
            }
            _ => kept,
        };
        while self.free > kept {
            let Some(&at) = self.queue.front() else { break };
            self.grant(at);
        }
        self.ready.pop_front()
    }

    /// Grants a slot to the first waiting page: a free slot, or else one that was granted to a block but is unused.
    /// Called if no running write-back will free a slot. Returns false if there is no such slot, or no waiting page.
    fn serve_waiting(&mut self) -> bool {
        let waits = |&&at: &&u32| !self.claims[at as usize].waiting.is_empty();
        let Some(&at) = self.queue.iter().find(waits) else {
            return false;
        };
        if self.free == 0 {
            let has_more = |claim: &Claim| claim.unused > 0 && !claim.closed;
            let Some(from) = self.claims.iter().position(has_more) else {
                return false;
            };
            self.claims[from].unused -= 1;
            self.miss_one_more(from as u32);
            self.free += 1;
        }
        self.grant(at);
        true
    }

    fn grant(&mut self, at: u32) {
        let claim = &mut self.claims[at as usize];
        claim.missing -= 1;
        self.free -= 1;
        if claim.missing == 0 {
            self.queue.retain(|&other| other != at);
        }
        self.give(at);
    }

    /// Returns the number of slots that no page uses, and the pages that wait for slots. The policy that replaces the
    /// present one takes both over.
    pub fn into_rest(self) -> (u32, VecDeque<u32>) {
        let unused: u32 = self.claims.iter().map(|claim| claim.unused).sum();
        let mut waiting = self.ready;
        let ready = waiting.len() as u32;
        for &at in &self.queue {
            waiting.extend(&self.claims[at as usize].waiting);
        }
        (self.free + unused + ready, waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two blocks of four pages fill a buffer of eight pages. A third block replaces the first, and receives its slots
    /// one by one.
    #[test]
    fn a_block_fills_as_the_evicted_one_is_written() {
        let mut claims = Claims::new(8, 4);
        for (page, block) in [(0, 7), (1, 7), (2, 7), (3, 8)] {
            claims.enter(page, Some(block));
            assert_eq!(claims.next(0), Some(page));
        }
        claims.evict([0, 1, 2].into_iter(), true);
        for page in 4..8 {
            claims.enter(page, Some(9));
            assert_eq!(claims.next(0), None, "no write-back is done");
        }
        claims.enter(8, Some(8));
        assert_eq!(claims.next(0), Some(8), "its block has slots");
        for (done, served) in [(1, 4), (0, 5)] {
            claims.leave(done);
            assert_eq!(claims.next(0), Some(served));
            assert_eq!(claims.next(0), None);
        }
        claims.leave(2);
        assert_eq!([(); 3].map(|()| claims.next(0)), [Some(6), Some(7), None]);
        assert_eq!(claims.into_rest(), (2, VecDeque::new()));
    }

    /// Blocks have four pages. The buffer holds pages of the page list, a block with one cached page, and an evicted
    /// block with three pages that are still to be written.
    #[test]
    fn pages_by_themselves_leave_room_to_blocks() {
        let mut claims = Claims::new(8, 4);
        for page in 0..4 {
            claims.enter(page, None);
            assert_eq!(claims.next(0), Some(page));
        }
        claims.evict([1, 2, 3].into_iter(), true);
        for page in 4..8 {
            claims.enter(page, None);
            assert_eq!(claims.next(3), None);
        }
        for (done, served) in [(1, 4), (2, 5)] {
            claims.leave(done);
            assert_eq!(claims.next(3), Some(served));
            assert_eq!(claims.next(3), None);
        }
        claims.leave(3);
        assert_eq!([(); 3].map(|()| claims.next(3)), [Some(6), Some(7), None]);
        assert_eq!(claims.into_rest(), (3, VecDeque::new()));
    }
}
