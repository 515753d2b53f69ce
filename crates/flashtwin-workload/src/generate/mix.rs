//! Combines several streams of requests into one workload. The next request is drawn from a random stream, by weight,
//! or the streams follow one another.

use flashtwin::Request;

use super::generator::{Generator, BATCH};
use super::rng::Rng;
use crate::error::WorkloadError;
use crate::Workload;

/// Streams drawn by weight.
pub(super) struct Mix {
    streams: Vec<Stream>,
    /// For each stream, the largest draw of [`Rng::units`] that selects it.
    up_to: Vec<u64>,
    choice: Rng,
    requests: Option<u64>,
    made: u64,
    description: String,
}

/// A stream, with the requests of it that have been drawn in advance.
struct Stream {
    generator: Generator,
    ahead: Vec<Request>,
    next: usize,
}

impl Mix {
    /// Combines streams that have no end and no arrival times. The weights determine the proportions of their requests.
    pub fn new(
        streams: Vec<(Generator, f64)>,
        requests: Option<u64>,
        choice: Rng,
        description: String,
    ) -> Self {
        let total: f64 = streams.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let up_to = (streams.iter())
            .map(|(_, weight)| {
                sum += weight / total;
                Rng::units_up_to(sum)
            })
            .collect();
        let streams = (streams.into_iter())
            .map(|(generator, _)| Stream {
                generator,
                ahead: Vec::with_capacity(BATCH as usize),
                next: 0,
            })
            .collect();
        Mix {
            streams,
            up_to,
            choice,
            requests,
            made: 0,
            description,
        }
    }
}

impl Stream {
    #[inline]
    fn draw(&mut self) -> Result<Request, WorkloadError> {
        if self.next == self.ahead.len() {
            self.ahead.clear();
            self.generator.next_batch(&mut self.ahead)?;
            self.next = 0;
        }
        let request = self.ahead[self.next];
        self.next += 1;
        Ok(request)
    }
}

impl Workload for Mix {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        let left = self.requests.map_or(u64::MAX, |n| n - self.made);
        let count = left.min(BATCH);
        out.reserve(count as usize);
        let last = self.streams.len() - 1;
        for _ in 0..count {
            let drawn = self.choice.units();
            // Because of rounding, the sum of the shares may be a little below 1. Draws above the sum select the last
            // stream.
            let stream = self.up_to[..last].iter().position(|up_to| drawn <= *up_to);
            out.push(self.streams[stream.unwrap_or(last)].draw()?);
        }
        self.made += count;
        Ok(count as usize)
    }

    fn requests_total(&self) -> Option<u64> {
        self.requests
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}

/// Streams one after the other.
pub(super) struct Once {
    streams: Vec<Box<dyn Workload>>,
    present: usize,
    description: String,
}

impl Once {
    pub fn new(streams: Vec<Box<dyn Workload>>, description: String) -> Self {
        Once {
            streams,
            present: 0,
            description,
        }
    }
}

impl Workload for Once {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        while let Some(stream) = self.streams.get_mut(self.present) {
            let count = stream.next_batch(out)?;
            if count > 0 {
                return Ok(count);
            }
            self.present += 1;
        }
        Ok(0)
    }

    fn requests_total(&self) -> Option<u64> {
        self.streams
            .iter()
            .map(|stream| stream.requests_total())
            .sum()
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}
