//! An array as a device: construction, properties, statistics, logs, and replacement of the buffer's policy.

use super::raid::{Array, Raid};
use super::record::log::ArrayEvent;
use super::record::stats::RaidStats;
use super::record::timeline::GcInterval;
use crate::buffer::{Setup, UserPolicy};
use crate::component::Settings;
use crate::device::{BufferEvent, Device, Front, PowerCut};
use crate::metrics::FlashReport;
use crate::nand::FlashEvent;
use crate::spec::{ArraySpec, Host, Partial, SpecError};
use crate::ssd::Ssd;

fn front<'a>(spec: &'a ArraySpec, units: u32, host: &'a Host) -> Front<'a> {
    let buffer = spec.buffer.as_ref();
    let capacity = buffer.map_or(0, |b| b.capacity_pages);
    Front {
        page_bytes: spec.page_bytes(),
        exported_bytes: spec.exported_bytes(),
        host,
        link: &spec.link,
        controller: &spec.controller,
        buffer,
        partial: buffer.map_or(Partial::Round, |b| b.partial),
        setup: Setup {
            capacity,
            chips: units,
            channels: units,
            stride_pages: None,
            pages_per_block: spec.members[0].geometry.pages_per_block,
            page_bytes: spec.page_bytes(),
            programs: spec.members[0].programs(),
            filtered: buffer.is_some_and(|b| b.policy.gcar),
            settings: buffer.map_or_else(Settings::default, |b| b.policy.settings.clone()),
        },
        heeds_placement: false,
    }
}

impl Array {
    /// Creates an array whose members were never written.
    pub fn new(spec: &ArraySpec) -> Array {
        Array::build(spec, None)
    }

    /// Creates an array whose buffer is managed by `policy` instead of the one that `spec` names.
    pub fn with_policy(spec: &ArraySpec, policy: Box<dyn UserPolicy>) -> Array {
        Array::build(spec, Some(policy))
    }

    fn build(spec: &ArraySpec, policy: Option<Box<dyn UserPolicy>>) -> Array {
        let raid = Raid::new(spec);
        let units = raid.io.watch.units.collecting.of();
        let independent = raid.independent;
        let mut array = Device::behind(&front(spec, units, &Host::default()), raid, policy);
        if independent {
            let groups = array.backend.groups_of_resources();
            array.events.order_by_group(groups);
        }
        array
    }

    /// Simulates a power loss at this instant, as [`crate::Ssd::cut_power`] does. Each member writes to flash the
    /// volatile data that it can save, in no virtual time, and then restarts. The result lists the lost pages.
    pub fn cut_power(&mut self, steps: u64) -> Option<PowerCut> {
        let (spec, units) = (
            self.backend.spec.clone(),
            self.backend.io.watch.units.collecting.of(),
        );
        self.start_again(&front(&spec, units, &Host::default()), steps)
    }

    /// Replaces the policy of the array's own buffer, as [`crate::Ssd::set_policy`] does for an SSD (D-144).
    ///
    /// # Errors
    /// Fails as [`crate::Ssd::set_policy`] does.
    pub fn set_policy(&mut self, name: &str, settings: &[(&str, &str)]) -> Result<(), SpecError> {
        let policy = self.spec().other_policy(name, settings)?;
        let mut spec = self.backend.spec.clone();
        if let Some(buffer) = &mut spec.buffer {
            buffer.policy = policy.clone();
        }
        let units = self.backend.io.watch.units.collecting.of();
        let setup = front(&spec, units, &Host::default()).setup;
        self.exchange_policy(&policy, &setup);
        self.backend.spec = spec;
        Ok(())
    }

    /// Returns the array's specification.
    pub fn spec(&self) -> &ArraySpec {
        &self.backend.spec
    }

    /// Returns the counters of the array itself since the last [`Device::reset_metrics`].
    pub fn raid_stats(&self) -> &RaidStats {
        &self.backend.io.record.stats
    }

    /// Returns the flash counters of each member since the last [`Device::reset_metrics`].
    pub fn member_reports(&self) -> Vec<FlashReport> {
        let members = self.backend.io.members.iter();
        members.map(|m| m.drive.ssd.flash_report()).collect()
    }

    /// Returns the members.
    pub fn drives(&self) -> impl Iterator<Item = &Ssd> {
        self.backend.io.members.iter().map(|m| &m.drive.ssd)
    }

    // ---- logs ----

    /// Starts or stops the log of the array's operations.
    pub fn set_log(&mut self, on: bool) {
        let io = &mut self.backend.io;
        io.record.log.set(on);
        io.choose_features();
    }

    /// Permits the plain copy of the array's code (the copy without optional features) while the array is logged.
    /// Otherwise a logged array runs the general copy. Tests use this to check the plain copy. Has an effect only in
    /// builds with debug assertions.
    #[doc(hidden)]
    pub fn log_plain_path(&mut self) {
        let io = &mut self.backend.io;
        io.record.log.include_plain();
        io.choose_features();
    }

    /// Returns the events logged since the last call.
    pub fn take_log(&mut self) -> Vec<ArrayEvent> {
        self.backend.io.record.log.take()
    }

    /// Starts or stops all logs: those of the array, of its buffer, and of its members.
    pub fn set_logs(&mut self, on: bool) {
        self.set_log(on);
        self.set_buffer_log(on);
        for member in self.backend.io.members.iter_mut() {
            member.drive.ssd.set_logs(on);
        }
    }

    /// Calls `take` for each member with the member's number and the events of its flash and buffer that were logged
    /// since the last call.
    pub fn take_member_logs(
        &mut self,
        mut take: impl FnMut(usize, Vec<FlashEvent>, Vec<BufferEvent>),
    ) {
        for (at, member) in self.backend.io.members.iter_mut().enumerate() {
            let ssd = &mut member.drive.ssd;
            take(at, ssd.take_flash_log(), ssd.take_buffer_log());
        }
    }

    /// Starts or stops the log of the intervals in which members collect garbage.
    pub fn set_gc_timeline(&mut self, on: bool) {
        let now = self.now();
        let io = &mut self.backend.io;
        io.watch.set_timeline(on, &io.members, now);
        io.choose_features();
    }

    /// Returns the intervals in which members collected garbage since the last call or
    /// [`crate::Device::reset_metrics`], in the order of their ends. An interval that has not ended is split at this
    /// instant. The next call returns its second part.
    pub fn take_gc_intervals(&mut self) -> Vec<GcInterval> {
        let now = self.now();
        let timeline = self.backend.io.watch.timeline.as_mut();
        timeline.map_or(Vec::new(), |timeline| timeline.take(now))
    }
}
