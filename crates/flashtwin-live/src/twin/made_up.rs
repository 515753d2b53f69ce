//! A device for tests. It behaves in ways in which no real device behaves.

use std::path::Path;

use flashtwin::metrics::{FlashReport, Metrics};
use flashtwin::{
    Array, Completion, Durable, Op, OutOfRange, PageProgram, PowerCut, Request, Status, Time,
};
use flashtwin_sim::SimError;

use super::Twin;

/// A device for tests, with one unusual behaviour.
pub(crate) struct MadeUp {
    does: Does,
    now: Time,
    completions: Vec<Completion>,
    metrics: Metrics,
}

/// Behaviour of the made-up device.
pub(crate) enum Does {
    /// Accepts requests, and panics when the device is next run.
    BreaksLater { asked: bool },
    /// Completes the first request when the second one is submitted, and panics after that.
    BreaksAtTheSecond { first: Option<u64> },
    /// Never responds, and panics in a power loss.
    BreaksInACut,
    /// Never responds, and panics when a report of the flash is requested.
    BreaksInAReport,
    /// Never responds, and panics in `come_to_rest`.
    BreaksComingToRest,
    /// Never responds to requests, and works otherwise.
    NeverResponds,
    /// Responds within a millisecond, but takes hours to become idle after a power loss.
    RestsForHours { due: Option<(Time, u64)> },
}

impl MadeUp {
    pub fn new(does: Does) -> MadeUp {
        MadeUp {
            does,
            now: Time::ZERO,
            completions: Vec::new(),
            metrics: Metrics::default(),
        }
    }

    fn complete(&mut self, tag: u64) {
        self.completions.push(Completion {
            tag,
            op: Op::Read,
            status: Status::Ok,
            offset: 0,
            bytes: 4096,
            pages: 1,
            hits: 0,
            arrival: self.now,
            done: self.now,
            breakdown: Default::default(),
        });
    }
}

impl Twin for MadeUp {
    fn name(&self) -> String {
        "made up".into()
    }
    fn exported_bytes(&self) -> u64 {
        1 << 20
    }
    fn page_bytes(&self) -> u32 {
        4096
    }
    fn now(&self) -> Time {
        self.now
    }
    fn next_event(&self) -> Option<Time> {
        match self.does {
            Does::BreaksLater { asked } => asked.then_some(Time::from_ms(5)),
            Does::RestsForHours { due } => due.map(|(at, _)| at),
            _ => None,
        }
    }
    fn advance(&mut self, until: Time) {
        let breaks = matches!(self.does, Does::BreaksLater { asked: true });
        assert!(!breaks || until < Time::from_ms(5), "a bug, planted here");
        self.now = until;
        if let Does::RestsForHours { due } = &mut self.does {
            if let Some((_, tag)) = due.take_if(|(at, _)| *at <= until) {
                self.complete(tag);
            }
        }
    }
    fn submit(&mut self, now: Time, _: &Request, tag: u64) -> Result<(), OutOfRange> {
        match &mut self.does {
            Does::BreaksLater { asked } => *asked = true,
            Does::BreaksAtTheSecond { first } => match first.take() {
                None => *first = Some(tag),
                Some(earlier) => {
                    self.complete(earlier);
                    self.does = Does::BreaksLater { asked: true };
                    self.now = Time::from_ms(5);
                }
            },
            Does::BreaksInACut
            | Does::BreaksInAReport
            | Does::BreaksComingToRest
            | Does::NeverResponds => {}
            Does::RestsForHours { due } => *due = Some((now + Time::from_ms(1), tag)),
        }
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
        let breaks = matches!(self.does, Does::BreaksInAReport);
        assert!(!breaks, "a bug, planted here");
        FlashReport::default()
    }
    fn durable(&self) -> Durable {
        Durable::AtOnce
    }
    fn take_programs(&mut self, _: &mut dyn FnMut(PageProgram)) {}
    fn cut_power(&mut self) -> Option<PowerCut> {
        assert!(
            !matches!(self.does, Does::BreaksInACut),
            "a bug, planted here"
        );
        self.now += Time::from_s(7200);
        Some(PowerCut::default())
    }
    fn array(&mut self) -> Option<&mut Array> {
        None
    }
    fn come_to_rest(&mut self) -> bool {
        let breaks = matches!(self.does, Does::BreaksComingToRest);
        assert!(!breaks, "a bug, planted here");
        true
    }
    fn save(&self, path: &Path, _: &str) -> Result<(), SimError> {
        std::fs::write(path, "the state").expect("room");
        Ok(())
    }
    fn load(&mut self, _: &Path) -> Result<(), SimError> {
        Ok(())
    }
}
