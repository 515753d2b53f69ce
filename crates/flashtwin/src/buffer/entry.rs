//! The catalogue entry of a policy. Each policy's file contains its own entry.

use super::registry::Base;
use super::Setup;
use crate::component::{source, Parameter, Provenance, Source};

/// Families of policies. A family uses one kind of information to choose victims. The documentation lists the families
/// in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Policies that use the time of the last access to a page, and whether the page is clean.
    Recency,
    /// Policies that use the erase block or the request of a page.
    Blocks,
    /// Policies that use the pending work of the chips.
    Chips,
    /// General caching policies, for comparison.
    General,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 4] = [
        Family::Recency,
        Family::Blocks,
        Family::Chips,
        Family::General,
    ];

    /// Returns the heading of the family in the documentation.
    pub fn title(self) -> &'static str {
        match self {
            Family::Recency => "Recency and clean pages",
            Family::Blocks => "Blocks of pages",
            Family::Chips => "State of the chips",
            Family::General => "Caches in general",
        }
    }
}

/// Cost of an access, counted in steps through lists. In the formulas, n is the number of cached pages, B the number of
/// cached blocks, N the number of pages of a block, and K the number of chips.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Cost of a hit.
    pub hit: &'static str,
    /// Cost of a miss and its eviction in the published algorithm.
    pub published: &'static str,
    /// Cost of a miss and its eviction in this implementation.
    pub here: &'static str,
}

/// An access string whose evictions show the rule of the policy.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Capacity of the buffer in pages.
    pub capacity: u32,
    /// Parameters that differ from their defaults, with their values.
    pub set: &'static [(&'static str, &'static str)],
    /// Number of chips; pages are striped over them.
    pub chips: u32,
    /// Number of pages of an erase block (N).
    pub pages_per_block: u32,
    /// Accesses in the notation of [`super::trace`].
    pub accesses: &'static str,
}

/// Description of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name in device files. The entry `gcar-NAME` is the filter GCaR over any policy NAME.
    pub name: &'static str,
    /// Name in print.
    pub title: &'static str,
    /// Description in one line.
    pub line: &'static str,
    /// Information that the policy uses.
    pub family: Family,
    /// Publication.
    pub source: Source,
    /// How certain the rule is.
    pub provenance: Provenance,
    /// The rule, sentence by sentence.
    pub rule: &'static [&'static str],
    /// Drawing of the policy's structure; may be empty.
    pub drawing: &'static str,
    /// Notation of the state.
    pub state: &'static str,
    /// Cost of an access.
    pub cost: Cost,
    /// An example of the rule; `None` for a policy that cannot run an access string step by step.
    pub example: Option<Example>,
    /// Parameters of the policy, as keys of section `buffer`.
    pub parameters: &'static [&'static [Parameter]],
    /// Parameters that the policy has only if GCaR filters it.
    pub filtered: &'static [Parameter],
    /// Keys of section `buffer` whose defaults differ with this policy, and their defaults.
    pub defaults: &'static [(&'static str, &'static str)],
    /// Whether the buffer's memory survives a power loss.
    pub non_volatile: bool,
    /// Whether the policy directs frequently written pages to separate open blocks.
    pub separates: bool,
    /// Constructor.
    pub(crate) make: Make,
}

/// Constructor of a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Make {
    /// A policy with the given constructor.
    Base(fn(&Setup) -> Base),
    /// A filter over another policy.
    Filter,
    /// A policy that uses future accesses, so it can only compute hit ratios of known access strings.
    Offline,
}

impl Entry {
    /// An entry with default values. Each policy replaces the values that differ.
    pub(super) const PLAIN: Entry = Entry {
        name: "",
        title: "",
        line: "",
        family: Family::General,
        source: source("", "", "", 0),
        provenance: Provenance::Ours,
        rule: &[],
        drawing: "",
        state: "",
        cost: cost("", "", ""),
        example: None,
        parameters: &[],
        filtered: &[],
        defaults: &[],
        non_volatile: false,
        separates: false,
        make: Make::Offline,
    };

    /// Whether the policy uses future accesses. Such a policy can only compute hit ratios of known access strings.
    pub fn is_offline(&self) -> bool {
        matches!(self.make, Make::Offline)
    }

    /// Whether a device can use the entry by itself. A filter needs another policy, and an offline policy cannot run in
    /// a device.
    pub(crate) fn stands_alone(&self) -> bool {
        matches!(self.make, Make::Base(_))
    }

    /// Returns the name of the policy that runs the example of this entry. The example of the filter runs with
    /// `gcar-lru`.
    pub fn example_name(&self) -> &'static str {
        match self.make {
            Make::Filter => "gcar-lru",
            Make::Base(_) | Make::Offline => self.name,
        }
    }
}

/// Name of the filter in the catalog.
pub const FILTER: &str = "gcar-NAME";

/// Prefix of a policy filtered by GCaR.
pub(crate) const GCAR: &str = "gcar-";

/// Returns an example that keeps all parameters at their defaults, on a device with one chip.
pub(super) const fn example(capacity: u32, accesses: &'static str) -> Option<Example> {
    example_with(capacity, &[], 1, accesses)
}

pub(super) const fn example_with(
    capacity: u32,
    set: &'static [(&'static str, &'static str)],
    chips: u32,
    accesses: &'static str,
) -> Option<Example> {
    Some(Example {
        capacity,
        set,
        chips,
        pages_per_block: 4,
        accesses,
    })
}

pub(super) const fn cost(hit: &'static str, published: &'static str, here: &'static str) -> Cost {
    Cost {
        hit,
        published,
        here,
    }
}

pub(super) const ECR: Source = source(
    "H. Chen, Y. Pan, C. Li, Y. Xu",
    "ECR: Eviction-Cost-Aware Cache Management Policy for Page-Level Flash-Based SSDs",
    "Concurrency and Computation: Practice and Experience",
    2019,
);
pub(super) const PAGES: &str = "`7d` is page 7 if it is dirty, `7c` if it is clean; the most \
                                recent page is first.";
/// Explains the notation of the state of a policy that ranks blocks.
pub(super) const BLOCKS: &str =
    "`B2{8,9}` is logical block 2 with its pages 8 and 9; most recent first.";
/// One access string for all general caching policies, so that their examples can be compared.
pub(super) const GENERAL: &str = "W1 R2 W3 R1 W4 R5 R2 R1 W6 R7";
