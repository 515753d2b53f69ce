//! An array: members behind one front end. It is a device made of devices: the same driver runs it,
//! the same buffer policies manage its controller's memory.

mod ahead;
mod batch;
mod condition;
mod coordinate;
mod direct;
mod failure;
mod hedge;
mod layout;
mod log;
mod member;
mod parts;
mod plan;
mod power;
mod raid;
mod rebuild;
mod schedule;
mod state;
mod stripes;
mod timeline;
mod units;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::buffer::{Setup, UserPolicy};
use crate::device::{Device, Front, PowerCut};
use crate::metrics::FlashReport;
use crate::rng::Rng;
use crate::spec::{ArraySpec, Host, Partial, PolicyParams};
use ahead::on_threads;
pub use condition::{Condition, MemberRebuild, Phase};
use member::Member;

pub use failure::MemberError;
pub use log::{ArrayEvent, JobKind, SentFor};
pub use plan::Method;
pub use raid::{Raid, RaidStats};
pub use timeline::GcInterval;

/// An array of SSDs. Cloning it clones its whole state.
pub type Array = Device<Raid>;

/// A different seed for every member.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

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

    /// Writes uniformly random pages of the members without time passing, as many in all; false if one
    /// wore out.
    pub fn write_random(&mut self, rng: &mut Rng, pages: u64) -> bool {
        let members = self.backend.members.len();
        let each = pages.div_ceil(members as u64);
        let seeds: Vec<u64> = (0..members).map(|_| rng.next_u64()).collect();
        let worn_out = AtomicBool::new(false);
        self.prepare(|at, member| {
            let done = member.ssd.write_random(&mut Rng::new(seeds[at]), each);
            worn_out.fetch_or(!done, Ordering::Relaxed);
        });
        !worn_out.into_inner()
    }

    /// Forgets wear: preconditioned drives count as new.
    pub fn reset_wear(&mut self) {
        for member in &mut self.backend.members {
            member.ssd.reset_wear();
        }
    }

    /// Every exported page of every member written once in ascending order.
    pub fn fill_sequential(&mut self) {
        self.prepare(|_, member| member.ssd.fill_sequential());
    }

    /// Places every member in the state that random writing converges to, each in its own.
    pub fn fill_steady(&mut self, seed: u64) {
        self.prepare(|at, member| {
            let seed = seed.wrapping_add((at as u64).wrapping_mul(SEED_STEP));
            member.ssd.fill_steady(seed);
        });
    }

    /// Members know nothing of each other while no time passes: each is filled on a thread that is free.
    fn prepare(&mut self, work: impl Fn(usize, &mut Member) + Sync) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        on_threads(threads, &mut self.backend.members, work);
    }
}
