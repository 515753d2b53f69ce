//! One member collects at a time, so that the data of all other members can be read without delay. The idea is that of
//! TTFLASH (Yan et al., FAST 2017) and IODA (Li et al., SOSP 2021). Here, it is applied to whole members.
//!
//! A member requests a token when one of its pools has fallen to T_soft free blocks. Requests wait in a queue. The
//! holder of the token collects one block in each of its pools that have at most T_soft free blocks. It then passes the
//! token to the next member of the queue. A member that falls to T_hard while it waits collects without the token.
//! T_soft should be so far above T_hard that every member of the queue receives the token before it falls to T_hard.

use std::collections::VecDeque;

use super::scheme::{Coordinate, MemberView, Message, Scheme};
use crate::component::{Component, Settings};
use crate::gc::Force;
use crate::units::Time;

/// The scheme `turns`: the member that has the token collects, and then passes it to the next member of a queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    holder: Option<usize>,
    /// Members that wait for the token, in the order of their requests.
    line: VecDeque<usize>,
}

impl Scheme for Turns {
    const COMPONENT: Component = Component {
        name: "turns",
        line: "one member at a time",
        parameters: &[],
    };

    fn new(_members: usize, _settings: &Settings) -> Turns {
        Turns::default()
    }
}

impl Turns {
    fn next(&mut self, members: &[MemberView], out: &mut Vec<Message>) {
        self.holder = self.line.pop_front();
        if let Some(to) = self.holder {
            let force = Force {
                until: members[to].soft,
                once: false,
                single: true,
                yields: false,
            };
            out.push(Message::Force { to, force });
        }
    }
}

impl Coordinate for Turns {
    fn on_low_free_blocks(
        &mut self,
        _now: Time,
        members: &[MemberView],
        member: usize,
        out: &mut Vec<Message>,
    ) {
        let view = &members[member];
        if view.lowest > view.soft || self.holder == Some(member) || self.line.contains(&member) {
            return;
        }
        out.push(Message::Participate { from: member });
        self.line.push_back(member);
        if self.holder.is_none() {
            self.next(members, out);
        }
    }

    fn finished(&mut self, members: &[MemberView], member: usize, out: &mut Vec<Message>) {
        if self.holder == Some(member) {
            self.next(members, out);
        }
    }
}
