//! Simulation of the members of an array on several threads. The driver hands upcoming requests to the members' threads
//! before it submits these requests itself.

use flashtwin::{Request, Time};

use crate::run::{Driver, Pacing, CLOCK_MAX};
use crate::{Drivable, SimError, Threads};

impl<S: Drivable> Driver<'_, S> {
    /// Whether the driver may hand requests to the members' threads in advance. This requires several threads and an
    /// open loop.
    pub(crate) fn foresees(&self) -> bool {
        self.threads().0 > 1 && matches!(self.config.pacing, Pacing::Open { .. })
    }

    /// Hands as many of the next requests as possible to the members' threads, and returns their number. If it returns
    /// 0, the caller must submit the next request normally. Called only if [`Driver::foresees`] returns true.
    pub(crate) fn look_ahead(&mut self, rest: &[Request]) -> Result<usize, SimError> {
        // No request is passed on in three cases:
        //
        // - The run collects a history or a timeline, or checks the model; these read the flash between requests.
        // - The run has a limited span, so the instant of its end is not known in advance.
        // - A member's fault or a rebuild is pending.
        let looks = self.config.history
            || self.config.timeline.is_some()
            || self.config.check_requests.is_some();
        let ends = self.config.span_max.is_some();
        if looks || ends || self.agenda.next() != Time::NEVER {
            return Ok(0);
        }
        let exported_bytes = self.exported_bytes;
        let inside = |r: &&Request| r.offset.saturating_add(r.bytes) <= exported_bytes;
        if self.warming {
            let looks = self.submitted == self.warmup.look_at;
            let Some(first) = rest.first().filter(inside).filter(|_| looks) else {
                return Ok(0);
            };
            let at = self.due(first);
            self.check_clock(at)?;
            self.device.advance(at);
            self.drain(false)?;
            if !self.warmup_ends() {
                return Ok(0);
            }
            self.begin_measuring(at);
        }
        let limit = self.requests_max() - self.submitted;
        let limit = limit.min(rest.len() as u64) as usize;
        let mut foreseen: Vec<Request> = rest[..limit].iter().take_while(inside).copied().collect();
        for request in &mut foreseen {
            request.arrival = self.due(request);
        }
        foreseen.truncate(foreseen.partition_point(|request| request.arrival <= CLOCK_MAX));
        let threads = self.threads();
        if foreseen.is_empty() || !S::run_ahead(self.device, &foreseen, false, threads) {
            S::resume_serial(self.device);
            return Ok(0);
        }
        Ok(foreseen.len())
    }

    /// Lets the members' threads simulate all requests that they have received, to the end. Called when no further
    /// requests are known.
    pub(crate) fn end_ahead(&mut self) {
        let threads = self.threads();
        if threads.0 > 1 {
            S::run_ahead(self.device, &[], true, threads);
        }
    }

    fn threads(&self) -> Threads {
        Threads(self.config.threads as usize)
    }
}
