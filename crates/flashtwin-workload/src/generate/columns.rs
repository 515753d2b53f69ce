//! Draws a batch of requests property by property: all kinds, then all arrivals, then all places. Each property has its
//! own random stream, so the requests are the same as if they were drawn one by one. A loop over one property is
//! faster, because it keeps the state of its random generator in registers.

use flashtwin::{Op, PlacementId, Request, Time};

use super::address::Sampler;
use super::arrival::Arrival;
use super::generator::{Generator, REDRAWS_MAX};
use super::rng::Rng;
use super::size::Size;
use super::space::Space;
use crate::error::WorkloadError;

impl Generator {
    /// Appends `count` requests to `out`. The load must be one in which no request depends on the previous one.
    pub(super) fn draw_columns(
        &mut self,
        count: u64,
        out: &mut Vec<Request>,
    ) -> Result<(), WorkloadError> {
        let first = out.len();
        self.draw_kinds(count, out);
        let arrived = self.draw_arrivals(&mut out[first..]);
        if let Err(at) = arrived {
            out.truncate(first + at);
        }
        if !self.draw_places(&mut out[first..]) {
            return Err(self.never_fits());
        }
        arrived.map_err(|_| self.too_long())
    }

    fn draw_kinds(&mut self, count: u64, out: &mut Vec<Request>) {
        let mut rng = self.rng_op.clone();
        let (kinds, arrival) = (self.kinds, Time(self.clock));
        out.extend((0..count).map(|_| {
            let (op, fua) = kinds.draw(&mut rng);
            Request {
                arrival,
                offset: 0,
                bytes: 0,
                op,
                fua,
                placement: PlacementId::NONE,
            }
        }));
        self.rng_op = rng;
    }

    /// Sets the arrival times of the requests. Fails if a request would arrive after the end of the clock's range; the
    /// error is the index of the first such request.
    fn draw_arrivals(&mut self, requests: &mut [Request]) -> Result<(), usize> {
        if self.spec.arrival == (Arrival::None {}) {
            self.made += requests.len() as u64;
            return Ok(());
        }
        for (i, request) in requests.iter_mut().enumerate() {
            request.arrival = self.next_arrival().ok_or(i)?;
            self.made += 1;
        }
        Ok(())
    }

    /// Sets the places (sizes and start addresses) of the requests. Returns false if a request does not fit into the
    /// range.
    fn draw_places(&mut self, requests: &mut [Request]) -> bool {
        let mut rng = self.rng_place.clone();
        let (space, sampler) = (self.space, &mut self.sampler);
        let fit = match &self.spec.size {
            &Size::Constant { bytes } => places(requests, &mut rng, space, sampler, |_| bytes),
            size => {
                let size = |rng: &mut Rng| size.draw(rng, space.alignment);
                places(requests, &mut rng, space, sampler, size)
            }
        };
        self.rng_place = rng;
        fit
    }
}

/// Sets the sizes and starts of the requests. Returns false if a request does not fit into the range.
#[inline(always)]
fn places(
    requests: &mut [Request],
    rng: &mut Rng,
    space: Space,
    sampler: &mut Sampler,
    size: impl Fn(&mut Rng) -> u64,
) -> bool {
    match sampler {
        Sampler::Uniform => each(requests, rng, space, size, |rng, bytes| {
            Some(space.draw(rng, bytes))
        }),
        _ => each(requests, rng, space, size, |rng, bytes| {
            sampler.draw(rng, space, bytes)
        }),
    }
}

#[inline(always)]
fn each(
    requests: &mut [Request],
    rng: &mut Rng,
    space: Space,
    size: impl Fn(&mut Rng) -> u64,
    mut start: impl FnMut(&mut Rng, u64) -> Option<u64>,
) -> bool {
    for request in requests {
        if request.op == Op::Flush {
            continue;
        }
        let mut draws = 0..REDRAWS_MAX;
        let found = draws.find_map(|_| {
            let bytes = size(rng);
            let start = (bytes <= space.bytes).then(|| start(rng, bytes))?;
            start.map(|start| (start, bytes))
        });
        let Some((offset, bytes)) = found else {
            return false;
        };
        (request.offset, request.bytes) = (offset, bytes);
    }
    true
}
