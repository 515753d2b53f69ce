//! Judges units that a trace does not state by what comes out of them: how fast a host would have
//! to be, how large the drive. Only the text layouts whose files are found with several units are
//! judged (D-190).

use super::collector::{Collector, Record};
use super::format::{Certainty, Reader};
use super::input::Source;
use super::lines::Decoder;
use super::options::{AddressUnit, TimeUnit, TraceOptions};

/// Fewer requests are too few to judge from.
const REQUESTS_MIN: usize = 3;
/// Requests of the file's first bytes that are looked at.
const REQUESTS_MAX: usize = 4096;
/// Ticks in one unit of the sample's time, so that decimals are kept.
pub(crate) const TICKS: u64 = 1_000_000;
/// Recorded loads have mean rates between these, requests a second.
const USUAL_RATE: std::ops::RangeInclusive<f64> = 0.1..=1e5;
/// A coarse clock with a mean gap below this many of its units counts milliseconds.
const COARSE_GAP_MAX: f64 = 100.0;
/// Most requests that a host sends in a second.
const RATE_MAX: f64 = 1e7;
/// Largest capacity of a drive: 256 TiB.
const DRIVE_MAX_BYTES: u128 = 1 << 48;
/// Requests are rarely larger on average: 1 MiB.
const USUAL_MEAN_BYTES: u128 = 1 << 20;
const SECTOR_BYTES: u64 = 512;

/// Statistics of the first requests of a trace, in whatever units their columns have.
pub(crate) struct Sample {
    requests: usize,
    /// Mean gap between requests, in units of the time column; at least one tick.
    gap: f64,
    /// A tenth of the gaps are of one unit or none: the clock is coarse.
    coarse: bool,
    /// Whether all times are multiples of 100: the clock's unit is then larger than the column's.
    hundreds: bool,
    /// Whether all addresses and sizes are multiples of 512.
    whole_sectors: bool,
    mean_size: u128,
    extent: u64,
}

/// The units to read with, and what is doubtful about them.
pub(crate) struct Judged {
    pub time: TimeUnit,
    pub address: AddressUnit,
    pub doubts: Vec<String>,
}

/// Reads the first requests with `decoder`, which must count time in `TICKS` a unit and addresses
/// in ones. `None` if there are too few.
pub(crate) fn sample(
    mut head: Source,
    mut decoder: Box<dyn Decoder>,
    opts: &TraceOptions,
) -> Option<Sample> {
    let mut collector = Collector::new(opts.volumes.clone(), Some(REQUESTS_MAX as u64));
    // A line that does not read is reported by the reader that comes after.
    let _ = decoder.decode(&mut head, &mut collector, REQUESTS_MAX);
    let records: Vec<Record> = collector
        .pending
        .into_iter()
        .filter(|r| r.bytes > 0)
        .collect();
    let requests = records.len();
    if requests < REQUESTS_MIN {
        return None;
    }
    let mut times: Vec<u128> = records.iter().map(|r| r.time).collect();
    times.sort_unstable();
    let ticks = u128::from(TICKS);
    let small = times.windows(2).filter(|w| w[1] - w[0] <= ticks).count();
    let span = times[requests - 1] - times[0];
    Some(Sample {
        requests,
        gap: span.max(1) as f64 / TICKS as f64 / (requests - 1) as f64,
        coarse: small * 10 >= requests - 1,
        hundreds: times
            .iter()
            .all(|t| (t - times[0]).is_multiple_of(100 * ticks)),
        whole_sectors: records
            .iter()
            .all(|r| (r.offset | r.bytes) % SECTOR_BYTES == 0),
        mean_size: records.iter().map(|r| u128::from(r.bytes)).sum::<u128>() / requests as u128,
        extent: records.iter().map(|r| r.offset).max().unwrap_or(0),
    })
}

impl Sample {
    fn rate(&self, unit: TimeUnit) -> f64 {
        1e12 / (self.gap * unit.ps() as f64)
    }

    /// The most plausible time unit of DiskSim's columns, and whether it is doubtful.
    fn time_unit(&self, decimal_point: bool) -> (TimeUnit, bool) {
        use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Seconds};
        let usual = |unit: &TimeUnit| USUAL_RATE.contains(&self.rate(*unit));
        if decimal_point {
            // DiskSim prints milliseconds with a decimal point.
            let found = [Milliseconds, Seconds, Microseconds]
                .into_iter()
                .find(usual);
            let unit = found.unwrap_or(Milliseconds);
            return (unit, unit != Milliseconds || found.is_none());
        }
        if self.coarse && self.gap < COARSE_GAP_MAX && usual(&Milliseconds) {
            return (Milliseconds, true);
        }
        let found = [Nanoseconds, Microseconds, Milliseconds]
            .into_iter()
            .find(usual);
        let unit = found.unwrap_or(Nanoseconds);
        let settled = unit == Nanoseconds
            && found.is_some()
            && (self.hundreds || self.rate(Microseconds) < *USUAL_RATE.start());
        (unit, !settled)
    }

    /// The most plausible address unit where the layout prescribes sectors, and whether it is doubtful.
    fn address_unit(&self) -> (AddressUnit, bool) {
        let sector = u128::from(SECTOR_BYTES);
        let beyond = u128::from(self.extent) * sector > DRIVE_MAX_BYTES;
        let large = self.mean_size * sector > USUAL_MEAN_BYTES;
        if beyond || self.whole_sectors && large {
            return (AddressUnit::Bytes, true);
        }
        (AddressUnit::Sectors, self.whole_sectors || large)
    }
}

/// Chooses the units. A unit given in the options stays; that of a format given by name stays too,
/// and is only called doubtful.
pub(crate) fn judge(sample: &Sample, reader: &Reader, opts: &TraceOptions) -> Judged {
    let guessed = opts.format.is_none();
    let (any_time, decimal_point) = match reader.units {
        Certainty::Both { decimal_point } => (true, decimal_point),
        Certainty::Address | Certainty::Certain => (false, false),
    };
    let mut doubts = Vec::new();
    let time = opts.time_unit.unwrap_or_else(|| {
        let (plausible, doubtful) = sample.time_unit(decimal_point);
        let unit = if guessed && any_time {
            plausible
        } else {
            reader.time
        };
        let rate = sample.rate(unit);
        if rate > RATE_MAX || guessed && any_time && doubtful {
            doubts.push(format!(
                "the time unit is uncertain: in {unit} the first {} requests come at {}; if that is wrong, \
                 give time_unit (--time-unit s|ms|us|ns)",
                sample.requests,
                per_second(rate)
            ));
        }
        unit
    });
    let address = opts.address_unit.unwrap_or_else(|| {
        let (plausible, doubtful) = sample.address_unit();
        let unit = if guessed { plausible } else { reader.address };
        if doubtful {
            let multiples = if sample.whole_sectors {
                "all addresses and sizes are multiples of 512; "
            } else {
                ""
            };
            doubts.push(format!(
                "the address unit is uncertain: {multiples}in {unit} the mean size is {} bytes and the highest \
                 address {} bytes; if that is wrong, give address_unit (--address-unit bytes|sectors)",
                sample.mean_size * u128::from(unit.bytes()),
                u128::from(sample.extent) * u128::from(unit.bytes()),
            ));
        }
        unit
    });
    Judged {
        time,
        address,
        doubts,
    }
}

fn per_second(rate: f64) -> String {
    if rate >= 10.0 {
        format!("{rate:.0} requests/s")
    } else {
        format!("{rate:.3} requests/s")
    }
}
