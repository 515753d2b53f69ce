//! Policies by block or request.

use super::*;

const BLOCKS: &str = "`B2{8,9}` is logical block 2 with its pages 8 and 9; most recent first.";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "bplru",
        title: "BPLRU",
        line: "LRU of erase blocks: all cached pages of the least recent block leave at once.",
        family: Family::Blocks,
        source: source(
            "H. Kim, S. Ahn",
            "BPLRU: A Buffer Management Scheme for Improving Random Writes in Flash Storage",
            "FAST",
            2008,
        ),
        provenance: Provenance::Original,
        rule: &[
            "Cached pages stand in their logical blocks, the blocks in a list.",
            "Write: the page joins its block, which moves to the most recent end.",
            "Read: with `cache_reads` as a write, and the page comes in clean; without it a hit moves \
             nothing and a miss passes by.",
            "Compensation: a block whose N pages were written in order from the first to the last \
             moves to the least recent end.",
            "Victim: the least recent block other than the one being accessed, which leaves only if \
             it is the only one. Its dirty pages are written in ascending order.",
            "With `padding` its missing pages are read from flash and all N are written; a block without \
             a dirty page is dropped.",
        ],
        drawing: "
most recent [ B2{8,9}  B0{0,1}  B1{5} ] least recent -> victim
                                   ^ padding reads 4, 6, 7 and writes 4 to 7",
        state: BLOCKS,
        cost: cost("O(1)", "O(N)", "O(N)"),
        offline: false,
        example: example_with(4, &[("padding", "true")], 1, "W0 W5 W1 W8 W9"),
    },
    Entry {
        name: "fab",
        title: "FAB",
        line: "The block with the most cached pages leaves.",
        family: Family::Blocks,
        source: source(
            "H. Jo, J. Kang, S. Park, J. Kim, J. Lee",
            "FAB: Flash-Aware Buffer Management Policy for Portable Media Players",
            "IEEE Transactions on Consumer Electronics 52(2)",
            2006,
        ),
        provenance: Provenance::Original,
        rule: &[
            "Blocks as in BPLRU; every access to a block moves it to the most recent end.",
            "Victim: the block with the most cached pages; among equals the least recent. It may be \
             the block being accessed.",
            "Its dirty pages are written in ascending order, its clean ones dropped.",
        ],
        drawing: "
by pages    3: B7
            2: B1, B2     the largest class gives the victim,
            1: B0         its least recent block",
        state: BLOCKS,
        cost: cost("O(1)", "O(B + N)", "O(N)"),
        offline: false,
        example: example(5, "W0 W4 W8 W9 W5 W12 W13"),
    },
    Entry {
        name: "lb-clock",
        title: "LB-CLOCK",
        line: "CLOCK over blocks: of those not written lately the fullest leaves.",
        family: Family::Blocks,
        source: source(
            "B. Debnath, S. Subramanya, D. Du, D. J. Lilja",
            "Large Block CLOCK (LB-CLOCK): A Write Caching Algorithm for Solid State Disks",
            "MASCOTS",
            2009,
        ),
        provenance: Provenance::Original,
        rule: &[
            "Blocks stand in a ring, each with a reference bit; a hand points at one.",
            "An access to a block of the ring sets its bit. A new block comes in just behind the \
             hand, its bit clear.",
            "Victim: the hand clears bits and goes on until it meets a block whose bit is clear. Of \
             all blocks with a clear bit the one with the most pages leaves; among equals the first \
             from the hand on.",
        ],
        drawing: "
     hand
      v
-> B3r0{12} - B2r0{8,9} - B0r1{1} -   (ring)
              ^ victim: bit 0, most pages",
        state: "The ring from the hand on, with reference bits: `B3r0{12} B2r1{8,9}`.",
        cost: cost("O(1)", "O(B)", "O(N) amortised"),
        offline: false,
        example: example(5, "W0 W4 W8 W9 W5 W12 W1 W13 W16"),
    },
    Entry {
        name: "pud-lru",
        title: "PUD-LRU",
        line: "Blocks written often and lately stay; of the others the fullest leaves.",
        family: Family::Blocks,
        source: source(
            "J. Hu, H. Jiang, L. Tian, L. Xu",
            "PUD-LRU: An Erase-Efficient Write Buffer Management Algorithm for Flash Memory SSD",
            "MASCOTS",
            2010,
        ),
        provenance: Provenance::Reconstruction,
        rule: &[
            "Time is counted in page writes. A block knows when it came in, t, and how many page \
             writes it has had, f. Its predicted update distance is (now - t) / f.",
            "Candidates: the blocks whose distance is above the mean of all blocks; all of them if \
             none is.",
            "Victim: the candidate with the most pages; among equals the larger distance, then the \
             least recent.",
        ],
        drawing: "",
        state: BLOCKS,
        cost: cost("O(1)", "O(B)", "O(log B + N)"),
        offline: false,
        example: example(5, "W0 W1 W4 W0 W8 W0 W9 W12"),
    },
    Entry {
        name: "bpac",
        title: "BPAC",
        line: "A list of pages before a list of blocks; blocks that have stopped growing leave by size.",
        family: Family::Blocks,
        source: source(
            "G. Wu, B. Eckart, X. He",
            "BPAC: An Adaptive Write Buffer Management Scheme for Flash-Based Solid State Drives",
            "MSST",
            2010,
        ),
        provenance: Provenance::Reconstruction,
        rule: &[
            "The page list P holds pages written lately, the cluster list K the others by block; both \
             are in LRU order. Time is counted in page writes.",
            "Write: the page moves or comes in at the most recent end of P. While P is longer than \
             `l_p`, its least recent page joins its cluster, which moves to the most recent end of K.",
            "Victim: of the clusters that have not grown for more than `age` page writes the one with \
             the most pages, among equals the least recent. If there is none, the least recent \
             cluster; without clusters, the least recent page of P.",
            "With `adapt`, once every C page writes: `l_p` becomes the distance within which nine \
             tenths of the pages written again were written again (a tenth to nine tenths of C), \
             `age` that within which nine tenths of the clusters that grew did.",
        ],
        drawing: "
write -> P [ 16  5 ] -- longer than l_p --> K [ B3{12} B0{0,1} | B2{8} B1{4} ]
                                              growing            the largest
                                                                 of these leaves",
        state: "`P[5 12] K[B0{0,1}age0]`: pages, then clusters with the page writes since they grew.",
        cost: cost("O(1)", "O(B)", "O(N)"),
        offline: false,
        example: example_with(
            6,
            &[("adapt", "false"), ("l_p", "2"), ("age", "2")],
            1,
            "W0 W4 W5 W8 W1 W12 W5 W16 W20",
        ),
    },
    Entry {
        name: "cbm",
        title: "CBM",
        line: "A write buffer of a page and a block region that works together with a read cache.",
        family: Family::Blocks,
        source: source(
            "Q. Wei, C. Chen, J. Yang",
            "CBM: A Cooperative Buffer Management for SSD",
            "MSST",
            2014,
        ),
        provenance: Provenance::Printed,
        rule: &[
            "Written pages stand in the page region PR, a list of pages, or in the block region BR, a \
             list of blocks by popularity. Pages that were read are in the separate read cache, an \
             LRU list (`buffer.read_cache`).",
            "A write request adds 1 to the popularity of each block it touches, which is forgotten when \
             no page of the block is left and none arrives (D-163). Towards the tail of BR: less \
             popular, then more pages, then written less recently.",
            "Write: a page of PR moves to its head; a new one joins its block in BR or comes in at \
             the head of PR. When a block has THR pages in PR, all of them move to BR.",
            "THR begins at 2. It doubles when BR has grown beyond the share `theta` of the buffer, and \
             halves, down to `threshold_floor`, when an eviction finds BR empty.",
            "Victim: the block at the tail of BR; if BR is empty, the least recent page of PR with \
             all pages of its block. The block being written leaves only if it is the only one.",
            "Merge-on-flush: if clean pages of the block are in the read cache, and fewer than it has \
             dirty ones, all are written in one ascending run.",
        ],
        drawing: "
write -> PR [ 20 16 8 0 ] -- THR pages of a block --> BR [ B3 | B1 ] -> victim
                                                    popular ^    + clean pages
read  -> read cache [ 6 ] -------------------------------------- of the block",
        state: "`PR[8 0] BR[B3 pop2 {12,13}] THR=2 RC[6]`: page region, block region from the most \
                popular, threshold, read cache.",
        cost: cost("O(log B)", "O(log B + N)", "O(log B + N)"),
        offline: false,
        example: example_with(
            8,
            &[("theta", "0.5"), ("read_cache", "4")],
            1,
            "W0 W4 W5 W8 R6 W8 W12 W13 W16 W20 W24",
        ),
    },
    Entry {
        name: "req-block",
        title: "Req-block",
        line: "Pages are kept and evicted by the request that wrote them; small requests stay longer.",
        family: Family::Blocks,
        source: source(
            "H. Lin, Z. Sha, J. Li, Z. Cai, B. Gerofi, Y. Shi, J. Liao",
            "DRAM Cache Management with Request Granularity for NAND-Based SSDs",
            "ICPP",
            2022,
        ),
        provenance: Provenance::Reconstruction,
        rule: &[
            "The pages of a write request form a block; it comes in at the head of the list IRL. Reads \
             hit as writes do, but bring nothing in.",
            "Hit in a small block (at most `small_request` pages): it moves to the head of the list \
             SRL.",
            "Hit in a larger block: the pages that one request hits leave it for a block of their own \
             at the head of the list DRL (divided).",
            "Victim: of the blocks at the tails of IRL, DRL and SRL the one with the least hits / \
             (pages x age), age in page accesses; among equals the first. Not the block that the \
             request is filling, unless it is the only one.",
            "A victim from DRL takes along the block it was divided from, if that is still in IRL.",
        ],
        drawing: "
write request -> IRL [ {20}  {16,17}  {8,10,11} ]   tail with the least
hit, small    -> SRL [ {0,1} ]                      hits / (pages x age)
hit, large    -> DRL [ {9} ]                        leaves",
        state: "`IRL[{20}x1] DRL[{9}x1] SRL[{0,1}x2]`: the lists with the pages and hits of each block, \
                the head first.",
        cost: cost("O(1)", "O(N)", "O(N)"),
        offline: false,
        example: example_with(6, &[("small_request", "2")], 1, "W0x2 W8x4 W0 W9 W16x2 W20"),
    },
];
