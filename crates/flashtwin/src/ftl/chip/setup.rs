//! What a translation layer is made for: the chip, the pages it exports, and the parameters of each
//! kind with their defaults.

use std::fmt;

use super::store::PAGES_PER_BLOCK_MAX;

/// A chip and its translation layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Pages that can be written by the host.
    pub logical_pages: u32,
    /// Blocks of the chip.
    pub blocks: u32,
    /// N.
    pub pages_per_block: u32,
    /// The translation layer.
    pub kind: Kind,
}

/// The translation layer with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// DFTL.
    Dftl(DftlSetup),
    /// BAST.
    Bast(BastSetup),
    /// FAST.
    Fast(FastSetup),
    /// FASTER.
    Faster(FasterSetup),
}

impl Kind {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Dftl(_) => "dftl",
            Kind::Bast(_) => "bast",
            Kind::Fast(_) => "fast",
            Kind::Faster(_) => "faster",
        }
    }
}

/// Parameters of DFTL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DftlSetup {
    /// Map entries that are cached.
    pub cmt_entries: u32,
    /// Of these in the protected segment; 0 makes the cache LRU.
    pub protected_entries: u32,
    /// Map entries of a translation page.
    pub entries_per_translation_page: u32,
    /// Dirty entries of a translation page that is written go with it.
    pub batching: bool,
    /// Collection begins when no more blocks than this are free.
    pub low_blocks: u32,
}

/// Parameters of BAST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BastSetup {
    /// Log blocks.
    pub log_blocks: u32,
}

/// Parameters of FAST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastSetup {
    /// Log blocks for random writes, beside the one for sequential writes.
    pub rw_log_blocks: u32,
}

/// Parameters of FASTER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FasterSetup {
    /// Log blocks for random writes, beside the one for sequential writes.
    pub rw_log_blocks: u32,
    /// Blocks of the isolation area.
    pub isolation_blocks: u32,
    /// The three refinements of the published firmware.
    pub refinements: bool,
}

/// What is wrong with a setup, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupError(String);

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

impl SetupError {
    /// The parameter that is wrong, if it is one of the translation layer's own.
    pub(crate) fn parameter(&self) -> Option<&str> {
        let (name, _) = self.0.split_once(':')?;
        let is_geometry = ["blocks", "pages_per_block", "logical_pages", "ftl"].contains(&name);
        (!is_geometry).then_some(name)
    }
}

/// So many thousandths of the blocks, rounded, and at least `min`.
fn share(blocks: u32, thousandths: u64, min: u32) -> u32 {
    let share = (u64::from(blocks) * thousandths + 500) / 1000;
    (share as u32).max(min)
}

impl DftlSetup {
    /// Translation pages for so many logical pages.
    pub fn translation_pages(&self, logical_pages: u32) -> u32 {
        logical_pages.div_ceil(self.entries_per_translation_page)
    }
}

