//! Specification of an array: members, layout, and front end.
//!
//! An array file has a section `[array]`, whose keys are declared here. The sections `[buffer]`, `[link]` and
//! `[controller]` describe the array's own front end. The section `[member]` sets keys of all members
//! (`gc.low_percent = 6`). These keys override those of the devices that `array.members` names. A section
//! `[drives.NAME]` describes a drive in the array file itself.

mod members;
mod read;
mod volume;
mod write;

use std::sync::LazyLock;

use super::keys::with_components;
use super::section::{section, KeyDoc, Only, Values, OPTIONAL};
use super::{Buffer, Controller, DeviceSpec, Link};
use crate::component::{words, Chosen, Kind, Value};
use crate::coordinate::SCHEMES;
use crate::units::{saturating_u32, Time};
use members::Made;
pub use members::{MemberFile, ReadMember};
pub use read::is_array;

words! {
    /// How data are distributed over the members.
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
        /// Groups of members, with one parity per group. One group receives the writes while the other groups collect.
        Swan = "swan",
    }
}

impl Level {
    /// Returns the number of members that may fail while all data can still be read.
    pub fn redundancy(self, members: u32) -> u32 {
        match self {
            // A group that lacks a member is not modelled (D-104).
            Level::Raid0 | Level::Swan => 0,
            Level::Raid1 => members - 1,
            Level::Raid10 | Level::Raid5 => 1,
            Level::Raid6 => 2,
        }
    }
}

words! {
    /// Placement of the parity, which moves from one row of chunks to the next (D-23).
    pub enum Rotation {
        /// Parity moves down from the last member. The first data unit is on the member after the parity.
        LeftSymmetric = "left-symmetric",
        /// Parity moves down from the last member. Data units are in the order of the members.
        LeftAsymmetric = "left-asymmetric",
        /// Parity moves up from the first member. The first data unit is on the member after the parity.
        RightSymmetric = "right-symmetric",
        /// Parity moves up from the first member. Data units are in the order of the members.
        RightAsymmetric = "right-asymmetric",
    }
}

impl Rotation {
    /// All rotations.
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

words! {
    /// Condition under which a page in the array's buffer counts as a page whose chip is in GC (D-26).
    pub enum MemberInGc {
        /// Any chip of the page's member is in GC.
        Any = "any",
        /// The chip that holds the page is in GC.
        Chip = "chip",
        /// At least `member_in_gc_share` of the chips of the page's member are in GC.
        Share = "share",
    }
}

words! {
    /// Members from which the array reads a page.
    pub enum Reads {
        /// The array reads a page from the member that holds it, even if the read has to wait there.
        Direct = "direct",
        /// If the page's chip is in GC, the array reads another copy of the page, or computes the page from the other
        /// members of its stripe. If a chip needed for that is in GC, too, the array reads the page from its own
        /// member.
        AroundGc = "around-gc",
        /// The array reads the page from its own member. After a delay, it also reads another copy, or computes the
        /// page from the other members of its stripe. The result that is complete first is used.
        Hedged = "hedged",
    }
}

words! {
    /// Collections during which the array's buffer keeps a page.
    pub enum Protect {
        /// GC on the member that holds the page (GCaR section 3.2).
        Data = "data",
        /// GC on the member that holds the page, or on a member with the parity or another copy of the page.
        Stripe = "stripe",
    }
}

/// Condition of keys that apply only to the level SWAN (groups of members).
const SWAN: Only = &[(ArraySpec::level.name(), &[Level::Swan.name()])];

/// Returns all keys of `[array]`, in the order of the documentation.
pub fn array_keys() -> &'static [KeyDoc] {
    static ALL: LazyLock<Vec<KeyDoc>> =
        LazyLock::new(|| ArraySpec::ROWS.iter().flat_map(with_components).collect());
    &ALL
}

