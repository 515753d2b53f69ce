//! Policies by recency and cleanliness.

use super::*;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "lru",
        title: "LRU",
        line: "The page not accessed for the longest time leaves; the baseline of the papers.",
        family: Family::Recency,
        source: source(
            "R. L. Mattson, J. Gecsei, D. R. Slutz, I. L. Traiger",
            "Evaluation Techniques for Storage Hierarchies",
            "IBM Systems Journal 9(2)",
            1970,
        ),
        provenance: Provenance::Original,
        rule: &[
            "All pages, clean and dirty, stand in one list.",
            "Hit: the page moves to the most recent end.",
            "Miss: the page comes in at the most recent end.",
            "Victim: the page at the least recent end, whatever its state.",
        ],
        drawing: "
most recent [ 6d  5c  4d  3d  2c  1d ] least recent
                                 ^ victim",
        state: PAGES,
        cost: cost("O(1)", "O(1)", "O(1)"),
        offline: false,
        example: example(3, "W1 R2 W3 R1 W4 R2"),
    },
    Entry {
        name: "cflru",
        title: "CFLRU",
        line: "LRU that lets clean pages go first within a window at the least recent end.",
        family: Family::Recency,
        source: source(
            "S. Park, D. Jung, J. Kang, J. Kim, J. Lee",
            "CFLRU: A Replacement Algorithm for Flash Memory",
            "CASES",
            2006,
        ),
        provenance: Provenance::Original,
        rule: &[
            "Hit and miss as LRU.",
            "The `window` least recent entries of the list are the clean-first region.",
            "Victim: the least recent clean page of the region; if it holds none, the least recent \
             page.",
            "Clean pages outside the region do not count.",
        ],
        drawing: "
              working region   clean-first region
most recent [ 6d  5c  4d  9c | 3d  2c  1d ] least recent
                                   ^ victim",
        state: PAGES,
        cost: cost("O(1)", "O(window)", "O(1)"),
        offline: false,
        example: example_with(4, &[("window", "2")], 1, "W1 R2 W3 W4 R5 W6 R7"),
    },
    Entry {
        name: "cflru-eps",
        title: "CFLRU-epsilon",
        line: "CFLRU whose clean-first region is the whole buffer.",
        family: Family::Recency,
        source: ECR,
        provenance: Provenance::Printed,
        rule: &[
            "Hit and miss as LRU.",
            "Victim: the least recent clean page; if every page is dirty, the least recent page.",
            "Equal to `cflru` with a window of the whole buffer.",
        ],
        drawing: "",
        state: PAGES,
        cost: cost("O(1)", "O(n)", "O(1)"),
        offline: false,
        example: example(4, "W1 R2 W3 W4 R5 W6 R7"),
    },
    Entry {
        name: "lru-wsr",
        title: "LRU-WSR",
        line: "LRU that gives a dirty page a second chance before it is written back.",
        family: Family::Recency,
        source: source(
            "H. Jung, H. Shim, S. Park, S. Kang, J. Cha",
            "LRU-WSR: Integration of LRU and Writes Sequence Reordering for Flash Memory",
            "IEEE Transactions on Consumer Electronics 54(3)",
            2008,
        ),
        provenance: Provenance::Original,
        rule: &[
            "One list as LRU's; each page has a cold flag, cleared when it comes in and when it is \
             hit.",
            "Victim: look at the least recent page. If it is clean, or dirty and flagged cold, it \
             leaves.",
            "If it is dirty and not cold, it is flagged, moves to the most recent end, and the next \
             one is looked at.",
        ],
        drawing: "
most recent [ 4d0  3d0  2c0  1d0 ] least recent
               ^              |
               +--------------+ dirty, flag 0: flag 1 and once more round",
        state: "As `lru`, with the cold flag behind: `4d1`.",
        cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
        offline: false,
        example: example(3, "W1 R2 W3 W4 W5 W6"),
    },
    Entry {
        name: "ccf-lru",
        title: "CCF-LRU",
        line: "Clean pages read only once leave first; clean pages read again are granted a delay.",
        family: Family::Recency,
        source: source(
            "Z. Li, P. Jin, X. Su, K. Cui, L. Yue",
            "CCF-LRU: A New Buffer Replacement Algorithm for Flash Memory",
            "IEEE Transactions on Consumer Electronics 55(3)",
            2009,
        ),
        provenance: Provenance::Original,
        rule: &[
            "The cold-clean list CCL holds clean pages accessed once, the mixed list ML dirty pages \
             and clean ones accessed again. A page comes in flagged cold.",
            "Miss: a read comes in at the most recent end of CCL, a write at that of ML.",
            "Hit in either: the flag is cleared and the page moves to the most recent end of ML.",
            "Victim: the least recent page of CCL, if it holds any.",
            "Else look at the least recent page of ML. Flagged: it leaves. Not flagged and dirty: it \
             is flagged and moves to the most recent end of ML. Not flagged and clean: it is flagged \
             and moves to CCL. Then the next one is looked at; if ML runs empty, the least recent \
             page of CCL leaves.",
        ],
        drawing: "
ML  [ 4d1  3d0  2c0 ] -> flag 0, clean -> CCL
      ^----- flag 0, dirty: once more    flag 1: victim
CCL [ 9c1  7c1 ] -> victim, as long as there is one",
        state: "Both lists, most recent first, with the cold flag: `ML[4d1] CCL[2c1]`.",
        cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
        offline: false,
        example: example(3, "W1 R2 R2 R3 W4 W5 R6"),
    },
    Entry {
        name: "ad-lru",
        title: "AD-LRU",
        line: "A cold and a hot list of adaptive sizes; clean pages of the list in turn leave first.",
        family: Family::Recency,
        source: source(
            "P. Jin, Y. Ou, T. Haerder, Z. Li",
            "AD-LRU: An Efficient Buffer Replacement Algorithm for Flash-Based Databases",
            "Data and Knowledge Engineering 72",
            2012,
        ),
        provenance: Provenance::Original,
        rule: &[
            "The cold list Lc holds pages accessed once, the hot list Lh the others; each is in LRU \
             order. Cold flags as in LRU-WSR.",
            "Miss: most recent end of Lc. Hit: most recent end of Lh, flag cleared.",
            "The victim comes from Lc while it is longer than `min_lc` or Lh is empty, else from Lh.",
            "Victim: the list's least recent clean page. If it has none, second chance over the dirty \
             ones: a flagged page leaves, another is flagged and moves to the most recent end of the \
             same list.",
        ],
        drawing: "
hit ->  Lh [ 1d0  8c0 ]
miss -> Lc [ 6d0  5c0  3d0 ]   longer than min_lc: the victim is here
                  ^ FC: least recent clean page",
        state: "Both lists, most recent first, with the cold flag: `Lc[7d0] Lh[1d0]`.",
        cost: cost("O(1)", "O(1) amortised", "O(1) amortised"),
        offline: false,
        example: example_with(4, &[("min_lc", "1")], 1, "W1 R2 W3 W1 R4 W5 W6 W7"),
    },
];
