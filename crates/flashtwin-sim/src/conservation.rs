//! Conservation laws that every run checks, also in release builds. A run that violates a law ends with an error, so a
//! wrong model returns no results.

use flashtwin::{Cause, Device, Op, Ssd};

use crate::{Drivable, SimError};

/// Counters at the start of a measurement, for the balance at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    /// Number of requests submitted before the measurement.
    submitted: u64,
    /// Balance of the free pages of each drive.
    pages: Vec<Pages>,
}

/// Balance of a drive's free pages. Programs reduce their number, erases increase it.
#[derive(Clone, Copy, Debug)]
struct Pages {
    /// Number of pages that can be programmed without an erase.
    free: u64,
    /// Pages lost to SLC mode so far: the sum, over all blocks opened in SLC mode, of the pages by which the block is
    /// smaller than a normal block.
    lacked: u64,
}

impl Books {
    /// Records the initial values. Must be called directly after the counters of the device are reset.
    #[inline(never)] // as `check`
    pub fn open<S: Drivable>(device: &Device<S>, submitted: u64) -> Books {
        let mut pages = Vec::new();
        S::each_drive(device, &mut |_, drive| pages.push(Pages::of(drive)));
        Books { submitted, pages }
    }

    /// Checks all laws, for which it reads all tables of the device. `same_drives` is false if members of the array may
    /// have been replaced. The free pages of the drives are then not checked, because new drives have no initial value.
    #[inline(never)] // so that the count of instructions per request can exclude it
    pub fn check<S: Drivable>(
        &self,
        device: &Device<S>,
        submitted: u64,
        same_drives: bool,
    ) -> Result<(), SimError> {
        let broken = |law| move |detail| SimError::Law { law, detail };
        (self.requests(device, submitted)).map_err(broken("every request completes once"))?;
        (device.metrics().check()).map_err(broken("times add up"))?;
        let mut result = Ok(());
        let mut pages = self.pages.iter().filter(|_| same_drives);
        S::each_drive(device, &mut |member, drive| {
            let named = |what: String| match member {
                Some(member) => format!("member {member}: {what}"),
                None => what,
            };
            let before = pages.next();
            if result.is_ok() {
                let balance = before.map_or(Ok(()), |before| before.balance(drive));
                result = (balance
                    .map_err(named)
                    .map_err(broken("pages in are pages out")))
                .and_then(|()| {
                    drive
                        .check()
                        .map_err(named)
                        .map_err(broken("the map is the flash"))
                });
            }
        });
        result
    }

    fn requests<S: Drivable>(&self, device: &Device<S>, submitted: u64) -> Result<(), String> {
        let submitted = submitted - self.submitted;
        let completed: u64 = [Op::Read, Op::Write, Op::Trim, Op::Flush]
            .map(|op| device.metrics().op(op))
            .iter()
            .map(|of| of.requests + of.refused + of.failed)
            .sum();
        let inside = device.outstanding() as u64;
        match completed + inside == submitted {
            true => Ok(()),
            false => Err(format!(
                "{submitted} submitted, {completed} completed, {inside} in the device"
            )),
        }
    }
}

impl Pages {
    fn of(drive: &Ssd) -> Pages {
        Pages {
            free: drive.free_flash_pages(),
            lacked: drive.slc_pages_lacked(),
        }
    }

    /// Checks that the number of free pages has changed since the start by the number of pages erased, minus the
    /// numbers of pages programmed and skipped.
    fn balance(self, drive: &Ssd) -> Result<(), String> {
        let now = Pages::of(drive);
        let report = drive.flash_report_without_wear();
        let erases = report.flash.count(Cause::Erase);
        let erased = erases * u64::from(drive.spec().geometry.pages_per_block);
        let programs = report.programs();
        let skipped = report.flash.pages_skipped + now.lacked - self.lacked;
        match self.free + erased == now.free + programs + skipped {
            true => Ok(()),
            false => Err(format!(
                "{} pages were free and {erased} have been erased, {programs} programmed and {skipped} skipped, \
                 but {} are free",
                self.free, now.free
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{run, Control, Pacing, RunConfig};
    use flashtwin::DeviceSpec;
    use flashtwin_workload::GeneratorSpec;

    fn after_a_run() -> (Ssd, Books) {
        let spec = DeviceSpec::with_overrides(
            flashtwin::spec::builtin("demo").expect("it is shipped"),
            "demo",
            &[("geometry.blocks_per_plane", "64")],
        );
        let mut ssd = Ssd::new(&spec.expect("a sound device"));
        ssd.fill_steady(1);
        ssd.reset_metrics(None);
        let books = Books::open(&ssd, 0);
        let load = GeneratorSpec::parse("uniform:write=0.8,requests=2000").expect("a load");
        let mut load = load.build(ssd.exported_bytes(), 1).expect("it fits");
        let config = RunConfig {
            pacing: Pacing::Closed { depth: 8 },
            ..RunConfig::default()
        };
        let control = Control::default();
        run(&mut ssd, &mut *load, &config, &control, None).expect("a sound run");
        (ssd, books)
    }

    fn law_of(result: Result<(), SimError>) -> &'static str {
        match result {
            Err(SimError::Law { law, .. }) => law,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn books_that_do_not_balance_are_refused() {
        let (ssd, books) = after_a_run();
        books.check(&ssd, 2000, true).expect("a sound run");
        let lost = books.check(&ssd, 2001, true);
        assert_eq!(law_of(lost), "every request completes once");
        let more = Books {
            submitted: 0,
            pages: vec![Pages {
                free: books.pages[0].free + 1,
                ..books.pages[0]
            }],
        };
        assert_eq!(
            law_of(more.check(&ssd, 2000, true)),
            "pages in are pages out"
        );
        let exchanged = more.check(&ssd, 2000, false);
        exchanged.expect("what an exchanged drive had is not known");
    }
}
