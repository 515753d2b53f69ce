//! Draws requests from a spec.

use flashtwin::{Op, PlacementId, Request, Time};

use super::address::Sampler;
use super::arrival::Gaps;
use super::rng::Rng;
use super::space::Space;
use super::spec::GeneratorSpec;
use crate::error::{ErrorKind, WorkloadError};
use crate::Workload;

/// Number of requests returned at a time.
pub(super) const BATCH: u64 = 512;
/// Largest number of consecutive draws that do not fit into the range. After that many, the spec is rejected as
/// impossible.
pub(super) const REDRAWS_MAX: u32 = 100_000;

/// Random streams, one for each property of requests.
const STREAM_ARRIVAL: u64 = 1;
const STREAM_OP: u64 = 2;
const STREAM_PLACE: u64 = 3;
const STREAM_SHUFFLE: u64 = 4;
const STREAM_PINNED: u64 = 5;

pub(crate) struct Generator {
    pub(super) spec: GeneratorSpec,
    seed: u64,
    pub(super) space: Space,
    pub(super) sampler: Sampler,
    gaps: Gaps,
    rng_arrival: Rng,
    pub(super) rng_op: Rng,
    pub(super) rng_place: Rng,
    rng_pinned: Rng,
    pub(super) made: u64,
    pub(super) clock: u64,
    pub(super) kinds: Kinds,
    placement: PlacementId,
    /// Whether the spec has sequential or local requests: requests that start at the end, or near the start, of the
    /// previous one.
    follows: bool,
    /// The previous request. Stored only if later requests may depend on it.
    previous: Option<Last>,
}

/// Probabilities of the kinds of requests. A draw of [`Rng::units`] selects the first kind whose bound it does not
/// exceed: write, trim, flush, else read. `fua` is the fraction of the writes that are forced.
#[derive(Clone, Copy)]
pub(super) struct Kinds {
    write: u64,
    trim: u64,
    flush: u64,
    fua: f64,
}

impl Kinds {
    /// Draws the kind of a request, and whether it is a forced write.
    #[inline(always)]
    pub fn draw(self, rng: &mut Rng) -> (Op, bool) {
        let drawn = rng.units();
        if drawn <= self.write {
            return (Op::Write, self.fua > 0.0 && rng.chance(self.fua));
        }
        let op = if drawn <= self.trim {
            Op::Trim
        } else if drawn <= self.flush {
            Op::Flush
        } else {
            Op::Read
        };
        (op, false)
    }
}

/// The last request with an address.
#[derive(Clone, Copy)]
struct Last {
    start: u64,
    end: u64,
    op: Op,
    fua: bool,
}

impl Generator {
    pub fn new(spec: &GeneratorSpec, range_bytes: u64, seed: u64) -> Result<Self, WorkloadError> {
        let space = spec.validate(range_bytes)?;
        let shuffle = Rng::new(seed, STREAM_SHUFFLE).bits();
        Ok(Generator {
            seed,
            space,
            sampler: Sampler::new(&spec.address, space, &spec.size, shuffle)?,
            gaps: Gaps::new(spec.arrival.clone()),
            rng_arrival: Rng::new(seed, STREAM_ARRIVAL),
            rng_op: Rng::new(seed, STREAM_OP),
            rng_place: Rng::new(seed, STREAM_PLACE),
            rng_pinned: Rng::new(seed, STREAM_PINNED),
            made: 0,
            clock: 0,
            kinds: Kinds {
                write: Rng::units_up_to(spec.write),
                trim: Rng::units_up_to(spec.write + spec.trim),
                flush: Rng::units_up_to(spec.write + spec.trim + spec.flush),
                fua: spec.fua,
            },
            placement: spec
                .placement
                .and_then(PlacementId::new)
                .unwrap_or_default(),
            follows: spec.sequential + spec.local > 0.0,
            previous: None,
            spec: spec.clone(),
        })
    }

    /// Returns the arrival time of the next request; `None` if it exceeds the range of the clock. The first request
    /// arrives at 0, as in a trace.
    #[inline(always)]
    pub(super) fn next_arrival(&mut self) -> Option<Time> {
        if self.made > 0 {
            let gap = self.gaps.draw(&mut self.rng_arrival);
            self.clock = self.clock.checked_add(gap)?;
        }
        Some(Time(self.clock))
    }

