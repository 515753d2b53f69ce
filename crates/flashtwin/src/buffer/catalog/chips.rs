//! Policies that look at the chips.

use super::*;

const CDA_GC: Source = source(
    "K. Wang, H. Tan, Z. He, J. Li, K. Li",
    "CDA-GC: An Effective Cache Data Allocation for Garbage Collection in Flash-Based \
     Solid-State Drives",
    "Integration",
    2025,
);

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: FILTER,
        title: "GCaR",
        line: "The policy NAME, passing over pages whose chip is collecting garbage.",
        family: Family::Chips,
        source: source(
            "S. Wu, B. Mao, Y. Lin, H. Jiang",
            "Improving Performance for Flash-Based Storage Systems through GC-Aware Cache \
             Management",
            "IEEE Transactions on Parallel and Distributed Systems 28(10)",
            2017,
        ),
        provenance: Provenance::Printed,
        rule: &[
            "A filter over the victim search of any policy NAME; hits and misses are NAME's.",
            "Victim: the first page, in NAME's order of eviction, whose chip is not collecting at \
             that moment. Clean pages are passed over as dirty ones are.",
            "If the chip of every page is collecting, NAME's own victim leaves (D-11), and this is \
             counted.",
            "While no chip collects, exactly NAME.",
            "Over `bplru`, `cbm` and `req-block` the block being written stays the last to leave (D-160).",
            "Over `cflru`: the clean pages of the window, then the whole list (D-12). Over policies \
             of blocks: `block_in_gc` says when a block counts as collecting (D-13).",
            "Large requests lose by it, as a request waits for the slowest of the evictions that make \
             room for its pages. NAME's victims lie on all chips; those of GCaR lie on the chips that \
             do not collect, and the pages that were passed over leave together, all from one chip. \
             Figures: docs/policies.md, GCaR with large requests.",
        ],
        drawing: "
