//! Names and parameters of replacement policies.

use crate::units::Time;

/// A replacement policy with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Filtered by GCaR.
    pub gcar: bool,
    /// Name of the policy, or of what is filtered: one of [`Policy::BASE_NAMES`].
    pub base: &'static str,
    /// Parameters of all policies; each takes what it knows.
    pub params: PolicyParams,
}

/// Logical blocks of the policies that rank blocks (D-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// As many consecutive pages of the host as an erase block holds.
    Host,
    /// As many consecutive pages of one chip (static placement; else as `Host`).
    Element,
}

/// When a block counts as being on a chip in GC (D-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockInGc {
    /// One of its pages is.
    Any,
    /// All its pages are.
    All,
    /// More than half of its pages are.
    Majority,
}

/// ECR's choice among chips of equal queue complete time (D-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// The chip whose victim was accessed longest ago.
    Oldest,
    /// The lowest chip number.
    Lowest,
    /// The next chip after the last victim's.
    RoundRobin,
}

/// Parameters of all policies; `docs/policies.md` says what each does. Shares have become pages.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyParams {
    /// CFLRU: clean-first region.
    pub window_pages: u32,
    /// AD-LRU: least size of the cold list.
    pub min_lc_pages: u32,
    /// 2Q: size of A1in, and of its ghosts A1out.
    pub k_in_pages: u32,
    /// 2Q: ghosts.
    pub k_out_pages: u32,
    /// LIRS: pages for blocks of high inter-reference recency.
    pub hir_pages: u32,
    /// S3-FIFO: size of the small queue.
    pub small_pages: u32,
    /// S3-FIFO: ghosts.
    pub ghost_pages: u32,
    /// Block policies: what a block is.
    pub blocks: Blocks,
    /// Block policies under GCaR: when a block is in GC.
    pub block_in_gc: BlockInGc,
    /// Block policies: pages that were read join their block; else read misses pass by (D-6).
    pub cache_reads: bool,
    /// BPLRU: a victim block is padded to its full length.
    pub padding: bool,
    /// BPLRU: a block written wholly in order becomes the next victim.
    pub compensation: bool,
    /// BPAC: the lists' sizes follow the reference distances.
    pub adapt: bool,
    /// BPAC: length of the page list at the start.
    pub l_p_pages: u32,
    /// BPAC: age beyond which a cluster counts as grown, at the start, in page writes.
    pub age_writes: u32,
    /// CBM: share of the buffer the block region may take before the threshold doubles.
    pub theta: f64,
    /// CBM: a fixed threshold; 0: dynamic.
    pub threshold: u32,
    /// CBM: least dynamic threshold.
    pub threshold_floor: u32,
    /// CBM: merge-on-flush.
    pub merge: bool,
    /// Req-block: requests of at most this many pages are small.
    pub small_request_pages: u32,
    /// ECR: CQCT with transfers and true residuals; else Eqs 1-4 as printed (D-14).
    pub exact_cqct: bool,
    /// ECR: choice among equals.
    pub tie: Tie,
    /// Co-Active: write-backs in flight at most.
    pub write_backs: u32,
    /// Co-Active: a channel is idle only as a whole; else each chip by itself.
    pub idle_channel: bool,
    /// Co-Active, CDA-GC: hot pages are known exactly instead of by a Bloom filter.
    pub exact_filter: bool,
    /// Co-Active, CDA-GC: bitmap of the filter, in percent of the buffer.
    pub filter_percent: f64,
    /// Co-Active, CDA-GC: the filter forgets after this time.
    pub filter_reset: Time,
    /// CDA-GC: entries inspected in a lookup.
    pub test_num: u32,
    /// CDA-GC: lookups in a cycle.
    pub cycle_num: u32,
    /// CDA-GC: a chip at the trigger is close to GC when at most this share of a block is left.
    pub hp_margin_percent: f64,
    /// GCaR: spare also the pages of chips close to GC (D-4).
    pub gc_lookahead: bool,
}

