//! What a server says of itself, while it serves and at its end.

use flashtwin::metrics::Metrics;
use flashtwin::Op;
use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest lateness told apart; what is later counts as this.
const LATENESS_NS_MAX: u64 = 3_600_000_000_000;

/// Response times of the device, of one kind of request, in microseconds of its own time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CallCounts {
    /// How many were answered.
    pub requests: u64,
    /// Bytes they asked for.
    pub bytes: u64,
    /// Half of them took no longer.
    pub p50_us: f64,
    /// 99 % of them.
    pub p99_us: f64,
    /// 99.9 %.
    pub p999_us: f64,
}

/// The same of every kind, as the model has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Responses {
    /// Reads.
    pub read: CallCounts,
    /// Writes.
    pub write: CallCounts,
    /// Trims.
    pub trim: CallCounts,
    /// Flushes.
    pub flush: CallCounts,
}

impl Responses {
    pub(crate) fn of(metrics: &Metrics) -> Responses {
        let of = |op| {
            let of = metrics.op(op);
            let us = |q| of.histogram_ns.value_at_quantile(q) as f64 / 1e3;
            CallCounts {
                requests: of.requests,
                bytes: of.bytes,
                p50_us: us(0.5),
                p99_us: us(0.99),
                p999_us: us(0.999),
            }
        };
        Responses {
            read: of(Op::Read),
            write: of(Op::Write),
            trim: of(Op::Trim),
            flush: of(Op::Flush),
        }
    }
}

/// How much later than the device had finished them calls returned, in microseconds of the wall.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lateness {
    /// Calls counted.
    pub calls: u64,
    /// Half of them were no later.
    pub p50_us: f64,
    /// 99 % of them.
    pub p99_us: f64,
    /// 99.9 %.
    pub p999_us: f64,
    /// The latest.
    pub max_us: f64,
}

/// Collects it.
#[derive(Clone, Debug)]
pub(crate) struct LatenessLog(Histogram<u64>);

impl Default for LatenessLog {
    fn default() -> LatenessLog {
        let histogram = Histogram::new_with_bounds(1, LATENESS_NS_MAX, 3);
        LatenessLog(histogram.expect("the bounds are constants that the histogram takes"))
    }
}

impl LatenessLog {
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    pub fn summary(&self) -> Lateness {
        let us = |q| self.0.value_at_quantile(q) as f64 / 1e3;
        Lateness {
            calls: self.0.len(),
            p50_us: us(0.5),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: self.0.max() as f64 / 1e3,
        }
    }
}

/// All that a server says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The device's name.
    pub device: String,
    /// Bytes that clients see.
    pub exported_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// How many times slower than the wall's its time passes.
    pub dilation: f64,
    /// Since the server's start, in seconds of the wall.
    pub elapsed_s: f64,
    /// Calls under way.
    pub waiting: usize,
    /// It takes no more writes.
    pub read_only: bool,
    /// Before an instant the pacer spins so long.
    pub spin_margin_us: f64,
    /// Of all calls.
    pub lateness: Lateness,
    /// As the device has it.
    pub responses: Responses,
}
