//! Harmonia's reactive schemes (section 4.3.1). If one member must collect, all members collect (inclusive), or those
//! that will soon have to (selective).

use super::scheme::{Coordinate, MemberView, Message, Round, Scheme};
use crate::component::{Component, Settings};
use crate::units::Time;

/// Reactive-inclusive: a member at T_hard makes all members collect.
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

/// Reactive-selective: a member at T_soft is registered; a member at T_hard makes all registered members collect. A
/// member that reaches T_hard during such a round collects on its own.
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
    /// Ends the registration of all members.
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
            // A member that registers during this round takes part in the next one.
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
