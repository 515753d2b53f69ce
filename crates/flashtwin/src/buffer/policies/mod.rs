//! Buffer policies, one per file, and the table of these policies. The table generates the type that contains all of
//! them.

/// Passes the table of policies to the macro `then`: file and type of every policy that needs no base policy, in the
/// order of the documentation. `+ Prefetch` marks policies that implement [`super::policy::Prefetch`].
macro_rules! policies {
    ($then:ident! $rest:tt) => {
        $then! { $rest
            lru::Lru + Prefetch
            cflru::Cflru + Prefetch
            lru_wsr::LruWsr + Prefetch
            ccf_lru::CcfLru + Prefetch
            ad_lru::AdLru + Prefetch
            bplru::Bplru
            fab::Fab
            lb_clock::LbClock
            pud_lru::PudLru
            bpac::Bpac
            cbm::Cbm
            req_block::ReqBlock + Prefetch
            ecr::Ecr + Prefetch
            co_active::CoActive
            cda_gc::CdaGc + Prefetch
            coop::Coop + Prefetch
            fifo::Fifo + Prefetch
            clock::Clock + Prefetch
            clock_pro::ClockPro
            two_q::TwoQ + Prefetch
            arc::Arc + Prefetch
            lirs::Lirs
            lfu::Lfu
            s3_fifo::S3Fifo + Prefetch
            sieve::Sieve + Prefetch
            w_tinylfu::WTinyLfu
        }
    };
}

pub(super) mod ad_lru;
pub(super) mod arc;
pub(super) mod bpac;
pub(super) mod bplru;
pub(super) mod cbm;
pub(super) mod ccf_lru;
pub(super) mod cda_gc;
pub(super) mod cflru;
pub(super) mod clock;
pub(super) mod clock_pro;
pub(super) mod co_active;
pub(super) mod coop;
pub(super) mod ecr;
pub(super) mod fab;
pub(super) mod fifo;
pub(super) mod gcar;
pub(super) mod lb_clock;
pub(super) mod lfu;
pub(super) mod lirs;
pub(super) mod lru;
pub(super) mod lru_wsr;
pub mod min;
pub(super) mod pud_lru;
pub(super) mod req_block;
pub(super) mod s3_fifo;
pub(super) mod sieve;
pub(super) mod two_q;
pub(super) mod w_tinylfu;
