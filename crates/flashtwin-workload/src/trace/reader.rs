//! Reads a trace as a workload. The reader selects the decoder, sorts times within a window, makes them relative to the
//! first request, lays volumes end to end, and rejects implausible values.

use flashtwin::{Request, Time};
use std::path::Path;

use super::collector::{Collector, Record, Volume};
use super::compact::Touched;
use super::detect::guess;
use super::format::{Certainty, Opening};
use super::input::{Input, Source};
use super::lines::{Decoder, Units};
use super::named::{split, Named};
use super::options::{AddressUnit, Addresses, BlkEvent, TraceOptions, Volumes};
use super::units::{judge, sample, Judged, TICKS};
use super::Format;
use crate::error::{ErrorKind, WorkloadError};
use crate::Workload;

/// Number of bytes examined to detect the format.
const HEAD_BYTES: usize = 64 << 10;
/// Number of requests returned at a time.
const BATCH: usize = 4096;
/// Largest reorder window that can be set.
const WINDOW_MAX: usize = 1 << 24;
/// Largest number of pieces of which one may be kept.
const SAMPLE_MAX: u32 = 1 << 20;
/// Largest relative deviation of the number of requests of a sample from its expected value that raises no doubt.
const SHARE_DOUBTFUL: f64 = 0.25;
/// Alignment, in bytes, of volumes that are placed one after the other.
const VOLUME_ALIGN: u64 = 1 << 20;

/// Opens a trace file. Compression and format are detected from the content. If `opts` gives a format, the format is
/// not detected.
///
/// # Errors
/// Fails if the file cannot be opened, its format is not found, or `opts` does not fit the format.
pub fn open_trace(path: &Path, opts: &TraceOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    Ok(Box::new(TraceReader::open(
        Input::File(path.to_path_buf()),
        opts,
    )?))
}

/// Reads a whole trace that is in memory, for fuzzing, tests, and small traces that are not files.
///
/// # Errors
/// Fails if `bytes` cannot be read as a trace.
pub fn read_bytes(bytes: &[u8], opts: &TraceOptions) -> Result<Vec<Request>, WorkloadError> {
    let mut reader = TraceReader::open(Input::Memory(bytes.into()), opts)?;
    let mut requests = Vec::new();
    while reader.next_batch(&mut requests)? > 0 {}
    Ok(requests)
}

/// Whether the requests of a trace have arrival times. This is so if any two times differ.
///
/// # Errors
/// Fails if the file cannot be opened, its format is not found, or `opts` does not fit the format.
pub fn has_times(path: &Path, opts: &TraceOptions) -> Result<bool, WorkloadError> {
    let volumes = match &opts.volumes {
        Volumes::EndToEnd => &Volumes::Overlay,
        other => other,
    };
    let opts = TraceOptions {
        // Requests need not be sorted: a time that is earlier than the previous one also shows that there are times.
        reorder_window: 0,
        addresses: Addresses::AsIs,
        one_in: 1,
        volumes: volumes.clone(),
        ..opts.clone()
    };
    let mut reader = TraceReader::open(Input::File(path.to_path_buf()), &opts)?;
    let mut requests = Vec::with_capacity(BATCH);
    let mut several = false;
    loop {
        several |= requests.len() > 1;
        requests.clear();
        match reader.next_batch(&mut requests) {
            Ok(0) => return Ok(!several),
            Ok(_) if requests.iter().all(|r| r.arrival == Time::ZERO) => {}
            // The reader of the run reports the error.
            Ok(_) | Err(_) => return Ok(true),
        }
    }
}

/// Value of the option `columns` for the request log of a run (`--requests`).
const REQUEST_LOG: &str =
    "time=arrival_ps:ps,offset=offset_bytes:bytes,size=size_bytes:bytes,op=op";

/// Whether a text begins with the header of a request log.
fn is_request_log(head: &[u8]) -> bool {
    const NEEDED: [&[u8]; 4] = [b"arrival_ps", b"offset_bytes", b"size_bytes", b"op"];
    let first = head.split(|&b| b == b'\n').next().unwrap_or(b"");
    let names: Vec<&[u8]> = split(first, b',').collect();
    names.first() == Some(&&b"request"[..]) && NEEDED.iter().all(|needed| names.contains(needed))
}

