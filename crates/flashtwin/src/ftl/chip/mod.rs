//! Flash translation layers (FTLs) of one chip: DFTL, BAST, FAST and FASTER. DFTL maps pages, and caches a part of the
//! map. The other three map whole blocks, and single pages only in their log blocks.
//!
//! A layer has no notion of time, and no queues. For each host access it updates its tables immediately. It returns the
//! flash operations of the access in the order in which the chip must execute them. These include merges, collections,
//! and accesses to the map. Pages and blocks are numbered within the chip.

mod area;
mod bast;
mod blocks;
mod cached_map;
pub mod catalog;
mod dftl;
mod fast;
mod faster;
mod outlook;
mod saved;
mod sequential;
mod setup;
mod store;
#[cfg(test)]
mod tests;
pub mod trace;

pub use setup::{Chip, Setup, SetupError};

use std::fmt;
use std::mem::discriminant;
use std::ops::{AddAssign, Sub};

pub(crate) use outlook::Outlook;
use setup::Own;

/// One flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashOp {
    /// Kind of the operation.
    pub kind: OpKind,
    /// Purpose of the operation.
    pub why: Why,
}

impl FlashOp {
    /// Whether two operations are of the same kind and purpose. Their pages may differ.
    #[inline]
    pub(crate) fn is_like(&self, other: &FlashOp) -> bool {
        discriminant(&self.kind) == discriminant(&other.kind) && self.why == other.why
    }
}

/// Kinds of flash operations. An operation transfers at most one page. A copy therefore counts as two operations, a
/// read and a program. A chip with copy-back executes both without a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Reads a page.
    Read {
        /// The page.
        ppn: u32,
    },
    /// Programs an erased page.
    Program {
        /// The page.
        ppn: u32,
    },
    /// Programs an erased page with the contents of another page.
    Copy {
        /// The page read.
        from: u32,
        /// The page programmed.
        to: u32,
    },
    /// Erases a block without live pages.
    Erase {
        /// The block.
        block: u32,
    },
}

/// Purpose of a flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Reads or writes the page of the host's access; at most one operation per access.
    Host,
    /// Reads or writes a translation page, for a lookup or a flush of the map.
    Map,
    /// Reclaims a block: moves its live pages and erases it.
    Gc,
    /// Reads or writes a translation page because GC has moved pages that it maps.
    GcMap,
    /// Merges a log block with its data block.
    Merge,
}

/// Error: the chip has no room for the page. The page was not written, and no other page was lost. This error cannot
/// occur with a setup that [`Setup::check`] accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSpace;

impl fmt::Display for NoSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no free page is left on the chip")
    }
}

impl std::error::Error for NoSpace {}

/// Counters of a translation layer since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Switch merges: a full log block replaced its data block without copies.
    pub switch_merges: u64,
    /// Partial merges: the missing pages were copied to the log block, which then replaced its data block.
    pub partial_merges: u64,
    /// Full merges: a logical block was copied to a new block.
    pub full_merges: u64,
    /// Blocks reclaimed by garbage collection, that is, by moving their live pages (only DFTL, and the log of FASTER).
    pub gc_runs: u64,
    /// Accesses for which the map entry of the page was in the cache (only DFTL).
    pub map_hits: u64,
    /// Accesses for which the map entry of the page was not in the cache (only DFTL).
    pub map_misses: u64,
}

impl Counters {
    /// Returns each counter with its name in results.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("switch_merges", self.switch_merges),
            ("partial_merges", self.partial_merges),
            ("full_merges", self.full_merges),
            ("gc_runs", self.gc_runs),
            ("map_hits", self.map_hits),
            ("map_misses", self.map_misses),
        ]
    }

    fn with(self, other: Counters, of: impl Fn(u64, u64) -> u64) -> Counters {
        Counters {
            switch_merges: of(self.switch_merges, other.switch_merges),
            partial_merges: of(self.partial_merges, other.partial_merges),
            full_merges: of(self.full_merges, other.full_merges),
            gc_runs: of(self.gc_runs, other.gc_runs),
            map_hits: of(self.map_hits, other.map_hits),
            map_misses: of(self.map_misses, other.map_misses),
        }
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        *self = self.with(other, |a, b| a + b);
    }
}

impl Sub for Counters {
    type Output = Counters;
    fn sub(self, other: Counters) -> Counters {
        self.with(other, |a, b| a - b)
    }
}

/// A translation layer. All its blocks are erased when it is created.
///
/// Functions with a parameter `ops` append their flash operations to it. Page numbers must be below
/// [`Setup::logical_pages`].
pub trait ChipFtl {
    /// Writes every logical page to flash, in order, without recording flash operations. May be called only for a new
    /// layer.
    fn fill(&mut self);

    /// Reads a page. If the page was never written or is trimmed, only the map is read.
    fn read(&mut self, page: u32, ops: &mut Vec<FlashOp>);

    /// Writes a page. Exactly one of the operations is a program with [`Why::Host`].
    ///
    /// # Errors
    /// Fails if no block can be freed for the page.
    fn write(&mut self, page: u32, ops: &mut Vec<FlashOp>) -> Result<(), NoSpace>;

    /// Trims a page.
    fn trim(&mut self, page: u32, ops: &mut Vec<FlashOp>);

