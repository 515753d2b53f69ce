//! Power loss: the data that the device loses, and the orderly shutdown before a power loss.

use std::collections::HashSet;

use super::page::Program;
use crate::device::{Backend, Device};
use crate::request::{Op, Request};
use crate::units::Lpn;

/// Losses caused by a power loss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    /// Logical pages whose newest contents are lost, in ascending order. Of all other pages, the contents acknowledged
    /// to the host survive.
    pub lost: Vec<Lpn>,
    /// Number of host requests that were not finished.
    pub unfinished: usize,
}

impl<B: Backend> Device<B> {
    /// Writes the contents of the buffer to flash, as a drive does when it is notified of a power loss in advance. This
    /// includes the contents of protected memory. They are written by a flush, whose completion is in
    /// [`Device::completions`]. Processes at most `steps` events, and returns how many of these are left.
    pub fn shut_down(&mut self, mut steps: u64) -> u64 {
        let protected = std::mem::take(&mut self.cache.protected);
        let flush = Request {
            arrival: self.now,
            offset: 0,
            bytes: 0,
            op: Op::Flush,
            fua: false,
            ..Request::default()
        };
        // Events that are due at this instant are processed before the flush.
        self.advance(self.now);
        // The result is ignored: a flush has no address that could be invalid.
        let _ = self.submit(self.now, &flush, u64::MAX);
        while self.outstanding() > 0 && steps > 0 && self.step() {
            steps -= 1;
        }
        self.cache.protected = protected;
        steps
    }

    /// Writes the contents of protected memory to flash after a power loss, by [`Device::shut_down`]. Adds pages that
    /// cannot be written to the lost pages of `cut`.
    pub(in crate::device) fn write_protected(&mut self, cut: &mut PowerCut, steps: u64) -> u64 {
        self.cache.lost = Some(Vec::new());
        let steps = self.shut_down(steps);
        cut.lost
            .extend(self.cache.lost.take().into_iter().flatten());
        cut.lost.sort_unstable();
        cut.lost.dedup();
        steps
    }

    /// Returns the data that would be lost in a power loss at this instant:
    ///
    /// - data in the volatile memory of an array's members,
    /// - data that are in the buffer but not in flash, if the buffer memory is volatile and not protected.
    ///
    /// A running program counts as not done. Trimmed pages do not count as lost.
    pub fn power_cut(&self) -> PowerCut {
        let unfinished = self.requests.len();
        let mut lost = Vec::new();
        self.backend.lost(&mut lost);
        if self.cache.present {
            let ids = self.cache.unstable_pages();
            let pages = ids.iter().map(|&id| &self.cache.pages[id as usize]);
            let held = pages
                .filter(|p| p.dirty || !matches!(p.program, Program::Running { trimmed: true, .. }))
                .map(|p| p.lpn);
            match self.cache.protected {
                false => lost.extend(held),
                // A page that a member would lose survives if it is in the protected buffer: the buffer's copy is
                // newer.
                true => {
                    let held: HashSet<Lpn> = held.collect();
                    lost.retain(|lpn| !held.contains(lpn));
                }
            }
        }
        lost.sort_unstable();
        lost.dedup();
        PowerCut { lost, unfinished }
    }
}
