//! A load of one or several streams, what fills a device before it, and the placement ids of its ranges.

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
use super::values::wrong;
use crate::error::WorkloadError;
use crate::Workload;

/// Separator of streams in the text form.
const AND: &str = " + ";
/// Streams of a load.
const STREAMS_MAX: usize = 64;
/// Random numbers of the choice of streams, and of the seeds of streams.
const STREAM_CHOICE: u64 = 0x4c4f_4144_0000_0000;
const STREAM_SEEDS: u64 = 0x4c4f_4144_0001_0000;
/// Added for the streams of a fill.
const FILL: u64 = 0x8000;

/// One stream of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// Requests of the stream. Their number, if any, is that of the load; one of its streams may have it.
    pub requests: GeneratorSpec,
    /// Bytes of this stream, in proportion to those of the other streams.
    pub bytes: f64,
}

/// A generated load: one or several streams, drawn in proportion to their bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSpec {
    /// Streams; at least one.
    streams: Vec<StreamSpec>,
    /// Streams that fill a device before the load, each its range once; none if the load does not define it.
    fill: Vec<GeneratorSpec>,
    /// Text of a named load.
    name: Option<String>,
}

impl LoadSpec {
    /// Reads the text form: a stream, several joined by ` + `, or a named load.
    ///
    /// # Errors
    /// Fails if a pattern, a name or a key is unknown, or a value is out of its range.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let text = text.trim();
        if let Some(load) = named::parse(text) {
            let Named { load, fill } = load?;
            let fill = fill.iter().map(|text| GeneratorSpec::parse(text));
            return Ok(LoadSpec {
                fill: fill.collect::<Result<_, _>>()?,
                name: Some(text.to_string()),
                ..LoadSpec::parse(&load)?
            });
        }
        if !text.contains(AND) {
            let requests = GeneratorSpec::parse(text)?;
            let bytes = 1.0;
            return Ok(LoadSpec {
                streams: vec![StreamSpec { requests, bytes }],
                fill: Vec::new(),
                name: None,
            });
        }
        let mut streams = Vec::new();
        for text in text.split(AND) {
            if named::parse(text.trim()).is_some() {
                return wrong(format!(
                    "{}: a load of its own, with several streams or a fill; it cannot be a stream of another",
                    text.trim()
                ));
            }
            let (requests, bytes) = GeneratorSpec::parse_stream(text)?;
            let bytes = bytes.unwrap_or(1.0);
            streams.push(StreamSpec { requests, bytes });
        }
        let load = LoadSpec {
            streams,
            fill: Vec::new(),
            name: None,
        };
        load.validate()?;
        Ok(load)
    }

    fn validate(&self) -> Result<(), WorkloadError> {
        if self.streams.len() > STREAMS_MAX {
            return wrong(format!(
                "{} streams; at most {STREAMS_MAX} are possible",
                self.streams.len()
            ));
        }
        for stream in &self.streams {
            let requests = &stream.requests;
            if !(stream.bytes > 0.0 && stream.bytes <= 1e18) {
                return wrong(format!(
                    "bytes={}: the share of a stream must be above 0, in proportion to those of the other streams",
                    stream.bytes
                ));
            }
            if requests.arrival != (Arrival::None {}) {
                return wrong(format!(
                    "{requests}: streams have no arrival times of their own, since shares by time depend on the device; \
                     leave rate, interval, arrival, on_rate, on_length and duty out and give shares, like bytes=0.5"
                ));
            }
            if requests.pinned > 0.0 {
                return wrong(format!(
                    "{requests}: pinned cuts requests, whose bytes would have no share; leave it out, or generate this \
                     stream alone"
                ));
            }
        }
        let counted = self
            .streams
            .iter()
            .filter(|s| s.requests.requests.is_some());
        if counted.count() > 1 {
            return wrong(
                "requests is given for several streams; it is the number of the whole load: give it once".to_string(),
            );
        }
        Ok(())
    }

    /// Streams of the load; at least one.
    pub fn streams(&self) -> &[StreamSpec] {
        &self.streams
    }

    /// Whether the requests have arrival times.
    pub fn is_timed(&self) -> bool {
        (self.streams.iter()).any(|stream| stream.requests.arrival != (Arrival::None {}))
    }

    /// Makes the load ready for a device (or part) of `range_bytes`. The same load, range and seed give the same
    /// requests on every machine.
    ///
    /// # Errors
    /// Fails if a stream does not fit into `range_bytes`.
    pub fn build(&self, range_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        if let [stream] = &self.streams[..] {
            return stream.requests.build(range_bytes, seed);
        }
        let requests = self.streams.iter().find_map(|s| s.requests.requests);
        let streams = (self.streams.iter().enumerate())
            .map(|(i, stream)| {
                let endless = GeneratorSpec {
                    requests: None,
                    ..stream.requests.clone()
                };
                let seed = Rng::new(seed, STREAM_SEEDS + i as u64).bits();
                let generator = Generator::new(&endless, range_bytes, seed)?;
                Ok((generator, stream.bytes / endless.mean_bytes()))
            })
            .collect::<Result<Vec<_>, WorkloadError>>()?;
        let description = format!("generated {self} over {range_bytes} bytes, seed {seed}");
        let choice = Rng::new(seed, STREAM_CHOICE);
        Ok(Box::new(Mix::new(streams, requests, choice, description)))
    }

    /// Requests that fill a device (or part) of `range_bytes` before the load, one stream after the other, each as many
    /// bytes as its range has; `None` if the load does not define them.
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
        let mut streams = Vec::new();
        for (i, stream) in self.fill.iter().enumerate() {
            let space = stream.validate(range_bytes)?;
            let counted = GeneratorSpec {
                requests: Some((space.bytes as f64 / stream.mean_bytes()) as u64),
                ..stream.clone()
            };
            let seed = Rng::new(seed, STREAM_SEEDS + FILL + i as u64).bits();
            streams.push(counted.build(range_bytes, seed)?);
        }
        Ok(Some(Box::new(Once::new(streams))))
    }

    /// Requests that fill a device (or part) of `range_bytes` before the load: its own, or every page once in ascending
    /// order, through the handle that the load has there.
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

    /// Placement ids by range, of a device (or part) of `range_bytes`.
    ///
    /// # Errors
    /// Fails if a stream does not fit into `range_bytes`.
    pub fn handles(&self, range_bytes: u64) -> Result<Handles, WorkloadError> {
        let mut ranges = Vec::new();
        for stream in &self.streams {
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

/// Placement ids by range of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handles {
    /// First byte, end and id of the writes of each stream.
    ranges: Vec<(u64, u64, PlacementId)>,
}

impl Handles {
    /// Returns the id of the writes to a byte: that of the first stream that writes there; none where no stream does.
    #[inline]
    pub fn handle_of(&self, offset: u64) -> PlacementId {
        let within = |range: &&(u64, u64, PlacementId)| (range.0..range.1).contains(&offset);
        let range = self.ranges.iter().find(within);
        range.map_or(PlacementId::NONE, |range| range.2)
    }
}

impl FromStr for LoadSpec {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        LoadSpec::parse(text)
    }
}

impl fmt::Display for LoadSpec {
    /// The text form; `parse` reads it back to the same load.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            return f.write_str(name);
        }
        if let [stream] = &self.streams[..] {
            return write!(f, "{}", stream.requests);
        }
        for (i, stream) in self.streams.iter().enumerate() {
            let and = if i == 0 { "" } else { AND };
            write!(f, "{and}{},bytes={}", stream.requests, stream.bytes)?;
        }
        Ok(())
    }
}
