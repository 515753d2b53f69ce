//! Policies without a device: accesses per second on a real trace, and whether the time per access stays constant when
//! the buffer grows.
//!
//! `flat_*` is the time of an access with a buffer of 1 GiB, relative to a buffer of 1 MiB. The accesses are random,
//! over twice as many pages as the buffer has, so that half of them miss. Both buffers thus do the same work. The
//! larger one has a thousand times as much memory, and therefore more cache misses.

use std::time::Instant;

use flashtwin::buffer::untimed::UntimedBuffer;
use flashtwin::buffer::Setup;
use flashtwin::{Lpn, Op, Rng};
use flashtwin_workload::{open_trace, TraceOptions};

use crate::{figure, median, profile, Failure};

/// Number of accesses by which pages are prefetched in advance. A driver that knows the trace does that, too.
const AHEAD: usize = 24;
/// Number of rounds. All policies run in turn in each round. Medians are reported.
const ROUNDS: usize = 3;

/// A page access.
type Access = (Lpn, bool);

/// Returns the page accesses of the recorded run of pgbench, in order.
fn recorded() -> Result<Vec<Access>, Failure> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../python/flashtwin/data/postgres_pgbench.csv.zst"
    );
    let mut trace = open_trace(path.as_ref(), &TraceOptions::default())?;
    let (mut batch, mut accesses) = (Vec::new(), Vec::new());
    while trace.next_batch(&mut batch)? > 0 {
        for r in batch.drain(..) {
            if matches!(r.op, Op::Read | Op::Write) && r.bytes > 0 {
                let pages = r.offset / 4096..(r.offset + r.bytes).div_ceil(4096);
                accesses.extend(pages.map(|page| (Lpn(page as u32), r.op == Op::Write)));
            }
        }
    }
    Ok(accesses)
}

fn random(pages: u32, count: usize) -> Vec<Access> {
    let mut rng = Rng::new(3);
    let mut access = || {
        let lpn = Lpn(rng.below(u64::from(pages)) as u32);
        (lpn, rng.below(10) < 7)
    };
    (0..count).map(|_| access()).collect()
}

fn buffer(policy: &str, capacity: &str) -> Result<UntimedBuffer, Failure> {
    let spec = profile(
        "ecr",
        &[("buffer.policy", policy), ("buffer.capacity", capacity)],
    )?;
    let buffer = spec.buffer.as_ref().ok_or("the device has a buffer")?;
    Ok(UntimedBuffer::new(
        &buffer.policy,
        &Setup::of(&spec),
        buffer.read_cache_pages,
    ))
}

/// Runs the accesses while an eighth of the chips is in GC. The set of these chips changes at intervals. Returns the
/// number of hits.
fn run(untimed: &mut UntimedBuffer, accesses: &[Access]) -> u64 {
    let mut hits = 0;
    for (i, &(lpn, write)) in accesses.iter().enumerate() {
        if i % 1024 == 0 {
            let turn = (i / 1024) as u32;
            for chip in 0..64 {
                untimed.set_chip(chip, |c| c.in_gc = chip % 8 == turn % 8);
            }
        }
        if let Some(next) = accesses.get(i + AHEAD) {
            untimed.prefetch(next.0);
        }
        hits += u64::from(untimed.access(lpn, write, i as u64, 1).hit);
    }
    hits
}

fn nanoseconds(untimed: &mut UntimedBuffer, accesses: &[Access]) -> f64 {
    let began = Instant::now();
    std::hint::black_box(run(untimed, accesses));
    began.elapsed().as_secs_f64() * 1e9 / accesses.len() as f64
}

/// Prints the rate of each policy.
pub fn rates(names: &[String]) -> Result<(), Failure> {
    let trace = recorded()?;
    let mut all_hit = buffer("lru", "4GiB")?;
    run(&mut all_hit, &trace);
    let hit_path: Vec<f64> = (0..ROUNDS + 2)
        .map(|_| 1e3 / nanoseconds(&mut all_hit, &trace))
        .collect();
    figure("lru_hit_path_million_per_second", median(hit_path));

    let mut slowest = f64::INFINITY;
    for name in names {
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            rates.push(1e3 / nanoseconds(&mut buffer(name, "32MiB")?, &trace));
        }
        let rate = median(rates);
        slowest = slowest.min(rate);
        figure(&format!("{name}_million_per_second"), rate);
    }
    figure("slowest_policy_million_per_second", slowest);
    Ok(())
}

/// Prints, for each policy, the time of an access with a buffer of 1 GiB, relative to a buffer of 1 MiB.
pub fn growth(names: &[String]) -> Result<(), Failure> {
    let (small, large) = (random(512, 1 << 18), random(524_288, 1 << 19));
    for name in names {
        let (mut little, mut big) = (buffer(name, "1MiB")?, buffer(name, "1GiB")?);
        run(&mut little, &small);
        // Until ghost lists are full, too.
        for _ in 0..4 {
            run(&mut big, &large);
        }
        let mut ratios = Vec::new();
        for _ in 0..ROUNDS {
            ratios.push(nanoseconds(&mut big, &large) / nanoseconds(&mut little, &small));
        }
        figure(&format!("flat_{name}"), median(ratios));
    }
    Ok(())
}
