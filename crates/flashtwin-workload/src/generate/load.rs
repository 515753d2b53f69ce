//! Loads of one or several streams. A load may also define the requests that fill a device before it, and placement ids
//! of address ranges.

use flashtwin::PlacementId;
use std::fmt;
use std::str::FromStr;

use super::arrival::Arrival;
use super::generator::Generator;
use super::in_order::InOrder;
use super::mix::{Mix, Once};
use super::named::{self, Named};
use super::rng::Rng;
use super::spec::GeneratorSpec;
use super::stream::{Amount, Phase, StreamSpec};
use super::values::wrong;
use crate::error::WorkloadError;
use crate::Workload;

/// Separator of streams in the text form.
const AND: &str = " + ";
/// Largest number of streams of a load.
const STREAMS_MAX: usize = 64;
/// Numbers of random streams ([`Rng::new`]). `STREAM_CHOICE` is used to choose between the streams of a load,
/// `STREAM_SEEDS + i` for the seed of stream i.
const STREAM_CHOICE: u64 = 0x4c4f_4144_0000_0000;
const STREAM_SEEDS: u64 = 0x4c4f_4144_0001_0000;
/// Numbers of further random streams. `STREAM_PHASES + i` is used for the seed of phase i, `STREAM_FILL` for the seed
/// of the fill.
const STREAM_PHASES: u64 = 0x4c4f_4144_0002_0000;
const STREAM_FILL: u64 = 0x4c4f_4144_0003_0000;

/// A generated load: consecutive phases, each of one or several streams. The streams of a phase run at the same time;
/// each gets its share of the bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSpec {
    /// The phases. A load has at least one phase, and a phase has at least one stream.
    phases: Vec<Phase>,
    /// Phases that fill a device before the load. Empty if the load defines no fill.
    fill: Vec<Phase>,
    /// For a named load: its text form, and a remark on omitted options.
    name: Option<(String, String)>,
}