/// A trace being read.
pub(crate) struct TraceReader {
    input: Input,
    opts: TraceOptions,
    source: Source,
    decoder: Box<dyn Decoder>,
    pub collector: Collector,
    description: String,
    /// Warnings about the units.
    doubts: Vec<String>,
    requests_total: Option<u64>,
    /// Index in `collector.pending` of the next request to return. `settled` is the number of requests in
    /// `collector.pending` whose order is final.
    next: usize,
    settled: usize,
    more: bool,
    /// Absolute time of the first request.
    base: Option<u128>,
    latest: u128,
    emitted: u64,
    /// First byte of each volume on the device. Until a second volume is found, the list has only one entry.
    starts: Vec<u64>,
    /// Pieces of the address space that are kept when addresses are packed. `None` until they are known.
    touched: Option<Touched>,
    /// Number of requests for removed addresses. Without a sample, these are trims.
    lost: u64,
}

impl TraceReader {
    pub fn open(input: Input, opts: &TraceOptions) -> Result<Self, WorkloadError> {
        if opts.reorder_window > WINDOW_MAX {
            let text = format!(
                "reorder_window {} is above {WINDOW_MAX}",
                opts.reorder_window
            );
            return Err(WorkloadError::new(ErrorKind::Option, text));
        }
        if opts.limit == Some(0) {
            let text = "limit = 0 would read nothing; leave it out to read all";
            return Err(WorkloadError::new(ErrorKind::Option, text));
        }
        if !(1..=SAMPLE_MAX).contains(&opts.one_in) {
            let text = format!(
                "one_in: {}; from 1 to {SAMPLE_MAX} is possible",
                opts.one_in
            );
            return Err(WorkloadError::new(ErrorKind::Option, text));
        }
        let mut source = input.open()?;
        source.want(HEAD_BYTES)?;
        if let (Some(_), Some(format)) = (&opts.columns, opts.format.filter(|f| *f != Format::Csv))
        {
            let text = format!("columns describe a csv file; leave format = {format} out");
            return Err(WorkloadError::new(ErrorKind::Option, text));
        }
        let log_opts;
        let mut opts = opts;
        let (format, because) = match (opts.format, &opts.columns) {
            (_, Some(columns)) => (Format::Csv, format!("columns {columns}")),
            (Some(format), None) => (format, "as asked".to_string()),
            (None, None) if is_request_log(source.data()) => {
                log_opts = TraceOptions {
                    columns: Some(REQUEST_LOG.to_string()),
                    ..opts.clone()
                };
                opts = &log_opts;
                (Format::Csv, "a request log of flashtwin".to_string())
            }
            (None, None) => {
                let guess = guess(source.name(), source.data())?;
                (guess.format, format!("guessed: {}", guess.because))
            }
        };
        let judged = judged_units(format, opts, &source)?;
        let (time_unit, address_unit) = (judged.time, judged.address);
        let units = Units {
            time_ps: time_unit.ps(),
            address_bytes: address_unit.bytes(),
        };
        let decoder = decoder(format, units, opts, &source)?;
        let requests_total = match (source.plain_bytes(), opts.limit) {
            (Some(bytes), None) if !opts.packs() => {
                (format.reader().requests)(bytes, source.data())
            }
            _ => None,
        };
        let packing = source.packing().name();
        let name = input.base_name();
        let encoding = if source.is_utf16() { ", UTF-16" } else { "" };
        let mut description = format!("{name}: {format} trace ({because}; {packing}{encoding})");
        if opts.columns.is_none() {
            description += &format!(", time in {time_unit}, addresses in {address_unit}");
        }
        description += &decoder.note();
        for doubt in &judged.doubts {
            description += &format!("; {doubt}");
        }
        let collector = Collector::new(opts.volumes.clone(), opts.limit);
        Ok(TraceReader {
            input,
            opts: opts.clone(),
            source,
            decoder,
            collector,
            description,
            doubts: judged.doubts,
            requests_total,
            next: 0,
            settled: 0,
            more: true,
            base: None,
            latest: 0,
            emitted: 0,
            starts: vec![0],
            touched: None,
            lost: 0,
        })
    }

    /// Whether the file can have placement ids. Known only after the first batch has been read.
    pub fn has_placement(&self) -> bool {
        self.decoder.has_placement()
    }

    /// Returns the number of lines or records read so far.
    pub fn lines(&self) -> u64 {
        self.decoder.lines()
    }

    /// Returns the volumes found so far, each with its first byte on the device.
    pub fn volumes(&self) -> impl Iterator<Item = (&Volume, u64)> {
        let starts = self.starts.iter().copied().chain(std::iter::repeat(0));
        self.collector.volumes.list.iter().zip(starts)
    }

