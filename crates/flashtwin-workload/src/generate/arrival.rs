//! When requests arrive.

use serde::{Deserialize, Serialize};

use super::rng::Rng;
use crate::error::{ErrorKind, WorkloadError};

/// Distribution of the gaps between the arrivals of requests. Rates are in requests per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrival {
    /// Requests have no arrival times: all are 0. The driver keeps a fixed number of requests in flight (closed loop).
    None {},
    /// Requests are evenly spaced.
    Constant {
        /// Requests per second.
        rate: f64,
    },
    /// Arrivals are a Poisson process.
    Exponential {
        /// Mean requests per second.
        rate: f64,
    },
    /// Hyperexponential gaps: two exponential phases with balanced means. Such arrivals are burstier than Poisson
    /// arrivals.
    Hyper {
        /// Mean requests per second.
        rate: f64,
        /// Coefficient of variation of the gaps, at least 1.
        cv: f64,
    },
    /// Bursts of Poisson arrivals with silences between them. The mean rate over a long time is `on_rate * duty`.
    Onoff {
        /// Requests per second within a burst.
        on_rate: f64,
        /// Mean requests in a burst.
        on_length: f64,
        /// Fraction of the time that is within bursts, above 0 and at most 1.
        duty: f64,
    },
    /// Poisson arrivals at a rate that changes in steps. After the last step, the first step follows again.
    Schedule {
        /// For each step: its rate in requests per second (0 for a silence) and its length in seconds.
        steps: Vec<(f64, f64)>,
    },
}

const PS_IN_S: f64 = 1e12;
/// Smallest permitted mean number of requests in one pass of a schedule. It limits the number of passes without a
/// request.
const REQUESTS_IN_PASS_MIN: f64 = 0.01;

impl Arrival {
    /// Returns the mean rate over a long time, in requests per second; `None` for a closed loop.
    pub fn mean_rate(&self) -> Option<f64> {
        match *self {
            Arrival::None {} => None,
            Arrival::Constant { rate }
            | Arrival::Exponential { rate }
            | Arrival::Hyper { rate, .. } => Some(rate),
            Arrival::Onoff { on_rate, duty, .. } => Some(on_rate * duty),
            Arrival::Schedule { ref steps } => {
                let requests: f64 = steps.iter().map(|(rate, seconds)| rate * seconds).sum();
                let seconds: f64 = steps.iter().map(|(_, seconds)| seconds).sum();
                Some(requests / seconds)
            }
        }
    }

    pub(crate) fn validate(&self) -> Result<(), WorkloadError> {
        let need = |ok: bool, text: String| {
            if ok {
                Ok(())
            } else {
                Err(WorkloadError::new(ErrorKind::Option, text))
            }
        };
        match *self {
            Arrival::Hyper { cv, .. } => need(
                (1.0..=1000.0).contains(&cv),
                format!("cv: {cv}; from 1 (Poisson) to 1000 is possible"),
            ),
            Arrival::Onoff {
                on_length, duty, ..
            } => {
                need(
                    on_length.is_finite() && on_length >= 1.0,
                    format!("on_length: {on_length} requests in a burst; at least 1 is needed"),
                )?;
                need(
                    duty > 0.0 && duty <= 1.0,
                    format!("duty: {duty}; above 0 and at most 1 is possible"),
                )
            }
            Arrival::Schedule { ref steps } => {
                let is_valid = |&(rate, seconds): &(f64, f64)| {
                    (0.0..=1e12).contains(&rate) && (1e-9..=1e6).contains(&seconds)
                };
                need(
                    !steps.is_empty() && steps.iter().all(is_valid),
                    "schedule: steps with a rate from 0 to 1e12 requests per second and a time from 1 ns to 1e6 s \
                     are needed"
                        .into(),
                )?;
                let requests: f64 = steps.iter().map(|(rate, seconds)| rate * seconds).sum();
                need(
                    requests >= REQUESTS_IN_PASS_MIN,
                    format!(
                        "schedule: {requests} requests from the first step to the last; at least \
                         {REQUESTS_IN_PASS_MIN} are needed"
                    ),
                )
            }
            _ => Ok(()),
        }?;
        if let Some(rate) = self.mean_rate() {
            let text = format!("rate: {rate} requests per second; from 1e-6 to 1e12 is possible");
            need((1e-6..=1e12).contains(&rate), text)?;
        }
        Ok(())
    }
}

/// Draws the gaps between arrivals. Gaps are rounded down to whole picoseconds. The remainder is added to the next gap,
/// so that no error accumulates.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    arrival: Arrival,
    carry: f64,
    /// Current step of a schedule. `left` is the rest of the step in picoseconds.
    step: usize,
    left: f64,
}

impl Gaps {
    pub fn new(arrival: Arrival) -> Self {
        let left = match &arrival {
            Arrival::Schedule { steps } => {
                steps.first().map_or(0.0, |(_, seconds)| seconds * PS_IN_S)
            }
            _ => 0.0,
        };
        Gaps {
            arrival,
            carry: 0.0,
            step: 0,
            left,
        }
    }

    /// Returns the picoseconds to the next request.
    #[inline]
    pub fn draw(&mut self, rng: &mut Rng) -> u64 {
        let gap = match self.arrival {
            Arrival::None {} => return 0,
            Arrival::Constant { rate } => PS_IN_S / rate,
            Arrival::Exponential { rate } => rng.exponential() * (PS_IN_S / rate),
            Arrival::Hyper { rate, cv } => {
                let c2 = cv * cv;
                let p = 0.5 * (1.0 + libm::sqrt((c2 - 1.0) / (c2 + 1.0)));
                let phase = if rng.chance(p) { p } else { 1.0 - p };
                rng.exponential() * (PS_IN_S / rate) / (2.0 * phase)
            }
            Arrival::Onoff {
                on_rate,
                on_length,
                duty,
            } => {
                let on = PS_IN_S / on_rate;
                let mut gap = rng.exponential() * on;
                if rng.chance(1.0 / on_length) {
                    gap += rng.exponential() * on * on_length * (1.0 - duty) / duty;
                }
                gap
            }
            Arrival::Schedule { .. } => self.draw_scheduled(rng.exponential()),
        };
        let whole = gap + self.carry;
        let ps = whole as u64;
        self.carry = whole - ps as f64;
        ps
    }

    /// Returns the gap to the next request of a schedule. `arrivals` is the gap in a process of rate 1. During each
    /// step, it decreases by the rate times the duration of the step; the gap ends when it reaches 0.
    fn draw_scheduled(&mut self, mut arrivals: f64) -> f64 {
        let Arrival::Schedule { steps } = &self.arrival else {
            return 0.0;
        };
        let mut gap = 0.0;
        loop {
            let rate = steps[self.step].0 / PS_IN_S;
            if arrivals < rate * self.left {
                let rest = arrivals / rate;
                self.left -= rest;
                return gap + rest;
            }
            arrivals -= rate * self.left;
            gap += self.left;
            self.step = (self.step + 1) % steps.len();
            self.left = steps[self.step].1 * PS_IN_S;
        }
    }
}
