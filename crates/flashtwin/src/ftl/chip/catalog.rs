//! Every translation layer of this room in words: what the command line, Python and `docs/ftls.md`
//! say of it.

pub use crate::buffer::catalog::{Provenance, Source};

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub key: &'static str,
    /// What it takes.
    pub takes: &'static str,
    /// Its value if none is given.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Where the default comes from.
    pub provenance: &'static str,
}

/// A string of accesses that shows the rule at work, on 16 blocks of 4 pages of which half are
/// exported, all written.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Parameters.
    pub set: &'static [(&'static str, &'static str)],
    /// In the notation of [`super::trace`].
    pub accesses: &'static str,
}

/// A translation layer in words.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Name in print.
    pub title: &'static str,
    /// One line.
    pub line: &'static str,
    /// Where it was published.
    pub source: Source,
    /// How sure the rule is.
    pub provenance: Provenance,
    /// The rule, sentence by sentence.
    pub rule: &'static [&'static str],
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// How its state is printed.
    pub state: &'static str,
    /// The rule at work.
    pub example: Example,
}

/// The one called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

const fn parameter(
    key: &'static str,
    takes: &'static str,
    default: &'static str,
    doc: &'static str,
    provenance: &'static str,
) -> Parameter {
    Parameter {
        key,
        takes,
        default,
        doc,
        provenance,
    }
}

const NUMBER: &str = "a whole number from 1";
const SWITCH: &str = "true or false";