impl PolicyParams {
    /// The headline values for a buffer of `capacity_pages`.
    pub fn defaults(capacity_pages: u32) -> PolicyParams {
        let share = |percent: u64| ((u64::from(capacity_pages) * percent / 100) as u32).max(1);
        PolicyParams {
            window_pages: share(25),
            min_lc_pages: share(10),
            k_in_pages: share(25),
            k_out_pages: share(50),
            hir_pages: share(1),
            small_pages: share(10),
            ghost_pages: share(90),
            blocks: Blocks::Element,
            block_in_gc: BlockInGc::Any,
            cache_reads: true,
            padding: false,
            compensation: true,
            adapt: true,
            l_p_pages: share(50),
            age_writes: share(25),
            theta: 0.1,
            threshold: 0,
            threshold_floor: 1,
            merge: true,
            small_request_pages: 5,
            exact_cqct: false,
            tie: Tie::Oldest,
            write_backs: 8,
            idle_channel: true,
            exact_filter: false,
            filter_percent: 5.0,
            filter_reset: Time::from_s(1),
            test_num: 64,
            cycle_num: 16,
            hp_margin_percent: 12.5,
            gc_lookahead: false,
        }
    }
}

/// Prefix of a policy filtered by GCaR.
const GCAR: &str = "gcar-";

impl Policy {
    /// Names of the policies that stand alone; each also exists as `gcar-NAME`.
    pub const BASE_NAMES: &'static [&'static str] = &[
        "lru",
        "cflru",
        "cflru-eps",
        "lru-wsr",
        "ccf-lru",
        "ad-lru",
        "bplru",
        "fab",
        "lb-clock",
        "pud-lru",
        "bpac",
        "co-active",
        "ecr",
        "ecr-eps",
        "lcr",
        "cda-gc",
        "cda-gc-stager",
        "cda-gc-dispatcher",
        "cbm",
        "req-block",
        "fifo",
        "clock",
        "2q",
        "arc",
        "lirs",
        "s3-fifo",
        "sieve",
    ];

    /// LRU, which has no parameters.
    pub fn lru() -> Policy {
        Policy {
            gcar: false,
            base: "lru",
            params: PolicyParams::defaults(1),
        }
    }

    /// The names worth listing: all that stand alone, and GCaR over the bases of its paper. Any other
    /// name with `gcar-` before it is a policy as well.
    pub fn names() -> Vec<String> {
        let gcar = ["lru", "cflru", "bplru"];
        let base = Self::BASE_NAMES.iter().map(|name| name.to_string());
        base.chain(gcar.iter().map(|name| format!("{GCAR}{name}")))
            .collect()
    }

    /// The policy called `name`; `None` if there is none.
    pub fn from_name(name: &str, params: &PolicyParams) -> Option<Policy> {
        let (gcar, name) = match name.strip_prefix(GCAR) {
            Some(base) => (true, base),
            None => (false, name),
        };
        Self::BASE_NAMES
            .iter()
            .find(|base| **base == name)
            .map(|base| Policy {
                gcar,
                base,
                params: params.clone(),
            })
    }

    /// Whether some policy is called `name`.
    pub fn is_name(name: &str) -> bool {
        Self::BASE_NAMES.contains(&name.strip_prefix(GCAR).unwrap_or(name))
    }

    /// Its name, which [`Policy::from_name`] reads back.
    pub fn name(&self) -> String {
        let prefix = if self.gcar { GCAR } else { "" };
        format!("{prefix}{}", self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        let params = PolicyParams::defaults(7);
        for name in Policy::names() {
            let policy = Policy::from_name(&name, &params).expect("a listed name is known");
            assert_eq!(policy.name(), name);
            assert!(Policy::is_name(&name));
        }
        assert!(Policy::is_name("gcar-arc"));
        for unknown in ["", "LRU", "gcar", "gcar-", "gcar-gcar-lru", "lru-gcar"] {
            assert_eq!(Policy::from_name(unknown, &params), None, "{unknown}");
            assert!(!Policy::is_name(unknown));
        }
    }
}
