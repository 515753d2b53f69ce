//! Injected disturbances: longer response times and failed reads. They are applied between the device and the driver.
//! Clients notice them, but the model and the device's own report do not change.

use std::collections::VecDeque;
use std::path::Path;

use flashtwin::metrics::{FlashReport, Metrics};
use flashtwin::{
    Array, Completion, Durable, Op, OutOfRange, PageProgram, PowerCut, Request, Rng, Status, Time,
};
use flashtwin_sim::SimError;
use serde::{Deserialize, Serialize};

use crate::{LiveError, Orders, Twin};

/// Disturbances of responses; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Disturbance {
    /// Extra latency, in device time.
    pub latency_us: u64,
    /// Fraction of responses that are delayed.
    pub latency_share: f64,
    /// Fraction of reads that fail with EIO.
    pub read_error_share: f64,
}

/// Largest extra latency: one hour. With a longer one, the server would appear to hang.
const LATENCY_US_MAX: u64 = 3_600_000_000;

impl Disturbance {
    /// Checks the values.
    ///
    /// # Errors
    /// Fails if a value is out of its range. The error names the value.
    pub fn check(&self) -> Result<(), LiveError> {
        for (what, share) in [
            ("latency_share", self.latency_share),
            ("read_error_share", self.read_error_share),
        ] {
            if !(0.0..=1.0).contains(&share) {
                let message = format!("{what} {share}: give a share from 0 to 1");
                return Err(LiveError::Setting(message));
            }
        }
        if self.latency_us > LATENCY_US_MAX {
            let message = format!(
                "latency_us {}: give at most an hour, {LATENCY_US_MAX}",
                self.latency_us
            );
            return Err(LiveError::Setting(message));
        }
        Ok(())
    }
}

/// A device whose responses are disturbed.
pub(crate) struct Disturbed {
    twin: Box<dyn Twin>,
    how: Disturbance,
    rng: Rng,
    /// Delayed responses, the next one first.
    held: VecDeque<Completion>,
    completions: Vec<Completion>,
}

impl Disturbed {
    /// Wraps a device, without disturbances yet.
    pub fn new(twin: Box<dyn Twin>) -> Disturbed {
        Disturbed {
            twin,
            how: Disturbance::default(),
            rng: Rng::new(1),
            held: VecDeque::new(),
            completions: Vec::new(),
        }
    }

    fn happens(&mut self, share: f64) -> bool {
        const PARTS: u64 = 1 << 53;
        share > 0.0 && self.rng.below(PARTS) < (share * PARTS as f64) as u64
    }

    /// Takes the completions of the device. Releases those completions whose extra latency has passed.
    fn pass_on(&mut self) {
        if !self.twin.completions().is_empty() {
            let mut new = std::mem::take(self.twin.completions());
            for mut completion in new.drain(..) {
                if completion.op == Op::Read && self.happens(self.how.read_error_share) {
                    completion.status = Status::Failed;
                }
                if self.how.latency_us > 0 && self.happens(self.how.latency_share) {
                    completion.done += Time::from_us(self.how.latency_us);
                    let place = self
                        .held
                        .partition_point(|other| other.done <= completion.done);
                    self.held.insert(place, completion);
                } else {
                    self.completions.push(completion);
                }
            }
            *self.twin.completions() = new;
        }
        let now = self.twin.now();
        while self
            .held
            .front()
            .is_some_and(|completion| completion.done <= now)
        {
            self.completions.extend(self.held.pop_front());
        }
    }
}