/// All of them.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "dftl",
        title: "DFTL",
        line: "Page mapping whose map lies in flash; a part of it is cached.",
        source: Source {
            authors: "A. Gupta, Y. Kim, B. Urgaonkar",
            title: "DFTL: A Flash Translation Layer Employing Demand-based Selective Caching of \
                    Page-level Address Mappings",
            venue: "ASPLOS",
            year: 2009,
        },
        provenance: Provenance::Original,
        rule: &[
            "A translation page holds the entries of `entries_per_translation_page` consecutive \
             pages; a directory in memory says where each translation page is.",
            "An access whose entry is not among the `cmt_entries` cached ones reads its translation \
             page; the oldest entry leaves, and if it is dirty its translation page is read and \
             written first.",
            "With `batching` all dirty entries of a translation page that is written go with it and \
             become clean.",
            "The cache is a segmented LRU: a second access moves an entry to the protected segment \
             of `protected_entries`; with 0 it is LRU.",
            "Data and translation pages have blocks of their own; collection is greedy over both \
             and begins when no more than `low_blocks` are free.",
            "Entries of moved pages become dirty if they are cached; the translation pages of the \
             others are each read and written once.",
        ],
        parameters: &[
            parameter(
                "cmt_entries",
                NUMBER,
                "1/32 of the pages",
                "Map entries that are cached.",
                "ours (D-47)",
            ),
            parameter(
                "protected_entries",
                "a whole number below cmt_entries",
                "half of cmt_entries",
                "Of these, how many the protected segment has; 0 makes the cache LRU.",
                "ours (D-47)",
            ),
            parameter(
                "entries_per_translation_page",
                NUMBER,
                "1024",
                "Map entries of a translation page.",
                "4 bytes each in a page of 4 KB",
            ),
            parameter(
                "batching",
                SWITCH,
                "true",
                "Dirty entries of a translation page that is written go with it.",
                "published",
            ),
            parameter(
                "low_blocks",
                "a whole number from 2",
                "5 % of the blocks",
                "Collection begins when no more blocks than this are free.",
                "5 % as GCaR and Harmonia; at most half of the spare blocks (D-48)",
            ),
        ],
        state: "The cached entries, protected before those on probation, most recent first, `*` \
                dirty; then the number of free blocks.",
        example: Example {
            set: &[
                ("cmt_entries", "2"),
                ("protected_entries", "0"),
                ("entries_per_translation_page", "4"),
            ],
            accesses: "R0 1 R4 2 0",
        },
    },
    Entry {
        name: "bast",
        title: "BAST",
        line: "Block mapping; a few logical blocks have a log block of their own.",
        source: Source {
            authors: "J. Kim, J. M. Kim, S. H. Noh, S. L. Min, Y. Cho",
            title: "A Space-Efficient Flash Translation Layer for CompactFlash Systems",
            venue: "IEEE Transactions on Consumer Electronics 48(2)",
            year: 2002,
        },
        provenance: Provenance::Original,
        rule: &[
            "A page has its place in the data block of its logical block and goes there if that \
             place was never written; any other goes to the next page of the logical block's log.",
            "There are `log_blocks` logs; if none is left, the one written longest ago is merged. A \
             log that is full is merged when another page comes.",
            "Switch merge: a log with all pages in order becomes the data block, whose erase is all \
             it costs.",
            "Partial merge: a log with the first pages in order gets copies of the others and \
             becomes the data block.",
            "Full merge: the newest pages are copied to a new block; data block and log are erased.",
        ],
        parameters: &[parameter(
            "log_blocks",
            NUMBER,
            "3 % of the blocks",
            "Log blocks.",
            "the share of CBM's FAST",
        )],
        state: "The logs by the logical block that each belongs to, most recently written first, \
                with their pages in the order of writing; `-` is stale.",
        example: Example {
            set: &[("log_blocks", "2")],
            accesses: "0 1 2 3 0 5 4 8 12",
        },
    },
    Entry {
        name: "fast",
        title: "FAST",
        line: "Block mapping with log blocks that all logical blocks share.",
        source: Source {
            authors: "S. W. Lee, D. J. Park, T. S. Chung, D. H. Lee, S. Park, H. J. Song",
            title: "A Log Buffer-Based Flash Translation Layer Using Fully-Associative Sector \
                    Translation",
            venue: "ACM Transactions on Embedded Computing Systems 6(3)",
            year: 2007,
        },
        provenance: Provenance::Original,
        rule: &[
            "A page whose place in its data block was never written goes there.",
            "A page with offset 0 begins the log block for sequential writes (SW) anew; the old one \
             becomes its owner's data block, by a switch if it is full, else by a partial merge.",
            "A page of the SW block's owner is appended to it if it is the next one. If it was \
             passed, a full merge, and if it skips ahead, a partial merge includes it, and the SW \
             block is empty.",
            "Any other page goes to the newest of the `rw_log_blocks` for random writes (RW).",
            "If they are full the oldest is reclaimed: each logical block of which it holds a newest \
             page is merged once, and it is erased.",
        ],
        parameters: &[parameter(
            "rw_log_blocks",
            NUMBER,
            "3 % of the blocks, less one",
            "Log blocks for random writes.",
            "CBM: 3 % of the blocks are log blocks; the SW block is one of them (D-50)",
        )],
        state: "The SW block with its owner, then the RW blocks, oldest first; `-` is stale.",
        example: Example {
            set: &[("rw_log_blocks", "2")],
            accesses: "0 1 2 3 4 9 13 10 17 9 14 5 18 11 15",
        },
    },
    Entry {
        name: "faster",
        title: "FASTER",
        line: "FAST whose log gives pages a second chance and sets cold ones apart.",
        source: Source {
            authors: "S. P. Lim, S. W. Lee, B. Moon",
            title: "FASTer FTL for Enterprise-Class Flash Memory SSDs",
            venue: "SNAPI",
            year: 2010,
        },
        provenance: Provenance::Reconstruction,
        rule: &[
            "As FAST, but a full RW log is not merged: the newest pages of its oldest block are \
             copied to its head once more and marked; those marked before move to the isolation area.",
            "When all `isolation_blocks` are full, the logical block of the oldest page there is \
             merged, until the oldest block is empty and erased.",
            "Progressive merge: once no more than two isolation blocks are left, one such merge is \
             done every so many writes, so that the oldest block is empty when the newest is full.",
            "With `refinements` an oldest block all of whose pages are newest and unmarked is only \
             marked and takes its turn again.",
            "With `refinements` the pages of a block with fewer than half of them newest are all \
             copied to the head, marked or not.",
            "With `refinements` the fifth of consecutive pages begins the SW block, after copies of \
             the pages that precede it in its logical block.",
        ],
        parameters: &[
            parameter(
                "rw_log_blocks",
                NUMBER,
                "6.7 % of the blocks, less one",
                "Log blocks for random writes.",
                "CBM section V: 1120 of 16632 blocks; the SW block is one of them (D-50)",
            ),
            parameter(
                "isolation_blocks",
                NUMBER,
                "1.6 % of the blocks",
                "Blocks of the isolation area.",
                "CBM section V: 272 of 16632 blocks",
            ),
            parameter(
                "refinements",
                SWITCH,
                "true",
                "The three refinements of the published firmware.",
                "published firmware",
            ),
        ],
        state: "The SW block with its owner, the RW blocks and the isolation blocks, oldest first; \
                `*` had its second chance, `-` is stale.",
        example: Example {
            set: &[("rw_log_blocks", "2"), ("refinements", "false")],
            accesses: "5 9 13 17 6 5 10 14 18 9",
        },
    },
];
