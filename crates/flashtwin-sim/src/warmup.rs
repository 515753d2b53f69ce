//! The warm-up: the requests before the measurement. The measurement begins after a fixed number of requests, or once
//! the run is steady.
//!
//! The criterion is applied after `warmup_requests` = N requests. While it is not met, it is applied again after 2 N, 4
//! N and so on, up to `warmup_requests_max`. With these coarse steps, the measurement of a load begins at the same
//! request under most policies. The second half of the run so far is divided into five parts. The run is steady if all
//! of these conditions hold:
//!
//! - As many pages as the buffer holds were evicted before the second half, or all accesses in the second half hit.
//! - If pages were programmed in the second half, blocks were erased in it. Before the first collections, write
//!   amplification is 1, which does not last.
//! - At least nine requests completed for every ten that arrived.
//! - The hit ratio and the pages programmed per accessed page are level. Five values are level if they differ by at
//!   most 20 % of their mean and their regression line rises or falls by at most 10 % of it, as in SNIA's performance
//!   test specification. They are also level if they differ by at most [`NEGLIGIBLE`].
//! - The mean response time is level, or it neither rises in every part nor falls in every part. Bursts make the
//!   response time vary without end. A slow trend makes it rise or fall in every part.

use flashtwin::{Cause, Device};

use crate::outcome::Steady;
use crate::run::RunConfig;
use crate::{Drivable, SimError};

/// Number of parts of the second half of the run, which the criterion compares.
const PARTS: usize = 5;
/// Number of samples before the criterion is first applied. With this number, each part of the second half has a whole
/// number of samples.
const SAMPLES: u64 = 2 * PARTS as u64;
/// Values of the parts that differ by at most this much are always level. Applies to the hit ratio and to the pages
/// programmed per accessed page.
const NEGLIGIBLE: f64 = 0.02;

/// The warm-up of a run.
#[derive(Debug, Default)]
pub(crate) struct Warmup {
    /// Number of requests after which [`Warmup::is_over`] must be called next: at the end of the warm-up, or for a
    /// sample of the criterion.
    pub look_at: u64,
    criterion: Option<Box<Criterion>>,
}

#[derive(Debug)]
struct Criterion {
    /// Number of requests before the first examination.
    first: u64,
    /// Number of requests at the last possible examination.
    last: u64,
    /// Number of requests of the workload, if known.
    known: Option<u64>,
    samples: Vec<Sample>,
    outcome: Option<Steady>,
}

/// Counts since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    requests: u64,
    response_ps: u128,
    pages: u64,
    hits: u64,
    programs: u64,
    erases: u64,
    evicted: u64,
    in_flight: u64,
}

impl Sample {
    fn of<S: Drivable>(device: &Device<S>) -> Sample {
        let host = device.metrics().reads_and_writes();
        let flash = device.flash_report_without_wear();
        Sample {
            requests: host.requests,
            response_ps: host.response_ps_sum(),
            pages: host.pages,
            hits: host.hits,
            programs: flash.programs(),
            erases: flash.flash.count(Cause::Erase),
            evicted: flash.evicted_clean + flash.evicted_dirty,
            in_flight: device.outstanding() as u64,
        }
    }
}

impl Warmup {
    /// Creates the warm-up of a run. `known` is the number of requests of the workload, if that number is known.
    pub fn new(config: &RunConfig, known: Option<u64>) -> Result<Warmup, SimError> {
        let first = config.warmup_requests;
        let Some(most) = config.warmup_requests_max else {
            return Ok(Warmup {
                look_at: first,
                criterion: None,
            });
        };
        if first < SAMPLES || most < first {
            return Err(SimError::Config(format!(
                "warm-up of {first} requests, at most {most}, until the run is steady: give a first number of \
                 {SAMPLES} or more and a maximum that is not smaller"
            )));
        }
        // If the run is limited by `requests_max`, the measurement must still have as many requests as after a warm-up
        // of `warmup_requests` requests. Otherwise it must have at least half of the workload.
        let measured = |all: u64| match config.requests_max {
            Some(max) => max.min(all).saturating_sub(first),
            None => all / 2,
        };
        let room = known.map_or(u64::MAX, |all| all - measured(all));
        let criterion = Criterion {
            first,
            last: most.min(room),
            known,
            samples: vec![Sample::default()],
            outcome: None,
        };
        Ok(Warmup {
            look_at: first / SAMPLES,
            criterion: Some(Box::new(criterion)),
        })
    }