chip           0   1   0   2   1   2       chip 2 is collecting
most recent [ 6d  5c  4d  3d  1d  2d ] least recent
                               ^   ^ passed over
                               victim",
        state: "As NAME's.",
        cost: cost("as NAME", "O(n)", "O(K)"),
        offline: false,
        example: example_with(4, &[], 2, "W1 W2 R3 W4 gc+1 W6 R8 gc+0 W10 gc-0 gc-1 W12"),
    },
    Entry {
        name: "ecr",
        title: "ECR",
        line: "Clean pages leave first; else a page of the chip that will have done its work soonest.",
        family: Family::Chips,
        source: ECR,
        provenance: Provenance::Printed,
        rule: &[
            "Clean pages stand in one LRU list, dirty ones in an LRU list for each chip.",
            "Hit: most recent end of its list; a page that becomes dirty moves to that of its chip.",
            "Victim: the least recent clean page, if there is one.",
            "Else the least recent page of the chip with the least queue complete time (CQCT) among \
             those with a dirty page; `tie` decides among equals.",
            "CQCT, Eqs 1 to 4: the chip's queued reads and writes, the collection they will start, \
             and the summary pages they will fill; a write in service has its page already (D-162). `cqct` = exact adds transfers and counts what is \
             left of running work.",
        ],
        drawing: "
clean    [ 9c  6c ] -> victim, as long as there is one
chip 0   [ 8d  4d ]   CQCT  300 us
chip 1   [ 5d ]       CQCT    0 us -> then the least: 5d
chip 3   [ 11d 7d ]   CQCT  900 us",
        state: "`Clean[6] D0[8 4] D3[11 7]`: the clean list, then the chips' dirty lists, most recent \
                first.",
        cost: cost("O(1)", "O(K)", "O(K)"),
        offline: false,
        example: example_with(
            4,
            &[],
            4,
            "drain0=300 drain3=900 W4 W8 W5 W7 R6 W11 drain1=500 W10 W9",
        ),
    },
    Entry {
        name: "ecr-eps",
        title: "ECR-epsilon",
        line: "ECR without the clean list: each chip's clean and dirty pages share one.",
        family: Family::Chips,
        source: ECR,
        provenance: Provenance::Printed,
        rule: &[
            "Clean and dirty pages stand in an LRU list for each chip.",
            "Victim: the least recent page, clean or dirty, of the chip with the least queue complete \
             time; `tie` decides among equals.",
            "With one chip equal to LRU.",
        ],
        drawing: "",
        state: "`L0[8c 4d] L2[6c]`: the chips' lists, most recent first.",
        cost: cost("O(1)", "O(K)", "O(K)"),
        offline: false,
        example: example_with(4, &[], 4, "drain0=300 drain3=900 W4 R8 R5 W7 R6 W11"),
    },
    Entry {
        name: "lcr",
        title: "LCR",
        line: "As ECR, by the load of the chips' queues instead of the queue complete time.",
        family: Family::Chips,
        source: source(
            "C. Liu, M. Lv, Y. Pan, H. Chen, Y. Li, C. Li, Y. Xu",
            "LCR: Load-Aware Cache Replacement Algorithm for Flash-Based SSDs",
            "NAS",
            2018,
        ),
        provenance: Provenance::Reconstruction,
        rule: &[
            "Lists and hits as ECR.",
            "Victim: as ECR, with a chip's load in place of CQCT: the flash time of the reads and \
             writes queued at it. Collections to come are not counted.",
        ],
        drawing: "",
        state: "As `ecr`.",
        cost: cost("O(1)", "O(K)", "O(K)"),
        offline: false,
        example: example_with(4, &[], 4, "drain0=300 drain3=900 W4 W8 W5 W7 R6 W11"),
    },
    Entry {
        name: "co-active",
        title: "Co-Active",
        line: "A clean and a dirty list; cold dirty pages are written back when their channel is idle.",
        family: Family::Chips,
        source: source(
            "H. Sun, S. Dai, J. Huang, X. Qin",
            "Co-Active: A Workload-Aware Collaborative Cache Management Scheme for NVMe SSDs",
            "IEEE Transactions on Parallel and Distributed Systems 32(6)",
            2021,
        ),
        provenance: Provenance::Reconstruction,
        rule: &[
            "The clean list CL and the dirty list DL are each in LRU order.",
            "Write: most recent end of DL; the page is hot if it was written since the filter last \
             forgot, else cold.",
            "Read: a hit moves the page to the most recent end of its list, a miss comes in at that \
             of CL.",
            "Victim: the least recent clean page; else the least recent cold dirty one; else the \
             least recent dirty one.",
            "Active write-back: when a channel (`idle_unit`) is idle, its least recent cold dirty \
             page is written to flash, at most `write_backs` at a time. It stays, clean, in CL at \
             the place of its last access, unless it was written again meanwhile.",
        ],
        drawing: "
CL [ 3c ] -> victim first
DL [ 5c  1h  2c ]          h hot, c cold
             ^ its channel idle: written to flash, then into CL",
        state: "`CL[3] DL[5c 1h 2c]`: here h is hot and c cold.",
        cost: cost("O(k) hashes", "O(1); write-back O(n)", "O(1)"),
        offline: false,
        example: example_with(
            4,
            &[("filter", "exact")],
            2,
            "W1 W2 W3 W1 idle1 W5 W7 W9",
        ),
    },
    Entry {
        name: "cda-gc",
        title: "CDA-GC",
        line: "Spares pages of chips in or near collection, and writes hot and cold pages apart.",
        family: Family::Chips,
        source: CDA_GC,
        provenance: Provenance::Printed,
        rule: &[
            "Both parts together: the stager (`cda-gc-stager`) chooses victims, the dispatcher \
             (`cda-gc-dispatcher`) the open block that they are written to.",
            "Open points of the paper are decided in D-16 to D-19.",
        ],
        drawing: "",
        state: "As `lru`, with h behind hot pages: `5dh`.",
        cost: cost("O(k) hashes", "O(test_num)", "O(test_num)"),
        offline: false,
        example: example_with(
            6,
            &[("test_num", "2"), ("cycle_num", "3"), ("filter", "exact")],
            8,
            "W1 W2 W3 W4 W5 W5 W6 gc+1 gc+3 W7 W8 W9 W10",
        ),
    },
    Entry {
        name: "cda-gc-stager",
        title: "CDA-GC, stager only",
        line: "LRU that looks a bounded way up the list for a page of a chip not collecting.",
        family: Family::Chips,
        source: CDA_GC,
        provenance: Provenance::Printed,
        rule: &[
            "One list as LRU's, and a pointer into it that starts at the least recent end.",
            "Victim: from the pointer on, the first of at most `test_num` entries whose chip is \
             neither collecting nor close to it; the pointer then stands behind it. If none \
             qualifies, the least recent page leaves and the pointer stays where it stopped (D-17).",
            "After `cycle_num` lookups the pointer is back at the least recent end.",
            "Close to collection: no free block above the trigger, and at most `hp_margin_percent` \
             of the open block left (D-16).",
        ],
        drawing: "
                  pointer after the lookup
                     v
most recent [ 6d  5d  4d  3d  2d  1d ] least recent
                          ^   ^---^ chip collecting: passed over
                          victim            (test_num >= 3)",
        state: PAGES,
        cost: cost("O(1)", "O(test_num)", "O(test_num)"),
        offline: false,
        example: example_with(
            6,
            &[("test_num", "2"), ("cycle_num", "3")],
            8,
            "W1 W2 W3 W4 W5 W6 gc+1 gc+3 W7 W8 W9 W10",
        ),
    },
    Entry {
        name: "cda-gc-dispatcher",
        title: "CDA-GC, dispatcher only",
        line: "LRU that writes often and rarely written pages into different open blocks.",
        family: Family::Chips,
        source: CDA_GC,
        provenance: Provenance::Printed,
        rule: &[
            "Victims as LRU.",
            "Every write asks a Bloom filter of 8 hashes whether its page was written before, then \
             enters it. Known: the page is hot; new: cold.",
            "The filter and all hot marks are cleared every `filter_reset_ms` of virtual time (D-18).",
            "A hot page is written into its chip's hot open block, a cold one and all pages moved by \
             collection into the cold one.",
        ],
        drawing: "",
        state: "As `lru`, with h behind hot pages: `5dh`.",
        cost: cost("O(k) hashes", "O(k) hashes", "O(k) hashes"),
        offline: false,
        example: example_with(3, &[("filter", "exact")], 1, "W1 W2 W1 R2 W3 W4"),
    },
];
