//! What a power cut takes from members' volatile buffers, as pages of the array; and flushes, that have
//! them written before.

use super::layout::{Spot, Stripe};
use super::log::{ArrayEvent, SentFor};
use super::member::State;
use super::raid::{Chain, Raid};
use super::stripes::{Kind, Phase};
use crate::events::EventQueue;
use crate::request::Op;
use crate::units::{Lpn, Time};

impl Raid {
    /// Has the operation done once all that members were told is written is on their flash.
    pub(super) fn flush_members(&mut self, op: u32, now: Time, events: &mut EventQueue) {
        let mut chain = Chain::EMPTY;
        self.append(&mut chain, op);
        let id = self.new_job(Kind::Flush, Stripe(0), 0, (chain, true));
        self.job_goes_on(id, Phase::Writing, 0);
        for member in 0..self.members.len() {
            let m = &self.members[member];
            if !m.volatile || m.state == State::Failed {
                continue;
            }
            self.one_more_part(id);
            let to = (id, Chain::EMPTY);
            let part = self.send(member, (0, 0), Op::Flush, false, to, now, events);
            self.tell(|raid| ArrayEvent::Sent {
                part,
                member,
                first: 0,
                pages: 0,
                op: Op::Flush,
                on_behalf: SentFor::Job { job: id, place: 0 },
                number: raid.number_at(member),
            });
        }
        if self.parts_left(id) == 0 {
            self.end(id, now, events);
        }
    }

    /// Adds the pages whose newest contents no member would have on flash (D-92). A page with a copy
    /// that is not lost is not lost. A page of a missing member is, if its stripe lost anything.
    pub(super) fn lost_pages(&self, lost: &mut Vec<Lpn>) {
        if let Some(swan) = &self.swan {
            for (member, at) in self.members.iter().zip(0..) {
                let pages = member.ssd.power_cut().lost.into_iter();
                let spots = pages.map(|lpn| Spot { member: at, lpn });
                lost.extend(spots.filter_map(|spot| swan.volume.page_at(spot)));
            }
            return;
        }
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
