//! Policies of caches in general.

use super::*;

/// One string for all of them, so that they can be compared.
const GENERAL: &str = "W1 R2 W3 R1 W4 R5 R2 R1 W6 R7";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "fifo",
        title: "FIFO",
        line: "Pages leave in the order in which they came; a hit changes nothing.",
        family: Family::General,
        source: source(
            "L. A. Belady",
            "A Study of Replacement Algorithms for a Virtual-Storage Computer",
            "IBM Systems Journal 5(2)",
            1966,
        ),
        provenance: Provenance::Original,
        rule: &[
            "One queue. Miss: the page comes in at its head. Hit: nothing.",
            "Victim: the page at the tail.",
        ],
        drawing: "",
        state: PAGES,
        cost: cost("O(1)", "O(1)", "O(1)"),
        offline: false,
        example: example(4, GENERAL),
    },
    Entry {
        name: "clock",
        title: "CLOCK",
        line: "FIFO with a second chance for pages accessed since the hand last passed.",
        family: Family::General,
        source: source(
            "F. J. Corbato",
            "A Paging Experiment with the Multics System",
            "MIT Project MAC Report MAC-M-384",
            1968,
        ),
        provenance: Provenance::Original,
        rule: &[
            "Pages stand in a ring, each with a reference bit; a hand points at one.",
            "Miss: the page comes in just behind the hand, its bit clear (Corbato sets it; caches of today \
             clear it). Hit: the bit is set.",
            "Victim: the hand clears set bits and goes on; the first page whose bit is clear leaves.",
        ],
        drawing: "
 hand -> 4d1 -> 1d0 -> 3d0 -> 5c1 -+
          ^     victim             |
          +------------------------+",
        state: "The ring with reference bits; the hand stands at the last page.",
        cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
        offline: false,
        example: example(4, GENERAL),
    },
    Entry {
        name: "2q",
        title: "2Q",
        line: "New pages pass through a queue; only those asked for again after it are kept.",
        family: Family::General,
        source: source(
            "T. Johnson, D. Shasha",
            "2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm",
            "VLDB",
            1994,
        ),
        provenance: Provenance::Original,
        rule: &[
            "A1in is a queue of new pages, Am an LRU list, A1out remembers the numbers of pages that \
             left A1in (ghosts).",
            "Miss: a page remembered in A1out comes into Am, another one into A1in.",
            "Hit in Am: most recent end. Hit in A1in: nothing.",
            "Victim: if A1in holds more than `k_in` pages, its oldest, which A1out then remembers (at \
             most `k_out` numbers); else the least recent page of Am, which is forgotten.",
            "The number of the page that comes in leaves A1out before the victim's comes in; as printed, \
             after it (D-161).",
        ],
        drawing: "
new -> A1in [ 5 4 3 ] -> victim, number kept in A1out ( 2 1 )
                                                         |
       Am   [ 9 7 ] -> victim     <---- asked for again -+",
        state: "`A1in[5c 4d] Am[1c] A1out[3 2]`: pages and remembered numbers, most recent first.",
        cost: cost("O(1)", "O(1)", "O(1)"),
        offline: false,
        example: example_with(4, &[("k_in", "1"), ("k_out", "2")], 1, GENERAL),
    },
    Entry {
        name: "arc",
        title: "ARC",
        line: "Recency and frequency lists whose sizes follow hits among pages evicted lately.",
        family: Family::General,
        source: source(
            "N. Megiddo, D. S. Modha",
            "ARC: A Self-Tuning, Low Overhead Replacement Cache",
            "FAST",
            2003,
        ),
        provenance: Provenance::Original,
        rule: &[
            "T1 holds pages accessed once, T2 the others, each in LRU order; B1 and B2 remember the \
             numbers of pages that left them. p is the target size of T1.",
            "Hit: most recent end of T2.",
            "Miss of a page in B1: p grows by |B2| / |B1|, at least 1. In B2: it shrinks by |B1| / \
             |B2|, at least 1. Both come into T2, all others into T1.",
            "Victim: the least recent page of T1 if T1 holds more than p (or p, and the page asked \
             for is in B2), else that of T2. Its number goes to B1 or B2.",
            "T1 and B1 together hold at most C numbers, all four lists 2 C. If T1 alone fills the buffer, \
             its page leaves unremembered.",
        ],
        drawing: "
B1 ( 9 8 ) <- [ 5 4 3   T1 | T2   7 6 1 ] -> B2 ( 2 )
                           ^ p
a hit in B1 moves p right, one in B2 moves it left",
        state: "`T1[6d 5c] T2[1d 2c] B1[4 3] B2[] p=1`: pages and remembered numbers, most recent first.",
        cost: cost("O(1)", "O(1)", "O(1)"),
        offline: false,
        example: example(4, GENERAL),
    },
    Entry {
        name: "lirs",
        title: "LIRS",
        line: "Ranks pages by the distance between their last two accesses.",
        family: Family::General,
        source: source(
            "S. Jiang, X. Zhang",
            "LIRS: An Efficient Low Inter-Reference Recency Set Replacement Policy to Improve \
             Buffer Cache Performance",
            "SIGMETRICS",
            2002,
        ),
        provenance: Provenance::Original,
        rule: &[
            "LIR pages have a short distance between accesses and stay; `hir` pages of the buffer are \
             left for the others, HIR.",
            "The stack S orders by recency all LIR pages and those HIR pages, cached or not, that \
             were accessed since the oldest LIR page was. The queue Q holds the cached HIR pages.",
            "Access to an LIR page: top of S. To an HIR page that is in S: it becomes LIR and the \
             oldest LIR page becomes HIR, at the end of Q. To another HIR page: top of S, end of Q.",
            "The bottom of S is always an LIR page: HIR pages below it are dropped from S. S is bounded to \
             twice the buffer (not in the paper).",
            "Victim: the page at the front of Q.",
        ],
        drawing: "
S (recent on top)      Q
  5 HIR  cached        [ 5  3 ] -> victim: 3
  4 LIR
  2 HIR  gone, remembered
  1 LIR  <- oldest LIR is the bottom",
        state: "`S[5cH 4 1dL] Q[5c]`: stack and queue, most recent first; L is LIR, H is HIR, a bare number \
                a page no longer cached.",
        cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
        offline: false,
        example: example_with(4, &[("hir", "1")], 1, GENERAL),
    },
    Entry {
        name: "s3-fifo",
        title: "S3-FIFO",
        line: "Three queues: a small one sifts out pages accessed only once.",
        family: Family::General,
        source: source(
            "J. Yang, Y. Zhang, Z. Qiu, Y. Yue, K. V. Rashmi",
            "FIFO Queues Are All You Need for Cache Eviction",
            "SOSP",
            2023,
        ),
        provenance: Provenance::Original,
        rule: &[
            "S is a small queue of new pages, M the main queue, G remembers numbers of pages that \
             left S. Each page has a counter from 0 to 3.",
            "Hit: the counter grows by 1; no page moves.",
            "Miss: a page remembered in G comes into M, another one into S, counter 0.",
            "Victim from M if it holds more than C - `small` pages: its oldest page goes round once more, \
             counter less 1, while the counter is above 0; else it leaves.",
            "Victim from S otherwise: its oldest page moves to M, counter 0, if it was hit more than \
             once, else it leaves and G remembers it.",
            "The number of the page that comes in leaves G before the victim's comes in; as printed, after \
             it (D-161).",
            "Until the first eviction, pages for which S has no room go to M.",
        ],
        drawing: "
new -> S [ 6 5 ] -- hit more than once --> M [ 4 3 1 ] -> victim
              |                            ^   ^     |
              v victim, number kept        |   +-----+ counter > 0: counter - 1
            G ( 2 ) --- asked for again ---+",
        state: "`S[6d0] M[2c0 1c1] G[5]`: pages with counters and remembered numbers, newest first.",
        cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
        offline: false,
        example: example_with(4, &[("small", "1"), ("ghosts", "3")], 1, GENERAL),
    },
    Entry {
        name: "sieve",
        title: "SIEVE",
        line: "A queue with a hand that lets go of the first page not accessed since it last passed.",
        family: Family::General,
        source: source(
            "Y. Zhang, J. Yang, Y. Yue, Y. Vigfusson, K. V. Rashmi",
            "SIEVE is Simpler than LRU: An Efficient Turn-Key Eviction Algorithm for Web Caches",
            "NSDI",
            2024,
        ),
        provenance: Provenance::Original,
        rule: &[
            "One queue; each page has a visited bit. Miss: head of the queue, bit clear.",
            "Hit: the bit is set; no page moves.",
            "Victim: the hand goes from where it stands towards the head and clears set bits; the \
             first page whose bit is clear leaves. Beyond the head it goes on at the tail.",
        ],
        drawing: "
head [ 6d0  5c1  4d0  3d1  1d1 ] tail
                  ^    <---- hand clears bits on its way
                  victim; unlike in CLOCK, pages kept do not move",
        state: "The queue, newest first, with visited bits, and the page at the hand.",
        cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
        offline: false,
        example: example(4, GENERAL),
    },
    Entry {
        name: "min",
        title: "MIN",
        line: "Belady's optimum: the page needed farthest in the future leaves; the bound of all.",
        family: Family::General,
        source: source(
            "L. A. Belady",
            "A Study of Replacement Algorithms for a Virtual-Storage Computer",
            "IBM Systems Journal 5(2)",
            1966,
        ),
        provenance: Provenance::Original,
        rule: &[
            "Victim: the page whose next access is farthest away; one never accessed again before all \
             others.",
            "No policy that fetches on demand hits more often. Reads and writes count alike, so this \
             is no bound of the pages written.",
            "It must know the future: `flashtwin policy hits` has it, a device cannot.",
        ],
        drawing: "
to come:  R3 W1 R2 R1 ...
buffer    [ 1  2  3 ]   next access after 2, 3, 1 -> victim: 2",
        state: "",
        cost: cost("O(log n)", "O(log n)", "O(log n)"),
        offline: true,
        example: None,
    },
];
