//! Optional features of an array, and compiled copies of the code without these features.
//!
//! The code of an array is written once and compiled several times: once with all features (the general copy), and
//! three times for *plain* arrays. A plain array uses none of the features that [`Features::ALL`] lists, and no log.
//! One of its three copies is for any kind of flash. The other two are for the two most frequent kinds. The code tests
//! the constants of [`Features`], so that the compiler omits from a copy what this copy does not need.
//! [`with_features`] selects the copy that [`Io::copy`] returns, at each entry into the code.
//!
//! [`Io::copy`]: super::io::Io::copy

/// The features that a copy of the code supports.
pub(crate) trait Features {
    /// Whether this copy supports the optional features other than the log, which are:
    ///
    /// - members that are missing, slow, simulated ahead, or have a front end,
    /// - coordination and timelines,
    /// - hedged reads,
    /// - volumes of segments.
    const ALL: bool;
    /// Whether this copy supports the log of the array's operations.
    const LOG: bool;
    /// The kind of all members' flash ([`Work::kind`](crate::device::Work::kind)); 0 stands for any kind.
    const KIND: u8;
}

/// All features.
pub(crate) enum Every {}

impl Features for Every {
    const ALL: bool = true;
    const LOG: bool = true;
    const KIND: u8 = 0;
}

/// No optional features. In builds with debug assertions, the log is an exception: tests may log a plain array
/// ([`crate::Array::log_plain_path`]).
pub(crate) enum Plain<const KIND: u8> {}

impl<const KIND: u8> Features for Plain<KIND> {
    const ALL: bool = false;
    const LOG: bool = cfg!(debug_assertions);
    const KIND: u8 = KIND;
}

/// A copy of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copy(pub u8);

impl Copy {
    /// The copy for arrays with any features ([`Every`]).
    pub const EVERY: Copy = Copy(0);

    /// The copy for plain arrays ([`Plain`]) with flash of any kind.
    const ANY_FLASH: Copy = Copy::plain(0);

    /// Returns the copy for plain arrays ([`Plain`]) with flash of this kind.
    pub const fn plain(kind: u8) -> Copy {
        Copy(kind + 1)
    }

    /// Returns the name of this copy in the table of paths in ARCHITECTURE.md.
    pub fn name(self) -> &'static str {
        match self {
            Copy::EVERY => "general array",
            Copy::ANY_FLASH => "plain array",
            _ => "plain array of one kind of flash",
        }
    }
}

/// Evaluates an expression in the given [`Copy`] of the code. Within the expression, the given type name stands for the
/// features of this copy.
macro_rules! with_features {
    ($copy:expr, $features:ident => $work:expr) => {
        with_features!($copy, $features => $work, 0 1 2)
    };
    ($copy:expr, $features:ident => $work:expr, $($kind:literal)+) => {
        match $copy {
            $($crate::array::features::Copy(copy)
                if copy == $crate::array::features::Copy::plain($kind).0 =>
            {
                type $features = $crate::array::features::Plain<$kind>;
                $work
            })+
            _ => {
                type $features = $crate::array::features::Every;
                $work
            }
        }
    };
}
pub(crate) use with_features;

#[cfg(test)]
mod tests;
