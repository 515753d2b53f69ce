//! Specification of an array: members, layout, and front end.
//!
//! An array file has a section `[array]`, whose keys are declared here. Its `[buffer]`, `[link]` and `[controller]`
//! are those of the array's own front end; `[member]` sets keys of the members (`gc.low_percent = 6`) on top of
//! the device that `array.members` names. `[drives.NAME]` describes a drive in the file itself.

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

words! {
    /// When the array's buffer takes a page for one whose chip is in GC (D-26).
    pub enum MemberInGc {
        /// Any chip of the member is.
        Any = "any",
        /// The chip of the member that holds the page is.
        Chip = "chip",
        /// At least `member_in_gc_share` of the member's chips is.
        Share = "share",
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
    /// Collections that keep a page in the array's buffer.
    pub enum Protect {
        /// GC on the member that holds it (GCaR section 3.2).
        Data = "data",
        /// GC on that member, or on one that holds its parity or copy.
        Stripe = "stripe",
    }
}

/// Keys that only a volume of groups has.
const SWAN: Only = &[(ArraySpec::level.name(), &[Level::Swan.name()])];

/// Every key of `[array]`, in the order of the documentation.
pub fn array_keys() -> &'static [KeyDoc] {
    static ALL: LazyLock<Vec<KeyDoc>> =
        LazyLock::new(|| ArraySpec::ROWS.iter().flat_map(with_components).collect());
    &ALL
}

section! {
    /// An array, checked. Build one with [`ArraySpec::parse`].
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
            "Number of groups of members, one of which takes the writes at a time; at least two members each.", "SWAN (ATC 2019)";
        segment_pages: u32 = "array.segment", Kind::Size(1 << 40), OPTIONAL, SWAN,
            "Bytes of a member that are written, collected and trimmed together, in whole pages. Default: the data pages of one block per plane of the first member.", "SWAN (ATC 2019), D-102",
            read segment_pages(v, &members[0]), write Some(spec.bytes_of(spec.segment_pages));
        spare_percent: f64 = "array.spare_percent", Kind::Percent, Some("20"), SWAN,
            "Share of the groups' data hidden from the host, so that segments can be collected.", "not printed (D-103)";
        member_in_gc: MemberInGc = "array.member_in_gc", Kind::Choice(MemberInGc::WORDS), Some("\"any\""), &[],
            "When the array's buffer considers a page's chip to be in GC: if any chip of its member is, if the chip that holds it is, or if a share of the member's chips is.", "GCaR section 3.2, D-26";
        member_in_gc_share: Option<f64> = "array.member_in_gc_share", Kind::Share, Some("0.5"), &[],
            "Share of a member's chips in GC from which the whole member counts as in GC.", "D-26",
            read share(v, member_in_gc);
        protect: Protect = "array.protect", Kind::Choice(Protect::WORDS), Some("\"data\""), &[],
            "Collections that keep a page in the array's buffer under GCaR: on the member that holds it, or also on a member with its parity or another copy.", "GCaR sections 3.2 and 4.4; stripe: ours (D-93)";
        reads: Reads = "array.reads", Kind::Choice(Reads::WORDS), Some("\"direct\""), &[],
            "How pages are read: always from their own member; reconstructed from the stripe, or read from another copy, if their chip is in GC and none of the others is; or hedged, i.e. additionally read from there after a delay, and the first completion counts.", "the idea of TTFLASH (FAST 2017) and IODA (SOSP 2021); hedged: Dean, Barroso (CACM 2013)";
        hedge_percent: f64 = "array.hedge_percent", Kind::Percent, Some("95"), &[],
            "With hedged reads, a read is hedged when it takes longer than this share of the earlier reads of members.", "Dean, Barroso (CACM 2013), D-108";
        hedge_after: Option<Time> = "array.hedge_after_us", Kind::Count(1, 1_000_000), OPTIONAL, &[],
            "With hedged reads, a read is hedged after this time; default: given by `hedge_percent`.", "D-108",
            read hedge_after(v), write Some(Value::Number(spec.hedge_after?.to_ns() / 1_000));
        rebuild_depth: u32 = "array.rebuild_depth", Kind::Count(1, 4096), Some("8"), &[],
            "Maximum stretches of adjacent rows in flight during a rebuild, each up to 64 KiB per member.", "D-89, D-106";
        rebuild_mib_per_s: u32 = "array.rebuild_mib_per_s", Kind::Count(0, 1_000_000), Some("0"), &[],
            "Maximum write rate to the new member during a rebuild, in MiB/s; 0: no limit.", "D-89";
        coordination: Chosen = "array.coordination", Kind::Choice(&[]), Some("\"local\""), &[],
            "Coordination of the members' garbage collection.", "Harmonia section 4",
            among SCHEMES;
        soft_percent: f64 = "array.soft_percent", Kind::Percent, Some("7"), &[],
            "A member is registered when the free blocks of one of its pools are at or below this share.", "not printed (D-24)";
        hard_percent: Option<f64> = "array.hard_percent", Kind::Percent, OPTIONAL, &[],
            "A member requests permission from the coordinator when the free blocks of one of its pools are at or below this share; default: its own watermark (`gc.low_percent`).", "Harmonia section 4.3.1";
        stop_blocks: u32 = "array.stop_blocks", Kind::Count(0, 1_000_000), Some("1"), &[],
            "A pool ordered to collect starts with one victim and continues until it has more free blocks than T_hard and than this.", "not printed (D-24, D-25)";
        idle_until_percent: Option<f64> = "array.idle_until_percent", Kind::Percent, OPTIONAL, &[],
            "While the array is idle, pools collect until this share of their blocks is free; default: the whole reserve.", "Harmonia section 4.3.2: the reserve";
    } and {
        /// Drives of members that do not come with flashtwin, before the keys of `[member]`.
        drives: Vec<DeviceSpec> = made.drives;
        /// Short name, as in `devices/NAME.toml`.
        name: String = made.front.name;
        /// One line for people.
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

/// A segment as given, or of a block of each plane of a member.
fn segment_pages(v: &Values, member: &DeviceSpec) -> u32 {
    let g = &member.geometry;
    match v.get(&ArraySpec::segment_pages) {
        Some(Value::Number(bytes)) => saturating_u32(bytes / u64::from(g.page_bytes)),
        _ => g.chips * g.planes_per_chip * member.data_pages_per_block(),
    }
}

/// The share of a member's chips, where it counts.
fn share(v: &Values, member_in_gc: MemberInGc) -> Option<f64> {
    let counts = member_in_gc == MemberInGc::Share;
    counts.then(|| v.setting(&ArraySpec::member_in_gc_share))
}

fn hedge_after(v: &Values) -> Option<Time> {
    let key = ArraySpec::hedge_after;
    v.has(&key).then(|| Time::from_us(v.setting(&key)))
}
