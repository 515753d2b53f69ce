//! Job files of fio. Only options that determine the requests to the device are used.
//!
//! `stonewall` options divide the jobs of a file into phases. The jobs of a phase run at the same time, as its streams.
//! A job reads or writes its `size`, so the streams of a phase have shares in proportion to their sizes.
//!
//! Jobs that run for a time have no size. The caller gives the total number of bytes of the phase, which is divided in
//! proportion to `iodepth` times `bs`, as if requests of all sizes took equally long. The options have the meaning that
//! fio's documentation (HOWTO) gives them.

use std::fs;
use std::path::Path;

use super::address::Address;
use super::size::Size;
use super::spec::GeneratorSpec;
use super::stream::{Amount, Phase, StreamSpec};
use super::values::{Part, Range};
use crate::error::{quote, ErrorKind, WorkloadError};

/// Size of the largest permitted job file in bytes.
const FILE_MAX_BYTES: u64 = 1 << 20;
/// Largest number of jobs in a file, including clones.
const JOBS_MAX: u64 = 64;

/// The phases of a job file, one after the other.
#[derive(Debug)]
pub(super) struct FioJob {
    /// Streams of each phase.
    pub phases: Vec<Phase>,
    /// Options that do not affect the requests.
    pub ignored: Vec<String>,
}

/// Options that are ignored, because they do not affect the requests. They concern the host, the data or logs.
const IGNORED: &[&str] = &[
    "allow_file_create",
    "allrandrepeat",
    "buffer_compress_percentage",
    "buffered",
    "clocksource",
    "cmd_type",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_serialize",
    "description",
    "direct",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "end_fsync",
    "eta",
    "fallocate",
    "file_service_type",
    "filename",
    "fixedbufs",
    "group_reporting",
    "gtod_reduce",
    "hipri",
    "invalidate",
    "ioengine",
    "iodepth_batch",
    "iodepth_batch_complete",
    "iodepth_batch_complete_max",
    "iodepth_batch_complete_min",
    "iodepth_batch_submit",
    "iodepth_low",
    "lat_percentiles",
    "log_avg_msec",
    "log_hist_msec",
    "log_max_value",
    "log_offset",
    "log_unix_epoch",
    "mem",
    "name",
    "new_group",
    "nonvectored",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "percentile_list",
    "per_job_logs",
    "prio",
    "ramp_time",
    "randrepeat",
    "randseed",
    "refill_buffers",
    "registerfiles",
    "runtime",
    "scramble_buffers",
    "sqthread_poll",
    "status_interval",
    "thread",
    "unified_rw_reporting",
    "write_bw_log",
    "write_hist_log",
    "write_iops_log",
    "write_lat_log",
    "zero_buffers",
];

/// Options that are read.
const READ: &[&str] = &[
    "rw",
    "bs",
    "iodepth",
    "size",
    "io_size",
    "offset",
    "norandommap",
    "random_distribution",
    "rwmixread",
    "rwmixwrite",
    "loops",
    "numjobs",
    "stonewall",
    "time_based",
    "fdp",
    "dataplacement",
    "fdp_pli",
];

/// Alternative names of options.
const SYNONYMS: &[(&str, &str)] = &[
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("plids", "fdp_pli"),
    ("wait_for_previous", "stonewall"),
    ("io_limit", "io_size"),
];

/// An option of a job, with its line.
#[derive(Clone, Copy)]
struct Set<'a> {
    key: &'a str,
    value: &'a str,
    line: usize,
}

/// The options of a job: those of the `[global]` sections before it, and its own.
struct Job<'a> {
    file: &'a str,
    name: &'a str,
    line: usize,
    sets: Vec<Set<'a>>,
}

fn wrong<T>(text: String) -> Result<T, WorkloadError> {
    Err(WorkloadError::new(ErrorKind::Malformed, text))
}

/// Reads a job file. `bytes` is the number of bytes that each phase moves if its jobs run for a time.
pub(super) fn open(path: &Path, bytes: Option<u64>) -> Result<FioJob, WorkloadError> {
    let name = path.display().to_string();
    let reading = |e| WorkloadError::io(&name, "read", &e);
    if fs::metadata(path).map_err(reading)?.len() > FILE_MAX_BYTES {
        return wrong(format!(
            "{name}: larger than {FILE_MAX_BYTES} bytes, which is no job file of fio"
        ));
    }
    let text = fs::read(path).map_err(reading)?;
    match std::str::from_utf8(&text) {
        Ok(text) => parse(&name, text, bytes),
        Err(_) => wrong(format!("{name}: not UTF-8, which a job file of fio is")),
    }
}

