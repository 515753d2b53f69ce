//! Time series of host requests, with one point per interval.

use super::host::Finished;
use crate::request::Op;
use crate::units::Time;

/// A point of the series: the requests that completed within one interval without an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Number of the interval, counted from the start of the measurement.
    pub interval: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Sum of the response times of reads, in ps.
    pub read_ps_sum: u64,
    /// Sum of the response times of writes, in ps.
    pub write_ps_sum: u64,
    /// Longest response time of a read or write, in ps.
    pub response_max: Time,
    /// Sum of the times that reads and writes waited for GC, in ps.
    pub queue_gc_ps_sum: u64,
    /// Number of page accesses by reads and writes.
    pub pages: u64,
    /// Number of page accesses that found their page in the buffer.
    pub hits: u64,
}

/// A time series: points in order of time. An interval in which no request completed has no point.
#[derive(Clone, Debug)]
pub struct Series {
    start: Time,
    interval: Time,
    end_of_last: Time,
    points: Vec<Point>,
}

impl Series {
    /// Creates a series that starts at `start`; `interval` must not be zero.
    pub fn new(start: Time, interval: Time) -> Series {
        assert!(interval > Time::ZERO, "a series needs an interval");
        Series {
            start,
            interval,
            end_of_last: start,
            points: Vec::new(),
        }
    }

    /// Returns the length of an interval.
    pub fn interval(&self) -> Time {
        self.interval
    }

    /// Returns the points.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    #[inline]
    pub(crate) fn record(&mut self, f: &Finished) {
        if f.done >= self.end_of_last {
            let interval = (f.done - self.start).0 / self.interval.0;
            let end = self.interval.0.saturating_mul(interval + 1);
            self.end_of_last = Time(end.saturating_add(self.start.0));
            self.points.push(Point {
                interval,
                ..Point::default()
            });
        }
        let Some(p) = self.points.last_mut() else {
            return;
        };
        let response = f.done - f.arrival;
        match f.op {
            Op::Read => {
                p.reads += 1;
                p.read_ps_sum = p.read_ps_sum.saturating_add(response.0);
            }
            Op::Write => {
                p.writes += 1;
                p.write_ps_sum = p.write_ps_sum.saturating_add(response.0);
            }
            Op::Trim | Op::Flush => return,
        }
        p.bytes += f.bytes;
        p.pages += f.pages as u64;
        p.hits += f.hits as u64;
        p.response_max = p.response_max.max(response);
        p.queue_gc_ps_sum = p.queue_gc_ps_sum.saturating_add(f.parts.breakdown().gc().0);
    }
}
