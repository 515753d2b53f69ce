//! Write amplification of a workload that is repeated in passes. It is level if it no longer changes.
//!
//! The second half of the passes is divided into at most [`PARTS`] parts. Each part consists of whole passes, so that
//! variation within a pass does not matter. Write amplification is level if all of these conditions hold:
//!
//! - The host has written the required number of drive writes, and blocks were erased in the second half.
//! - The half width of the 95 % confidence interval over the parts is at most [`PRECISION`] of the mean.
//! - The regression line over the parts rises or falls by at most [`PRECISION`] of the mean.

use flashtwin::metrics::FlashReport;
use flashtwin::{Cause, Device, Op};

use crate::Drivable;

/// Largest number of parts of the second half of the passes. The next constant is the smallest number.
const PARTS: usize = 10;
const PARTS_MIN: usize = 3;
/// Largest variation of write amplification that counts as level, as a fraction of its mean.
const PRECISION: f64 = 0.01;
/// Largest number of samples kept. When it is exceeded, every second sample is discarded, and from then on samples are
/// taken half as often.
const KEPT: usize = 2048;
/// Number of purposes in [`FlashReport::media_by_purpose`].
const PURPOSES: usize = 10;
/// Two-sided quantiles of Student's t for 95 % confidence intervals over 3 to 10 parts.
const STUDENT_T: [f64; PARTS - PARTS_MIN + 1] =
    [4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/// Length of the run of a repeated workload, in drive writes: writes of the whole exported capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriveWrites {
    /// Minimum number of drive writes. After the minimum, the run continues until write amplification is level or the
    /// maximum is reached.
    pub least: f64,
    /// Maximum number of drive writes.
    pub most: f64,
}

/// Result of the passes of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Passes {
    /// Passes completed.
    pub passes: u64,
    /// Writes of the whole exported capacity since the start of the measurement.
    pub drive_writes: f64,
    /// Reason for which write amplification is not level; `None` if it is.
    pub missed: Option<&'static str>,
    /// Write amplification of the device over the second half of the passes; `None` if the host wrote nothing in them.
    pub device_write_amplification: Option<f64>,
    /// Half width of the 95 % confidence interval of the write amplification; `None` with fewer
    /// than six passes.
    pub half_width: Option<f64>,
    /// For each purpose: bytes programmed per byte written by the host, over the second half of the passes.
    pub by_purpose: Vec<(&'static str, f64)>,
}

/// Counts from the start of the measurement to the end of a pass.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    host_bytes: u64,
    /// Pages programmed, by purpose.
    programs: [u64; PURPOSES],
    erases: u64,
}

/// The passes of a run so far.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    passes: u64,
    /// Number of passes between two samples.
    stride: u64,
    samples: Vec<Sample>,
    page_bytes: u64,
    exported_bytes: u64,
}

impl Observed {
    /// Whether no sample has been taken since the start of the measurement.
    pub fn is_new(&self) -> bool {
        self.samples.is_empty()
    }

    /// Takes the first sample. `passes` is the number of passes completed before.
    pub fn begin<S: Drivable>(device: &Device<S>, passes: u64) -> Observed {
        let mut observed = Observed {
            passes,
            stride: 1,
            page_bytes: S::describe(device).page_bytes.into(),
            exported_bytes: device.exported_bytes(),
            ..Observed::default()
        };
        observed.sample(device);
        observed
    }

    /// Samples the device if another pass has completed. Returns whether the run may end: write amplification is level,
    /// or the host has written the maximum.
    pub fn note<S: Drivable>(
        &mut self,
        device: &Device<S>,
        passes: u64,
        wanted: Option<DriveWrites>,
    ) -> bool {
        if passes == self.passes {
            return false;
        }
        self.passes = passes;
        if !passes.is_multiple_of(self.stride) {
            return false;
        }
        self.sample(device);
        if self.samples.len() > KEPT {
            // The first sample is the start.
            let mut kept = (0..self.samples.len()).map(|i| i % 2 == 0);
            self.samples.retain(|_| kept.next() == Some(true));
            self.stride *= 2;
        }
        wanted.is_some_and(|wanted| {
            self.drive_writes() >= wanted.most || self.missed(wanted.least).is_none()
        })
    }

    fn sample<S: Drivable>(&mut self, device: &Device<S>) {
        let flash = device.flash_report_without_wear();
        self.samples.push(Sample {
            host_bytes: device.metrics().op(Op::Write).bytes,
            programs: flash.media_by_purpose().map(|(_, n)| n),
            erases: flash.flash.count(Cause::Erase),
        });
    }

    fn drive_writes(&self) -> f64 {
        let written = self.samples.last().map_or(0, |sample| sample.host_bytes);
        written as f64 / self.exported_bytes as f64
    }

