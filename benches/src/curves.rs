//! LRU curves (hits as a function of the buffer size): accesses per second of one pass over 10 million accesses that
//! computes an exact or a sampled curve. Also the time of separate runs at 100 buffer sizes, relative to one exact
//! pass.
//!
//! The load is that of the comparison with libCacheSim: Zipf 0.99 over 780 108 pages. Only ten of the hundred sizes are
//! run. Their time is multiplied by ten.

use std::hint::black_box;
use std::time::Instant;

use flashtwin::buffer::sample::SampledLru;
use flashtwin::buffer::stack::LruStack;
use flashtwin::buffer::untimed::UntimedBuffer;
use flashtwin::buffer::Setup;
use flashtwin::{Lpn, Op};
use flashtwin_workload::GeneratorSpec;

use crate::{figure, median, profile, Failure};

const PAGES: u64 = 780_108;
const LOAD: &str = "zipf:theta=0.99,write=0.3,requests=10000000";
/// Number of accesses by which the exact pass prefetches in advance, as in the Python package.
const AHEAD: usize = 16;
const RATE: f64 = 0.01;
const SIZES: u64 = 100;
/// One in `STEP` of the hundred sizes is run and timed.
const STEP: u64 = 10;
const ROUNDS: usize = 5;

/// A page access.
type Access = (u32, bool);

fn load() -> Result<Vec<Access>, Failure> {
    let mut load = GeneratorSpec::parse(LOAD)?.build(PAGES * 4096, 1)?;
    let (mut batch, mut accesses) = (Vec::new(), Vec::new());
    while load.next_batch(&mut batch)? > 0 {
        let pages = batch.drain(..);
        accesses.extend(pages.map(|r| ((r.offset / 4096) as u32, r.op == Op::Write)));
    }
    Ok(accesses)
}

fn exact(accesses: &[Access]) -> u64 {
    let mut stack = LruStack::new();
    for (i, &(lpn, write)) in accesses.iter().enumerate() {
        if let Some(ahead) = accesses.get(i + AHEAD) {
            stack.prefetch(Lpn(ahead.0));
        }
        stack.access(Lpn(lpn), write);
    }
    stack.finish().at(PAGES / 10).read_hits
}

fn sampled(accesses: &[Access]) -> u64 {
    let mut stack = SampledLru::new(RATE);
    for &(lpn, write) in accesses {
        stack.access(lpn..lpn + 1, write);
    }
    stack.finish().at(PAGES / 10).0.read_hits
}

fn one_size(accesses: &[Access], pages: u64) -> Result<u64, Failure> {
    let capacity = format!("{}KiB", pages * 4);
    let spec = profile(
        "ecr",
        &[("buffer.policy", "lru"), ("buffer.capacity", &capacity)],
    )?;
    let buffer = spec.buffer.as_ref().ok_or("the device has a buffer")?;
    let mut buffer = UntimedBuffer::new(&buffer.policy, &Setup::of(&spec), 0);
    let mut hits = 0;
    for (i, &(lpn, write)) in accesses.iter().enumerate() {
        if let Some(ahead) = accesses.get(i + AHEAD / 2) {
            buffer.prefetch(Lpn(ahead.0));
        }
        hits += u64::from(buffer.access(Lpn(lpn), write, i as u64, 1).hit);
    }
    Ok(hits)
}

fn seconds(mut work: impl FnMut() -> u64) -> f64 {
    let began = Instant::now();
    black_box(work());
    began.elapsed().as_secs_f64()
}

/// Prints rates and ratios.
pub fn rates() -> Result<(), Failure> {
    let accesses = load()?;
    let millions = accesses.len() as f64 * 1e-6;
    let rounds =
        |of: fn(&[Access]) -> u64| median((0..ROUNDS).map(|_| seconds(|| of(&accesses))).collect());
    let (exact, sampled) = (rounds(exact), rounds(sampled));
    figure("curve_exact_million_per_second", millions / exact);
    figure("curve_sampled_million_per_second", millions / sampled);
    let mut runs = 0.0;
    for i in (1..=SIZES / STEP).map(|i| i * STEP - STEP / 2) {
        let began = Instant::now();
        black_box(one_size(&accesses, PAGES * i / SIZES)?);
        runs += began.elapsed().as_secs_f64() * STEP as f64;
    }
    figure("curve_runs_of_100_sizes_over_exact", runs / exact);
    Ok(())
}
