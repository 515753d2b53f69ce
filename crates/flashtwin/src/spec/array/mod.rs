//! What an array is: its members, how they are put together, and the front end before them.
//!
//! An array file has a section `[array]`. Its `[buffer]`, `[link]` and `[controller]` are those of
//! the array's own front end; `[member]` sets keys of the members (`gc.low_percent = 6`) on top of
//! the device that `array.members` names.

mod keys;
mod read;
mod volume;
mod write;

use super::{Buffer, Controller, DeviceSpec, Link};
use crate::component::{words, Chosen};
use crate::units::Time;
pub use keys::array_keys;
pub use read::is_array;

words! {
    /// How members are put together.
    pub enum Level {
        /// Striping.
        Raid0 = "raid0",
        /// Every member holds every page.
        Raid1 = "raid1",
        /// Striping over pairs of mirrors.
        Raid10 = "raid10",
        /// Striping with one rotating parity.
        Raid5 = "raid5",
        /// Striping with two rotating parities.
        Raid6 = "raid6",
        /// Groups of members with a parity each, of which one takes the writes and the others are collected.
        Swan = "swan",
    }
}

impl Level {
    /// Members that may be missing while all data can still be read.
    pub fn redundancy(self, members: u32) -> u32 {
        match self {
            // That a group can do without a member is not modelled (D-104).
            Level::Raid0 | Level::Swan => 0,
            Level::Raid1 => members - 1,
            Level::Raid10 | Level::Raid5 => 1,
            Level::Raid6 => 2,
        }
    }
}

words! {
    /// How parity moves from row to row (D-23).
    pub enum Rotation {
        /// Parity from the last member down, data begins after it.
        LeftSymmetric = "left-symmetric",
        /// Parity from the last member down, data in the order of members.
        LeftAsymmetric = "left-asymmetric",
        /// Parity from the first member up, data begins after it.
        RightSymmetric = "right-symmetric",
        /// Parity from the first member up, data in the order of members.
        RightAsymmetric = "right-asymmetric",
    }
}

impl Rotation {
    /// All of them.
    pub const ALL: [Rotation; 4] = [
        Rotation::LeftSymmetric,
        Rotation::LeftAsymmetric,
        Rotation::RightSymmetric,
        Rotation::RightAsymmetric,
    ];

    pub(crate) fn is_symmetric(self) -> bool {
        matches!(self, Rotation::LeftSymmetric | Rotation::RightSymmetric)
    }

    pub(crate) fn goes_left(self) -> bool {
        matches!(self, Rotation::LeftSymmetric | Rotation::LeftAsymmetric)
    }
}

/// When the array's buffer takes a page for one whose chip is in GC (D-26).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemberInGc {
    /// Any chip of the member is.
    Any,
    /// The chip of the member that holds the page is.
    Chip,
    /// At least this share of the member's chips is.
    Share(f64),
}

words! {
    /// The words of [`MemberInGc`].
    enum MemberInGcWord {
        /// [`MemberInGc::Any`].
        Any = "any",
        /// [`MemberInGc::Chip`].
        Chip = "chip",
        /// [`MemberInGc::Share`].
        Share = "share",
    }
}

impl MemberInGc {
    /// As an array file calls it.
    fn word(self) -> MemberInGcWord {
        match self {
            MemberInGc::Any => MemberInGcWord::Any,
            MemberInGc::Chip => MemberInGcWord::Chip,
            MemberInGc::Share(_) => MemberInGcWord::Share,
        }
    }
}

words! {
    /// How the array reads a page that has to wait where it lies.
    pub enum Reads {
        /// From where it lies: it waits.
        Direct = "direct",
        /// From the other members of its stripe or another copy, if none of those is in GC.
        AroundGc = "around-gc",
        /// From where it lies, and after a while from elsewhere, too: what comes first counts.
        Hedged = "hedged",
    }
}

words! {
    /// What keeps a page in the array's buffer.
    pub enum Protect {
        /// GC on the member that holds it (GCaR section 3.2).
        Data = "data",
        /// GC on that member, or on one that holds its parity or copy.
        Stripe = "stripe",
    }
}

/// The volume of an array of groups ([`Level::Swan`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VolumeSpec {
    /// Groups that the members are split into.
    pub groups: u32,
    /// Pages of a segment on each member of its group.
    pub segment_pages: u32,
    /// Share of the data of all groups that the host does not see.
    pub spare_percent: f64,
}

/// An array, checked. Build one with [`ArraySpec::parse`].
#[derive(Clone, Debug, PartialEq)]
pub struct ArraySpec {
    /// Short name, as in `devices/NAME.toml`.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// How members are put together.
    pub level: Level,
    /// How parity moves from row to row.
    pub rotation: Rotation,
    /// Consecutive pages on a member.
    pub chunk_pages: u32,
    /// Groups and segments; with [`Level::Swan`] only.
    pub volume: Option<VolumeSpec>,
    /// The members; they may differ, but not in the size of their pages.
    pub members: Vec<DeviceSpec>,
    /// Host interface in front of the array.
    pub link: Link,
    /// The array controller's processor.
    pub controller: Controller,
    /// The array controller's buffer, if it has one.
    pub buffer: Option<Buffer>,
    /// When that buffer counts a member as collecting.
    pub member_in_gc: MemberInGc,
    /// What keeps a page in that buffer.
    pub protect: Protect,
    /// How a page is read whose chip is in GC.
    pub reads: Reads,
    /// After how long a read is hedged; `None`: as `hedge_percent` specifies.
    pub hedge_after: Option<Time>,
    /// After how long a read is hedged: as long as this share of the reads before took.
    pub hedge_percent: f64,
    /// Running stretches of rows at a time while a member is rebuilt.
    pub rebuild_depth: u32,
    /// MiB written to members a second while they are rebuilt; 0: as fast as it goes.
    pub rebuild_mib_per_s: u32,
    /// The coordinator of the members' collections.
    pub coordination: Chosen,
    /// Free blocks of a pool at or below which a member is registered, in percent (D-24).
    pub soft_percent: f64,
    /// Those at which it asks the coordinator, in percent; `None`: its own watermark.
    pub hard_percent: Option<f64>,
    /// After an order to collect, a pool goes on until it has more free blocks than T_hard and this.
    pub stop_blocks: u32,
    /// Free blocks until which pools collect while the array is idle, in percent; `None`: the reserve.
    pub idle_until_percent: Option<f64>,
}