    /// Draws start, size and kind of a request, as DiskSim's generator does. A sequential request keeps the kind of the
    /// previous one. Size and start are drawn again if the request does not fit into the range.
    #[inline(always)]
    fn draw(&mut self, arrival: Time) -> Result<Request, WorkloadError> {
        let (mut op, mut fua) = self.kinds.draw(&mut self.rng_op);
        if op == Op::Flush {
            return Ok(Request {
                arrival,
                offset: 0,
                bytes: 0,
                op,
                fua,
                placement: PlacementId::NONE,
            });
        }
        let (sequential, local) = (self.spec.sequential, self.spec.local);
        for _ in 0..REDRAWS_MAX {
            let mut bytes = self
                .spec
                .size
                .draw(&mut self.rng_place, self.spec.alignment);
            if bytes > self.space.bytes {
                continue;
            }
            // This number is drawn only if the spec has sequential or local requests.
            let way = if self.follows {
                self.rng_place.unit()
            } else {
                2.0
            };
            let start = match self.previous {
                Some(last) if way <= sequential => Some(last.end)
                    .filter(|&end| self.space.fits(end, bytes))
                    .inspect(|_| {
                        (op, fua) = (last.op, last.fua);
                    }),
                Some(last) if way <= sequential + local => self.draw_near(last.start, bytes),
                _ => match &mut self.sampler {
                    Sampler::Stack(stack) => stack
                        .draw(
                            &mut self.rng_place,
                            self.space,
                            &self.spec.size,
                            op == Op::Read,
                        )
                        .map(|(start, of_unit)| {
                            bytes = of_unit;
                            start
                        }),
                    sampler => sampler.draw(&mut self.rng_place, self.space, bytes),
                },
            };
            let Some(offset) = start else { continue };
            if self.follows {
                self.previous = Some(Last {
                    start: offset,
                    end: offset + bytes,
                    op,
                    fua,
                });
            }
            return Ok(Request {
                arrival,
                offset,
                bytes,
                op,
                fua,
                placement: PlacementId::NONE,
            });
        }
        Err(self.never_fits())
    }

    #[cold]
    pub(super) fn never_fits(&self) -> WorkloadError {
        WorkloadError::new(
            ErrorKind::Option,
            format!(
                "{}: {REDRAWS_MAX} draws in a row do not fit the range of {} bytes; make the requests \
                 smaller or the range larger",
                self.spec, self.space.bytes
            ),
        )
    }

    #[cold]
    pub(super) fn too_long(&self) -> WorkloadError {
        let text = format!(
            "{}: request {} would arrive after 213 days; raise the rate or ask for fewer requests",
            self.spec, self.made
        );
        WorkloadError::new(ErrorKind::TooLarge, text)
    }

    /// Splits a request into pieces that are all on the same member of a striped array: the member of the first piece.
    fn pin(&self, request: &Request, out: &mut Vec<Request>) {
        let (piece, stripe) = (self.spec.alignment, self.spec.stripe);
        let rows = (self.space.bytes / stripe).max(1);
        let first = request.offset / stripe;
        for i in 0..request.bytes.div_ceil(piece) {
            out.push(Request {
                offset: (first + i) % rows * stripe,
                bytes: piece,
                ..*request
            });
        }
    }

    /// Completes requests: adds the start of the range to their addresses, which were drawn relative to it, and gives
    /// writes their placement id.
    fn place(&self, requests: &mut [Request]) {
        if self.space.first == 0 && self.placement == PlacementId::NONE {
            return;
        }
        for request in requests {
            if request.op != Op::Flush {
                request.offset += self.space.first;
            }
            if request.op == Op::Write {
                request.placement = self.placement;
            }
        }
    }

    /// Draws a start near the start of the previous request: at most `local_range` before or after it.
    fn draw_near(&mut self, start: u64, bytes: u64) -> Option<u64> {
        let reach = self.spec.local_range / self.spec.alignment;
        let step = self.rng_place.below(2 * reach + 1) * self.spec.alignment;
        let near = (start + step).checked_sub(reach * self.spec.alignment)?;
        self.space.fits(near, bytes).then_some(near)
    }
}

impl GeneratorSpec {
    /// Creates the workload for a device, or for a part of a device, of `range_bytes` bytes. The same spec, range and
    /// seed give the same requests on every machine.
    ///
    /// # Errors
    /// Fails if the load does not fit into `range_bytes`.
    pub fn build(&self, range_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(Box::new(Generator::new(self, range_bytes, seed)?))
    }
}

impl Workload for Generator {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        let left = self.spec.requests.map_or(u64::MAX, |n| n - self.made);
        let count = left.min(BATCH);
        let before = out.len();
        if !self.follows && self.spec.pinned == 0.0 && !matches!(self.sampler, Sampler::Stack(_)) {
            self.draw_columns(count, out)?;
            self.place(&mut out[before..]);
            return Ok(out.len() - before);
        }
        out.reserve(count as usize);
        for _ in 0..count {
            if out.len() - before >= BATCH as usize {
                break;
            }
            let arrival = self.next_arrival().ok_or_else(|| self.too_long())?;
            let request = self.draw(arrival)?;
            self.made += 1;
            if self.spec.pinned > 0.0
                && request.bytes > 0
                && self.rng_pinned.chance(self.spec.pinned)
            {
                self.pin(&request, out);
            } else {
                out.push(request);
            }
        }
        self.place(&mut out[before..]);
        Ok(out.len() - before)
    }

    fn requests_total(&self) -> Option<u64> {
        self.spec.requests
    }

    fn describe(&self) -> String {
        format!(
            "generated {}{} over {} bytes, seed {}",
            self.spec,
            self.sampler.remark(),
            self.space.bytes,
            self.seed
        )
    }
}
