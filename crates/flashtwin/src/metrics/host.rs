//! Metrics of host requests: response times for each kind of request. They are checked by Little's law.

use hdrhistogram::Histogram;

use super::times::{PartSums, Parts, Times};
use super::Series;
use crate::request::{Breakdown, Completion, Op, Status};
use crate::units::Time;

/// Data of a finished request that the metrics record.
pub(crate) struct Finished<'a> {
    pub op: Op,
    pub status: Status,
    pub bytes: u64,
    pub pages: u32,
    pub hits: u32,
    pub arrival: Time,
    pub done: Time,
    pub parts: Parts<'a>,
}

impl Finished<'_> {
    fn of(c: &Completion) -> Finished<'_> {
        Finished {
            op: c.op,
            status: c.status,
            bytes: c.bytes,
            pages: c.pages,
            hits: c.hits,
            arrival: c.arrival,
            done: c.done,
            parts: Parts::from(&c.breakdown),
        }
    }
}

/// Response times of one kind of request. A refused or failed request is counted only in `refused` or `failed`.
#[derive(Clone, Debug, Default)]
pub struct OpMetrics {
    /// Requests completed without an error.
    pub requests: u64,
    /// Bytes of the requests completed without an error.
    pub bytes: u64,
    /// Page accesses of the requests completed without an error.
    pub pages: u64,
    /// Page accesses that hit the buffer.
    pub hits: u64,
    /// Requests refused because the device is read-only.
    pub refused: u64,
    /// Requests that ended with [`Status::Failed`], because an array or a die has lost their data.
    pub failed: u64,
    /// Sum of the squares of the response times, in ps squared. The type can hold the sum for 10^8 requests that take
    /// 1000 s each.
    pub response_ps_squares: u128,
    /// Longest response time so far.
    pub response_max: Time,
    /// Sums of the response times and of their parts.
    parts: PartSums,
    times: Times,
}

impl OpMetrics {
    /// Counts a request.
    #[inline]
    pub fn record(&mut self, c: &Completion) {
        self.count(&Finished::of(c));
    }

    /// Counts a request of any status.
    fn count(&mut self, f: &Finished) {
        match f.status {
            Status::Ok => {}
            Status::ReadOnly => return self.refused += 1,
            Status::Failed => return self.failed += 1,
        }
        if self.count_usual(f) {
            return;
        }
        let response = f.done - f.arrival;
        let squares = self.squares_with(response).unwrap_or(u128::MAX);
        self.parts.add(&f.parts, response);
        self.response_max = self.response_max.max(response);
        self.count_one(f, squares);
    }

    /// Counts a request in the usual case: the request has no error, its response time is not the longest so far, and
    /// no sum overflows. In other cases, counts nothing and returns false.
    #[inline(always)]
    fn count_usual(&mut self, f: &Finished) -> bool {
        let response = f.done - f.arrival;
        let whole = self.parts.last_whole_with(response);
        let squares = self.squares_with(response);
        let (Some(whole), Some(squares)) = (whole, squares) else {
            return false;
        };
        if f.status != Status::Ok || response > self.response_max {
            return false;
        }
        self.parts.add_last(&f.parts, whole);
        self.count_one(f, squares);
        true
    }

    /// Returns the sum of squares plus the square of one more response time; `None` if the sum overflows.
    #[inline(always)]
    fn squares_with(&self, response: Time) -> Option<u128> {
        let square = u128::from(response.0) * u128::from(response.0);
        self.response_ps_squares.checked_add(square)
    }

    /// Counts a request that has no error. Must be called after the parts of its response time were added. `squares` is
    /// the new sum of squares.
    #[inline(always)]
    fn count_one(&mut self, f: &Finished, squares: u128) {
        self.requests += 1;
        self.bytes += f.bytes;
        self.pages += f.pages as u64;
        self.hits += f.hits as u64;
        self.response_ps_squares = squares;
        self.times.record(f.done - f.arrival);
    }

    /// Returns the sum of the response times, in ps.
    pub fn response_ps_sum(&self) -> u128 {
        self.parts.whole()
    }