    /// Returns the number of requests by which the warm-up is longer than `warmup_requests`; `u64::MAX` while the end
    /// of the warm-up is unknown.
    pub fn extension(&self) -> u64 {
        match self.criterion.as_deref() {
            None => 0,
            Some(Criterion { outcome, first, .. }) => {
                (outcome.as_ref()).map_or(u64::MAX, |outcome| outcome.after_requests - first)
            }
        }
    }

    /// Returns the number of requests of the whole run, including the extension of the warm-up. `requests_max` is the
    /// limit without the extension.
    pub fn total(&self, requests_max: Option<u64>) -> Option<u64> {
        let known = self.criterion.as_deref()?.known;
        let longer = requests_max?.saturating_add(self.extension());
        Some(known.map_or(longer, |known| known.min(longer)))
    }

    /// Called after `look_at` requests. Returns whether the warm-up ends now. If it does not, sets the next `look_at`.
    #[cold]
    pub fn is_over<S: Drivable>(&mut self, device: &Device<S>) -> bool {
        let Some(criterion) = self.criterion.as_deref_mut() else {
            return true;
        };
        criterion.samples.push(Sample::of(device));
        let samples = criterion.samples.len() as u64 - 1;
        let looks = samples.is_multiple_of(SAMPLES) && (samples / SAMPLES).is_power_of_two();
        if looks {
            let pages = S::describe(device).buffer.map_or(0, |b| b.capacity_pages);
            let missed = missed(&criterion.samples, u64::from(pages));
            if missed.is_none() || self.look_at.saturating_mul(2) > criterion.last {
                criterion.outcome = Some(Steady {
                    after_requests: self.look_at,
                    is_met: missed.is_none(),
                    missed,
                });
                return true;
            }
        }
        let next = u128::from(criterion.first) * u128::from(samples + 1) / u128::from(SAMPLES);
        self.look_at = u64::try_from(next).unwrap_or(u64::MAX);
        false
    }

    /// Returns the end of the warm-up; `None` if the warm-up has a fixed length.
    pub fn into_outcome(self) -> Option<Steady> {
        self.criterion.and_then(|criterion| criterion.outcome)
    }
}

/// Returns a description of the first measure that is not steady in the second half of the samples; `None` if all are
/// steady. `buffer_pages` is the size of the buffer.
fn missed(samples: &[Sample], buffer_pages: u64) -> Option<&'static str> {
    let half = samples.len() / 2;
    let start = samples[half];
    let end = samples[samples.len() - 1];
    let all_hit = end.hits - start.hits == end.pages - start.pages;
    if start.evicted < buffer_pages && !all_hit {
        return Some("the buffer was not replaced yet");
    }
    if end.programs > start.programs && end.erases == start.erases {
        return Some("no block was collected yet");
    }
    let completed = end.requests - start.requests;
    let grown = end.in_flight.saturating_sub(start.in_flight);
    if grown > completed / 9 {
        return Some("more requests arrived than completed");
    }
    let step = half / PARTS;
    let parts = |of: fn(Sample, Sample) -> f64| -> [f64; PARTS] {
        std::array::from_fn(|i| of(samples[half + i * step], samples[half + (i + 1) * step]))
    };
    let hits = parts(|a, b| ratio((b.hits - a.hits) as f64, b.pages - a.pages));
    if !is_level(&hits, NEGLIGIBLE) {
        return Some("the hit ratio varied");
    }
    let programs = parts(|a, b| ratio((b.programs - a.programs) as f64, b.pages - a.pages));
    if !is_level(&programs, NEGLIGIBLE) {
        return Some("the pages programmed for an accessed page varied");
    }
    let response = parts(|a, b| {
        ratio(
            (b.response_ps - a.response_ps) as f64,
            b.requests - a.requests,
        )
    });
    let rises = response.windows(2).all(|pair| pair[0] < pair[1]);
    let falls = response.windows(2).all(|pair| pair[0] > pair[1]);
    if (rises || falls) && !is_level(&response, 0.0) {
        return Some("the mean response time had a trend");
    }
    None
}

