//! The SSD of a member, asked page by page where its front end takes no time.

use crate::nand::Cause;
use crate::request::{Op, Request};
use crate::spec::DeviceSpec;
use crate::ssd::Ssd;
use crate::units::{Lpn, Time};

/// An SSD, and how it is asked.
#[derive(Clone, Debug)]
pub(crate) struct Drive {
    pub ssd: Ssd,
    /// Reads and writes go to its flash page by page: its front end takes no time.
    pub takes_pages: bool,
}

impl Drive {
    pub fn new(spec: &DeviceSpec) -> Drive {
        let mut ssd = Ssd::new(spec);
        ssd.leave_measuring();
        Drive {
            takes_pages: ssd.is_bare(),
            ssd,
        }
    }

    /// Asks for pages, or for something to be done about them; the response will carry `tag`.
    #[inline(always)]
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

    /// Lets all happen that is due by `now`.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        match self.takes_pages {
            true => self.ssd.advance_flash(now),
            false => self.ssd.advance(now),
        }
    }

    /// When the next thing happens there, [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub fn next_event(&self) -> Time {
        match self.takes_pages {
            true => self.ssd.next_flash_event(),
            false => self.ssd.next_event().unwrap_or(Time::NEVER),
        }
    }

    /// Something it was sent is done and not taken yet.
    #[inline(always)]
    pub fn has_answers(&mut self) -> bool {
        !self.ssd.outside_done().is_empty() || !self.ssd.completions().is_empty()
    }
}
