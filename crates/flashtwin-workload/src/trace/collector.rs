//! Collects the records that decoders produce, with times on the trace's own clock. The collector checks the records,
//! names volumes and counts skipped records.

use flashtwin::{Op, PlacementId};
use std::collections::{HashMap, VecDeque};

use super::cursor::Bad;
use super::options::Volumes;

/// A request as in the trace, before its time and address are converted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    /// Absolute time in the trace's clock, in picoseconds.
    pub time: u128,
    /// Text that names the volume; empty if the format has no volumes.
    pub volume: &'a [u8],
    pub op: Op,
    pub offset: u64,
    pub bytes: u64,
    pub fua: bool,
    /// Whether a flush precedes the request. If `bytes` is 0, the request consists only of this flush.
    pub preflush: bool,
    pub placement: PlacementId,
}

impl Raw<'_> {
    #[inline(always)]
    fn record(&self, volume: u32, line: u64) -> Record {
        Record {
            time: self.time,
            offset: self.offset,
            bytes: self.bytes,
            line,
            volume,
            op: self.op,
            fua: self.fua,
            placement: self.placement,
        }
    }
}

/// A request in the reorder window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub time: u128,
    pub offset: u64,
    pub bytes: u64,
    /// Line (or record) number, from 1.
    pub line: u64,
    pub volume: u32,
    pub op: Op,
    pub fua: bool,
    pub placement: PlacementId,
}

/// Largest plausible read or write (4 GiB). A larger request suggests that the units are wrong.
pub(crate) const TRANSFER_MAX_BYTES: u64 = 1 << 32;
/// Largest address of a device in bytes. The sum of two such addresses still fits into `u64`.
pub(crate) const ADDRESS_MAX: u64 = 1 << 62;
/// Number of requests that must precede a leap of the absolute time, so that it counts as a change of units.
const LEAP_AFTER: u64 = 100;
/// Factor by which the absolute time must grow between two consecutive requests to suggest a change of units. The
/// requests must also be at least an hour apart.
const LEAP_FACTOR: u128 = 500;
pub(crate) const HOUR_PS: u128 = 3_600_000_000_000_000;

/// Volumes in order of appearance.
#[derive(Default)]
pub(crate) struct VolumeTable {
    ids: HashMap<Box<[u8]>, u32>,
    last: (Box<[u8]>, u32),
    pub list: Vec<Volume>,
}

/// State of one volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct Volume {
    pub name: String,
    pub requests: u64,
    /// End of the highest byte addressed.
    pub extent: u64,
    wanted: bool,
}

/// Converts volume names to one form: `hm,0` and `hm 0` become `hm_0`.
fn volume_name(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.split([',', ' ', '\t'])
        .filter(|p| !p.is_empty())
        .collect::<Vec<_>>()
        .join("_")
}

impl VolumeTable {
    /// Whether `text` is the name of the previous request's volume. Empty names are not passed to `memcmp`, because the
    /// address of an empty slice is not valid, and glibc's AVX-512 version takes 80 ns for such an address.
    #[inline(always)]
    fn is_last(&self, text: &[u8]) -> bool {
        self.last.0.len() == text.len() && (text.is_empty() || *self.last.0 == *text)
    }

    #[inline]
    fn id(&mut self, text: &[u8], volumes: &Volumes) -> u32 {
        if self.is_last(text) && !self.list.is_empty() {
            return self.last.1;
        }
        self.look_up(text, volumes)
    }

    fn look_up(&mut self, text: &[u8], volumes: &Volumes) -> u32 {
        let id = match self.ids.get(text) {
            Some(&id) => id,
            None => {
                let id = self.list.len() as u32;
                let name = volume_name(text);
                let wanted = match volumes {
                    Volumes::Only(only) => volume_name(only.as_bytes()) == name,
                    Volumes::EndToEnd | Volumes::Overlay => true,
                };
                self.list.push(Volume {
                    name,
                    wanted,
                    ..Volume::default()
                });
                self.ids.insert(text.into(), id);
                id
            }
        };
        self.last = (text.into(), id);
        id
    }
}

/// Counts of the reads and writes that a decoder has returned directly, without passing them to the collector.
#[derive(Default)]
pub(crate) struct Handed {
    pub requests: u64,
    /// End of the highest byte addressed.
    pub extent: u64,
    /// Number of requests that do not consist of whole sectors.
    pub off_sector: u64,
}

/// Takes records from a decoder.
pub(crate) struct Collector {
    /// Requests in the reorder window, as a ring buffer. Requests in their final order are removed from its front.
    pub pending: VecDeque<Record>,
    pub volumes: VolumeTable,
    policy: Volumes,
    /// Number of requests that may still be read (`TraceOptions::limit`).
    pub wanted: u64,
    /// Whether the times in `pending` are in order.
    pub sorted: bool,
    latest: u128,
    seen: u64,
    pub reordered: u64,
    /// The largest step back in time: its line, its length, and whether the time after the step is at or before that of
    /// the first request.
    pub step_back: (u64, u128, bool),
    first: Option<u128>,
    pub zero_size: u64,
    pub other_volume: u64,
    /// Number of lines that are not requests: headers, comments and events of other kinds.
    pub passed_over: u64,
    pub bad_lines: u64,
    pub first_bad: Option<String>,
    pub off_sector: u64,
    pub leap: Option<(u64, u128, u128)>,
}