/// Reads the text of a job file.
fn parse(file: &str, text: &str, bytes: Option<u64>) -> Result<FioJob, WorkloadError> {
    let (jobs, ignored) = jobs(file, text)?;
    if jobs.is_empty() {
        return wrong(format!(
            "{file}: has no job; add one, like [job] and rw=randwrite"
        ));
    }
    let mut phases: Vec<Vec<(&Job, StreamSpec)>> = Vec::new();
    for job in &jobs {
        let waits = job.flag("stonewall")?;
        if phases.is_empty() || waits {
            phases.push(Vec::new());
        }
        let clones = job.count("numjobs", 1)?;
        let streams: usize = phases.iter().map(Vec::len).sum();
        if streams as u64 + clones > JOBS_MAX {
            return wrong(format!(
                "{}: more than {JOBS_MAX} jobs with their clones",
                job.place(job.line)
            ));
        }
        for _ in 0..clones {
            let stream = job.stream()?;
            phases
                .last_mut()
                .expect("there is a phase")
                .push((job, stream));
        }
    }
    let phases = phases.into_iter().map(|phase| finish(phase, bytes));
    Ok(FioJob {
        phases: phases.collect::<Result<_, _>>()?,
        ignored,
    })
}

/// Completes a phase. If its jobs run for a time, sets the number of requests of the phase, so that they move `bytes`
/// bytes.
fn finish(mut phase: Vec<(&Job, StreamSpec)>, bytes: Option<u64>) -> Result<Phase, WorkloadError> {
    let by_time = |stream: &StreamSpec| matches!(stream.amount, Amount::Share(_));
    if let Some((job, _)) = phase.iter().find(|(_, stream)| by_time(stream)) {
        if !phase.iter().all(|(_, stream)| by_time(stream)) {
            return wrong(format!(
                "{}: [{}] runs by time (time_based) beside jobs that end by themselves; which is first depends on the \
                 device: run all of them by time, or none",
                job.place(job.line),
                job.name
            ));
        }
        let Some(bytes) = bytes else {
            return wrong(format!(
                "{}: [{}] runs by time (time_based), which depends on the device; give the bytes that its phase moves, \
                 like bytes=100G",
                job.place(job.line),
                job.name
            ));
        };
        let share = |stream: &StreamSpec| match stream.amount {
            Amount::Share(share) | Amount::Passes(share) => share,
        };
        let sum: f64 = phase.iter().map(|(_, stream)| share(stream)).sum();
        let requests = phase
            .iter()
            .map(|(_, stream)| bytes as f64 * share(stream) / sum / stream.requests.mean_bytes());
        let requests = (requests.sum::<f64>() as u64).max(1);
        phase[0].1.requests.requests = Some(requests);
    }
    Ok(phase.into_iter().map(|(_, stream)| stream).collect())
}

/// Returns the jobs of a file, and the names of the options that are ignored.
fn jobs<'a>(file: &'a str, text: &'a str) -> Result<(Vec<Job<'a>>, Vec<String>), WorkloadError> {
    let mut global: Vec<Set> = Vec::new();
    let mut jobs: Vec<Job> = Vec::new();
    let mut ignored: Vec<String> = Vec::new();
    let mut section = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        let place = format!("{file}:{number}");
        if let Some(rest) = line.strip_prefix('[') {
            let Some(name) = rest.strip_suffix(']') else {
                return wrong(format!(
                    "{place}: {}: a section is like [job]",
                    quote(line.as_bytes())
                ));
            };
            section = Some(name);
            if name != "global" {
                jobs.push(Job {
                    file,
                    name,
                    line: number,
                    sets: global.clone(),
                });
            }
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "1"));
        let (key, value) = (key.trim(), value.trim());
        let key = SYNONYMS
            .iter()
            .find(|(other, _)| *other == key)
            .map_or(key, |(_, key)| key);
        if value.contains("${") || value.starts_with('$') {
            return wrong(format!(
                "{place}: {key} = {value}: variables are not read; write the value"
            ));
        }
        if IGNORED.contains(&key) {
            if !ignored.iter().any(|other| other == key) {
                ignored.push(key.to_string());
            }
            continue;
        }
        if !READ.contains(&key) {
            return wrong(format!(
                "{place}: {}: this option is not read, and may change the requests; remove it if it does not matter. \
                 Read are {}",
                quote(key.as_bytes()),
                READ.join(", ")
            ));
        }
        let set = Set {
            key,
            value,
            line: number,
        };
        match (section, jobs.last_mut()) {
            (Some("global"), _) => global.push(set),
            (Some(_), Some(job)) => job.sets.push(set),
            _ => {
                return wrong(format!(
                    "{place}: {key}: an option before the first section, such as [global]"
                ))
            }
        }
    }
    Ok((jobs, ignored))
}