    /// Reads more records into the window. Then sorts the window, and determines how many records are in their final
    /// order.
    fn refill(&mut self) -> Result<(), WorkloadError> {
        let window = self.opts.reorder_window;
        let pending = &mut self.collector.pending;
        pending.drain(..self.next);
        self.next = 0;
        if self.more {
            let until = window + window.max(BATCH);
            self.more = self
                .decoder
                .decode(&mut self.source, &mut self.collector, until)?;
        }
        let pending = &mut self.collector.pending;
        if !self.collector.sorted && window > 0 {
            pending.make_contiguous().sort_by_key(|r| r.time);
            self.collector.sorted = true;
        }
        self.settled = if self.more {
            pending.len().saturating_sub(window)
        } else {
            pending.len()
        };
        Ok(())
    }

    /// Appends requests up to the first one that needs a closer check. Returns the number of requests appended.
    /// [`Self::emit`] would append the same requests, but is slower.
    fn emit_plain(&mut self, upto: usize, out: &mut Vec<Request>) -> usize {
        let (Some(base), None) = (self.base, &self.touched) else {
            return 0;
        };
        let (mut latest, before) = (self.latest, out.len());
        for record in self.collector.pending.range(self.next..upto) {
            // Volumes without an entry need [`Self::emit`]: their start is not assigned yet, or volumes are not laid
            // end to end.
            let start = self.starts.get(record.volume as usize);
            let arrival = u64::try_from(record.time.wrapping_sub(base));
            let (Some(start), Ok(arrival), true) = (start, arrival, record.time >= latest) else {
                break;
            };
            latest = record.time;
            out.push(Request {
                arrival: Time(arrival),
                offset: record.offset + if record.bytes > 0 { *start } else { 0 },
                bytes: record.bytes,
                op: record.op,
                fua: record.fua,
                placement: record.placement,
            });
        }
        let handed = out.len() - before;
        self.latest = latest;
        self.emitted += handed as u64;
        handed
    }

    fn emit(&mut self, record: Record) -> Result<Request, WorkloadError> {
        let base = *self.base.get_or_insert(record.time);
        if record.time < self.latest {
            return Err(self.out_of_order(&record));
        }
        self.latest = record.time;
        let Ok(arrival) = u64::try_from(record.time - base) else {
            return Err(WorkloadError::new(
                ErrorKind::TooLarge,
                format!(
                    "{}, line {}: this request comes more than 213 days after the first; is the time \
                     unit right? (time_unit, --time-unit)",
                    self.source.name(),
                    record.line
                ),
            ));
        };
        let mut offset = record.offset;
        if record.volume > 0 && self.opts.volumes == Volumes::EndToEnd {
            if self.starts.len() == 1 {
                self.lay_out()?;
            }
            let start = self
                .starts
                .get(record.volume as usize)
                .copied()
                .unwrap_or(0);
            if record.bytes > 0 {
                offset += start;
            }
        }
        self.emitted += 1;
        Ok(Request {
            arrival: Time(arrival),
            offset,
            bytes: record.bytes,
            op: record.op,
            fua: record.fua,
            placement: record.placement,
        })
    }

    /// Determines the sizes of all volumes by reading the whole trace once. Called when a second volume is found.
    fn lay_out(&mut self) -> Result<(), WorkloadError> {
        let opts = TraceOptions {
            volumes: Volumes::Overlay,
            addresses: Addresses::AsIs,
            one_in: 1,
            ..self.opts.clone()
        };
        let mut scout = TraceReader::open(self.input.clone(), &opts)?;
        let mut requests = Vec::with_capacity(BATCH);
        while scout.next_batch(&mut requests)? > 0 {
            requests.clear();
        }
        let mut start = 0u64;
        self.starts.clear();
        for volume in &scout.collector.volumes.list {
            self.starts.push(start);
            start = start.saturating_add(volume.extent.next_multiple_of(VOLUME_ALIGN));
            if start > 1 << 62 {
                let text = format!(
                    "{}: its volumes laid end to end pass 2^62 bytes; read one with volumes = only",
                    self.source.name()
                );
                return Err(WorkloadError::new(ErrorKind::TooLarge, text));
            }
        }
        Ok(())
    }

    /// Determines which addresses the trace accesses, by reading it once.
    fn find_touched(&self) -> Result<Touched, WorkloadError> {
        let opts = TraceOptions {
            addresses: Addresses::AsIs,
            one_in: 1,
            ..self.opts.clone()
        };
        let mut scout = TraceReader::open(self.input.clone(), &opts)?;
        let (mut requests, mut touched) =
            (Vec::with_capacity(BATCH), Touched::new(self.opts.one_in));
        while scout.next_batch(&mut requests)? > 0 {
            requests.iter().for_each(|request| touched.note(request));
            requests.clear();
        }
        let touched = touched.complete();
        if self.opts.one_in > 1 && touched.bytes() == 0 {
            let text = format!(
                "{}: a sample of 1/{} of its addresses has none; the trace accesses too few addresses",
                self.source.name(),
                self.opts.one_in
            );
            return Err(WorkloadError::new(ErrorKind::Empty, text));
        }
        Ok(touched)
    }

