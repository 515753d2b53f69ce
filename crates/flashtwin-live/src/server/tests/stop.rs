//! Stops in which something fails: the rest is done all the same.

use flashtwin::metrics::{FlashReport, Metrics};
use flashtwin::{Completion, OutOfRange, PageProgram, PowerCut, Request, Time};
use flashtwin_sim::SimError;

use super::*;

/// Where a bug is.
#[derive(Clone, Copy, PartialEq)]
enum Bug {
    None,
    Report,
    Rest,
}

/// A device that answers at once.
struct Buggy {
    bug: Bug,
    completions: Vec<Completion>,
    metrics: Metrics,
}

impl Twin for Buggy {
    fn name(&self) -> String {
        "buggy".into()
    }
    fn exported_bytes(&self) -> u64 {
        1 << 20
    }
    fn page_bytes(&self) -> u32 {
        4096
    }
    fn now(&self) -> Time {
        Time::ZERO
    }
    fn next_event(&self) -> Option<Time> {
        None
    }
    fn advance(&mut self, _: Time) {}
    fn submit(&mut self, _: Time, _: &Request, _: u64) -> Result<(), OutOfRange> {
        Ok(())
    }
    fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }
    fn is_read_only(&self) -> bool {
        false
    }
    fn metrics(&self) -> &Metrics {
        &self.metrics
    }
    fn flash_report(&self) -> FlashReport {
        assert!(self.bug != Bug::Report, "a bug, planted here");
        FlashReport::default()
    }
    fn durable(&self) -> Durable {
        Durable::AtOnce
    }
    fn hear_programs(&mut self, _: &mut dyn FnMut(PageProgram)) {}
    fn cut_power(&mut self) -> Option<PowerCut> {
        None
    }
    fn array(&mut self) -> Option<&mut Array> {
        None
    }
    fn come_to_rest(&mut self) -> bool {
        assert!(self.bug != Bug::Rest, "a bug, planted here");
        true
    }
    fn save(&self, path: &Path, _: &str) -> Result<(), SimError> {
        fs::write(path, "the state").expect("room");
        Ok(())
    }
    fn load(&mut self, _: &Path) -> Result<(), SimError> {
        Ok(())
    }
}

/// What the stop says, and whether state, report and the end of the recording are there.
fn stop(bug: Bug, in_file: bool) -> (String, [bool; 3]) {
    let place = Place::new(&format!("stop-{}-{in_file}", bug as u8), &[]);
    let path = |name: &str| place.0.join(name);
    let [disk, report, record] = ["disk.img", "report.json", "record.csv"].map(path);
    let store = match in_file {
        true => disk.to_string_lossy().into_owned(),
        false => "memory".into(),
    };
    let settings = [
        ("store", &*store),
        ("report", &*report.to_string_lossy()),
        ("record", &*record.to_string_lossy()),
    ];
    let mut ready = Ready::prepare(place.settings(&settings)).expect("sound settings");
    ready.twin = Box::new(Buggy {
        bug,
        completions: Vec::new(),
        metrics: Metrics::default(),
    });
    let server = ready.start().expect("threads");
    let recording = server.recording.as_ref().expect("asked for");
    recording.add(&Request {
        arrival: Time::ZERO,
        offset: 0,
        bytes: 0,
        op: flashtwin::Op::Flush,
        fua: false,
    });
    let said = server.stop().err().map_or(String::new(), |e| e.to_string());
    let recorded = fs::read_to_string(&record).expect("a recording");
    let kept = [
        state_path(&disk).exists(),
        report.exists(),
        recorded.lines().count() == 2,
    ];
    (said, kept)
}

#[test]
fn a_stop_keeps_what_it_can_and_says_what_it_cannot() {
    assert_eq!(stop(Bug::None, true), (String::new(), [true, true, true]));
    assert_eq!(stop(Bug::None, false), (String::new(), [false, true, true]));
    let (said, kept) = stop(Bug::Report, false);
    assert!(
        said.contains("the last report was not made: a bug"),
        "{said}"
    );
    assert_eq!(kept, [false, false, true]);
    // It has broken the device: its state is not to be trusted.
    let (said, kept) = stop(Bug::Report, true);
    assert!(
        said.contains("state of its flash is that of the last"),
        "{said}"
    );
    assert_eq!(kept, [false, false, true]);
    let (said, kept) = stop(Bug::Rest, true);
    assert!(
        said.contains("state of its flash is that of the last"),
        "{said}"
    );
    assert_eq!(kept, [false, true, true]);
    let (said, kept) = stop(Bug::Rest, false);
    assert!(said.contains("did not come to rest: a bug"), "{said}");
    assert_eq!(kept, [false, true, true]);
}
