//! A member of an array.

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
    /// New; the rows that [`Member::rows`] knows are there.
    Rebuilding,
}

/// Rows of a member that are there again.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    bits: Vec<u64>,
    pub there: u32,
    /// Rows in all.
    pub of: u32,
}

impl Rows {
    pub fn none(of: u32) -> Rows {
        Rows {
            bits: vec![0; of.div_ceil(64) as usize],
            there: 0,
            of,
        }
    }

    #[inline]
    pub fn contain(&self, row: u32) -> bool {
        self.bits[row as usize / 64] >> (row % 64) & 1 == 1
    }

    /// Adds a row, which may be there; true if all are.
    pub fn add(&mut self, row: u32) -> bool {
        self.there += u32::from(!self.contain(row));
        self.bits[row as usize / 64] |= 1 << (row % 64);
        self.there == self.of
    }

    /// The first row from `from` on that is not there.
    pub fn lacking_from(&self, from: u32) -> Option<u32> {
        (from..self.of).find(|&row| !self.contain(row))
    }
}

/// A member.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub ssd: Ssd,
    pub state: State,
    /// What is there while it is being rebuilt.
    pub rows: Rows,
    /// It has a buffer that a power cut empties.
    pub volatile: bool,
    /// Reads and writes go to its flash page by page: its front end takes no time.
    pub takes_pages: bool,
    /// Requests to it that are not done.
    pub under_way: u32,
    /// The earliest instant of this member in the array's event queue.
    pub pending: Time,
    pub run: Run,
}

impl Member {
    pub fn new(spec: &DeviceSpec) -> Member {
        let mut ssd = Ssd::new(spec);
        ssd.leave_measuring();
        Member {
            takes_pages: ssd.is_bare(),
            under_way: 0,
            ssd,
            state: State::There,
            rows: Rows::default(),
            volatile: spec.buffer.as_ref().is_some_and(|b| !b.is_protected()),
            pending: Time::NEVER,
            run: Run::default(),
        }
    }

    /// Something it was sent is done and not taken yet.
    #[inline]
    pub fn has_answers(&mut self) -> bool {
        !self.ssd.outside_done().is_empty() || !self.ssd.completions().is_empty()
    }
}
