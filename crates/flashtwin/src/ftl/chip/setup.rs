//! Setup of a translation layer: the dimensions of the chip, the number of exported pages, and the layer's
//! parameters. Each layer declares its parameters in its own file.

use std::fmt;

use super::catalog::Entry;
use super::store::PAGES_PER_BLOCK_MAX;
use super::{Layer, ENTRIES};
use crate::component::{Kind, Parameter};

/// A chip and its translation layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Pages that can be written by the host.
    pub logical_pages: u32,
    /// Blocks of the chip.
    pub blocks: u32,
    /// Pages of a block (N in the papers).
    pub pages_per_block: u32,
    /// The translation layer.
    pub kind: Layer,
}

/// Error: an invalid setup. The message has the problem and a valid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupError(String);

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

impl SetupError {
    /// Returns the invalid parameter if it is a parameter of the translation layer. `None` if the geometry is
    /// invalid, or the name of the layer.
    pub(crate) fn parameter(&self) -> Option<&str> {
        let (name, _) = self.0.split_once(':')?;
        let is_geometry = ["blocks", "pages_per_block", "logical_pages", "ftl"].contains(&name);
        (!is_geometry).then_some(name)
    }
}

/// Dimensions of a chip. The default parameters of its translation layer are computed from them.
#[derive(Clone, Copy, Debug)]
pub struct Chip {
    /// Pages that can be written by the host.
    pub logical_pages: u32,
    /// Blocks of the chip.
    pub blocks: u32,
    /// Pages of a block (N in the papers).
    pub pages_per_block: u32,
}

impl Chip {
    /// Returns the number of logical blocks.
    pub fn logical_blocks(&self) -> u32 {
        self.logical_pages.div_ceil(self.pages_per_block.max(1))
    }
}

/// Parameters of a translation layer, and quantities computed from them.
pub(super) trait Own: Sized {
    /// The description of the layer.
    const ENTRY: Entry;

    /// Returns the default parameters for a chip.
    fn new(chip: &Chip) -> Self;

    /// Recomputes the parameters that have a default which depends on other parameters. Keeps the parameters that the
    /// user has set.
    fn follow(&mut self, _chip: &Chip, _is_given: &dyn Fn(&str) -> bool) {}

    /// Returns the number of page writes after which nothing of an older state remains (a turn). For DFTL, it is the
    /// number of logical pages. For a layer with log blocks, it is the number of pages in its log blocks.
    fn turn_pages(&self, chip: &Chip) -> u64;

    /// Returns the minimum number of blocks with which the layer works under any load: blocks for data, for log
    /// blocks or translation pages, and for merges and collections.
    fn blocks_min(&self, chip: &Chip) -> u64;

    /// Checks conditions on parameters beyond the ranges of the single parameters. The error consists of the
    /// parameter, a colon and the valid values.
    fn check(&self, _chip: &Chip) -> Result<(), String> {
        Ok(())
    }
}

