//! Runs with several clients at once. Each client has its own load, limit of requests in flight and response times.
//!
//! A request is due at its arrival time in the client's load. The client submits it at that time if it has fewer
//! requests in flight than its limit, otherwise as soon as one of them completes. The response time is measured from
//! the submission.
//!
//! A client that is late submits without pause until it has caught up. If it is late by more than
//! [`ClientsPlan::behind_max`], all its later requests become due later by the excess, as in common load generators. A
//! load without arrival times is a closed loop: the client keeps as many requests in flight as its limit permits.

use std::sync::atomic::Ordering;

use flashtwin::metrics::OpMetrics;
use flashtwin::{Device, Op, Request, Time};
use flashtwin_workload::Workload;

use crate::control::Control;
use crate::{Drivable, SimError};

/// A client of the device.
pub struct Client<'a> {
    /// Requests of the client.
    pub load: &'a mut dyn Workload,
    /// Largest number of requests that the client has in flight.
    pub in_flight_max: u32,
}

/// Length of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientsPlan {
    /// Time before the measurement.
    pub warm: Time,
    /// Time measured.
    pub span: Time,
    /// Number of equal parts of the measured time. Results are reported for each part.
    pub parts: u32,
    /// Longest time by which a client may lag behind the arrival times of its load. If it lags by more, its later
    /// arrival times are postponed.
    pub behind_max: Time,
}

/// Response times of the requests that a client submitted in one part of the measured span.
#[derive(Clone, Debug, Default)]
pub struct ClientPart {
    /// Response times of reads.
    pub reads: OpMetrics,
    /// Response times of writes.
    pub writes: OpMetrics,
}

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct ClientsOutcome {
    /// For each client, in the order given: the parts of the measured span.
    pub clients: Vec<Vec<ClientPart>>,
    /// Bytes written by all clients in the measured span.
    pub host_bytes: u64,
    /// Bytes written to flash in the measured span, including the drive's parity and metadata.
    pub media_bytes: u64,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
}

/// Bits of a tag that name the client.
const CLIENT_BITS: u32 = 16;
/// Submissions between two checks of the control.
const PORTION: u64 = 1024;

/// Runs the clients on a device. The device must be idle at the start, and is idle at the end.
///
/// # Errors
/// Fails if there is no client, a limit is 0, a load cannot be read, or a request is beyond the device.
pub fn run_clients<S: Drivable>(
    device: &mut Device<S>,
    clients: &mut [Client<'_>],
    plan: &ClientsPlan,
    control: &Control,
) -> Result<ClientsOutcome, SimError> {
    if clients.is_empty() || clients.len() >> CLIENT_BITS > 0 {
        let message = format!("{} clients: give 1 to 65535", clients.len());
        return Err(SimError::Config(message));
    }
    if clients.iter().any(|client| client.in_flight_max == 0) {
        let message = "a client with no request in flight: give 1 or more";
        return Err(SimError::Config(message.into()));
    }
    if plan.parts == 0 || u64::from(plan.parts) > plan.span.0 {
        let message = format!("{} parts of {}: give 1 or more", plan.parts, plan.span);
        return Err(SimError::Config(message));
    }
    device.collect_completions(true);
    device.completions().clear();
    let start = device.now();
    let run = Run {
        begin: start + plan.warm,
        end: start + plan.warm + plan.span,
        part: Time(plan.span.0.div_ceil(plan.parts.into())),
        behind_max: plan.behind_max,
        submitted: 0,
        host_bytes: 0,
        queues: clients
            .iter_mut()
            .map(|client| Queue::new(client, start, plan.parts))
            .collect(),
        device,
    };
    run.all(control)
}

/// A client during the run.
struct Queue<'a> {
    load: &'a mut dyn Workload,
    batch: Vec<Request>,
    at: usize,
    /// Due time of a request whose arrival time in the load is 0: the start of the run, plus all delays by which later
    /// requests were postponed because the client was too late.
    origin: Time,
    in_flight: u32,
    in_flight_max: u32,
    parts: Vec<ClientPart>,
}

impl<'a> Queue<'a> {
    fn new(client: &'a mut Client<'_>, origin: Time, parts: u32) -> Queue<'a> {
        Queue {
            load: client.load,
            batch: Vec::new(),
            at: 0,
            origin,
            in_flight: 0,
            in_flight_max: client.in_flight_max,
            parts: vec![ClientPart::default(); parts as usize],
        }
    }

    /// Returns the due time of the next request; [`Time::NEVER`] if the load has ended.
    fn due(&mut self) -> Result<Time, SimError> {
        if self.at == self.batch.len() {
            self.batch.clear();
            self.at = 0;
            if self.load.next_batch(&mut self.batch)? == 0 {
                return Ok(Time::NEVER);
            }
        }
        Ok(self.origin + self.batch[self.at].arrival)
    }
}