impl LoadSpec {
    /// Reads the text form of a load: one stream, several streams joined by ` + `, or the name of a load.
    ///
    /// # Errors
    /// Fails if a pattern, a name or a key is unknown, a value is out of its range, or a file cannot be read.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let text = text.trim();
        match named::parse(text) {
            None => Ok(LoadSpec {
                phases: vec![parse_streams(text)?],
                fill: Vec::new(),
                name: None,
            }),
            Some(Err(error)) => Err(error),
            Some(Ok(Named::Written { load, fill })) => Ok(LoadSpec {
                phases: vec![parse_streams(&load)?],
                fill: fill
                    .iter()
                    .map(|text| once(text))
                    .collect::<Result<_, _>>()?,
                name: Some((text.to_string(), String::new())),
            }),
            Some(Ok(Named::Job(job))) => {
                for phase in &job.phases {
                    validate(phase)?;
                }
                let ignored = match job.ignored.is_empty() {
                    true => String::new(),
                    false => format!(" (without effect here: {})", job.ignored.join(", ")),
                };
                Ok(LoadSpec {
                    phases: job.phases,
                    fill: Vec::new(),
                    name: Some((text.to_string(), ignored)),
                })
            }
        }
    }

    /// Returns the load with each of its streams, also those of the fill, replaced by the result of `map`.
    pub(super) fn map_streams(
        &self,
        map: impl Fn(&StreamSpec) -> Result<StreamSpec, WorkloadError>,
    ) -> Result<LoadSpec, WorkloadError> {
        let each = |phases: &[Phase]| -> Result<Vec<Phase>, WorkloadError> {
            let phase = |phase: &Phase| phase.iter().map(&map).collect();
            phases.iter().map(phase).collect()
        };
        Ok(LoadSpec {
            phases: each(&self.phases)?,
            fill: each(&self.fill)?,
            name: self.name.clone(),
        })
    }

    /// Adds a remark to the description of a named load. The text form of other loads shows all their keys.
    pub(super) fn noted(mut self, remark: &str) -> LoadSpec {
        if let Some((_, note)) = &mut self.name {
            note.push_str(remark);
        }
        self
    }

    /// Streams of all phases; at least one.
    pub fn streams(&self) -> impl Iterator<Item = &StreamSpec> {
        self.phases.iter().flatten()
    }

    /// Whether the requests have arrival times.
    pub fn is_timed(&self) -> bool {
        (self.streams()).any(|stream| stream.requests.arrival != (Arrival::None {}))
    }

    /// Creates the workload for a device, or for a part of a device, of `range_bytes` bytes. The same load, range and
    /// seed give the same requests on every machine.
    ///
    /// # Errors
    /// Fails if a stream does not fit into `range_bytes`.
    pub fn build(&self, range_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        let describe = || {
            let note = self.name.as_ref().map_or("", |(_, note)| note);
            format!("generated {self}{note} over {range_bytes} bytes, seed {seed}")
        };
        match &self.phases[..] {
            [phase] => build_phase(phase, range_bytes, seed, describe()),
            phases => Ok(Box::new(Once::new(
                build_phases(phases, range_bytes, seed)?,
                describe(),
            ))),
        }
    }

    /// Returns the requests that fill a device, or a part of a device, of `range_bytes` bytes before the load. The
    /// streams of the fill follow one another. Each writes as many bytes as its range has. Returns `None` if the load
    /// defines no fill.
    ///
    /// # Errors
    /// Fails if a stream does not fit into `range_bytes`.
    pub fn fill(
        &self,
        range_bytes: u64,
        seed: u64,
    ) -> Result<Option<Box<dyn Workload>>, WorkloadError> {
        if self.fill.is_empty() {
            return Ok(None);
        }
        let seed = Rng::new(seed, STREAM_FILL).bits();
        let phases = build_phases(&self.fill, range_bytes, seed)?;
        let description = format!("fill of {self} over {range_bytes} bytes, seed {seed}");
        Ok(Some(Box::new(Once::new(phases, description))))
    }

    /// Returns the requests that fill a device, or a part of a device, of `range_bytes` bytes before the load. If the
    /// load defines no fill, the requests write every page once in ascending order, with the placement id with which
    /// the load writes the page.
    ///
    /// # Errors
    /// Fails if a stream does not fit into `range_bytes`.
    pub fn fill_or_in_order(
        &self,
        range_bytes: u64,
        page_bytes: u32,
        seed: u64,
    ) -> Result<Box<dyn Workload>, WorkloadError> {
        match self.fill(range_bytes, seed)? {
            Some(fill) => Ok(fill),
            None => {
                let handles = self.handles(range_bytes)?;
                Ok(Box::new(InOrder::new(
                    handles,
                    range_bytes,
                    page_bytes.into(),
                )))
            }
        }
    }

    /// Returns the placement ids of the address ranges of a device, or of a part of a device, of `range_bytes` bytes.
    ///
    /// # Errors
    /// Fails if a stream does not fit into `range_bytes`.
    pub fn handles(&self, range_bytes: u64) -> Result<Handles, WorkloadError> {
        let mut ranges = Vec::new();
        for stream in self.streams() {
            let requests = &stream.requests;
            let space = requests.validate(range_bytes)?;
            if requests.write > 0.0 {
                let id = requests.placement.and_then(PlacementId::new);
                ranges.push((
                    space.first,
                    space.first + space.bytes,
                    id.unwrap_or_default(),
                ));
            }
        }
        Ok(Handles { ranges })
    }
}

/// Reads streams joined by ` + `.
fn parse_streams(text: &str) -> Result<Phase, WorkloadError> {
    if !text.contains(AND) {
        let requests = GeneratorSpec::parse(text)?;
        let amount = Amount::Share(1.0);
        return Ok(vec![StreamSpec { requests, amount }]);
    }
    let mut phase = Vec::new();
    for text in text.split(AND) {
        if named::parse(text.trim()).is_some() {
            return wrong(format!(
                "{}: a load of its own, with several streams or a fill; it cannot be a stream of another",
                text.trim()
            ));
        }
        let (requests, bytes) = GeneratorSpec::parse_stream(text)?;
        let amount = Amount::Share(bytes.unwrap_or(1.0));
        phase.push(StreamSpec { requests, amount });
    }
    validate(&phase)?;
    Ok(phase)
}

/// Reads the text form of a stream. Returns a phase in which the stream passes over its range once.
fn once(text: &str) -> Result<Phase, WorkloadError> {
    let requests = GeneratorSpec::parse(text)?;
    let amount = Amount::Passes(1.0);
    Ok(vec![StreamSpec { requests, amount }])
}