/// Declares the parameters of a layer. The default of a number depends on the chip, so the declaration has a
/// description of it. The default of a switch is constant.
macro_rules! own {
    ($(#[$meta:meta])* pub struct $Name:ident {
        $(#[doc = $doc:literal] $field:ident: $type:ident = $kind:expr, $default:literal, $from:literal;)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Name { $(#[doc = concat!($doc, ".")] pub $field: $type,)+ }

        impl $Name {
            /// Rows of the documentation.
            pub(super) const ROWS: &'static [crate::component::Parameter] =
                &[$(own!(@row $field $type $kind, $doc, $default, $from)),+];

            /// Returns the value of a parameter as text.
            pub(super) fn value(&self, parameter: &str) -> Option<String> {
                $(if parameter == stringify!($field) {
                    return Some(self.$field.to_string());
                })+
                None
            }

            /// Sets a parameter from text. Returns whether the text is valid; `None` if the layer has no such
            /// parameter.
            pub(super) fn set(&mut self, parameter: &str, text: &str) -> Option<bool> {
                $(if parameter == stringify!($field) {
                    return Some(match text.parse() {
                        Ok(value) => {
                            self.$field = value;
                            true
                        }
                        Err(_) => false,
                    });
                })+
                None
            }
        }
    };
    (@row $field:ident u32 $kind:expr, $doc:literal, $otherwise:literal, $from:literal) => {
        crate::component::Parameter {
            key: stringify!($field),
            kind: $kind,
            default: "none",
            doc: concat!($doc, "; left out: ", $otherwise, ".").split_at(1).1,
            provenance: $from,
        }
    };
    (@row $field:ident bool $kind:expr, $doc:literal, $default:literal, $from:literal) => {
        crate::component::Parameter {
            key: stringify!($field),
            kind: $kind,
            default: $default,
            doc: concat!($doc, ".").split_at(1).1,
            provenance: $from,
        }
    };
}

pub(super) use own;

/// Returns a share of `blocks`, given in thousandths and rounded to the nearest number, but at least `min`.
pub(super) fn share(blocks: u32, thousandths: u64, min: u32) -> u32 {
    let share = (u64::from(blocks) * thousandths + 500) / 1000;
    (share as u32).max(min)
}

impl Setup {
    /// Creates the setup of the translation layer called `name` with its default parameters.
    ///
    /// # Errors
    /// Fails if there is no such layer.
    pub fn new(
        name: &str,
        logical_pages: u32,
        blocks: u32,
        pages_per_block: u32,
    ) -> Result<Setup, SetupError> {
        let chip = Chip {
            logical_pages,
            blocks,
            pages_per_block,
        };
        let Some(kind) = Layer::new(name, &chip) else {
            let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
            return Err(SetupError(format!(
                "ftl: found {name:?}; known are {}",
                names.join(", ")
            )));
        };
        Ok(Setup {
            logical_pages,
            blocks,
            pages_per_block,
            kind,
        })
    }

    fn chip(&self) -> Chip {
        Chip {
            logical_pages: self.logical_pages,
            blocks: self.blocks,
            pages_per_block: self.pages_per_block,
        }
    }

    /// Returns the name of the layer.
    pub fn name(&self) -> &'static str {
        self.kind.entry().name
    }

    /// Returns the parameters of the layer.
    pub fn parameters(&self) -> &'static [Parameter] {
        self.kind.entry().parameters
    }

    /// Returns the value of a parameter as text; `None` if there is no such parameter.
    pub(crate) fn value(&self, parameter: &str) -> Option<String> {
        self.kind.value(parameter)
    }

    /// Sets several parameters, given as text. Then recomputes the defaults that depend on them.
    ///
    /// # Errors
    /// Fails if a parameter is unknown or its value is invalid.
    pub fn set_all(&mut self, settings: &[(&str, &str)]) -> Result<(), SetupError> {
        for (key, value) in settings {
            self.set(key, value)?;
        }
        let chip = self.chip();
        let is_given = |key: &str| settings.iter().any(|(given, _)| *given == key);
        self.kind.follow(&chip, &is_given);
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SetupError> {
        let mut known = self.parameters().iter();
        let kind = known.find(|parameter| parameter.key == key);
        let wanted = match kind.map(|parameter| parameter.kind) {
            Some(Kind::Bool) => "true or false",
            _ => "a whole number",
        };
        match self.kind.set(key, value) {
            Some(true) => Ok(()),
            Some(false) => Err(SetupError(format!(
                "{key}: found {value:?}; must be {wanted}"
            ))),
            None => {
                let keys: Vec<&str> = self.parameters().iter().map(|p| p.key).collect();
                Err(SetupError(format!(
                    "{key}: {} has no such parameter; it has {}",
                    self.name(),
                    keys.join(", ")
                )))
            }
        }
    }

    /// Returns the number of page writes after which nothing of an older state remains (a turn). For DFTL, it is the
    /// number of logical pages. For a layer with log blocks, it is the number of pages in its log blocks.
    pub(crate) fn turn_pages(&self) -> u64 {
        self.kind.turn_pages(&self.chip())
    }

    /// Returns the number of logical blocks.
    pub fn logical_blocks(&self) -> u32 {
        self.chip().logical_blocks()
    }

    /// Returns the minimum number of blocks with which the layer works under any load: blocks for data, for log
    /// blocks or translation pages, and for merges and collections.
    pub fn blocks_min(&self) -> u64 {
        self.kind.blocks_min(&self.chip())
    }

    /// Checks the setup.
    ///
    /// # Errors
    /// The error names the first wrong parameter and its valid values.
    pub fn check(&self) -> Result<(), SetupError> {
        let wrong = |text: String| Err(SetupError(text));
        let n = self.pages_per_block;
        if !(2..=PAGES_PER_BLOCK_MAX).contains(&n) {
            return wrong(format!(
                "pages_per_block: found {n}; must be from 2 to {PAGES_PER_BLOCK_MAX}"
            ));
        }
        // Data pages and translation pages share one range of 32-bit numbers. Two of these numbers are reserved.
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
        for parameter in self.parameters() {
            let at_least_one = matches!(parameter.kind, Kind::Count(min, _) if min > 0);
            if at_least_one && self.value(parameter.key).is_some_and(|value| value == "0") {
                let key = parameter.key;
                return wrong(format!("{key}: found 0; must be at least 1"));
            }
        }
        let (blocks, min) = (u64::from(self.blocks), self.blocks_min());
        if blocks < min {
            let has_logs = self
                .parameters()
                .iter()
                .any(|p| p.key.ends_with("log_blocks"));
            return wrong(format!(
                "blocks: found {blocks}; {} needs {min} for {} logical pages: {} for data and {} to \
                 write, merge and collect. Give more blocks, export fewer pages{}",
                self.name(),
                self.logical_pages,
                self.logical_blocks(),
                min - u64::from(self.logical_blocks()),
                if has_logs { " or take fewer log blocks" } else { "" }
            ));
        }
        self.kind.check(&self.chip()).map_err(SetupError)
    }
}