    /// Adds the requests that `other` has counted.
    pub fn merge(&mut self, other: &OpMetrics) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.pages += other.pages;
        self.hits += other.hits;
        self.refused += other.refused;
        self.failed += other.failed;
        let squares = self.response_ps_squares;
        self.response_ps_squares = squares.saturating_add(other.response_ps_squares);
        self.response_max = self.response_max.max(other.response_max);
        self.parts.merge(&other.parts);
        self.times.merge(&other.times);
    }

    /// Returns a histogram of the response times in ns.
    pub fn histogram_ns(&self) -> Histogram<u64> {
        self.times.histogram()
    }

    /// Returns the mean response time in microseconds; 0 if there are no requests.
    pub fn response_us_mean(&self) -> f64 {
        if self.requests == 0 {
            return 0.0;
        }
        self.response_ps_sum() as f64 / self.requests as f64 * 1e-6
    }

    /// Returns the standard deviation of the response time in microseconds, over all requests.
    pub fn response_us_deviation(&self) -> f64 {
        if self.requests == 0 {
            return 0.0;
        }
        let (n, sum, squares) = (
            u128::from(self.requests),
            self.response_ps_sum(),
            self.response_ps_squares,
        );
        // The variance times n squared. It is computed in whole numbers, so that equal times have a deviation of
        // exactly 0.
        let exact = (n.checked_mul(squares)).zip(sum.checked_mul(sum));
        let scaled = match exact {
            Some((of_squares, of_mean)) => of_squares.saturating_sub(of_mean) as f64,
            None => n as f64 * squares as f64 - (sum as f64).powi(2),
        };
        scaled.max(0.0).sqrt() / self.requests as f64 * 1e-6
    }

    /// Checks that there is one recorded response time per request, and that the sums of the parts of the response
    /// times add up to the sum of the response times.
    fn check(&self) -> Result<(), String> {
        let counted = self.times.requests();
        if counted != self.requests {
            return Err(format!(
                "{counted} response times of {} requests",
                self.requests
            ));
        }
        let (parts, whole) = (self.parts.all().iter().sum::<u128>(), self.parts.whole());
        match parts == whole {
            true => Ok(()),
            false => Err(format!(
                "the parts are {parts} ps, response times {whole} ps"
            )),
        }
    }

    /// Returns the mean of each part of the response time in microseconds.
    pub fn parts_us_mean(&self) -> Breakdown<f64> {
        let mean_us = |ps: u128| ps as f64 / self.requests.max(1) as f64 * 1e-6;
        Breakdown::from_parts(self.parts.all().map(mean_us))
    }
}

/// Metrics of all requests since the start of the measurement.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    since: Time,
    /// Whether requests are counted elsewhere, not here. For example, an array itself counts the requests to its
    /// members.
    elsewhere: bool,
    ops: [OpMetrics; 4],
    /// Number of requests in the device.
    inside: u64,
    /// Sum of the instants at which requests left the device, minus the sum of the instants at which they arrived, in
    /// ps and modulo 2^128. When no request is in the device, this difference is the integral over time of the number
    /// of requests in the device.
    inside_ps: u128,
    last_arrival: Time,
    /// Time that refused and failed requests spent in the device, in ps.
    errors_ps_sum: u128,
    series: Option<Series>,
    last_done: Time,
}

impl Metrics {
    /// Creates metrics for a measurement that starts at `since`. At this instant, no request may be in the device. If
    /// `interval` is given, the metrics include a time series with one point per interval.
    pub fn new(since: Time, interval: Option<Time>) -> Metrics {
        Metrics {
            since,
            last_arrival: since,
            last_done: since,
            series: interval.map(|interval| Series::new(since, interval)),
            ..Metrics::default()
        }
    }

    /// Moves the start of the measurement to `since`, but does not reset the counts of requests. Used when only the
    /// counters of the flash are reset.
    pub(crate) fn flash_since(&mut self, since: Time) {
        self.since = since;
    }

    /// Stops counting requests here, because they are counted elsewhere. (For members of an array, counting would take
    /// more time than executing the requests.)
    pub(crate) fn leave_requests(&mut self) {
        self.elsewhere = true;
    }

    /// Whether requests are counted elsewhere, not in these metrics.
    pub(crate) fn are_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// Counts an arriving request, unless requests are counted elsewhere. A caller that knows that they are counted
    /// here sets `here`, which saves a check.
    #[inline(always)]
    pub(crate) fn arrived(&mut self, now: Time, here: bool) {
        if !here && self.elsewhere {
            return;
        }
        self.inside_ps = self.inside_ps.wrapping_sub(u128::from(now.0));
        self.inside += 1;
        self.last_arrival = now;
    }

    /// Counts a finished request in the usual case. In other cases, counts nothing and returns false; the caller must
    /// then call [`Metrics::finished_unusually`]. `here` has the same meaning as for [`Metrics::arrived`].
    #[inline(always)]
    pub(crate) fn finished(&mut self, f: &Finished, here: bool) -> bool {
        if !here && self.elsewhere {
            return true;
        }
        if self.series.is_some() || !self.ops[f.op as usize].count_usual(f) {
            return false;
        }
        self.left(f.done);
        true
    }

    /// Counts a finished request in the general case: any status, with or without a time series.
    pub(crate) fn finished_unusually(&mut self, f: &Finished) {
        self.ops[f.op as usize].count(f);
        if f.status != Status::Ok {
            self.errors_ps_sum += (f.done - f.arrival).0 as u128;
        } else if let Some(series) = &mut self.series {
            series.record(f);
        }
        self.left(f.done);
    }