    /// Returns the samples at the boundaries of the parts of the second half: their indices, in order.
    fn bounds(&self) -> Vec<usize> {
        let last = self.samples.len() - 1;
        let half = last.div_ceil(2);
        let parts = half.clamp(1, PARTS);
        let step = half / parts;
        (0..=parts).rev().map(|i| last - i * step).collect()
    }

    /// Returns the write amplification of each part of the second half; `None` if the host wrote nothing in one of
    /// them.
    fn parts(&self) -> Option<Vec<f64>> {
        let bounds = self.bounds();
        let pairs = bounds.windows(2);
        pairs
            .map(|pair| self.between(pair[0], pair[1]))
            .collect::<Option<Vec<f64>>>()
    }

    fn between(&self, from: usize, to: usize) -> Option<f64> {
        let (a, b) = (self.samples[from], self.samples[to]);
        let bytes = b.host_bytes - a.host_bytes;
        let programs = |sample: Sample| sample.programs.iter().sum::<u64>();
        let media = (programs(b) - programs(a)) * self.page_bytes;
        (bytes > 0).then(|| media as f64 / bytes as f64)
    }

    fn half_width(parts: &[f64]) -> Option<f64> {
        let t = STUDENT_T.get(parts.len().checked_sub(PARTS_MIN)?)?;
        let n = parts.len() as f64;
        let mean = parts.iter().sum::<f64>() / n;
        let squares: f64 = parts.iter().map(|x| (x - mean).powi(2)).sum();
        Some(t * (squares / (n - 1.0) / n).sqrt())
    }

