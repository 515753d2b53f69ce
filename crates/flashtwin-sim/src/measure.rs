//! Measures the performance figures that data sheets state and that a device file lists under `[published]`.
//!
//! - A new device is written sequentially, left idle, and read.
//! - The same device is read again, while a writer writes and flushes in turn.
//! - A second new device is written beyond the capacity of its SLC cache.
//! - A third device is put into the steady state of random writing. It is written at random, then read and written.
//!
//! The host adds no time: it submits a request as soon as the queue depth permits.

use flashtwin::{DeviceSpec, Op, Request, Rng, Ssd, Time};

use crate::{Control, SimError};

const PAGE: u64 = 4096;
const LONG: u64 = 128 * 1024;
/// Size in bytes of the range that is written and read, or half of the capacity if that is smaller. The range is small
/// so that the drive stays almost empty.
const RANGE: u64 = 1 << 30;
const SEED: u64 = 1;
/// Number of requests in a measurement at queue depth 1. The next constant is the number at queue depth 32.
const AT_DEPTH_1: u64 = 20_000;
const AT_DEPTH_32: u64 = 200_000;
/// Number of reads in the measurement with a concurrent writer. It suffices for the 99.9th percentile.
const BESIDE: usize = 200_000;

/// Name of a figure in `[published]`, and its value. The name ends in the unit of the value.
pub type Figure = (&'static str, f64);

/// Measures all figures; returns `None` if `control` stopped the measurement.
///
/// # Errors
/// Fails if a load does not fit the device, or if a run fails ([`crate::run`]).
pub fn measure(spec: &DeviceSpec, control: &Control) -> Result<Option<Vec<Figure>>, SimError> {
    let half = spec.exported_bytes() / 2;
    let range = RANGE.min(half - half % LONG);
    if range < 64 * LONG {
        return Err(SimError::Config(format!(
            "{}: too small to be measured; it must export 16 MiB or more",
            spec.name
        )));
    }
    let tests: [fn(&mut Test); 8] = [
        Test::sequential,
        Test::settle,
        Test::reads,
        Test::writes,
        Test::beside,
        Test::cache_full,
        Test::steady_writes,
        Test::steady_mixed,
    ];
    let mut test = Test {
        ssd: Ssd::new(spec),
        rng: Rng::new(SEED),
        range,
        reads: Vec::new(),
        writes: Vec::new(),
        figures: Vec::new(),
    };
    for run in tests {
        if control.stopped() {
            return Ok(None);
        }
        run(&mut test);
    }
    Ok(Some(test.figures))
}

struct Test {
    ssd: Ssd,
    rng: Rng,
    range: u64,
    /// Response times of the reads and of the writes that the last call of [`Test::run_after`] measured.
    reads: Vec<Time>,
    writes: Vec<Time>,
    figures: Vec<Figure>,
}

impl Test {
    fn sequential(&mut self) {
        let half = self.range / 2;
        // The first half fills the buffer.
        self.run(32, half / LONG, |_, i| request(Op::Write, i * LONG, LONG));
        let span = self.run(32, half / LONG, |_, i| {
            request(Op::Write, half + i * LONG, LONG)
        });
        let written = ("write_128k_mbs", half as f64 * 1e-6 / span.as_s());
        let span = self.run(32, half / LONG, |_, i| request(Op::Read, i * LONG, LONG));
        self.figures
            .push(("read_128k_mbs", half as f64 * 1e-6 / span.as_s()));
        self.figures.push(written);
    }

    /// Reads twice as many random pages as the buffer holds, so that it evicts its dirty pages. Otherwise they would be
    /// written back during the next tests.
    fn settle(&mut self) {
        let buffer = self.ssd.spec().buffer.as_ref();
        let pages = buffer.map_or(0, |buffer| u64::from(buffer.capacity_pages));
        self.run(32, 2 * pages, Test::read);
    }

    fn reads(&mut self) {
        self.run(1, AT_DEPTH_1, Test::read);
        let reads = &mut self.reads;
        let mean = mean_us(reads);
        let modes = [
            ("read_p17_us", 1.0 / 6.0),
            ("read_p50_us", 0.5),
            ("read_p83_us", 5.0 / 6.0),
        ]
        .map(|(name, share)| (name, at_us(reads, share)));
        self.figures.push(("read_qd1_us", mean));
        self.figures.extend(modes);
        let span = self.run(32, AT_DEPTH_32, Test::read);
        let rate = AT_DEPTH_32 as f64 / span.as_s();
        self.figures.push(("read_qd32_iops", rate));
    }

    fn writes(&mut self) {
        // The writes fill at most half of the buffer, so that no page is written back meanwhile.
        let buffer = self.ssd.spec().buffer.as_ref();
        let pages = buffer.map_or(AT_DEPTH_1, |buffer| u64::from(buffer.capacity_pages));
        self.run(1, AT_DEPTH_1.min(pages / 2).max(1), Test::write);
        let mean = mean_us(&self.writes);
        self.figures.push(("write_qd1_us", mean));
    }

    /// Measures a reader beside a writer that flushes after every write. Each of the two has one request in flight. The
    /// writer sends no flushes to a drive without volatile memory, because a host does not send them either.
    fn beside(&mut self) {
        self.rest();
        let buffer = self.ssd.spec().buffer.as_ref();
        let volatile = buffer.is_some_and(|buffer| !buffer.power_loss_protection);
        // The first fifth of the reads is not counted, because the buffer is not yet full then.
        let mut took_ps = Vec::new();
        let mut due = vec![Op::Read, Op::Write];
        while took_ps.len() < BESIDE + BESIDE / 4 {
            let now = self.ssd.now();
            self.ssd.advance(now);
            for op in due.drain(..) {
                let request = match op {
                    Op::Read => self.read(0),
                    Op::Write => self.write(0),
                    _ => request(Op::Flush, 0, 0),
                };
                submit(&mut self.ssd, &request, 0);
            }
            while self.ssd.completions().is_empty() && self.ssd.step() {}
            for done in self.ssd.completions().drain(..) {
                if done.op == Op::Read {
                    took_ps.push((done.done - done.arrival).0);
                }
                due.push(match done.op {
                    Op::Write if volatile => Op::Flush,
                    Op::Flush => Op::Write,
                    op => op,
                });
            }
        }
        let measured = &mut took_ps[BESIDE / 4..];
        measured.sort_unstable();
        let beside = [
            ("beside_p50_us", 0.5),
            ("beside_p75_us", 0.75),
            ("beside_p90_us", 0.9),
            ("beside_p95_us", 0.95),
            ("beside_p99_us", 0.99),
            ("beside_p995_us", 0.995),
            ("beside_p999_us", 0.999),
        ]
        .map(|(name, share)| {
            let at = (measured.len() as f64 * share) as usize;
            (name, measured[at] as f64 * 1e-6)
        });
        self.figures.extend(beside);
    }

    /// Measures sequential writes to a new device after its SLC cache is full. Unmeasured writes fill the cache first:
    /// an eighth more than the cache holds, because some chips fill their part of the cache later than others.
    fn cache_full(&mut self) {
        let spec = self.ssd.spec().clone();
        let cache = cache_bytes(&spec);
        if cache == 0 {
            return;
        }
        let before = (cache + cache / 8) / LONG;
        let count = RANGE / 2 / LONG;
        if before + count > spec.exported_bytes() / LONG {
            return;
        }
        self.ssd = Ssd::new(&spec);
        // The measured writes follow immediately. In idle time, the drive would fold its SLC cache (move the data to
        // other blocks).
        let span = self.run_after(before, 32, count, |_, i| request(Op::Write, i * LONG, LONG));
        self.figures.push((
            "write_cache_full_mbs",
            (count * LONG) as f64 * 1e-6 / span.as_s(),
        ));
    }

    fn steady_writes(&mut self) {
        self.ssd = Ssd::new(&self.ssd.spec().clone());
        self.ssd.fill_steady(SEED);
        self.range = self.ssd.exported_bytes() / PAGE * PAGE;
        // The measured writes follow immediately. In idle time, the drive would fold its SLC cache (move the data to
        // other blocks).
        let before = AT_DEPTH_32 + cache_bytes(self.ssd.spec()) / PAGE;
        let span = self.run_after(before, 32, AT_DEPTH_32, Test::write);
        let rate = AT_DEPTH_32 as f64 / span.as_s();
        let p99 = at_us(&mut self.writes, 0.99);
        self.figures.push(("write_steady_iops", rate));
        self.figures.push(("write_steady_p99_us", p99));
    }

    /// Measures a mix of reads and writes on the device in the steady state of random writing. The idle time before
    /// this test has emptied the SLC cache; unmeasured requests fill it again.
    fn steady_mixed(&mut self) {
        let before = AT_DEPTH_32 / 4 + cache_bytes(self.ssd.spec()) / PAGE * 10 / 3;
        let span = self.run_after(before, 32, AT_DEPTH_32, |test, i| {
            match test.rng.below(10) < 7 {
                true => test.read(i),
                false => test.write(i),
            }
        });
        let rate = AT_DEPTH_32 as f64 / span.as_s();
        let p99 = at_us(&mut self.reads, 0.99);
        self.figures.push(("mixed_steady_iops", rate));
        self.figures.push(("mixed_read_p99_us", p99));
    }

    fn read(&mut self, _: u64) -> Request {
        request(Op::Read, self.rng.below(self.range / PAGE) * PAGE, PAGE)
    }

    fn write(&mut self, _: u64) -> Request {
        request(Op::Write, self.rng.below(self.range / PAGE) * PAGE, PAGE)
    }

    /// Submits `count` requests and keeps `depth` of them in flight. Returns the time from the first to the last
    /// submission.
    fn run(
        &mut self,
        depth: usize,
        count: u64,
        next: impl FnMut(&mut Self, u64) -> Request,
    ) -> Time {
        self.run_after(0, depth, count, next)
    }

    /// Submits `before` unmeasured requests, then `count` measured ones, and keeps `depth` requests in flight. Returns
    /// the time from the first to the last measured submission.
    fn run_after(
        &mut self,
        before: u64,
        depth: usize,
        count: u64,
        mut next: impl FnMut(&mut Self, u64) -> Request,
    ) -> Time {
        self.rest();
        self.reads.clear();
        self.writes.clear();
        let mut start = self.ssd.now();
        for i in 0..before + count {
            if i == before {
                start = self.ssd.now();
            }
            while self.ssd.outstanding() >= depth && self.ssd.step() {}
            let now = self.ssd.now();
            self.ssd.advance(now);
            self.take_responses(before);
            let request = next(self, i);
            submit(&mut self.ssd, &request, i);
        }
        let span = self.ssd.now() - start;
        while self.ssd.step() {}
        self.take_responses(before);
        span
    }

    /// Takes all completions from the device. Keeps the response times of requests with numbers from `first`.
    fn take_responses(&mut self, first: u64) {
        for done in self.ssd.completions().drain(..) {
            match done.op {
                _ if done.tag < first => {}
                Op::Read => self.reads.push(done.done - done.arrival),
                _ => self.writes.push(done.done - done.arrival),
            }
        }
    }

    /// Runs the device until it is idle.
    fn rest(&mut self) {
        while self.ssd.step() {}
        self.ssd.completions().clear();
    }
}

/// Returns the capacity in bytes of the blocks that may be in SLC mode.
fn cache_bytes(spec: &DeviceSpec) -> u64 {
    let blocks = u64::from(spec.geometry.chips * spec.slc_blocks_chip());
    let pages = blocks * u64::from(spec.hot_pages_per_block());
    pages * u64::from(spec.geometry.page_bytes)
}

fn request(op: Op, offset: u64, bytes: u64) -> Request {
    Request {
        arrival: Time::ZERO,
        offset,
        bytes,
        op,
        fua: false,
        ..Request::default()
    }
}

fn submit(ssd: &mut Ssd, request: &Request, tag: u64) {
    ssd.submit(ssd.now(), request, tag)
        .expect("the tests stay within the device");
}

fn mean_us(of: &[Time]) -> f64 {
    of.iter().map(|time| time.as_us()).sum::<f64>() / of.len() as f64
}

/// Returns the quantile `share` of the times.
fn at_us(of: &mut [Time], share: f64) -> f64 {
    let rank = (of.len() as f64 * share).ceil() as usize;
    let at = rank.clamp(1, of.len()) - 1;
    of.select_nth_unstable(at).1.as_us()
}
