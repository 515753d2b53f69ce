//! An array: members behind one front end. It is a device made of devices: the same driver runs it,
//! the same buffer policies manage its controller's memory.

mod ahead;
mod batch;
mod collect;
mod condition;
mod coordinate;
mod direct;
mod executor;
mod failure;
mod hedge;
mod layout;
mod log;
mod member;
mod parts;
mod plan;
mod policy;
mod power;
mod raid;
mod rebuild;
mod schedule;
mod slow;
mod state;
mod stripes;
mod swan;
mod timeline;
mod units;
mod untimed;
mod volume;

use crate::buffer::{Setup, UserPolicy};
use crate::device::{Device, Front, PowerCut};
use crate::metrics::FlashReport;
use crate::spec::{ArraySpec, Host, Partial, PolicyParams};
pub use condition::{Condition, MemberRebuild, Phase};
pub use executor::{Executor, Sequential, Task};
pub use failure::MemberError;
pub use log::{ArrayEvent, GcMessage, JobKind, SentFor};
pub use plan::Method;
pub use raid::{Raid, RaidStats};
pub use timeline::GcInterval;
pub use untimed::Filling;

/// An array of SSDs. Cloning it clones its whole state.
pub type Array = Device<Raid>;

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
            filtered: buffer.is_some_and(|b| b.policy.gcar),
            params: buffer.map_or_else(
                || PolicyParams::defaults(capacity),
                |b| b.policy.params.clone(),
            ),
        },
    }
}

impl Array {
    /// An array whose members were never written.
    pub fn new(spec: &ArraySpec) -> Array {
        Array::build(spec, None)
    }

    /// An array whose buffer is managed by `policy` instead of the one that `spec` names.
    pub fn with_policy(spec: &ArraySpec, policy: Box<dyn UserPolicy>) -> Array {
        Array::build(spec, Some(policy))
    }

    fn build(spec: &ArraySpec, policy: Option<Box<dyn UserPolicy>>) -> Array {
        let raid = Raid::new(spec);
        let units = raid.units();
        let independent = raid.independent;
        let mut array = Device::behind(&front(spec, units, &Host::default()), raid, policy);
        if independent {
            array.events.order_by_group();
        }
        array
    }

    /// Cuts the power at this instant and gives it back at once, as [`crate::Ssd::cut_power`] does. Members
    /// have written what their volatile memory holds before they are back, in no time of the answer: what
    /// of it is lost the answer says.
    pub fn cut_power(&mut self, steps: u64) -> Option<PowerCut> {
        let (spec, units) = (self.backend.spec.clone(), self.backend.units());
        self.start_again(&front(&spec, units, &Host::default()), steps)
    }

    /// What the array is.
    pub fn spec(&self) -> &ArraySpec {
        &self.backend.spec
    }

    /// What the array did itself since the last [`Device::reset_metrics`].
    pub fn raid_stats(&self) -> &RaidStats {
        &self.backend.stats
    }

    /// What each member did since then.
    pub fn member_reports(&self) -> Vec<FlashReport> {
        let members = self.backend.members.iter();
        members.map(|member| member.ssd.flash_report()).collect()
    }
}