impl Setup {
    /// Names of the translation layers.
    pub const NAMES: [&'static str; 4] = ["dftl", "bast", "fast", "faster"];

    /// The translation layer called `name` with its default parameters.
    pub fn new(
        name: &str,
        logical_pages: u32,
        blocks: u32,
        pages_per_block: u32,
    ) -> Result<Setup, SetupError> {
        let kind = match name {
            "dftl" => {
                let cmt_entries = (logical_pages / 32).max(2);
                Kind::Dftl(DftlSetup {
                    cmt_entries,
                    protected_entries: cmt_entries / 2,
                    entries_per_translation_page: 1024,
                    batching: true,
                    low_blocks: 2,
                })
            }
            "bast" => Kind::Bast(BastSetup {
                log_blocks: share(blocks, 30, 1),
            }),
            "fast" => Kind::Fast(FastSetup {
                rw_log_blocks: share(blocks, 30, 2) - 1,
            }),
            "faster" => Kind::Faster(FasterSetup {
                rw_log_blocks: share(blocks, 67, 3) - 1,
                isolation_blocks: share(blocks, 16, 1),
                refinements: true,
            }),
            _ => {
                return Err(SetupError(format!(
                    "ftl: found {name:?}; known are {}",
                    Setup::NAMES.join(", ")
                )))
            }
        };
        let mut setup = Setup {
            logical_pages,
            blocks,
            pages_per_block,
            kind,
        };
        if let (Some(low), Kind::Dftl(own)) = (setup.low_default(), &mut setup.kind) {
            own.low_blocks = low;
        }
        Ok(setup)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Names of the parameters.
    pub fn parameters(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Dftl(_) => &[
                "cmt_entries",
                "protected_entries",
                "entries_per_translation_page",
                "batching",
                "low_blocks",
            ],
            Kind::Bast(_) => &["log_blocks"],
            Kind::Fast(_) => &["rw_log_blocks"],
            Kind::Faster(_) => &["rw_log_blocks", "isolation_blocks", "refinements"],
        }
    }

    /// The value of a parameter as text; `None` if there is no such parameter.
    pub(crate) fn value(&self, parameter: &str) -> Option<String> {
        Some(match (&self.kind, parameter) {
            (Kind::Dftl(own), "cmt_entries") => own.cmt_entries.to_string(),
            (Kind::Dftl(own), "protected_entries") => own.protected_entries.to_string(),
            (Kind::Dftl(own), "entries_per_translation_page") => {
                own.entries_per_translation_page.to_string()
            }
            (Kind::Dftl(own), "batching") => own.batching.to_string(),
            (Kind::Dftl(own), "low_blocks") => own.low_blocks.to_string(),
            (Kind::Bast(own), "log_blocks") => own.log_blocks.to_string(),
            (Kind::Fast(own), "rw_log_blocks") => own.rw_log_blocks.to_string(),
            (Kind::Faster(own), "rw_log_blocks") => own.rw_log_blocks.to_string(),
            (Kind::Faster(own), "isolation_blocks") => own.isolation_blocks.to_string(),
            (Kind::Faster(own), "refinements") => own.refinements.to_string(),
            _ => return None,
        })
    }

    /// Sets several parameters, given as text; those of DFTL that follow from others and are not
    /// given are worked out anew.
    pub fn set_all(&mut self, settings: &[(&str, &str)]) -> Result<(), SetupError> {
        for (key, value) in settings {
            self.set(key, value)?;
        }
        let is_given = |key| settings.iter().any(|(given, _)| *given == key);
        let low = self.low_default().filter(|_| !is_given("low_blocks"));
        if let Kind::Dftl(own) = &mut self.kind {
            own.low_blocks = low.unwrap_or(own.low_blocks);
            if !is_given("protected_entries") {
                own.protected_entries = own.cmt_entries / 2;
            }
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SetupError> {
        let number = |into: &mut u32| match value.parse() {
            Ok(number) => {
                *into = number;
                Ok(())
            }
            Err(_) => Err(SetupError(format!(
                "{key}: found {value:?}; must be a whole number"
            ))),
        };
        let switch = |into: &mut bool| match value.parse() {
            Ok(on) => {
                *into = on;
                Ok(())
            }
            Err(_) => Err(SetupError(format!(
                "{key}: found {value:?}; must be true or false"
            ))),
        };
        match (&mut self.kind, key) {
            (Kind::Dftl(own), "cmt_entries") => number(&mut own.cmt_entries),
            (Kind::Dftl(own), "protected_entries") => number(&mut own.protected_entries),
            (Kind::Dftl(own), "entries_per_translation_page") => {
                number(&mut own.entries_per_translation_page)
            }
            (Kind::Dftl(own), "batching") => switch(&mut own.batching),
            (Kind::Dftl(own), "low_blocks") => number(&mut own.low_blocks),
            (Kind::Bast(own), "log_blocks") => number(&mut own.log_blocks),
            (Kind::Fast(own), "rw_log_blocks") => number(&mut own.rw_log_blocks),
            (Kind::Faster(own), "rw_log_blocks") => number(&mut own.rw_log_blocks),
            (Kind::Faster(own), "isolation_blocks") => number(&mut own.isolation_blocks),
            (Kind::Faster(own), "refinements") => switch(&mut own.refinements),
            _ => Err(SetupError(format!(
                "{key}: {} has no such parameter; it has {}",
                self.name(),
                self.parameters().join(", ")
            ))),
        }
    }

    /// Pages to write until nothing is left of an older state: all of them, or those of the logs.
    pub(crate) fn turn_pages(&self) -> u64 {
        let n = u64::from(self.pages_per_block);
        match &self.kind {
            Kind::Dftl(_) => self.logical_pages.into(),
            Kind::Bast(own) => u64::from(own.log_blocks) * n,
            Kind::Fast(own) => u64::from(own.rw_log_blocks) * n,
            Kind::Faster(own) => {
                (u64::from(own.rw_log_blocks) + u64::from(own.isolation_blocks)) * n
            }
        }
    }

    /// Logical blocks.
    pub fn logical_blocks(&self) -> u32 {
        self.logical_pages.div_ceil(self.pages_per_block.max(1))
    }

    /// Blocks that the chip needs for its data, its logs or translation pages, and for merging or
    /// collecting whatever the host does.
    pub fn blocks_min(&self) -> u64 {
        let data = u64::from(self.logical_blocks());
        let n = self.pages_per_block.max(1);
        data + match &self.kind {
            // One block being written of each kind, and three for collecting.
            Kind::Dftl(own) => {
                let whole = u64::from(self.logical_pages / n);
                let translation = own.translation_pages(self.logical_pages) / n;
                whole + u64::from(translation) + 5 - data
            }
            // One for a full merge.
            Kind::Bast(own) => u64::from(own.log_blocks) + 1,
            // The same, and the log block for sequential writes.
            Kind::Fast(own) => u64::from(own.rw_log_blocks) + 2,
            // The same, and the log's new head while its oldest block is reclaimed.
            Kind::Faster(own) => u64::from(own.rw_log_blocks) + u64::from(own.isolation_blocks) + 3,
        }
    }

    /// The most blocks that collection can keep free with every page live.
    fn low_max(&self) -> Option<u32> {
        let room = u64::from(self.blocks).checked_sub(self.blocks_min())?;
        Some(room as u32 + 2)
    }

    /// 5 % of the blocks, where that leaves half of the spare blocks to the data; DFTL only.
    fn low_default(&self) -> Option<u32> {
        match &self.kind {
            Kind::Dftl(own) if own.entries_per_translation_page > 0 => {
                Some(share(self.blocks, 50, 2).min((self.low_max()? / 2).max(2)))
            }
            _ => None,
        }
    }

    /// What is wrong with it, if anything is.
    pub fn check(&self) -> Result<(), SetupError> {
        let wrong = |text: String| Err(SetupError(text));
        let n = self.pages_per_block;
        if !(2..=PAGES_PER_BLOCK_MAX).contains(&n) {
            return wrong(format!(
                "pages_per_block: found {n}; must be from 2 to {PAGES_PER_BLOCK_MAX}"
            ));
        }
        // Numbers of pages and of translation pages share 32 bits with two marks.
        if u64::from(self.blocks) * u64::from(n) > 1 << 31 {
            return wrong(format!(
                "blocks: {} blocks of {n} pages; at most {} pages can be numbered",
                self.blocks,
                1u32 << 31
            ));
        }
        if self.logical_pages == 0 {
            return wrong("logical_pages: found 0; must be at least 1".to_owned());
        }
        let positive = match &self.kind {
            Kind::Dftl(own) => &[
                ("cmt_entries", own.cmt_entries),
                (
                    "entries_per_translation_page",
                    own.entries_per_translation_page,
                ),
            ][..],
            Kind::Bast(own) => &[("log_blocks", own.log_blocks)],
            Kind::Fast(own) => &[("rw_log_blocks", own.rw_log_blocks)],
            Kind::Faster(own) => &[
                ("rw_log_blocks", own.rw_log_blocks),
                ("isolation_blocks", own.isolation_blocks),
            ],
        };
        if let Some((key, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return wrong(format!("{key}: found 0; must be at least 1"));
        }
        let (blocks, min) = (u64::from(self.blocks), self.blocks_min());
        if blocks < min {
            return wrong(format!(
                "blocks: found {blocks}; {} needs {min} for {} logical pages: {} for data and {} to \
                 write, merge and collect. Give more blocks, export fewer pages{}",
                self.name(),
                self.logical_pages,
                self.logical_blocks(),
                min - u64::from(self.logical_blocks()),
                match self.kind {
                    Kind::Dftl(_) => "",
                    _ => " or take fewer log blocks",
                }
            ));
        }
        if let Kind::Dftl(own) = &self.kind {
            if own.protected_entries >= own.cmt_entries {
                return wrong(format!(
                    "protected_entries: found {}; must be below cmt_entries, {}",
                    own.protected_entries, own.cmt_entries
                ));
            }
            let max = self.low_max().unwrap_or(2);
            if !(2..=max).contains(&own.low_blocks) {
                return wrong(format!(
                    "low_blocks: found {}; must be from 2 to {max}, which is what can be kept free \
                     when all pages are live",
                    own.low_blocks
                ));
            }
        }
        Ok(())
    }
}