fn ratio(a: f64, b: u64) -> f64 {
    if b == 0 {
        return 0.0;
    }
    a / b as f64
}

/// Whether a measure meets SNIA's criterion of a steady state: its values differ by at most 20 % of the mean, and its
/// regression line rises or falls by at most 10 % of the mean. Values that differ by at most `negligible` also meet it.
fn is_level(parts: &[f64; PARTS], negligible: f64) -> bool {
    let mean = parts.iter().sum::<f64>() / PARTS as f64;
    let least = parts.iter().copied().fold(f64::INFINITY, f64::min);
    let most = parts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let middle = (PARTS - 1) as f64 / 2.0;
    let from_middle = |i: usize| i as f64 - middle;
    let squares: f64 = (0..PARTS).map(|i| from_middle(i) * from_middle(i)).sum();
    let slope: f64 = (0..PARTS).map(|i| from_middle(i) * parts[i]).sum::<f64>() / squares;
    let change = slope.abs() * (PARTS - 1) as f64;
    most - least <= negligible || (most - least <= 0.2 * mean && change <= 0.1 * mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates samples of a run. `parts` are the mean response times in the five parts of its second half.
    fn with_response(parts: [u64; PARTS]) -> Vec<Sample> {
        let mut samples = vec![Sample::default()];
        for i in 0..SAMPLES as usize {
            let mut next = samples[i];
            let mean = parts[i.saturating_sub(PARTS)];
            next.requests += 100;
            next.response_ps += u128::from(mean) * 100;
            next.pages += 100;
            next.programs += 100;
            next.erases += 2;
            next.evicted += 100;
            samples.push(next);
        }
        samples
    }

    #[test]
    fn a_response_time_may_vary_but_not_rise_throughout() {
        let missed = |parts| missed(&with_response(parts), 400);
        assert_eq!(missed([100; PARTS]), None);
        assert_eq!(missed([100, 102, 104, 106, 108]), None, "within 10 %");
        assert_eq!(missed([100, 300, 120, 500, 90]), None, "bursts");
        let trend = Some("the mean response time had a trend");
        assert_eq!(missed([100, 105, 110, 115, 120]), trend);
        assert_eq!(missed([900, 400, 300, 200, 100]), trend);
    }

    #[test]
    fn a_level_has_the_limits_of_snia() {
        let level = |parts| is_level(&parts, 0.0);
        assert!(level([100.0, 91.0, 100.0, 109.0, 100.0]));
        assert!(!level([100.0, 89.0, 100.0, 110.0, 100.0]), "range");
        assert!(!level([94.0, 97.0, 100.0, 103.0, 106.0]), "slope");
        assert!(is_level(&[0.0, 0.02, 0.0, 0.01, 0.0], NEGLIGIBLE));
        assert!(!is_level(&[0.0, 0.03, 0.0, 0.01, 0.0], NEGLIGIBLE));
    }

    #[test]
    fn a_buffer_is_replaced_before_the_half_that_is_compared() {
        let mut samples = with_response([100; PARTS]);
        assert_eq!(missed(&samples, 500), None);
        let unused = Some("the buffer was not replaced yet");
        assert_eq!(missed(&samples, 501), unused);
        for (i, sample) in samples.iter_mut().enumerate() {
            sample.hits = 100 * i as u64;
        }
        assert_eq!(missed(&samples, 501), None, "nothing can replace it");
    }

    #[test]
    fn blocks_are_collected_in_the_half_that_is_compared() {
        let mut samples = with_response([100; PARTS]);
        for sample in &mut samples {
            sample.erases = 0;
        }
        assert_eq!(missed(&samples, 400), Some("no block was collected yet"));
        for sample in &mut samples {
            sample.programs = 0;
        }
        assert_eq!(missed(&samples, 400), None, "there is nothing to collect");
    }
}