section! {
    /// An array whose settings have been checked. [`ArraySpec::parse`] creates one.
    pub struct ArraySpec(v, made: Made) in (spec: ArraySpec => Some(spec)) {
        level: Level = "array.level", Kind::Choice(Level::WORDS), None, &[],
            "Layout of the array: RAID level or SWAN.", "RAID levels; swan: Kim et al., USENIX ATC 2019";
        members: Vec<DeviceSpec> = "array.members", Kind::Text, None, &[],
            "The members: device profiles that come with flashtwin or device files, each with a count, as in \"harmonia*8\" or \"nvme-tlc*4, ./mine.toml*2\".", "ours",
            read made.members, write Some(Value::Text(spec.member_names()));
        chunk_pages: u32 = "array.chunk", Kind::Size(1 << 32), Some("\"4 KiB\""), &[],
            "Stripe unit: consecutive bytes on a member, in whole pages.", "Harmonia section 5.1 (D-23)",
            read chunk_pages(v, &members[0]), write Some(spec.bytes_of(spec.chunk_pages));
        rotation: Rotation = "array.rotation", Kind::Choice(Rotation::WORDS), Some("\"left-symmetric\""), &[],
            "Rotation of parity from row to row (raid5, raid6, swan).", "D-23";
        groups: u32 = "array.groups", Kind::Count(2, 30), Some("2"), SWAN,
            "Number of groups into which the members are divided. One group at a time takes the writes. A group has at least two members.", "SWAN (ATC 2019)";
        segment_pages: u32 = "array.segment", Kind::Size(1 << 40), OPTIONAL, SWAN,
            "Size of a segment on one member, in whole pages: the unit that is written, collected and trimmed. Default: the data pages of one block per plane of the first member.", "SWAN (ATC 2019), D-102",
            read segment_pages(v, &members[0]), write Some(spec.bytes_of(spec.segment_pages));
        spare_percent: f64 = "array.spare_percent", Kind::Percent, Some("20"), SWAN,
            "Share of the groups' data pages that is hidden from the host, so that segments can be collected.", "not printed (D-103)";
        member_in_gc: MemberInGc = "array.member_in_gc", Kind::Choice(MemberInGc::WORDS), Some("\"any\""), &[],
            "When the array's buffer treats a page as one whose chip is in GC: if any chip of the page's member is in GC (`any`), if the page's own chip is (`chip`), or if at least `member_in_gc_share` of the member's chips are (`share`).", "GCaR section 3.2, D-26";
        member_in_gc_share: Option<f64> = "array.member_in_gc_share", Kind::Share, Some("0.5"), &[],
            "Share of a member's chips that must be in GC for the member to count as in GC.", "D-26",
            read share(v, member_in_gc);
        protect: Protect = "array.protect", Kind::Choice(Protect::WORDS), Some("\"data\""), &[],
            "Collections during which GCaR keeps a page in the array's buffer: those on the page's own member (`data`), or also those on a member with its parity or another copy (`stripe`).", "GCaR sections 3.2 and 4.4; stripe: ours (D-93)";
        reads: Reads = "array.reads", Kind::Choice(Reads::WORDS), Some("\"direct\""), &[],
            "How pages are read. `direct`: always from their own member. `around-gc`: if the page's chip is in GC, reconstructed from the rest of the stripe or read from another copy, provided that none of the chips needed is in GC. `hedged`: from their own member, and after a delay also from the stripe or another copy; the first completion counts.", "the idea of TTFLASH (FAST 2017) and IODA (SOSP 2021); hedged: Dean, Barroso (CACM 2013)";
        hedge_percent: f64 = "array.hedge_percent", Kind::Percent, Some("95"), &[],
            "With hedged reads: percentile of the durations of earlier reads after which a read is hedged.", "Dean, Barroso (CACM 2013), D-108";
        hedge_after: Option<Time> = "array.hedge_after_us", Kind::Count(1, 1_000_000), OPTIONAL, &[],
            "With hedged reads: time after which a read is hedged. Default: determined by `hedge_percent`.", "D-108",
            read hedge_after(v), write Some(Value::Number(spec.hedge_after?.to_ns() / 1_000));
        rebuild_depth: u32 = "array.rebuild_depth", Kind::Count(1, 4096), Some("8"), &[],
            "Maximum number of stretches in flight during a rebuild. A stretch is a run of adjacent rows, up to 64 KiB per member.", "D-89, D-106";
        rebuild_mib_per_s: u32 = "array.rebuild_mib_per_s", Kind::Count(0, 1_000_000), Some("0"), &[],
            "Maximum write rate to the new member during a rebuild, in MiB/s; 0: no limit.", "D-89";
        coordination: Chosen = "array.coordination", Kind::Choice(&[]), Some("\"local\""), &[],
            "Coordination of the members' garbage collection.", "Harmonia section 4",
            among SCHEMES;
        soft_percent: f64 = "array.soft_percent", Kind::Percent, Some("7"), &[],
            "T_soft: a member is registered for coordinated collection when the free blocks of one of its pools are at or below this share.", "not printed (D-24)";
        hard_percent: Option<f64> = "array.hard_percent", Kind::Percent, OPTIONAL, &[],
            "T_hard: a member asks the coordinator to start collection when the free blocks of one of its pools are at or below this share. Default: the member's own watermark (`gc.low_percent`).", "Harmonia section 4.3.1";
        stop_blocks: u32 = "array.stop_blocks", Kind::Count(0, 1_000_000), Some("1"), &[],
            "T_stop: a pool that is ordered to collect takes at least one victim, and continues until its free blocks exceed T_hard by more than this number.", "not printed (D-24, D-25)";
        idle_until_percent: Option<f64> = "array.idle_until_percent", Kind::Percent, OPTIONAL, &[],
            "While the array is idle, pools collect until this share of their blocks is free; default: the whole reserve.", "Harmonia section 4.3.2: the reserve";
    } and {
        /// Drives of the members that are not profiles of flashtwin, without the changes by keys of `[member]`.
        drives: Vec<DeviceSpec> = made.drives;
        /// Short name, as in `devices/NAME.toml`.
        name: String = made.front.name;
        /// One-line description for users.
        description: String = made.front.description;
        /// Host interface in front of the array.
        link: Link = made.front.link;
        /// The array controller's processor.
        controller: Controller = made.front.controller;
        /// The array controller's buffer, if it has one.
        buffer: Option<Buffer> = made.front.buffer;
    }
}

fn chunk_pages(v: &Values, member: &DeviceSpec) -> u32 {
    let bytes: u64 = v.setting(&ArraySpec::chunk_pages);
    saturating_u32(bytes / u64::from(member.geometry.page_bytes))
}

/// Returns the size of a segment in pages. The default is one block from each plane of a member, counting only data
/// pages.
fn segment_pages(v: &Values, member: &DeviceSpec) -> u32 {
    let g = &member.geometry;
    match v.get(&ArraySpec::segment_pages) {
        Some(Value::Number(bytes)) => saturating_u32(bytes / u64::from(g.page_bytes)),
        _ => g.chips * g.planes_per_chip * member.data_pages_per_block(),
    }
}

/// Returns `member_in_gc_share` if `member_in_gc` is `share`; otherwise the key has no effect.
fn share(v: &Values, member_in_gc: MemberInGc) -> Option<f64> {
    let counts = member_in_gc == MemberInGc::Share;
    counts.then(|| v.setting(&ArraySpec::member_in_gc_share))
}

fn hedge_after(v: &Values) -> Option<Time> {
    let key = ArraySpec::hedge_after;
    v.has(&key).then(|| Time::from_us(v.setting(&key)))
}
