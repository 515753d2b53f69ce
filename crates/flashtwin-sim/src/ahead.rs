//! Members of an array on several threads: the driver passes on requests before it submits them.

use flashtwin::{Request, Time};

use crate::run::{Driver, Pacing, CLOCK_MAX};
use crate::{Drivable, SimError, Threads};

impl<S: Drivable> Driver<'_, S> {
    /// Whether the driver simulates members ahead at all.
    pub(crate) fn foresees(&self) -> bool {
        self.threads().0 > 1 && matches!(self.config.pacing, Pacing::Open { .. })
    }

    /// Simulates the next requests ahead, as many as possible, and returns their number. With 0, the next request
    /// must be submitted normally. Called only if [`Driver::foresees`].
    pub(crate) fn look_ahead(&mut self, rest: &[Request]) -> Result<usize, SimError> {
        // Members cannot be simulated ahead in two cases. History, timeline and checks read the
        // flash between requests; and a limited span ends at an instant that is not known in
        // advance.
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

    /// Simulates the requests passed on so far to the end, because no further ones are known.
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
