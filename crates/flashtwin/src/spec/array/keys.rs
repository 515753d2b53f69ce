//! The keys of `[array]`, with what they take and where they come from.

use std::sync::LazyLock;

use super::{Level, MemberInGcWord, Protect, Reads, Rotation};
use crate::component::Kind;
use crate::coordinate::SCHEMES;
use crate::spec::keys::{with_components, KeyDoc, OPTIONAL};

/// Keys that only a volume of groups has.
const SWAN: &[(&str, &[&str])] = &[("array.level", &["swan"])];

/// The keys of `[array]` but the parameters of schemes of coordination.
const KEYS: &[KeyDoc] = &[
    KeyDoc {
        key: "array.level",
        kind: Kind::Choice(Level::WORDS),
        default: None,
        only: &[],
        doc: "How members are put together.",
        provenance: "RAID levels; swan: Kim et al., USENIX ATC 2019",
    },
    KeyDoc {
        key: "array.members",
        kind: Kind::Text,
        default: None,
        only: &[],
        doc: "The members: devices that come with flashtwin, each with how many of it, as in \
              \"harmonia*8\" or \"nvme-tlc*4, sata-tlc*2\".",
        provenance: "ours",
    },
    KeyDoc {
        key: "array.chunk",
        kind: Kind::Size(1 << 32),
        default: Some("\"4 KiB\""),
        only: &[],
        doc: "Consecutive bytes on a member (stripe unit); whole pages.",
        provenance: "Harmonia section 5.1 (D-23)",
    },
    KeyDoc {
        key: "array.rotation",
        kind: Kind::Choice(Rotation::WORDS),
        default: Some("\"left-symmetric\""),
        only: &[],
        doc: "How parity moves from row to row (raid5, raid6, swan).",
        provenance: "D-23",
    },
    KeyDoc {
        key: "array.groups",
        kind: Kind::Count(2, 30),
        default: Some("2"),
        only: SWAN,
        doc: "Groups of members, of which one takes the writes; two members each at least.",
        provenance: "SWAN (ATC 2019)",
    },
    KeyDoc {
        key: "array.segment",
        kind: Kind::Size(1 << 40),
        default: OPTIONAL,
        only: SWAN,
        doc: "Bytes of a member that are written, collected and trimmed together; whole pages. By default \
              as much as the data pages of one block of each plane of the first member.",
        provenance: "SWAN (ATC 2019), D-102",
    },
    KeyDoc {
        key: "array.spare_percent",
        kind: Kind::Percent,
        default: Some("20"),
        only: SWAN,
        doc: "Share of the groups' data that the host does not see, so that segments can be collected.",
        provenance: "not printed (D-103)",
    },
    KeyDoc {
        key: "array.member_in_gc",
        kind: Kind::Choice(MemberInGcWord::WORDS),
        default: Some("\"any\""),
        only: &[],
        doc: "When the array's buffer takes a page for one whose chip is in GC: any chip of its \
              member is, the chip that holds it is, or a share of the member's chips is.",
        provenance: "GCaR section 3.2, D-26",
    },
    KeyDoc {
        key: "array.member_in_gc_share",
        kind: Kind::Share,
        default: Some("0.5"),
        only: &[],
        doc: "That share.",
        provenance: "D-26",
    },
    KeyDoc {
        key: "array.protect",
        kind: Kind::Choice(Protect::WORDS),
        default: Some("\"data\""),
        only: &[],
        doc: "What keeps a page in the array's buffer under GCaR: GC on the member that holds it, or \
              also on one that holds its parity or another copy.",
        provenance: "GCaR sections 3.2 and 4.4; stripe: ours (D-93)",
    },
    KeyDoc {
        key: "array.reads",
        kind: Kind::Choice(Reads::WORDS),
        default: Some("\"direct\""),
        only: &[],
        doc: "How a page is read: where it lies; if its chip is in GC, from the others of its stripe or \
              another copy if none of those is in GC; or from there, too, when it takes long, and what \
              comes first counts.",
        provenance: "the idea of TTFLASH (FAST 2017) and IODA (SOSP 2021); hedged: Dean, Barroso (CACM 2013)",
    },
    KeyDoc {
        key: "array.hedge_percent",
        kind: Kind::Percent,
        default: Some("95"),
        only: &[],
        doc: "With reads hedged, a read is when it takes longer than this share of the reads of members \
              before it.",
        provenance: "Dean, Barroso (CACM 2013), D-108",
    },
    KeyDoc {
        key: "array.hedge_after_us",
        kind: Kind::Count(1, 1_000_000),
        default: OPTIONAL,
        only: &[],
        doc: "With reads hedged, a read is when it takes longer than this; by default as \
              hedge_percent says.",
        provenance: "D-108",
    },
    KeyDoc {
        key: "array.rebuild_depth",
        kind: Kind::Count(1, 4096),
        default: Some("8"),
        only: &[],
        doc: "Stretches of adjacent rows, of up to 64 KiB a member, under way at a time while a member is rebuilt.",
        provenance: "D-89, D-106",
    },
    KeyDoc {
        key: "array.rebuild_mib_per_s",
        kind: Kind::Count(0, 1_000_000),
        default: Some("0"),
        only: &[],
        doc: "MiB written to the new member a second at most; 0: as fast as it goes.",
        provenance: "D-89",
    },
    KeyDoc {
        key: "array.coordination",
        kind: Kind::Choice(&[]),
        default: Some("\"local\""),
        only: &[],
        doc: "Which member collects when.",
        provenance: "Harmonia section 4",
    },
    KeyDoc {
        key: "array.soft_percent",
        kind: Kind::Percent,
        default: Some("7"),
        only: &[],
        doc:
            "A member is registered when the free blocks of one of its pools are at or below this \
              share.",
        provenance: "not printed (D-24)",
    },
    KeyDoc {
        key: "array.hard_percent",
        kind: Kind::Percent,
        default: OPTIONAL,
        only: &[],
        doc: "A member asks the coordinator when the free blocks of one of its pools are at or below \
              this share; by default when it would collect by itself (gc.low_percent).",
        provenance: "Harmonia section 4.3.1",
    },
    KeyDoc {
        key: "array.stop_blocks",
        kind: Kind::Count(0, 1_000_000),
        default: Some("1"),
        only: &[],
        doc: "Told to collect, a pool takes one victim and goes on until it has more free blocks than \
              T_hard and this.",
        provenance: "not printed (D-24, D-25)",
    },
    KeyDoc {
        key: "array.idle_until_percent",
        kind: Kind::Percent,
        default: OPTIONAL,
        only: &[],
        doc: "While the array is idle, pools collect until this share of their blocks is free; by \
              default the whole reserve.",
        provenance: "Harmonia section 4.3.2: the reserve",
    },
];
/// Every key of `[array]`, in the order of the documentation.
pub fn array_keys() -> &'static [KeyDoc] {
    static ALL: LazyLock<Vec<KeyDoc>> = LazyLock::new(|| {
        let all = KEYS.iter().flat_map(|doc| match doc.key {
            "array.coordination" => with_components(doc, SCHEMES),
            _ => vec![*doc],
        });
        all.collect()
    });
    &ALL
}
