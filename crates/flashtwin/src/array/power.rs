//! What a power cut takes from members' volatile buffers, as pages of the array.

use super::layout::Stripe;
use super::member::State;
use super::raid::Raid;
use crate::units::Lpn;

impl Raid {
    /// Adds the pages whose newest contents no member would have on flash (D-92). A page with a copy
    /// that is not lost is not lost. A page of a missing member is, if its stripe lost anything.
    pub(super) fn lost_pages(&self, lost: &mut Vec<Lpn>) {
        let mut stripes: Vec<(Stripe, usize)> = Vec::new();
        for (at, member) in self.members.iter().enumerate() {
            if member.state != State::Failed {
                let pages = member.ssd.power_cut().lost;
                stripes.extend(pages.iter().map(|lpn| (Stripe(lpn.0), at)));
            }
        }
        stripes.sort_unstable();
        for of_one in stripes.chunk_by(|a, b| a.0 == b.0) {
            let stripe = of_one[0].0;
            let safe = |member: usize| {
                self.has(member, stripe) && of_one.iter().all(|&(_, lost)| lost != member)
            };
            for place in 0..self.layout.data() as u32 {
                let first = self.layout.data_member(stripe, place);
                if !(first..first + self.layout.copies as usize).any(safe) {
                    lost.push(self.layout.page_of(stripe, place));
                }
            }
        }
    }
}