impl<'a> Job<'a> {
    fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.file)
    }

    /// Returns the last setting of an option.
    fn get(&self, key: &str) -> Option<&Set<'a>> {
        self.sets.iter().rev().find(|set| set.key == key)
    }

    fn wrong<T>(&self, set: &Set, expected: &str) -> Result<T, WorkloadError> {
        wrong(format!(
            "{}: {} = {}: {expected}",
            self.place(set.line),
            set.key,
            set.value
        ))
    }

    fn flag(&self, key: &str) -> Result<bool, WorkloadError> {
        match self.get(key).map(|set| (set, set.value)) {
            None | Some((_, "0" | "false")) => Ok(false),
            Some((_, "1" | "true")) => Ok(true),
            Some((set, _)) => self.wrong(set, "must be 0 or 1"),
        }
    }

    fn count(&self, key: &str, other: u64) -> Result<u64, WorkloadError> {
        let Some(set) = self.get(key) else {
            return Ok(other);
        };
        match set.value.parse() {
            Ok(count @ 1..=1_000_000) => Ok(count),
            _ => self.wrong(set, "must be a whole number from 1 to 1000000"),
        }
    }

    /// Reads an option whose value is a number of bytes or a percentage.
    fn part(&self, key: &str) -> Result<Option<Part>, WorkloadError> {
        let Some(set) = self.get(key) else {
            return Ok(None);
        };
        let part = match set.value.strip_suffix('%') {
            Some(percent) => (percent.parse().ok())
                .filter(|percent| (0.0..=100.0).contains(percent))
                .map(Part::Percent),
            None => bytes_of(set.value).map(Part::Bytes),
        };
        match part {
            Some(part) => Ok(Some(part)),
            None => self.wrong(set, "must be bytes, like 4k or 10g, or percent, like 90%"),
        }
    }

    fn stream(&self) -> Result<StreamSpec, WorkloadError> {
        let Some(rw) = self.get("rw") else {
            return wrong(format!(
                "{}: [{}] has no rw; add it, like rw=randwrite",
                self.place(self.line),
                self.name
            ));
        };
        let block = match (self.get("bs"), self.part("bs")) {
            (None, _) => 4096,
            (_, Ok(Some(Part::Bytes(bytes @ 1..=0x4000_0000)))) => bytes,
            (Some(set), _) => return self.wrong(set, "must be one size of at most 1g, like 4k"),
        };
        let mix = self.mix()?;
        let (is_random, write, trim) = match rw.value {
            "read" => (false, 0.0, 0.0),
            "write" => (false, 1.0, 0.0),
            "trim" => (false, 0.0, 1.0),
            "rw" | "readwrite" => (false, mix, 0.0),
            "randread" => (true, 0.0, 0.0),
            "randwrite" => (true, 1.0, 0.0),
            "randtrim" => (true, 0.0, 1.0),
            "randrw" => (true, mix, 0.0),
            _ => {
                return self.wrong(
                    rw,
                    "must be read, write, trim, rw, randread, randwrite, randtrim or randrw",
                )
            }
        };
        let address = match is_random {
            true => self.addresses()?,
            false => Address::Sequential {},
        };
        let requests = GeneratorSpec {
            address,
            size: Size::Constant { bytes: block },
            write,
            trim,
            range: self.range()?,
            placement: self.placement()?,
            alignment: block,
            ..GeneratorSpec::default()
        };
        let depth = self.count("iodepth", 1)?;
        let amount = match self.flag("time_based")? {
            true => Amount::Share(depth as f64 * block as f64),
            false => Amount::Passes(self.passes()?),
        };
        Ok(StreamSpec { requests, amount })
    }

    /// Returns the fraction of writes in a job that mixes reads and writes.
    fn mix(&self) -> Result<f64, WorkloadError> {
        let percent = |set: &Set| match set.value.parse::<u8>() {
            Ok(percent @ 0..=100) => Ok(f64::from(percent) / 100.0),
            _ => self.wrong(set, "must be a whole percentage from 0 to 100"),
        };
        match (self.get("rwmixwrite"), self.get("rwmixread")) {
            (Some(set), _) => percent(set),
            (None, Some(set)) => Ok(1.0 - percent(set)?),
            (None, None) => Ok(0.5),
        }
    }

    fn addresses(&self) -> Result<Address, WorkloadError> {
        let set = self.get("random_distribution");
        let (kind, value) =
            match set.map(|set| set.value.split_once(':').unwrap_or((set.value, ""))) {
                None | Some(("random", "")) => {
                    return Ok(Address::Uniform {
                        permute: !self.flag("norandommap")?,
                        zoned: Vec::new(),
                    })
                }
                Some(parts) => parts,
            };
        let zone = |part: &str| {
            let (access, share) = part.split_once('/')?;
            Some((access.parse::<f64>().ok()?, share.parse::<f64>().ok()?))
        };
        let address = match kind {
            "zipf" => (value.parse().ok()).map(|theta| Address::Zipf {
                theta,
                scramble: true,
                cluster: 1,
                ranks_per_place: 1,
                fio: true,
            }),
            "zoned" => (value.split(':').map(zone).collect::<Option<Vec<_>>>()).map(|zoned| {
                Address::Uniform {
                    permute: false,
                    zoned,
                }
            }),
            _ => None,
        };
        match (address, set) {
            (Some(address), _) => Ok(address),
            (None, Some(set)) => self.wrong(
                set,
                "must be random, zipf with its theta, like zipf:1.2, or zoned with shares of accesses and of the range, \
                 like zoned:80/20:20/80",
            ),
            (None, None) => Ok(Address::UNIFORM),
        }
    }

    /// Returns the range of the job: `size` bytes from `offset`.
    fn range(&self) -> Result<Option<Range>, WorkloadError> {
        let size = self.part("size")?;
        let start = self.part("offset")?.unwrap_or(Part::Bytes(0));
        let end = match (start, size) {
            (_, None) => Part::Percent(100.0),
            (Part::Bytes(0), Some(size)) => size,
            (Part::Bytes(start), Some(Part::Bytes(size))) => {
                Part::Bytes(start.saturating_add(size))
            }
            (Part::Percent(start), Some(Part::Percent(size))) => {
                Part::Percent((start + size).min(100.0))
            }
            _ => {
                let set = self.get("offset").expect("it has an offset");
                return self.wrong(
                    set,
                    "must be in bytes if size is, and in percent if size is",
                );
            }
        };
        Ok(Some(Range { start, end }))
    }

    /// Returns the number of passes over the range.
    fn passes(&self) -> Result<f64, WorkloadError> {
        let loops = self.count("loops", 1)? as f64;
        let Some(set) = self.get("io_size") else {
            return Ok(loops);
        };
        match (self.part("io_size")?, self.part("size")?) {
            (Some(Part::Bytes(bytes)), Some(Part::Bytes(size))) if bytes > 0 && size > 0 => {
                Ok(loops * bytes as f64 / size as f64)
            }
            _ => self.wrong(set, "must be bytes above 0, and size be given in bytes"),
        }
    }

    /// Returns the placement id that `fdp_pli` gives as an index of the device's handles.
    fn placement(&self) -> Result<Option<u16>, WorkloadError> {
        let kind = self.get("dataplacement");
        let placed = match kind.map(|set| set.value) {
            None => self.flag("fdp")?,
            Some("none") => false,
            Some("fdp" | "streams") => true,
            Some(_) => {
                let set = kind.expect("it is set");
                return self.wrong(set, "must be none, fdp or streams");
            }
        };
        match self.get("fdp_pli").filter(|_| placed) {
            None => Ok(placed.then_some(0)),
            Some(set) => match set.value.parse() {
                Ok(id @ 0..=0xFFFE) => Ok(Some(id)),
                _ => self.wrong(
                    set,
                    "must be one id from 0 to 65534; write a job for each id of a list or range",
                ),
            },
        }
    }
}

/// Parses a number of bytes with a suffix of fio. Suffixes are powers of 1024 (`kb_base=1024`).
fn bytes_of(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let bare = text
        .strip_suffix("ib")
        .or(text.strip_suffix('b'))
        .unwrap_or(&text);
    let power = match bare.as_bytes().last()? {
        b'k' => 1,
        b'm' => 2,
        b'g' => 3,
        b't' => 4,
        _ => 0,
    };
    let digits = if power > 0 {
        &bare[..bare.len() - 1]
    } else {
        bare
    };
    let number: u64 = digits.parse().ok()?;
    number
        .checked_mul(1 << (10 * power))
        .filter(|bytes| *bytes <= 1 << 62)
}