struct Run<'a, S: Drivable> {
    device: &'a mut Device<S>,
    queues: Vec<Queue<'a>>,
    begin: Time,
    end: Time,
    /// Length of a part.
    part: Time,
    behind_max: Time,
    submitted: u64,
    host_bytes: u64,
}

impl<S: Drivable> Run<'_, S> {
    fn all(mut self, control: &Control) -> Result<ClientsOutcome, SimError> {
        let mut media_before = None;
        let mut interrupted = false;
        while let Some((at, client)) = self.next()? {
            if media_before.is_none() && at >= self.begin {
                media_before = Some(self.media_pages());
            }
            if at >= self.end {
                break;
            }
            self.submit(at, client)?;
            if self.submitted.is_multiple_of(PORTION) {
                control.done.store(self.submitted, Ordering::Relaxed);
                if control.stopped() {
                    interrupted = true;
                    break;
                }
            }
        }
        let media = self.media_pages() - media_before.unwrap_or_default();
        while self.device.step() {}
        self.take_completions();
        let page_bytes = u64::from(S::describe(self.device).page_bytes);
        let queues = self.queues.into_iter();
        Ok(ClientsOutcome {
            clients: queues.map(|queue| queue.parts).collect(),
            host_bytes: self.host_bytes,
            media_bytes: media * page_bytes,
            interrupted,
        })
    }

    fn media_pages(&self) -> u64 {
        self.device.flash_report_without_wear().media_pages()
    }

    /// Advances the device to the next submission. Returns the time and the client of the submission, or `None` if all
    /// loads have ended.
    fn next(&mut self) -> Result<Option<(Time, usize)>, SimError> {
        loop {
            let now = self.device.now();
            let mut first: Option<(Time, usize)> = None;
            let mut waits = false;
            for (i, queue) in self.queues.iter_mut().enumerate() {
                if queue.in_flight == queue.in_flight_max {
                    waits = true;
                    continue;
                }
                let at = queue.due()?.max(now);
                if at < Time::NEVER && first.is_none_or(|(earliest, _)| at < earliest) {
                    first = Some((at, i));
                }
            }
            let Some((at, client)) = first else {
                if !waits {
                    return Ok(None);
                }
                self.device
                    .advance_below(self.device.outstanding(), Time::NEVER);
                self.take_completions();
                continue;
            };
            if !waits {
                self.device.advance(at);
                self.take_completions();
                return Ok(Some((at, client)));
            }
            // Another client may be able to submit earlier if one of its requests completes before `at`.
            self.device.advance_below(self.device.outstanding(), at);
            if !self.take_completions() {
                self.device.advance(at);
                self.take_completions();
                return Ok(Some((at, client)));
            }
        }
    }

    fn submit(&mut self, at: Time, client: usize) -> Result<(), SimError> {
        let measured = at >= self.begin;
        let queue = &mut self.queues[client];
        let request = queue.batch[queue.at];
        queue.at += 1;
        queue.in_flight += 1;
        let behind = at - (queue.origin + request.arrival).min(at);
        if request.arrival > Time::ZERO && behind > self.behind_max {
            queue.origin += behind - self.behind_max;
        }
        if measured && request.op == Op::Write {
            self.host_bytes += request.bytes;
        }
        let tag = (self.submitted << CLIENT_BITS) | client as u64;
        let submitted = self.device.submit(at, &request, tag);
        submitted.map_err(|source| SimError::Beyond {
            request: self.submitted,
            source,
        })?;
        self.submitted += 1;
        Ok(())
    }

    /// Takes the completions from the device; returns whether there were any.
    fn take_completions(&mut self) -> bool {
        let any = !self.device.completions().is_empty();
        for done in self.device.completions().drain(..) {
            let client = (done.tag & ((1 << CLIENT_BITS) - 1)) as usize;
            let queue = &mut self.queues[client];
            queue.in_flight -= 1;
            if done.arrival < self.begin {
                continue;
            }
            let part = (done.arrival - self.begin).0 / self.part.0;
            let part = &mut queue.parts[part as usize];
            match done.op {
                Op::Read => part.reads.record(&done),
                Op::Write => part.writes.record(&done),
                Op::Trim | Op::Flush => {}
            }
        }
        any
    }
}
