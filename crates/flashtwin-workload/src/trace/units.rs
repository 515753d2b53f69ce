//! Chooses the units of a trace that does not state them. Units are judged by the request rate and the size of the
//! drive that would result. Only text layouts that are in use with several units are judged (D-190).

use super::collector::{Collector, Record};
use super::format::{Certainty, Reader};
use super::input::Source;
use super::lines::Decoder;
use super::options::{AddressUnit, TimeUnit, TraceOptions};

/// Smallest number of requests from which units are judged.
const REQUESTS_MIN: usize = 3;
/// Largest number of requests at the start of the file that are examined.
const REQUESTS_MAX: usize = 4096;
/// Number of ticks per unit of the time column in the sample. Ticks are so short that they preserve decimals.
pub(crate) const TICKS: u64 = 1_000_000_000_000;
/// Number of ticks in 10^-9 of a unit of the time column (the ninth decimal place). The next constant is that for the
/// sixth.
const NINTH: u128 = 1_000;
const SIXTH: u128 = 1_000_000;
/// Range of the mean rates that recorded loads usually have, in requests per second.
const USUAL_RATE: std::ops::RangeInclusive<f64> = 0.1..=1e5;
/// Lowest rate, in requests per second, at which decimal times may be seconds.
const SECONDS_RATE_MIN: f64 = 1.0;
/// With a coarse clock, times are taken as milliseconds if the mean gap is below this many units of the time column.
const COARSE_GAP_MAX: f64 = 100.0;
/// Largest plausible rate of a host, in requests per second.
const RATE_MAX: f64 = 1e7;
/// Largest capacity of a drive: 256 TiB.
const DRIVE_MAX_BYTES: u128 = 1 << 48;
/// Largest usual mean size of requests: 1 MiB.
const USUAL_MEAN_BYTES: u128 = 1 << 20;
const SECTOR_BYTES: u64 = 512;
/// Smallest number of distinct addresses whose remainders modulo [`PAGE_SECTORS`] are judged. With fewer addresses,
/// the remainders do not show whether the addresses are object numbers.
const OBJECTS_MIN: usize = 64;
/// Sectors in a page of 4 KiB. Most requests to a device begin at the start of such a page.
const PAGE_SECTORS: u64 = 8;

/// Statistics of the first requests of a trace, in the unknown units of its columns.
pub(crate) struct Sample {
    requests: usize,
    /// Mean gap between requests, in units of the time column; at least one tick.
    gap: f64,
    /// Whether the clock is coarse: at least a tenth of the gaps are one unit or less.
    coarse: bool,
    /// Whether all times are multiples of 100. This suggests a clock whose unit is larger than that of the column.
    hundreds: bool,
    /// Whether all times have at most nine decimals, and some have more than six. This suggests seconds that were
    /// printed from a clock in nanoseconds.
    nine_decimals: bool,
    /// Whether the times of the requests differ.
    timed: bool,
    /// Whether all addresses and sizes are multiples of 512.
    whole_sectors: bool,
    /// Whether the addresses are numbers of objects.
    objects: bool,
    size_max: u64,
    mean_size: u128,
    extent: u64,
}

/// The chosen units, and warnings about them.
pub(crate) struct Judged {
    pub time: TimeUnit,
    pub address: AddressUnit,
    pub doubts: Vec<String>,
}

/// Reads the first requests of a trace. `decoder` must have `TICKS` as the unit of time and one byte as the unit of
/// addresses. Returns `None` if there are too few requests.
pub(crate) fn sample(
    mut head: Source,
    mut decoder: Box<dyn Decoder>,
    opts: &TraceOptions,
) -> Option<Sample> {
    let mut collector = Collector::new(opts.volumes.clone(), Some(REQUESTS_MAX as u64));
    // An error is ignored here: the reader of the whole file reports unreadable lines later.
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
        nine_decimals: times.iter().all(|t| t.is_multiple_of(NINTH))
            && times.iter().any(|t| !t.is_multiple_of(SIXTH)),
        timed: span > 0,
        objects: are_objects(&records),
        size_max: records.iter().map(|r| r.bytes).max().unwrap_or(0),
        whole_sectors: records
            .iter()
            .all(|r| (r.offset | r.bytes) % SECTOR_BYTES == 0),
        mean_size: records.iter().map(|r| u128::from(r.bytes)).sum::<u128>() / requests as u128,
        extent: records.iter().map(|r| r.offset).max().unwrap_or(0),
    })
}

/// Whether addresses are object numbers rather than sectors. They are if, taken as sectors, most objects overlap the
/// next one, or objects begin at any sector of a page. Requests to a device have neither property.
fn are_objects(records: &[Record]) -> bool {
    let mut distinct: Vec<(u64, u64)> = records.iter().map(|r| (r.offset, r.bytes)).collect();
    distinct.sort_unstable();
    distinct.dedup_by_key(|r| r.0);
    let overlapping = distinct
        .windows(2)
        .filter(|w| (w[1].0 - w[0].0).saturating_mul(SECTOR_BYTES) < w[0].1)
        .count();
    let mut remainders = [0; PAGE_SECTORS as usize];
    for (object, _) in &distinct {
        remainders[(object % PAGE_SECTORS) as usize] += 1;
    }
    let most = remainders.iter().max().copied().unwrap_or(0);
    let spread = distinct.len() >= OBJECTS_MIN && most * 10 < distinct.len() * 3;
    spread || overlapping * 2 >= distinct.len()
}