impl Collector {
    pub fn new(policy: Volumes, limit: Option<u64>) -> Self {
        Collector {
            pending: VecDeque::new(),
            volumes: VolumeTable::default(),
            policy,
            wanted: limit.unwrap_or(u64::MAX),
            sorted: true,
            latest: 0,
            seen: 0,
            reordered: 0,
            step_back: (0, 0, false),
            first: None,
            zero_size: 0,
            other_volume: 0,
            passed_over: 0,
            bad_lines: 0,
            first_bad: None,
            off_sector: 0,
            leap: None,
        }
    }

    /// Adds the request in line `line`. Returns an error if the request is invalid.
    #[inline(always)]
    pub fn push(&mut self, raw: Raw<'_>, line: u64) -> Result<(), Bad> {
        // The most frequent case: a read or write on the volume of the previous request, at the same time or later.
        let last = self.volumes.last.1 as usize;
        if matches!(raw.op, Op::Read | Op::Write)
            && raw.bytes.wrapping_sub(1) < TRANSFER_MAX_BYTES
            && raw.offset <= ADDRESS_MAX
            && !raw.preflush
            && self.wanted > 0
            && raw.time.wrapping_sub(self.latest) <= HOUR_PS
            && self.volumes.is_last(raw.volume)
        {
            if let Some(volume) = self.volumes.list.get_mut(last).filter(|v| v.wanted) {
                volume.requests += 1;
                volume.extent = volume.extent.max(raw.offset + raw.bytes);
                self.seen += 1;
                self.latest = raw.time;
                self.off_sector += u64::from(!(raw.offset | raw.bytes).is_multiple_of(512));
                self.take(raw.record(last as u32, line));
                return Ok(());
            }
        }
        self.push_any(raw, line)
    }

    #[inline(never)]
    fn push_any(&mut self, raw: Raw<'_>, line: u64) -> Result<(), Bad> {
        let whole = |column, expected| {
            Err(Bad {
                column,
                index: 0,
                expected,
            })
        };
        if raw.bytes > TRANSFER_MAX_BYTES && matches!(raw.op, Op::Read | Op::Write) {
            return whole(
                "size",
                "a read or write of at most 4 GiB (are the units right?)",
            );
        }
        if raw.offset > ADDRESS_MAX || raw.bytes > ADDRESS_MAX {
            return whole(
                "address",
                "an address below 2^62 bytes (are the units right?)",
            );
        }
        if raw.bytes == 0 && raw.op != Op::Flush && !raw.preflush {
            self.zero_size += 1;
            return Ok(());
        }
        let id = self.volumes.id(raw.volume, &self.policy);
        let volume = &mut self.volumes.list[id as usize];
        if !volume.wanted {
            self.other_volume += 1;
            return Ok(());
        }
        volume.requests += 1;
        volume.extent = volume.extent.max(raw.offset + raw.bytes);
        self.check_time(raw.time, line);
        if raw.preflush && self.wanted > 0 {
            self.take(Record {
                offset: 0,
                bytes: 0,
                op: Op::Flush,
                fua: false,
                placement: PlacementId::NONE,
                ..raw.record(id, line)
            });
        }
        if (raw.bytes > 0 || raw.op == Op::Flush) && self.wanted > 0 {
            let mut record = raw.record(id, line);
            if raw.op == Op::Flush {
                (record.offset, record.bytes) = (0, 0);
            }
            self.off_sector += u64::from(!(record.offset | record.bytes).is_multiple_of(512));
            self.take(record);
        }
        Ok(())
    }

    /// Counts requests that a decoder has returned directly, without passing them to the collector. They belong to the
    /// unnamed volume and are in order. The last of them has the time `latest`.
    pub fn handed_on(&mut self, handed: &Handed, latest: u128) {
        if handed.requests == 0 {
            return;
        }
        let id = self.volumes.id(b"", &self.policy);
        let volume = &mut self.volumes.list[id as usize];
        volume.requests += handed.requests;
        volume.extent = volume.extent.max(handed.extent);
        self.wanted -= handed.requests;
        self.seen += handed.requests;
        self.off_sector += handed.off_sector;
        self.latest = latest;
    }

    #[inline(always)]
    fn take(&mut self, record: Record) {
        self.wanted -= 1;
        self.pending.push_back(record);
    }

    #[inline]
    fn check_time(&mut self, time: u128, line: u64) {
        self.seen += 1;
        let first = *self.first.get_or_insert(time);
        if time < self.latest {
            self.sorted = false;
            self.reordered += 1;
            let back = self.latest - time;
            if back > self.step_back.1 {
                self.step_back = (line, back, time <= first);
            }
            return;
        }
        if time - self.latest > HOUR_PS {
            self.check_leap(time, line);
        }
        self.latest = time;
    }

    /// Detects a change of units, which shows as a leap of the absolute time. Called for each gap of more than an hour.
    #[cold]
    fn check_leap(&mut self, time: u128, line: u64) {
        let judged = self.leap.is_none() && self.seen > LEAP_AFTER && self.latest > 0;
        if judged && time / LEAP_FACTOR > self.latest {
            self.leap = Some((line, self.latest, time));
        }
    }
}
