//! A member of an array.

use super::ahead::Ahead;
use super::raid::Chain;
use super::slow::Slow;
use crate::nand::Cause;
use crate::request::{Op, Request};
use crate::spec::DeviceSpec;
use crate::ssd::Ssd;
use crate::units::{Lpn, Time};

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
    /// What it has done before the array got there.
    pub ahead: Option<Box<Ahead>>,
    /// Requests to it that are not done.
    pub under_way: u32,
    /// The earliest instant of this member in the array's event queue.
    pub pending: Time,
    pub run: Run,
    pub slow: Slow,
}

impl Member {
    pub fn new(spec: &DeviceSpec) -> Member {
        let mut ssd = Ssd::new(spec);
        ssd.leave_measuring();
        Member {
            takes_pages: ssd.is_bare(),
            ahead: None,
            under_way: 0,
            ssd,
            state: State::There,
            rows: Rows::default(),
            volatile: spec.buffer.as_ref().is_some_and(|b| !b.is_protected()),
            pending: Time::NEVER,
            run: Run::default(),
            slow: Slow::default(),
        }
    }

    /// Asks for pages, or for something to be done about them; the answer will carry `tag`.
    #[inline]
    pub fn submit(&mut self, now: Time, (first, pages): (u32, u32), op: Op, fua: bool, tag: u32) {
        let cause = match op {
            Op::Read => Some(Cause::HostRead),
            Op::Write => Some(Cause::HostWrite),
            Op::Trim | Op::Flush => None,
        };
        match cause.filter(|_| self.takes_pages) {
            Some(cause) => (self.ssd).submit_pages(now, (Lpn(first), pages), (cause, fua), tag),
            None => {
                let page_bytes = u64::from(self.ssd.spec().geometry.page_bytes);
                let request = Request {
                    arrival: now,
                    offset: u64::from(first) * page_bytes,
                    bytes: u64::from(pages) * page_bytes,
                    op,
                    fua,
                };
                (self.ssd.submit(now, &request, tag.into()))
                    .expect("the layout stays within its members");
            }
        }
    }

    /// Lets all happen that is due by `now`; returns when the next thing is, [`Time::NEVER`] if
    /// there is none.
    #[inline]
    pub fn advance(&mut self, now: Time) -> Time {
        match self.ahead.is_some() {
            true => self.advance_along(now),
            false => self.own_advance(now),
        }
        self.next_event()
    }

    /// The same for what it does itself.
    #[inline]
    pub fn own_advance(&mut self, now: Time) {
        match self.takes_pages {
            true => self.ssd.advance_flash(now),
            false => self.ssd.advance(now),
        }
    }

    /// When the next thing happens there, [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next_event(&self) -> Time {
        let own = match &self.ahead {
            Some(ahead) if ahead.goes_along() => ahead.next_answer().min(self.own_next_event()),
            Some(ahead) => ahead.next_answer(),
            None => self.own_next_event(),
        };
        own.min(self.slow.next_answer())
    }

    /// The same of what it does itself.
    #[inline]
    pub fn own_next_event(&self) -> Time {
        match self.takes_pages {
            true => self.ssd.next_flash_event(),
            false => self.ssd.next_event().unwrap_or(Time::NEVER),
        }
    }

    /// Something it was sent is done and not taken yet.
    #[inline]
    pub fn has_answers(&mut self, now: Time) -> bool {
        let own = match &self.ahead {
            Some(ahead) => ahead.next_answer() <= now,
            None => !self.ssd.outside_done().is_empty() || !self.ssd.completions().is_empty(),
        };
        own || self.slow.next_answer() <= now
    }
}
