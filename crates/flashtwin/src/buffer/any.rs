//! Every policy of the model behind one type; dispatch by match, no call through a pointer.

use super::ad_lru::AdLru;
use super::arc::Arc;
use super::bpac::Bpac;
use super::bplru::Bplru;
use super::cbm::Cbm;
use super::ccf_lru::CcfLru;
use super::cda_gc::CdaGc;
use super::cflru::Cflru;
use super::clock::Clock;
use super::co_active::CoActive;
use super::ecr::Ecr;
use super::fab::Fab;
use super::fifo::Fifo;
use super::gcar::Gcar;
use super::lb_clock::LbClock;
use super::lirs::Lirs;
use super::lru::Lru;
use super::lru_wsr::LruWsr;
use super::policy::{Access, DeviceView, Eviction, PageId, Policy, Spare, Stream};
use super::pud_lru::PudLru;
use super::req_block::ReqBlock;
use super::s3_fifo::S3Fifo;
use super::sieve::Sieve;
use super::two_q::TwoQ;
use super::Setup;
use crate::spec;
use crate::units::{ChipId, Lpn};

/// A policy of a user: any [`Policy`] that can be cloned with its device.
pub trait UserPolicy: Policy + Send + Sync {
    /// A copy with its state.
    fn boxed_clone(&self) -> Box<dyn UserPolicy>;
}

impl<P: Policy + Clone + Send + Sync + 'static> UserPolicy for P {
    fn boxed_clone(&self) -> Box<dyn UserPolicy> {
        Box::new(self.clone())
    }
}

/// A user's policy behind a pointer.
pub(crate) struct User(pub Box<dyn UserPolicy>);

impl Clone for User {
    fn clone(&self) -> User {
        User(self.0.boxed_clone())
    }
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a user's policy")
    }
}

/// A policy that stands alone.
#[derive(Clone, Debug)]
pub(crate) enum Base {
    Lru(Lru),
    Cflru(Cflru),
    LruWsr(LruWsr),
    CcfLru(CcfLru),
    AdLru(AdLru),
    Bplru(Bplru),
    Fab(Fab),
    LbClock(LbClock),
    PudLru(PudLru),
    Bpac(Bpac),
    CoActive(CoActive),
    Ecr(Ecr),
    CdaGc(CdaGc),
    Cbm(Cbm),
    ReqBlock(ReqBlock),
    Fifo(Fifo),
    Clock(Clock),
    TwoQ(TwoQ),
    Arc(Arc),
    Lirs(Lirs),
    S3Fifo(S3Fifo),
    Sieve(Sieve),
    User(User),
}

macro_rules! each {
    ($self:expr, $p:ident => $call:expr) => {
        match $self {
            Base::Lru($p) => $call,
            Base::Cflru($p) => $call,
            Base::LruWsr($p) => $call,
            Base::CcfLru($p) => $call,
            Base::AdLru($p) => $call,
            Base::Bplru($p) => $call,
            Base::Fab($p) => $call,
            Base::LbClock($p) => $call,
            Base::PudLru($p) => $call,
            Base::Bpac($p) => $call,
            Base::CoActive($p) => $call,
            Base::Ecr($p) => $call,
            Base::CdaGc($p) => $call,
            Base::Cbm($p) => $call,
            Base::ReqBlock($p) => $call,
            Base::Fifo($p) => $call,
            Base::Clock($p) => $call,
            Base::TwoQ($p) => $call,
            Base::Arc($p) => $call,
            Base::Lirs($p) => $call,
            Base::S3Fifo($p) => $call,
            Base::Sieve($p) => $call,
            Base::User(User($p)) => $call,
        }
    };
}

