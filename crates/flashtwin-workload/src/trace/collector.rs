//! Records of a decoder in the trace's own clock, and the collector that checks them, names volumes and counts skipped
//! records.

use flashtwin::{Op, PlacementId};
use std::collections::{HashMap, VecDeque};

use super::cursor::Bad;
use super::options::Volumes;

/// One request as its line has it, before rebasing and laying out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    /// Absolute time in the trace's clock, in picoseconds.
    pub time: u128,
    /// Text that names the volume; empty if the format has none.
    pub volume: &'a [u8],
    pub op: Op,
    pub offset: u64,
    pub bytes: u64,
    pub fua: bool,
    /// A flush goes before the request (or is all of it, if `bytes` is 0).
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

/// A request waiting for its place in time.
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

/// Reads and writes above this are taken for a unit mistake (4 GiB).
pub(crate) const TRANSFER_MAX_BYTES: u64 = 1 << 32;
/// Largest address of a device (8 EiB): sums of two addresses still fit.
pub(crate) const ADDRESS_MAX: u64 = 1 << 62;
/// Absolute times seen before a leap of them is judged.
const LEAP_AFTER: u64 = 100;
/// Absolute time growing by this factor at once, and by an hour, looks like a change of units.
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
    /// One past the highest byte addressed.
    pub extent: u64,
    wanted: bool,
}

/// Volume names in one spelling: `hm,0` and `hm 0` are `hm_0`.
fn volume_name(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.split([',', ' ', '\t'])
        .filter(|p| !p.is_empty())
        .collect::<Vec<_>>()
        .join("_")
}

impl VolumeTable {
    /// True for the volume of the last request. Empty names are not passed to `memcmp`: an empty slice points
    /// to no memory, and glibc's version for AVX-512 then takes 80 ns.
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

/// Reads and writes that a decoder handed on by itself.
#[derive(Default)]
pub(crate) struct Handed {
    pub requests: u64,
    /// One past the highest byte addressed.
    pub extent: u64,
    /// Requests that are not whole sectors.
    pub off_sector: u64,
}

/// Takes records from a decoder.
pub(crate) struct Collector {
    /// A ring: requests leave it in front while a window of them stays.
    pub pending: VecDeque<Record>,
    pub volumes: VolumeTable,
    policy: Volumes,
    /// Records still wanted (`TraceOptions::limit`).
    pub wanted: u64,
    /// False once a time stepped back among `pending`.
    pub sorted: bool,
    latest: u128,
    seen: u64,
    pub reordered: u64,
    /// Line and span of the largest step back, and whether it led to the time of the first request or before.
    pub step_back: (u64, u128, bool),
    first: Option<u128>,
    pub zero_size: u64,
    pub other_volume: u64,
    /// Lines that hold no request: headers, comments, events of another kind.
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

    /// Takes the request of line `line`, or returns what is wrong with it.
    #[inline(always)]
    pub fn push(&mut self, raw: Raw<'_>, line: u64) -> Result<(), Bad> {
        // Almost all requests: a read or write, of the volume of the last one, at or after it.
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

    /// Takes note of requests of the unnamed volume, in order up to the time `latest`, that a decoder
    /// handed on by itself.
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

    /// A change of units shows as a leap of the absolute time, once there is time to leap from.
    #[cold]
    fn check_leap(&mut self, time: u128, line: u64) {
        let judged = self.leap.is_none() && self.seen > LEAP_AFTER && self.latest > 0;
        if judged && time / LEAP_FACTOR > self.latest {
            self.leap = Some((line, self.latest, time));
        }
    }
}
