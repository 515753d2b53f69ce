//! A member of an array.

use super::layout::Stripe;
use super::raid::Chain;
use crate::request::Op;
use crate::spec::DeviceSpec;
use crate::ssd::Ssd;
use crate::units::Time;

/// Pages that follow each other, on their way to becoming one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub first: u32,
    pub pages: u32,
    pub op: Op,
    pub fua: bool,
    pub chain: Chain,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            first: 0,
            pages: 0,
            op: Op::Read,
            fua: false,
            chain: Chain::EMPTY,
        }
    }
}

/// How much of a member is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    There,
    Failed,
}

/// A member.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub ssd: Ssd,
    pub state: State,
    /// The earliest instant of this member in the array's event queue.
    pub pending: Time,
    pub run: Run,
}

impl Member {
    pub fn new(spec: &DeviceSpec) -> Member {
        Member {
            ssd: Ssd::new(spec),
            state: State::There,
            pending: Time::NEVER,
            run: Run::default(),
        }
    }

    /// The member holds what belongs there of a stripe.
    #[inline]
    pub fn has(&self, _stripe: Stripe) -> bool {
        self.state == State::There
    }
}
