//! A finite workload that is repeated.

use flashtwin::{Request, Time};

use crate::{Workload, WorkloadError};

/// Opens the workload at its start.
pub type Open = Box<dyn FnMut() -> Result<Box<dyn Workload>, WorkloadError> + Send>;

/// Shift of the addresses between consecutive passes of a repeated workload, modulo a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// Distance in bytes by which the addresses of a pass are shifted relative to the previous pass. With 0, all passes
    /// have the same addresses.
    pub bytes: u64,
    /// Length in bytes of the range to which shifted addresses are confined. A request that extends beyond the end of
    /// the range is shortened.
    pub range_bytes: u64,
}

/// Repeats a workload for `passes` passes, or without end if `passes` is `None`. The time from the last request of a
/// pass to the start of the next pass is the mean interval between requests.
///
/// # Errors
/// Fails if the workload cannot be opened.
pub fn repeat(
    mut open: Open,
    passes: Option<u64>,
    shift: Shift,
) -> Result<Box<dyn Workload>, WorkloadError> {
    let first = open()?;
    let total = first.requests_total();
    let each = match shift.bytes {
        0 => "",
        _ => ", each further along the device",
    };
    let times = passes.map_or("repeatedly".into(), |n| format!("{n} times"));
    Ok(Box::new(Repeat {
        open,
        description: format!("{}, {times}{each}", first.describe()),
        requests_total: total
            .zip(passes)
            .and_then(|(n, passes)| n.checked_mul(passes)),
        first_warnings: None,
        pass: first,
        passes_max: passes,
        passes: 0,
        shift,
        begin: Time::ZERO,
        last: Time::ZERO,
        requests: 0,
    }))
}

struct Repeat {
    open: Open,
    description: String,
    requests_total: Option<u64>,
    /// Warnings of the first pass, which are those of the whole workload. `None` until the first pass has ended.
    first_warnings: Option<Vec<String>>,
    /// The workload of the current pass.
    pass: Box<dyn Workload>,
    passes_max: Option<u64>,
    /// Passes completed.
    passes: u64,
    shift: Shift,
    /// Start of the current pass.
    begin: Time,
    /// Arrival time of the last request returned, relative to the start of the pass.
    last: Time,
    /// Number of requests of the current pass so far.
    requests: u64,
}

impl Repeat {
    /// Opens the next pass. Returns false if there is none.
    fn begin_next(&mut self) -> Result<bool, WorkloadError> {
        let empty = self.requests == 0;
        if empty || self.passes_max == Some(self.passes) {
            return Ok(false);
        }
        self.passes += 1;
        if self.first_warnings.is_none() {
            self.first_warnings = Some(self.pass.warnings());
        }
        if self.passes_max == Some(self.passes) {
            return Ok(false);
        }
        let interval = self.last.0 / self.requests.saturating_sub(1).max(1);
        let pass = self.last.0.saturating_add(interval);
        self.begin = Time(self.begin.0.saturating_add(pass));
        (self.last, self.requests) = (Time::ZERO, 0);
        self.pass = (self.open)()?;
        Ok(true)
    }

    fn place(&self, request: &mut Request) {
        request.arrival = Time(self.begin.0.saturating_add(request.arrival.0));
        let Shift { bytes, range_bytes } = self.shift;
        if bytes == 0 || self.passes == 0 || range_bytes == 0 {
            return;
        }
        let shift = u128::from(bytes) * u128::from(self.passes);
        let offset = (u128::from(request.offset) + shift) % u128::from(range_bytes);
        request.offset = u64::try_from(offset).expect("below the range");
        request.bytes = request.bytes.min(range_bytes - request.offset);
    }
}