    /// Counts the departure of a request from the device.
    #[inline(always)]
    fn left(&mut self, now: Time) {
        self.inside_ps = self.inside_ps.wrapping_add(u128::from(now.0));
        self.inside -= 1;
        self.last_done = now;
        // Little's law: the times that all requests spent in the device sum to the integral over time of the number of
        // requests in the device. The two are exactly equal when no request is in the device.
        debug_assert!(
            self.inside > 0 || self.inside_ps() == self.response_ps_sum(),
            "Little's law"
        );
    }

    /// Returns the integral over time of the number of requests in the device, in ps. It ends at the last arrival or
    /// completion, whichever is later.
    fn inside_ps(&self) -> u128 {
        let until = self.last_arrival.max(self.last_done);
        let of_inside = u128::from(self.inside) * u128::from(until.0);
        self.inside_ps.wrapping_add(of_inside)
    }

    /// Returns the sum of the times that requests spent in the device, in ps. Requests with an error are included.
    pub fn response_ps_sum(&self) -> u128 {
        let ops = self.ops.iter().map(|o| o.response_ps_sum());
        ops.sum::<u128>() + self.errors_ps_sum
    }

    /// Returns the start of the measurement.
    pub fn since(&self) -> Time {
        self.since
    }

    /// Returns the time from the start of the measurement to the last completion.
    pub fn span(&self) -> Time {
        self.last_done - self.since
    }

    /// Returns the metrics of requests of one kind.
    pub fn op(&self, op: Op) -> &OpMetrics {
        &self.ops[op as usize]
    }

    /// Returns the metrics of reads and writes together.
    pub fn reads_and_writes(&self) -> OpMetrics {
        let mut both = self.op(Op::Read).clone();
        both.merge(self.op(Op::Write));
        both
    }

    /// Checks two equations:
    ///
    /// - The parts of the response times sum to the response times.
    /// - If no request is in the device, the integral over time of the number of requests in the device equals the sum
    ///   of the response times (Little's law).
    ///
    /// # Errors
    /// The error names the sums that differ.
    pub fn check(&self) -> Result<(), String> {
        for (op, name) in self.ops.iter().zip(["read", "write", "trim", "flush"]) {
            op.check().map_err(|what| format!("{name}: {what}"))?;
        }
        let (integral, whole) = (self.inside_ps(), self.response_ps_sum());
        match self.inside > 0 || integral == whole {
            true => Ok(()),
            false => Err(format!(
                "by Little's law requests were inside for {integral} ps, by their response times for {whole} ps"
            )),
        }
    }

    /// Returns the mean number of requests in the device, from the start of the measurement to the last completion.
    pub fn inside_mean(&self) -> f64 {
        if self.span() == Time::ZERO {
            return 0.0;
        }
        self.inside_ps() as f64 / self.span().0 as f64
    }

    /// Returns the time series; `None` if the metrics have none.
    pub fn series(&self) -> Option<&Series> {
        self.series.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[u64]) -> OpMetrics {
        let mut metrics = OpMetrics::default();
        for &ps in times {
            metrics.requests += 1;
            let parts = Breakdown::default();
            metrics.parts.add(&Parts::from(&parts), Time(ps));
            metrics.response_ps_squares += u128::from(ps) * u128::from(ps);
        }
        metrics
    }

    #[test]
    fn equal_response_times_do_not_deviate() {
        assert_eq!(of(&[24_037_500; 1000]).response_us_deviation(), 0.0);
        assert_eq!(of(&[1_000_000, 3_000_000]).response_us_deviation(), 1.0);
        // With times this large, the products exceed the range of `u128`, and are computed in floating point.
        let hour = 3_600_000_000_000_000;
        let mut many = of(&[hour, 3 * hour]);
        many.requests *= 1_000_000;
        let once = many.parts.clone();
        (1..1_000_000).for_each(|_| many.parts.merge(&once));
        many.response_ps_squares *= 1_000_000;
        assert!((many.response_us_deviation() / 3.6e9 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn sums_that_differ_are_found() {
        let of = |parts: u64, response: u64| {
            let mut op = OpMetrics {
                requests: 1,
                ..OpMetrics::default()
            };
            let parts = Breakdown {
                link: Time(parts),
                ..Breakdown::default()
            };
            op.parts.add(&Parts::from(&parts), Time(response));
            op.times.record(Time(response));
            op
        };
        assert!(of(5, 5).check().is_ok());
        assert!(of(4, 5).check().is_err());
        let uncounted = OpMetrics {
            requests: 2,
            ..of(5, 5)
        };
        assert!(uncounted.check().is_err());
        let of_read = |inside_ps| Metrics {
            ops: [of(5, 5), of(0, 0), of(0, 0), of(0, 0)],
            inside_ps,
            ..Metrics::default()
        };
        assert!(of_read(5).check().is_ok());
        assert!(of_read(6).check().is_err());
    }
}