    fn out_of_order(&self, record: &Record) -> WorkloadError {
        let back = Time(u64::try_from(self.latest - record.time).unwrap_or(u64::MAX));
        WorkloadError::new(
            ErrorKind::OutOfOrder,
            format!(
                "{}, line {}: time steps back by {back}, past the reorder window of {} requests; sort \
                 the trace by time, or raise reorder_window (--reorder-window N). If it is several \
                 files joined, or the time unit changes here, read the parts on their own",
                self.source.name(),
                record.line,
                self.opts.reorder_window,
            ),
        )
    }

    fn empty(&self) -> WorkloadError {
        let c = &self.collector;
        let mut text = format!(
            "{}: not one request in {} lines or records ({} no request, {} of other volumes, {} of \
             zero size, {} unreadable)",
            self.source.name(),
            self.decoder.lines(),
            c.passed_over,
            c.other_volume,
            c.zero_size,
            c.bad_lines
        );
        if c.other_volume > 0 {
            let names: Vec<&str> = c
                .volumes
                .list
                .iter()
                .take(16)
                .map(|v| v.name.as_str())
                .collect();
            text += &format!("; the volumes in it are: {}", names.join(", "));
        } else {
            let other = if self.opts.event == BlkEvent::D {
                "Q"
            } else {
                "D"
            };
            text += &format!(
                "; is the format right? {}. For blktrace, event = \"{other}\" may be the one it holds",
                self.description
            );
        }
        if let Some(bad) = &c.first_bad {
            text += &format!("; the first unreadable line: {bad}");
        }
        WorkloadError::new(ErrorKind::Empty, text)
    }
}

impl TraceReader {
    /// Returns the next batch of a trace whose format guarantees the order of requests. The requests are read directly
    /// into `out`. Returns `None` if the format does not guarantee it, or if requests may have to be dropped or moved.
    fn next_ordered(&mut self, out: &mut Vec<Request>) -> Option<Result<usize, WorkloadError>> {
        if self.opts.packs() || matches!(self.opts.volumes, Volumes::Only(_)) {
            return None;
        }
        let ordered = self.decoder.as_ordered()?;
        let before = out.len();
        if self.more {
            match ordered.read(&mut self.source, &mut self.collector, out, BATCH) {
                Ok(more) => self.more = more,
                Err(e) => return Some(Err(e)),
            }
        }
        let batch = &mut out[before..];
        if let Some(first) = batch.first() {
            let base = *self.base.get_or_insert(u128::from(first.arrival.0)) as u64;
            batch.iter_mut().for_each(|r| r.arrival.0 -= base);
        }
        self.emitted += batch.len() as u64;
        Some(match batch.len() {
            0 if self.emitted == 0 => Err(self.empty()),
            n => Ok(n),
        })
    }
}