impl Workload for Repeat {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        let before = out.len();
        loop {
            let n = self.pass.next_batch(out)?;
            if n > 0 {
                let batch = &mut out[before..];
                self.last = batch.last().map_or(self.last, |request| request.arrival);
                self.requests += n as u64;
                for request in batch {
                    self.place(request);
                }
                return Ok(n);
            }
            if !self.begin_next()? {
                return Ok(0);
            }
        }
    }

    fn requests_total(&self) -> Option<u64> {
        self.requests_total
    }

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn passes(&self) -> u64 {
        self.passes
    }

    fn warnings(&self) -> Vec<String> {
        let now = || self.pass.warnings();
        self.first_warnings.clone().unwrap_or_else(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{read_ahead, GeneratorSpec};

    const MIB: u64 = 1 << 20;

    fn load() -> Open {
        Box::new(|| {
            let load = "uniform:write=1,size=4k,requests=5000,rate=1000";
            GeneratorSpec::parse(load)?.build(MIB, 7)
        })
    }

    /// Returns the first requests of a workload, at most `most`. Each is returned with the number of passes completed
    /// before it.
    fn all(mut workload: Box<dyn Workload>, most: usize) -> Vec<(u64, Request)> {
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while all.len() < most {
            batch.clear();
            if workload.next_batch(&mut batch).unwrap() == 0 {
                break;
            }
            all.extend(batch.iter().map(|request| (workload.passes(), *request)));
        }
        all
    }

    fn repeated(passes: Option<u64>, bytes: u64) -> Box<dyn Workload> {
        let shift = Shift {
            bytes,
            range_bytes: MIB,
        };
        repeat(load(), passes, shift).unwrap()
    }

    #[test]
    fn passes_follow_each_other_by_a_mean_interval() {
        let once = all(load()().unwrap(), usize::MAX);
        let workload = repeated(Some(3), 0);
        assert_eq!(workload.requests_total(), Some(15_000));
        let thrice = all(workload, usize::MAX);
        assert_eq!(thrice.len(), 15_000);
        let last = once[4999].1.arrival;
        let pass = last.0 + last.0 / 4999;
        for (i, &(passes, request)) in thrice.iter().enumerate() {
            let same = once[i % 5000].1;
            let k = i as u64 / 5000;
            let arrival = Time(same.arrival.0 + k * pass);
            assert_eq!((passes, request), (k, Request { arrival, ..same }), "{i}");
        }
        assert_eq!(all(read_ahead(repeated(Some(3), 0)), usize::MAX), thrice);
        let endless = repeated(None, 0);
        assert_eq!(endless.requests_total(), None);
        assert_eq!(all(endless, 15_000), thrice);
    }

    #[test]
    fn shifted_passes_move_along_the_range() {
        let once = all(load()().unwrap(), usize::MAX);
        let shifted = all(repeated(Some(5), 300 << 10), usize::MAX);
        for (i, (passes, request)) in shifted.iter().enumerate() {
            let to = (once[i % 5000].1.offset + passes * (300 << 10)) % MIB;
            assert_eq!(request.offset, to);
            assert!(request.offset + request.bytes <= MIB);
        }
    }

    /// A workload with one request per pass, which is beyond 1 MiB. The first pass warns after the request; later
    /// passes do not warn.
    struct Once {
        warns: bool,
        given: bool,
    }

    impl Workload for Once {
        fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
            if std::mem::replace(&mut self.given, true) {
                return Ok(0);
            }
            out.push(Request {
                offset: 2 * MIB,
                bytes: 4096,
                ..Request::default()
            });
            Ok(1)
        }

        fn requests_total(&self) -> Option<u64> {
            Some(1)
        }

        fn describe(&self) -> String {
            String::new()
        }

        fn warnings(&self) -> Vec<String> {
            let warns = self.warns && self.given;
            warns
                .then(|| "of the first pass".into())
                .into_iter()
                .collect()
        }
    }

    fn one_request() -> Open {
        let mut opened = 0;
        Box::new(move || {
            opened += 1;
            let pass: Box<dyn Workload> = Box::new(Once {
                warns: opened == 1,
                given: false,
            });
            Ok(pass)
        })
    }

    /// A request that a shift moves across the end of the range is shortened to end there.
    #[test]
    fn shifted_requests_end_within_the_range() {
        let shift = Shift {
            bytes: MIB - 1024,
            range_bytes: MIB,
        };
        let found = all(repeat(one_request(), Some(3), shift).unwrap(), usize::MAX);
        let places: Vec<(u64, u64)> = found.iter().map(|(_, r)| (r.offset, r.bytes)).collect();
        let expected = [(2 * MIB, 4096), (MIB - 1024, 1024), (MIB - 2048, 2048)];
        assert_eq!(places, expected);
    }

    #[test]
    fn first_pass_keeps_its_addresses_and_its_warnings() {
        let shift = Shift {
            bytes: 4096,
            range_bytes: MIB,
        };
        let mut workload = repeat(one_request(), Some(3), shift).unwrap();
        assert_eq!(workload.warnings(), [""; 0]);
        let mut out = Vec::new();
        while workload.next_batch(&mut out).unwrap() > 0 {}
        let offsets: Vec<u64> = out.iter().map(|request| request.offset).collect();
        assert_eq!(offsets, [2 * MIB, 4096, 2 * 4096]);
        assert_eq!(workload.warnings(), ["of the first pass"]);
    }

    #[test]
    fn a_workload_without_requests_ends() {
        let open: Open = Box::new(|| {
            let empty: Box<dyn Workload> = Box::new(Empty);
            Ok(empty)
        });
        let shift = Shift {
            bytes: 0,
            range_bytes: MIB,
        };
        let mut workload = repeat(open, None, shift).unwrap();
        assert_eq!(workload.next_batch(&mut Vec::new()).unwrap(), 0);
        assert_eq!(workload.passes(), 0);
    }

    struct Empty;

    impl Workload for Empty {
        fn next_batch(&mut self, _: &mut Vec<Request>) -> Result<usize, WorkloadError> {
            Ok(0)
        }

        fn requests_total(&self) -> Option<u64> {
            None
        }

        fn describe(&self) -> String {
            String::new()
        }
    }
}
