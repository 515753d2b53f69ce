//! Harmonia's reactive schemes (section 4.3.1). When one member must collect, other members collect at the same time.
//! In the inclusive scheme, all members collect. In the selective scheme, a member joins only if it would soon have to
//! collect anyway.

use super::scheme::{Coordinate, MemberView, Message, Round, Scheme};
use crate::component::{Component, Settings};
use crate::units::Time;

/// The scheme `inclusive` (reactive-inclusive): when a member has at most T_hard free blocks, all members collect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inclusive {
    round: Round,
}

impl Scheme for Inclusive {
    const COMPONENT: Component = Component {
        name: "inclusive",
        line: "when one must, all do (Harmonia, reactive inclusive)",
        parameters: &[],
    };

    fn new(_members: usize, _settings: &Settings) -> Inclusive {
        Inclusive::default()
    }
}

impl Coordinate for Inclusive {
    fn on_low_free_blocks(
        &mut self,
        _now: Time,
        members: &[MemberView],
        member: usize,
        out: &mut Vec<Message>,
    ) {
        let view = &members[member];
        if !self.round.running && view.lowest <= view.hard {
            self.round.begin(member, 0..members.len(), members, out);
        }
    }

    fn finished(&mut self, members: &[MemberView], _member: usize, _out: &mut Vec<Message>) {
        self.round.ends(members);
    }
}

/// The scheme `selective` (reactive-selective). A member that has at most T_soft free blocks is registered. When a
/// member has at most T_hard free blocks, a round begins: all registered members collect. If another member falls to
/// T_hard during the round, it collects on its own.
#[derive(Clone, Debug)]
pub(crate) struct Selective {
    registered: Vec<bool>,
    round: Round,
}

impl Scheme for Selective {
    const COMPONENT: Component = Component {
        name: "selective",
        line: "when one must, those registered do (Harmonia, reactive selective)",
        parameters: &[],
    };

    fn new(members: usize, _settings: &Settings) -> Selective {
        Selective {
            registered: vec![false; members],
            round: Round::default(),
        }
    }
}

impl Selective {
    /// Removes all members from the registered ones.
    pub fn clear(&mut self) {
        self.registered.fill(false);
    }

    /// Returns the registered members.
    pub fn registered(&self) -> impl Iterator<Item = usize> + '_ {
        let all = self.registered.iter().enumerate();
        all.filter(|(_, &registered)| registered).map(|(at, _)| at)
    }
}

impl Coordinate for Selective {
    fn on_low_free_blocks(
        &mut self,
        _now: Time,
        members: &[MemberView],
        member: usize,
        out: &mut Vec<Message>,
    ) {
        let view = &members[member];
        if view.lowest <= view.soft && !std::mem::replace(&mut self.registered[member], true) {
            out.push(Message::Participate { from: member });
        }
        if !self.round.running && view.lowest <= view.hard {
            // A member that is registered after the start of this round takes part in the next round.
            let registered: Vec<usize> = self.registered().collect();
            self.clear();
            self.round
                .begin(member, registered.into_iter(), members, out);
        }
    }

    fn finished(&mut self, members: &[MemberView], _member: usize, _out: &mut Vec<Message>) {
        self.round.ends(members);
    }
}