impl Workload for TraceReader {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        if let Some(read) = self.next_ordered(out) {
            return read;
        }
        let before = out.len();
        // The loop is needed because all requests of a batch may be for removed addresses.
        while out.len() == before {
            while self.next >= self.settled {
                self.refill()?;
                if self.settled == 0 && !self.more {
                    return if self.emitted == 0 {
                        Err(self.empty())
                    } else {
                        Ok(0)
                    };
                }
            }
            if self.opts.packs() && self.touched.is_none() {
                self.touched = Some(self.find_touched()?);
            }
            let upto = self.settled.min(self.next + BATCH);
            out.reserve(upto - self.next);
            while self.next < upto {
                self.next += self.emit_plain(upto, out);
                if self.next == upto {
                    break;
                }
                let record = self.collector.pending[self.next];
                let mut request = self.emit(record)?;
                let touched = self.touched.as_mut();
                match touched.is_none_or(|touched| touched.move_request(&mut request)) {
                    true => out.push(request),
                    false => self.lost += 1,
                }
                self.next += 1;
            }
        }
        Ok(out.len() - before)
    }

    fn requests_total(&self) -> Option<u64> {
        self.requests_total
    }

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn warnings(&self) -> Vec<String> {
        let c = &self.collector;
        let mut list = self.doubts.clone();
        list.extend(self.decoder.warnings());
        if c.bad_lines > 0 {
            let first = c.first_bad.as_deref().unwrap_or("");
            let first = first.replacen(self.source.name(), &self.input.base_name(), 1);
            list.push(format!(
                "{} unreadable lines skipped; the first: {first}",
                c.bad_lines
            ));
        }
        if c.zero_size > 0 {
            list.push(format!("{} requests of zero size skipped", c.zero_size));
        }
        if c.reordered > 0 {
            let (line, back, begins_anew) = c.step_back;
            let joined = if begins_anew {
                "; it is not later than the first request: if several files were joined, read them one by one"
            } else {
                ""
            };
            list.push(format!(
                "{} requests were out of order and were sorted; the largest step back, by {}, is at line {line}{joined}",
                c.reordered,
                Time(u64::try_from(back).unwrap_or(u64::MAX)),
            ));
        }
        let usual_bytes = self
            .opts
            .address_unit
            .is_none_or(|u| u == AddressUnit::BYTES);
        if usual_bytes && c.off_sector * 2 > self.emitted.max(1) {
            list.push(format!(
                "{} requests are not whole sectors of 512 bytes; are the addresses in another unit? \
                 (address_unit, --address-unit)",
                c.off_sector
            ));
        }
        if let Some((line, before, after)) = c.leap {
            list.push(format!(
                "line {line}: time leaps from {:.3} s to {:.3} s, by more than 500 times; does the unit change \
                 there?",
                before as f64 / 1e12,
                after as f64 / 1e12
            ));
        }
        if let Some(touched) = &self.touched {
            let kept = touched.bytes();
            list.push(match self.opts.one_in {
                1 => format!(
                    "addresses packed onto {kept} bytes; {} trims of other addresses left out",
                    self.lost
                ),
                n => sampled(n, self.emitted - self.lost, self.emitted, kept),
            });
        }
        if self.starts.len() > 1 {
            list.push(format!("{} volumes laid end to end", self.starts.len()));
        }
        list
    }
}

/// Returns a remark on a sample of one of `n` pieces of the address space, which has `requests` of `all` requests.
fn sampled(n: u32, requests: u64, all: u64, bytes: u64) -> String {
    let share = requests as f64 / all.max(1) as f64;
    let doubt = match (share * f64::from(n) - 1.0).abs() > SHARE_DOUBTFUL {
        true => format!(
            "; that is {:.0} % of the requests, not {:.0} %: a few addresses have many of the requests, or requests \
             are long, and the sample does not represent the trace",
            share * 100.0,
            100.0 / f64::from(n)
        ),
        false => String::new(),
    };
    format!(
        "sample of 1/{n} of the addresses: {requests} of {all} requests, packed onto {bytes} bytes; times are divided by \
         {n}{doubt}"
    )
}

/// Returns the units of the columns: those in the options, otherwise those that the first lines suggest.
fn judged_units(
    format: Format,
    opts: &TraceOptions,
    source: &Source,
) -> Result<Judged, WorkloadError> {
    let reader = format.reader();
    let usual = (reader.time, reader.address);
    let data = source.data();
    let whole_lines = match reader.units {
        Certainty::Objects => data.len(),
        _ => memchr::memrchr(b'\n', data).map_or(data.len(), |end| end + 1),
    };
    let sample = if reader.units != Certainty::Certain {
        let opts = TraceOptions {
            max_bad_lines: u64::MAX,
            // Any number may be a time here.
            time_unit: Some(usual.0),
            ..opts.clone()
        };
        let units = Units {
            time_ps: TICKS,
            address_bytes: 1,
        };
        let mut head = Input::Memory(data[..whole_lines].into()).open()?;
        head.want(whole_lines)?;
        // An error is ignored here. The decoder of the whole file reports it later, with the name of the file.
        match decoder(format, units, &opts, &head) {
            Ok(decoder) => sample(head, decoder, &opts),
            Err(_) => None,
        }
    } else {
        None
    };
    Ok(match sample {
        Some(sample) => judge(&sample, reader, opts),
        None => Judged {
            time: opts.time_unit.unwrap_or(usual.0),
            address: opts.address_unit.unwrap_or(usual.1),
            doubts: Vec::new(),
        },
    })
}

fn decoder(
    format: Format,
    units: Units,
    opts: &TraceOptions,
    source: &Source,
) -> Result<Box<dyn Decoder>, WorkloadError> {
    let opening = Opening {
        format,
        units,
        opts,
        source,
    };
    match &opts.columns {
        Some(columns) => opening.lines(Named::new(columns, opts, source.name(), source.data())?),
        None => (format.reader().open)(&opening),
    }
}