    /// Writes the dirty entries of the map to flash.
    fn flush(&mut self, ops: &mut Vec<FlashOp>) {
        let _ = ops;
    }

    /// Returns the physical page with the newest version of a page.
    fn lookup(&self, page: u32) -> Option<u32>;

    /// Checks that the tables agree with each other.
    ///
    /// # Errors
    /// The error names the first disagreement.
    fn check(&self) -> Result<(), String>;

    /// Returns the counters since the layer was created.
    fn counters(&self) -> Counters;

    /// Returns the state of the layer in the notation of [`trace`].
    fn state(&self) -> String;
}

/// Table of all layers, in the order of the documentation. Each line has the file of a layer, its type and the type of
/// its parameters.
macro_rules! layers {
    ($then:ident! $rest:tt) => {
        $then! { $rest
            dftl::Dftl(DftlSetup)
            bast::Bast(BastSetup)
            fast::Fast(FastSetup)
            faster::Faster(FasterSetup)
        }
    };
}

macro_rules! declare {
    (() $($file:ident::$Type:ident($Own:ident))+) => {
        $(pub use $file::{$Own, $Type};)+

        /// Descriptions of all layers.
        pub const ENTRIES: &[&catalog::Entry] = &[$(&$Own::ENTRY),+];

        /// A kind of layer, with its parameters.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Layer {
            $(#[allow(missing_docs)] $Type($Own),)+
        }

        impl Layer {
            /// Returns the layer called `name`, with its default parameters for a chip.
            fn new(name: &str, chip: &Chip) -> Option<Layer> {
                $(if name == $Own::ENTRY.name {
                    return Some(Layer::$Type($Own::new(chip)));
                })+
                None
            }

            /// Returns the description of the layer.
            pub fn entry(&self) -> &'static catalog::Entry {
                match self { $(Layer::$Type(_) => &$Own::ENTRY,)+ }
            }

            fn follow(&mut self, chip: &Chip, is_given: &dyn Fn(&str) -> bool) {
                match self { $(Layer::$Type(own) => own.follow(chip, is_given),)+ }
            }
            fn value(&self, parameter: &str) -> Option<String> {
                match self { $(Layer::$Type(own) => own.value(parameter),)+ }
            }
            fn set(&mut self, parameter: &str, text: &str) -> Option<bool> {
                match self { $(Layer::$Type(own) => own.set(parameter, text),)+ }
            }
            fn turn_pages(&self, chip: &Chip) -> u64 {
                match self { $(Layer::$Type(own) => own.turn_pages(chip),)+ }
            }
            fn blocks_min(&self, chip: &Chip) -> u64 {
                match self { $(Layer::$Type(own) => own.blocks_min(chip),)+ }
            }
            fn check(&self, chip: &Chip) -> Result<(), String> {
                match self { $(Layer::$Type(own) => own.check(chip),)+ }
            }
        }

        /// A translation layer of any kind, chosen when the device is created.
        #[derive(Clone, Debug)]
        pub enum Ftl {
            $(#[allow(missing_docs)] $Type($Type),)+
        }

        impl Ftl {
            /// Creates the translation layer that `setup` describes, in a chip whose blocks are all erased.
            ///
            /// # Errors
            /// Fails as [`Setup::check`] does.
            pub fn new(setup: &Setup) -> Result<Ftl, SetupError> {
                setup.check()?;
                Ok(Ftl::unchecked(setup))
            }

            /// Creates a translation layer without checking that the chip is large enough for it.
            pub(crate) fn unchecked(setup: &Setup) -> Ftl {
                match &setup.kind {
                    $(Layer::$Type(own) => Ftl::$Type($Type::new(setup, own)),)+
                }
            }
        }
    };
}

layers!(declare!());

macro_rules! dispatch {
    (($ftl:expr, $inner:ident => $call:expr) $($file:ident::$Type:ident($Own:ident))+) => {
        match $ftl { $(Ftl::$Type($inner) => $call,)+ }
    };
}

macro_rules! each {
    ($ftl:expr, $inner:ident => $call:expr) => {
        layers!(dispatch! ($ftl, $inner => $call))
    };
}

use {dispatch, each, layers};

impl ChipFtl for Ftl {
    fn fill(&mut self) {
        each!(self, ftl => ftl.fill());
    }
    #[inline]
    fn read(&mut self, page: u32, ops: &mut Vec<FlashOp>) {
        each!(self, ftl => ftl.read(page, ops));
    }
    #[inline]
    fn write(&mut self, page: u32, ops: &mut Vec<FlashOp>) -> Result<(), NoSpace> {
        each!(self, ftl => ftl.write(page, ops))
    }
    fn trim(&mut self, page: u32, ops: &mut Vec<FlashOp>) {
        each!(self, ftl => ftl.trim(page, ops));
    }
    fn flush(&mut self, ops: &mut Vec<FlashOp>) {
        each!(self, ftl => ftl.flush(ops));
    }
    #[inline]
    fn lookup(&self, page: u32) -> Option<u32> {
        each!(self, ftl => ftl.lookup(page))
    }
    fn check(&self) -> Result<(), String> {
        each!(self, ftl => ftl.check())
    }
    fn counters(&self) -> Counters {
        each!(self, ftl => ftl.counters())
    }
    fn state(&self) -> String {
        each!(self, ftl => ftl.state())
    }
}
