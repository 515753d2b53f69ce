//! Random replacement that prefers clean pages: an example of a user-defined policy for flashtwin's
//! device.
//!
//! Insertions and hits do not rank pages. To find a victim, up to `DRAWS` pages are examined, beginning with a random
//! one. The first clean page among them is the victim, because it need not be written back. If none is clean, the page
//! examined first is the victim.

use flashtwin::buffer::{pages_text, Access, DeviceView, Eviction, PageId, Policy, Skip};
use flashtwin::Rng;

/// Largest number of pages examined in the search for a clean page.
const DRAWS: usize = 8;

/// The policy of random replacement.
#[derive(Clone, Debug)]
pub struct Random {
    rng: Rng,
    held: Vec<PageId>,
    /// For each page, its position in `held`. Page numbers are small and reused, so an array is sufficient.
    places: Vec<usize>,
}

impl Random {
    /// Creates the policy of an empty buffer; the seed makes runs repeatable.
    pub fn new(seed: u64) -> Random {
        Random {
            rng: Rng::new(seed),
            held: Vec::new(),
            places: Vec::new(),
        }
    }

    fn remove(&mut self, page: PageId) {
        let place = self.places[page.0 as usize];
        self.held.swap_remove(place);
        if let Some(moved) = self.held.get(place) {
            self.places[moved.0 as usize] = place;
        }
    }
}

impl Policy for Random {
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        let number = page.0 as usize;
        if number >= self.places.len() {
            self.places.resize(number + 1, 0);
        }
        self.places[number] = self.held.len();
        self.held.push(page);
    }

    fn hit(&mut self, _device: &dyn DeviceView, _page: PageId, _access: &Access) {}

    fn forget(&mut self, page: PageId) {
        self.remove(page);
    }

    /// Pages that `skip` excludes are not candidates, so that the policy also works under GCaR.
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let first = self.rng.below(self.held.len() as u64) as usize;
        let mut victim = None;
        let mut draws = 0;
        for i in 0..self.held.len() {
            let page = self.held[(first + i) % self.held.len()];
            if skip.page(device, page) {
                out.skipped = true;
                continue;
            }
            draws += 1;
            if !device.dirty(page) {
                victim = Some(page);
                break;
            }
            victim = victim.or(Some(page));
            if draws == DRAWS {
                break;
            }
        }
        let Some(page) = victim else {
            return false;
        };
        self.remove(page);
        out.one(page, draws as u64);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        pages_text(device, self.held.iter().copied())
    }
}