    /// Returns the reason for which write amplification is not level; `None` if it is.
    fn missed(&self, drive_writes_least: f64) -> Option<&'static str> {
        let Some(parts) = self.parts() else {
            return Some("a pass wrote nothing");
        };
        let Some(half_width) = Observed::half_width(&parts) else {
            return Some("fewer than six passes");
        };
        if self.drive_writes() < drive_writes_least {
            return Some("the drive was not written often enough");
        }
        let bounds = self.bounds();
        let (from, to) = (bounds[0], self.samples.len() - 1);
        if self.samples[from].erases == self.samples[to].erases {
            return Some("no block was collected");
        }
        let n = parts.len() as f64;
        let mean = parts.iter().sum::<f64>() / n;
        if half_width > PRECISION * mean {
            return Some("write amplification varied");
        }
        let middle = (n - 1.0) / 2.0;
        let from_middle = |i: usize| i as f64 - middle;
        let squares: f64 = (0..parts.len()).map(|i| from_middle(i).powi(2)).sum();
        let products = parts.iter().enumerate().map(|(i, x)| from_middle(i) * x);
        let rise = products.sum::<f64>() / squares * (n - 1.0);
        (rise.abs() > PRECISION * mean).then_some("write amplification rose or fell")
    }

    /// Returns the result of the passes. `wanted` has the required numbers of drive writes.
    pub fn into_outcome(self, wanted: Option<DriveWrites>) -> Option<Passes> {
        if self.samples.len() < 2 {
            return None;
        }
        let from = self.bounds()[0];
        let (first, last) = (self.samples[from], self.samples[self.samples.len() - 1]);
        let host_bytes = last.host_bytes - first.host_bytes;
        let by_purpose = |i: usize, name: &'static str| {
            let n = last.programs[i] - first.programs[i];
            (n > 0 && host_bytes > 0)
                .then(|| (name, (n * self.page_bytes) as f64 / host_bytes as f64))
        };
        let names = FlashReport::default().media_by_purpose();
        let names = names.iter().enumerate();
        Some(Passes {
            passes: self.passes,
            drive_writes: self.drive_writes(),
            missed: self.missed(wanted.map_or(0.0, |wanted| wanted.least)),
            device_write_amplification: self.between(from, self.samples.len() - 1),
            half_width: self.parts().and_then(|parts| Observed::half_width(&parts)),
            by_purpose: names
                .filter_map(|(i, &(name, _))| by_purpose(i, name))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashtwin::{DeviceSpec, Request, Ssd};

    /// Creates the samples of passes in which the host writes a hundred pages each. `programs` has the number of pages
    /// programmed in each pass.
    fn with_programs(programs: &[u64]) -> Observed {
        let mut observed = Observed {
            passes: programs.len() as u64,
            stride: 1,
            page_bytes: 4096,
            exported_bytes: 4096 * 100,
            ..Observed::default()
        };
        let mut sample = Sample::default();
        observed.samples.push(sample);
        for n in programs {
            sample.host_bytes += 4096 * 100;
            sample.programs[0] += 100;
            sample.programs[1] += n - 100;
            sample.erases += 1;
            observed.samples.push(sample);
        }
        observed
    }

    #[test]
    fn last_half_counts() {
        let mut programs = vec![900; 20];
        programs.extend([200; 20]);
        let outcome = with_programs(&programs).into_outcome(None).unwrap();
        assert_eq!(outcome.missed, None);
        assert_eq!(outcome.device_write_amplification, Some(2.0));
        assert_eq!(outcome.half_width, Some(0.0));
        assert_eq!(outcome.drive_writes, 40.0);
        assert_eq!(outcome.by_purpose, [("host", 1.0), ("collection", 1.0)]);
    }

    #[test]
    fn each_condition_can_be_missed() {
        let level = DriveWrites {
            least: 50.0,
            most: 60.0,
        };
        let missed = |observed: Observed, wanted| observed.into_outcome(wanted).unwrap().missed;
        let steady = || with_programs(&[200; 40]);
        assert_eq!(
            missed(steady(), Some(level)),
            Some("the drive was not written often enough")
        );
        assert_eq!(
            missed(with_programs(&[200; 4]), None),
            Some("fewer than six passes")
        );
        let mut no_erase = steady();
        no_erase
            .samples
            .iter_mut()
            .for_each(|sample| sample.erases = 3);
        assert_eq!(missed(no_erase, None), Some("no block was collected"));
        let mut early_erases = steady();
        for (i, sample) in early_erases.samples.iter_mut().enumerate() {
            sample.erases = (i as u64).min(10);
        }
        assert_eq!(missed(early_erases, None), Some("no block was collected"));
        let varied: Vec<u64> = (0..40).map(|i| 200 + i / 2 % 2 * 20).collect();
        assert_eq!(
            missed(with_programs(&varied), None),
            Some("write amplification varied")
        );
        let rising: Vec<u64> = (0..40).map(|i| 20_000 + 15 * i).collect();
        assert_eq!(
            missed(with_programs(&rising), None),
            Some("write amplification rose or fell")
        );
        let falling: Vec<u64> = (0..40).map(|i| 20_600 - 15 * i).collect();
        assert_eq!(
            missed(with_programs(&falling), None),
            Some("write amplification rose or fell")
        );
        let mut idle = steady();
        let n = idle.samples.len();
        for sample in &mut idle.samples[n - 20..] {
            sample.host_bytes = 100;
        }
        idle.samples
            .iter_mut()
            .for_each(|sample| sample.host_bytes = sample.host_bytes.min(100));
        assert_eq!(missed(idle, None), Some("a pass wrote nothing"));
    }

    fn small() -> Ssd {
        let spec = DeviceSpec::with_overrides(
            flashtwin::spec::builtin("gcar").expect("it is built in"),
            "gcar",
            &[("geometry.blocks_per_plane", "64"), ("buffer", "none")],
        );
        Ssd::new(&spec.expect("a sound device"))
    }

    /// Runs a pass that writes the first page; returns whether the run has had enough passes.
    fn pass(
        ssd: &mut Ssd,
        observed: &mut Observed,
        number: u64,
        wanted: Option<DriveWrites>,
    ) -> bool {
        let write = Request {
            arrival: ssd.now(),
            op: Op::Write,
            bytes: 4096,
            ..Request::default()
        };
        ssd.submit(ssd.now(), &write, number)
            .expect("its first page");
        while ssd.step() {}
        observed.note(ssd, number, wanted)
    }

    /// A run whose write amplification is not level ends at the maximum number of drive writes.
    #[test]
    fn runs_end_at_the_maximum() {
        let mut ssd = small();
        let mut observed = Observed::begin(&ssd, 0);
        let wanted = DriveWrites {
            least: 0.0,
            most: 3.0 * 4096.0 / ssd.exported_bytes() as f64,
        };
        let ends = (1..=4).map(|number| pass(&mut ssd, &mut observed, number, Some(wanted)));
        assert_eq!(ends.collect::<Vec<_>>(), [false, false, true, true]);
    }

    /// When there are more passes than samples can be kept, the kept samples are evenly spaced from the start.
    #[test]
    fn many_passes_are_thinned_out_evenly() {
        let mut ssd = small();
        let mut observed = Observed::begin(&ssd, 0);
        let passes = 2 * KEPT as u64 + 3;
        for number in 1..=passes {
            pass(&mut ssd, &mut observed, number, None);
        }
        assert!(observed.samples.len() <= KEPT + 1);
        for (i, sample) in observed.samples.iter().enumerate() {
            assert_eq!(sample.host_bytes, 4096 * 4 * i as u64);
        }
        assert_eq!(
            observed.into_outcome(None).map(|found| found.passes),
            Some(passes)
        );
    }

    /// For three parts with mean 11 and standard deviation 1, the half width is the one from a table of Student's t.
    #[test]
    fn interval_is_that_of_student_t() {
        let half_width = Observed::half_width(&[10.0, 11.0, 12.0]).unwrap();
        assert!((half_width - 4.303 / 3f64.sqrt()).abs() < 1e-12);
        assert_eq!(Observed::half_width(&[1.0, 2.0]), None);
    }
}