impl Base {
    fn new(name: &str, setup: &Setup) -> Base {
        match name {
            "cflru" => Base::Cflru(Cflru::new(setup)),
            "cflru-eps" => Base::Cflru(Cflru::whole(setup)),
            "lru-wsr" => Base::LruWsr(LruWsr::new(setup)),
            "ccf-lru" => Base::CcfLru(CcfLru::new(setup)),
            "ad-lru" => Base::AdLru(AdLru::new(setup)),
            "bplru" => Base::Bplru(Bplru::new(setup)),
            "fab" => Base::Fab(Fab::new(setup)),
            "lb-clock" => Base::LbClock(LbClock::new(setup)),
            "pud-lru" => Base::PudLru(PudLru::new(setup)),
            "bpac" => Base::Bpac(Bpac::new(setup)),
            "co-active" => Base::CoActive(CoActive::new(setup)),
            "ecr" => Base::Ecr(Ecr::new(setup)),
            "ecr-eps" => Base::Ecr(Ecr::epsilon(setup)),
            "lcr" => Base::Ecr(Ecr::lcr(setup)),
            "cda-gc" => Base::CdaGc(CdaGc::new(setup)),
            "cda-gc-stager" => Base::CdaGc(CdaGc::stager(setup)),
            "cda-gc-dispatcher" => Base::CdaGc(CdaGc::dispatcher(setup)),
            "cbm" => Base::Cbm(Cbm::new(setup)),
            "req-block" => Base::ReqBlock(ReqBlock::new(setup)),
            "fifo" => Base::Fifo(Fifo::new(setup)),
            "clock" => Base::Clock(Clock::new(setup)),
            "2q" => Base::TwoQ(TwoQ::new(setup)),
            "arc" => Base::Arc(Arc::new(setup)),
            "lirs" => Base::Lirs(Lirs::new(setup)),
            "s3-fifo" => Base::S3Fifo(S3Fifo::new(setup)),
            "sieve" => Base::Sieve(Sieve::new(setup)),
            _ => Base::Lru(Lru::new(setup)),
        }
    }
}

impl Policy for Base {
    #[inline]
    fn admits(&self, access: &Access) -> bool {
        each!(self, p => p.admits(access))
    }
    #[inline]
    fn insert(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        each!(self, p => p.insert(device, page, access))
    }
    #[inline]
    fn hit(&mut self, device: &dyn DeviceView, page: PageId, access: &Access) {
        each!(self, p => p.hit(device, page, access))
    }
    fn forget(&mut self, page: PageId) {
        each!(self, p => p.forget(page))
    }
    fn cleaned(&mut self, device: &dyn DeviceView, page: PageId) {
        each!(self, p => p.cleaned(device, page))
    }
    #[inline]
    fn moved(&mut self, device: &dyn DeviceView, page: PageId) {
        each!(self, p => p.moved(device, page))
    }
    #[inline]
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        each!(self, p => p.evict(device, incoming, spare, out))
    }
    fn wants_idle(&self) -> bool {
        each!(self, p => p.wants_idle())
    }
    fn idle(
        &mut self,
        device: &dyn DeviceView,
        chip: ChipId,
        in_flight: u32,
        busy: &dyn Fn(PageId) -> bool,
    ) -> Option<PageId> {
        each!(self, p => p.idle(device, chip, in_flight, busy))
    }
    #[inline]
    fn stream(&self, page: PageId) -> Stream {
        each!(self, p => p.stream(page))
    }
    fn arrives(&mut self, lpn: Lpn) {
        each!(self, p => p.arrives(lpn))
    }
    fn read_cache_changed(&mut self, lpn: Lpn, present: bool) {
        each!(self, p => p.read_cache_changed(lpn, present))
    }
    #[inline]
    fn expect(&self, page: PageId, near: bool) {
        each!(self, p => p.expect(page, near))
    }
    fn wants_hints(&self) -> bool {
        each!(self, p => p.wants_hints())
    }
    #[inline]
    fn expect_lpn(&self, lpn: Lpn, leaves: bool) {
        each!(self, p => p.expect_lpn(lpn, leaves))
    }
    #[inline]
    fn expect_lpn_near(&self, lpn: Lpn) {
        each!(self, p => p.expect_lpn_near(lpn))
    }
    #[inline]
    fn expect_last(&self, lpn: Lpn, page: Option<PageId>) {
        each!(self, p => p.expect_last(lpn, page))
    }
    #[inline]
    fn next_victims(&self) -> [Option<PageId>; 3] {
        each!(self, p => p.next_victims())
    }
    #[inline]
    fn next_of_block(&self, after: Option<PageId>) -> Option<PageId> {
        each!(self, p => p.next_of_block(after))
    }
    fn state(&self, device: &dyn DeviceView) -> String {
        each!(self, p => p.state(device))
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        each!(self, p => p.counters())
    }
    fn reset_counters(&mut self) {
        each!(self, p => p.reset_counters())
    }
}

/// Any policy, filtered or not.
pub(crate) type AnyPolicy = Gcar<Base>;

impl AnyPolicy {
    /// The policy of `spec` for a buffer as `setup` says.
    pub fn of(spec: &spec::Policy, setup: &Setup) -> AnyPolicy {
        let base = Base::new(spec.base, setup);
        match spec.gcar {
            true => Gcar::new(base, spec.params.gc_lookahead),
            false => Gcar::off(base),
        }
    }

    /// A user's policy, not filtered.
    pub fn user(policy: Box<dyn UserPolicy>) -> AnyPolicy {
        Gcar::off(Base::User(User(policy)))
    }
}