impl Twin for Disturbed {
    fn disturb(&mut self, how: Disturbance) {
        self.how = how;
    }
    fn next_event(&self) -> Option<Time> {
        let held = self.held.front().map(|completion| completion.done);
        [self.twin.next_event(), held].into_iter().flatten().min()
    }
    fn advance(&mut self, until: Time) {
        self.twin.advance(until);
        self.pass_on();
    }
    fn completions(&mut self) -> &mut Vec<Completion> {
        self.pass_on();
        &mut self.completions
    }
    fn cut_power(&mut self) -> Option<PowerCut> {
        self.held.clear();
        self.completions.clear();
        self.twin.cut_power()
    }
    fn come_to_rest(&mut self) -> bool {
        let at_rest = self.twin.come_to_rest();
        self.completions.extend(self.held.drain(..));
        at_rest
    }
    fn name(&self) -> String {
        self.twin.name()
    }
    fn exported_bytes(&self) -> u64 {
        self.twin.exported_bytes()
    }
    fn page_bytes(&self) -> u32 {
        self.twin.page_bytes()
    }
    fn now(&self) -> Time {
        self.twin.now()
    }
    fn submit(&mut self, now: Time, request: &Request, tag: u64) -> Result<(), OutOfRange> {
        self.twin.submit(now, request, tag)
    }
    fn is_read_only(&self) -> bool {
        self.twin.is_read_only()
    }
    fn metrics(&self) -> &Metrics {
        self.twin.metrics()
    }
    fn flash_report(&self) -> FlashReport {
        self.twin.flash_report()
    }
    fn durable(&self) -> Durable {
        self.twin.durable()
    }
    fn take_programs(&mut self, each: &mut dyn FnMut(PageProgram)) {
        self.twin.take_programs(each);
    }
    fn array(&mut self) -> Option<&mut Array> {
        self.twin.array()
    }
    fn orders(&mut self) -> Option<&mut dyn Orders> {
        self.twin.orders()
    }
    fn save(&self, path: &Path, made_by: &str) -> Result<(), SimError> {
        self.twin.save(path, made_by)
    }
    fn load(&mut self, path: &Path) -> Result<(), SimError> {
        self.twin.load(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashtwin::{DeviceSpec, Ssd};

    /// Reads and writes pages in turn, one every few milliseconds. Returns the number of failed reads, and the extra
    /// latency of each response in µs.
    fn outcome(how: Disturbance) -> (u64, Vec<u64>) {
        let profile = flashtwin::spec::builtin("demo").expect("demo is built in");
        let spec =
            DeviceSpec::with_overrides(profile, "demo", &[("buffer", "none")]).expect("sound");
        let mut ssd = Ssd::new(&spec);
        ssd.fill_sequential();
        let mut twin = Disturbed::new(Box::new(ssd));
        twin.disturb(how);
        let (mut failed, mut took, mut completed) = (0, Vec::new(), 0);
        for tag in 0..1000 {
            let now = Time::from_ms(3 * tag);
            let request = Request {
                arrival: now,
                offset: tag * 4096,
                bytes: 4096,
                op: [Op::Read, Op::Write][tag as usize % 2],
                fua: false,
                ..Request::default()
            };
            twin.advance(now);
            twin.submit(now, &request, tag).expect("on the device");
            while let Some(at) = twin.next_event().filter(|&at| at < now + Time::from_ms(3)) {
                twin.advance(at);
                for completion in twin.completions().drain(..) {
                    assert_eq!(completion.done, at, "neither before its time nor after");
                    completed += 1;
                    let fails = completion.status == Status::Failed;
                    assert!(!fails || completion.op == Op::Read, "only reads fail");
                    failed += u64::from(fails);
                    took.push((completion.done - completion.arrival).0 / 1_000_000);
                }
            }
        }
        assert_eq!(completed, 1000, "each completes once");
        (failed, took)
    }

    #[test]
    fn shares_of_reads_fail_and_are_delayed() {
        let (failed, plain) = outcome(Disturbance::default());
        assert_eq!(failed, 0);
        let slowest = *plain.iter().max().expect("completions");
        let how = Disturbance {
            latency_us: 500,
            latency_share: 0.25,
            read_error_share: 0.1,
        };
        let (failed, took) = outcome(how);
        assert!((35..65).contains(&failed), "{failed}");
        let late = took.iter().filter(|&&us| us >= 500).count();
        assert!((200..300).contains(&late), "{late}");
        assert!(took
            .iter()
            .all(|&us| us <= slowest || us >= 500 && us <= 500 + slowest));
        assert_eq!(outcome(how), (failed, took), "the same each time");
    }

    #[test]
    fn shares_are_shares() {
        for bad in [-0.1, 1.1, f64::NAN] {
            let how = Disturbance {
                read_error_share: bad,
                ..Disturbance::default()
            };
            assert!(how.check().is_err(), "{bad}");
        }
        assert!(Disturbance::default().check().is_ok());
    }
}
