//! Timeline of an array: operations on members, the requests that caused them, and orders to run
//! GC.

use flashtwin::{ArrayEvent, GcMessage, Op, SentFor, Time};

use super::super::slices::{Detail, Shown, Track};
use super::{name_of, Collector};

impl Collector {
    pub(super) fn array(&mut self, event: &ArrayEvent, now: Time) {
        match event {
            &ArrayEvent::Asked { op, request, .. } => {
                self.ops.insert(op, request);
            }
            &ArrayEvent::Hedged { op, twin } => {
                if let Some(&request) = self.ops.get(&op) {
                    self.ops.insert(twin, request);
                }
            }
            &(ArrayEvent::Answered { op } | ArrayEvent::Late { op }) => {
                self.ops.remove(&op);
            }
            ArrayEvent::Begun { job, ops, .. } => {
                let requests = self.requests_of(ops);
                self.jobs.insert(*job, requests);
            }
            ArrayEvent::Sent {
                part,
                member,
                first,
                pages,
                op,
                on_behalf,
                number,
            } => {
                let (requests, why) = match on_behalf {
                    SentFor::Pages(ops) => (self.requests_of(ops), "pages"),
                    SentFor::Job { job, .. } => {
                        (self.jobs.get(job).cloned().unwrap_or_default(), "stripe")
                    }
                    SentFor::Rows { .. } => (Vec::new(), "rebuild"),
                    SentFor::Parity => (Vec::new(), "parity"),
                    SentFor::Move { .. } => (Vec::new(), "move"),
                };
                self.sent(*part, (*member, *number), *op, (*first, *pages), why, now);
                let part = self.requests.get(&(Some(*member), *number)).copied();
                for request in part.iter().flat_map(|_| &requests) {
                    self.link((None, *request), part.unwrap_or_default());
                }
            }
            ArrayEvent::Came { part } => {
                if let Some(id) = self.parts.remove(part) {
                    self.slice(id).end = Some(now);
                }
            }
            &ArrayEvent::Failed { member } => self.lost(member, now),
            &ArrayEvent::Message { what, member } => self.message(what, member, now),
            &ArrayEvent::Collected { member } => {
                self.end(ordered(member), now);
            }
            ArrayEvent::Forgotten { .. }
            | ArrayEvent::FromMemory { .. }
            | ArrayEvent::Unwritten { .. }
            | ArrayEvent::Replaced { .. }
            | ArrayEvent::Rebuilt { .. } => {}
        }
    }

    fn requests_of(&self, ops: &[u32]) -> Vec<u32> {
        let mut requests: Vec<u32> = ops
            .iter()
            .filter_map(|op| self.ops.get(op).copied())
            .collect();
        requests.sort_unstable();
        requests.dedup();
        requests
    }

    fn sent(
        &mut self,
        part: u32,
        (member, number): (usize, u32),
        op: Op,
        (first, pages): (u32, u32),
        why: &'static str,
        now: Time,
    ) {
        let asked = (Some(member), number);
        self.requests.remove(&asked);
        if !self.takes(now) {
            return;
        }
        let track = Track {
            member: Some(member),
            shown: Shown::Requests,
        };
        let id = self.add(track, name_of(op), now);
        self.requests.insert(asked, id);
        self.parts.insert(part, id);
        for (key, number) in [("request", number), ("lpn", first), ("pages", pages)] {
            self.detail(id, key, Detail::Number(number.into()));
        }
        self.detail(id, "for", Detail::Word(why));
    }

    fn message(&mut self, what: GcMessage, member: usize, now: Time) {
        let name = match what {
            GcMessage::Participate => "PARTICIPATE_GGC",
            GcMessage::Request => "REQUEST_GGC",
            GcMessage::Force => "FORCE_GC",
            GcMessage::Cancel => "cancel",
        };
        let track = Track {
            member: None,
            shown: Shown::Messages,
        };
        if let Some(message) = self.instant(track, name, now) {
            let member = Detail::Number(member as u64);
            message.details.push(("member", member));
        }
        match what {
            GcMessage::Force if !self.open.contains_key(&ordered(member)) => {
                self.begin(ordered(member), "ordered to collect", now);
            }
            GcMessage::Cancel => {
                self.end(ordered(member), now);
            }
            _ => {}
        }
    }

    /// Ends all operations of a member that has failed.
    fn lost(&mut self, member: usize, now: Time) {
        let of_member = |track: &Track| track.member == Some(member);
        let mut ended: Vec<Track> = self.open.keys().copied().filter(of_member).collect();
        ended.sort_unstable();
        for track in ended {
            self.end(track, now);
        }
        self.held.retain(|track, _| !of_member(track));
        let slices = &mut self.all.slices;
        self.parts.retain(|_, id| {
            let slice = &mut slices[*id as usize];
            let stays = !of_member(&slice.track);
            if !stays {
                slice.end = Some(now);
                slice.details.push(("lost", Detail::Yes));
            }
            stays
        });
        self.requests.retain(|asked, _| asked.0 != Some(member));
    }
}

fn ordered(member: usize) -> Track {
    Track {
        member: Some(member),
        shown: Shown::Ordered,
    }
}