impl Sample {
    fn rate(&self, unit: TimeUnit) -> f64 {
        1e12 / (self.gap * unit.ps() as f64)
    }

    /// Returns the most plausible unit of time for a format, whether this unit is doubtful, and another plausible unit,
    /// if there is one.
    fn time_unit(&self, reader: &Reader) -> (TimeUnit, bool, Option<TimeUnit>) {
        use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Seconds};
        let usual = |unit: &TimeUnit| USUAL_RATE.contains(&self.rate(*unit));
        match reader.units {
            Certainty::Certain | Certainty::Address | Certainty::Objects => {
                (reader.time, false, None)
            }
            Certainty::Time => {
                let slow = self.rate(Microseconds) < *USUAL_RATE.start();
                if slow && usual(&Nanoseconds) {
                    (Nanoseconds, true, Some(Microseconds))
                } else {
                    (Microseconds, false, None)
                }
            }
            Certainty::Both {
                decimal_point: true,
            } => {
                if self.nine_decimals && self.rate(Seconds) <= *USUAL_RATE.end() {
                    return (Seconds, true, Some(Milliseconds));
                }
                // DiskSim prints milliseconds with a decimal point.
                let found = [Milliseconds, Seconds, Microseconds]
                    .into_iter()
                    .find(usual);
                let unit = found.unwrap_or(Milliseconds);
                let seconds = unit != Seconds && self.rate(Seconds) >= SECONDS_RATE_MIN;
                let other = if seconds { Some(Seconds) } else { None };
                (
                    unit,
                    unit != Milliseconds || found.is_none() || seconds,
                    other,
                )
            }
            Certainty::Both {
                decimal_point: false,
            } => {
                if self.coarse && self.gap < COARSE_GAP_MAX && usual(&Milliseconds) {
                    return (Milliseconds, true, None);
                }
                let found = [Nanoseconds, Microseconds, Milliseconds]
                    .into_iter()
                    .find(usual);
                let unit = found.unwrap_or(Nanoseconds);
                let settled = unit == Nanoseconds
                    && found.is_some()
                    && (self.hundreds || self.rate(Microseconds) < *USUAL_RATE.start());
                let other = Some(Microseconds).filter(|other| unit == Nanoseconds && usual(other));
                (unit, !settled, other)
            }
        }
    }

    /// Returns the most plausible address unit for a layout that specifies sectors, and whether this unit is doubtful.
    fn address_unit(&self) -> (AddressUnit, bool) {
        let sector = u128::from(SECTOR_BYTES);
        let beyond = u128::from(self.extent) * sector > DRIVE_MAX_BYTES;
        let large = self.mean_size * sector > USUAL_MEAN_BYTES;
        if beyond || self.whole_sectors && large {
            return (AddressUnit::BYTES, true);
        }
        (AddressUnit::SECTORS, self.whole_sectors || large)
    }
}

impl Sample {
    /// Returns the address unit of a trace whose addresses may be object numbers. The unit is the sector or, for
    /// detected formats with object numbers, the size of the largest object, rounded up to a power of two.
    fn object_unit(&self, guessed: bool, doubts: &mut Vec<String>) -> AddressUnit {
        if !self.objects {
            return AddressUnit::SECTORS;
        }
        let room = self.size_max.max(AddressUnit::PAGES.bytes());
        let room = room
            .checked_next_power_of_two()
            .and_then(AddressUnit::of_bytes);
        let unit = room.filter(|_| guessed).unwrap_or(AddressUnit::SECTORS);
        doubts.push(format!(
            "the address unit is uncertain: the addresses look like object numbers, not sectors, and are read in units \
             of {} bytes; if that is wrong, give address_unit (--address-unit sectors|pages|BYTES)",
            unit.bytes()
        ));
        unit
    }
}

/// Chooses the units. A unit given in the options is kept. If the user gave the format by name, the usual unit of the
/// format is kept; if it is implausible, a warning is added.
pub(crate) fn judge(sample: &Sample, reader: &Reader, opts: &TraceOptions) -> Judged {
    let guessed = opts.format.is_none();
    let mut doubts = Vec::new();
    let time = opts.time_unit.unwrap_or_else(|| {
        let (plausible, doubtful, other) = sample.time_unit(reader);
        let unit = if guessed && sample.timed { plausible } else { reader.time };
        let rate = sample.rate(unit);
        let slow = unit != plausible && rate < *USUAL_RATE.start();
        if sample.timed && (rate > RATE_MAX || guessed && doubtful || slow) {
            let other = other.filter(|other| *other != unit);
            let other = other.map_or(String::new(), |other| {
                format!(", in {other} at {}", per_second(sample.rate(other)))
            });
            doubts.push(format!(
                "the time unit is uncertain: in {unit} the first {} requests come at {}{other}; if that is wrong, \
                 give time_unit (--time-unit s|ms|us|ns)",
                sample.requests,
                per_second(rate)
            ));
        }
        unit
    });
    let address = opts.address_unit.unwrap_or_else(|| {
        match reader.units {
            Certainty::Objects => return sample.object_unit(guessed, &mut doubts),
            Certainty::Time => return reader.address,
            Certainty::Certain | Certainty::Address | Certainty::Both { .. } => {}
        }
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