/// Checks the streams of a phase.
fn validate(phase: &Phase) -> Result<(), WorkloadError> {
    if phase.len() > STREAMS_MAX {
        return wrong(format!(
            "{} streams; at most {STREAMS_MAX} are possible",
            phase.len()
        ));
    }
    for stream in phase {
        let requests = &stream.requests;
        let (Amount::Share(amount) | Amount::Passes(amount)) = stream.amount;
        if !(amount > 0.0 && amount <= 1e18) {
            return wrong(format!(
                "bytes={amount}: the share of a stream must be above 0, in proportion to those of the other streams"
            ));
        }
        if requests.arrival != (Arrival::None {}) {
            return wrong(format!(
                "{requests}: streams have no arrival times of their own, since shares by time depend on the device; \
                 leave rate, interval, arrival, on_rate, on_length, duty and schedule out and give shares, like bytes=0.5"
            ));
        }
        if requests.pinned > 0.0 {
            return wrong(format!(
                "{requests}: pinned cuts requests, whose bytes would have no share; leave it out, or generate this \
                 stream alone"
            ));
        }
        if requests.flush >= 1.0 {
            return wrong(format!(
                "{requests}: flushes have no bytes, of which a stream has a share; give a flush below 1"
            ));
        }
    }
    let counted = phase.iter().filter(|s| s.requests.requests.is_some());
    if counted.count() > 1 {
        return wrong(
            "requests is given for several streams; it is the number of the whole load: give it once".to_string(),
        );
    }
    Ok(())
}

fn build_phases(
    phases: &[Phase],
    range_bytes: u64,
    seed: u64,
) -> Result<Vec<Box<dyn Workload>>, WorkloadError> {
    let seed = |i: usize| Rng::new(seed, STREAM_PHASES + i as u64).bits();
    (phases.iter().enumerate())
        .map(|(i, phase)| build_phase(phase, range_bytes, seed(i), String::new()))
        .collect()
}

fn build_phase(
    phase: &Phase,
    range_bytes: u64,
    seed: u64,
    description: String,
) -> Result<Box<dyn Workload>, WorkloadError> {
    if let [StreamSpec {
        requests,
        amount: Amount::Share(_),
    }] = &phase[..]
    {
        return requests.build(range_bytes, seed);
    }
    let mut requests = phase.iter().find_map(|s| s.requests.requests);
    let mut passed = 0u64;
    let mut streams = Vec::new();
    for (i, stream) in phase.iter().enumerate() {
        let endless = GeneratorSpec {
            requests: None,
            ..stream.requests.clone()
        };
        let weight = match stream.amount {
            Amount::Share(bytes) => bytes / endless.mean_bytes(),
            Amount::Passes(passes) => {
                let space = endless.validate(range_bytes)?;
                let count = (space.bytes as f64 * passes / endless.mean_bytes()) as u64;
                passed += count.max(1);
                count.max(1) as f64
            }
        };
        let seed = Rng::new(seed, STREAM_SEEDS + i as u64).bits();
        streams.push((Generator::new(&endless, range_bytes, seed)?, weight));
    }
    if passed > 0 {
        requests = Some(passed);
    }
    let choice = Rng::new(seed, STREAM_CHOICE);
    Ok(Box::new(Mix::new(streams, requests, choice, description)))
}

/// Placement ids by range of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handles {
    /// For each stream that writes: the first byte of its range, the end of its range, and its placement id.
    ranges: Vec<(u64, u64, PlacementId)>,
}

impl Handles {
    /// Returns the placement id with which the load writes a byte: that of the first stream that writes there. Returns
    /// no id if no stream writes there.
    #[inline]
    pub fn handle_of(&self, offset: u64) -> PlacementId {
        let within = |range: &&(u64, u64, PlacementId)| (range.0..range.1).contains(&offset);
        let range = self.ranges.iter().find(within);
        range.map_or(PlacementId::NONE, |range| range.2)
    }
}

/// Returns a workload that writes every page of a device of `range_bytes` bytes once, in ascending order, without
/// placement ids.
pub fn in_order(range_bytes: u64, page_bytes: u32) -> Box<dyn Workload> {
    let handles = Handles { ranges: Vec::new() };
    Box::new(InOrder::new(handles, range_bytes, page_bytes.into()))
}

impl FromStr for LoadSpec {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        LoadSpec::parse(text)
    }
}

impl fmt::Display for LoadSpec {
    /// Formats the text form, which `parse` converts back to an equal load.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = &self.name {
            return f.write_str(name);
        }
        // A load without a name has only one phase.
        let phase = &self.phases[0];
        if let [stream] = &phase[..] {
            return write!(f, "{}", stream.requests);
        }
        for (i, stream) in phase.iter().enumerate() {
            let and = if i == 0 { "" } else { AND };
            let (Amount::Share(bytes) | Amount::Passes(bytes)) = stream.amount;
            write!(f, "{and}{},bytes={bytes}", stream.requests)?;
        }
        Ok(())
    }
}
