//! Optional features of an array, and code compiled without them.
//!
//! An array's code is written once and compiled several times: for every array, and for *plain* ones ([`Io::copy`]).
//! In a plain array all members are present and respond immediately, and whether they are in GC is all that is
//! observed of them. Plain copies exist for flash of any kind and for the two most frequent kinds. The code tests the
//! constants of [`Features`], so that the compiler omits code that such an array cannot need. [`with_features`]
//! chooses the copy at each entry.
//!
//! [`Io::copy`]: super::io::Io::copy

/// The parts of an array that a copy of its code serves.
pub(crate) trait Features {
    /// Members that are missing, slow, simulated ahead, or have a front end; coordination and timelines; hedged
    /// reads; volumes of segments.
    const ALL: bool;
    /// The log.
    const LOG: bool;
    /// The kind of all members' flash ([`Work::kind`](crate::device::Work::kind)); 0 for any kind.
    const KIND: u8;
}

/// Every part.
pub(crate) enum Every {}

impl Features for Every {
    const ALL: bool = true;
    const LOG: bool = true;
    const KIND: u8 = 0;
}

/// No features, except that in builds with debug assertions tests may log ([`crate::Array::log_plain_path`]).
pub(crate) enum Plain<const KIND: u8> {}

impl<const KIND: u8> Features for Plain<KIND> {
    const ALL: bool = false;
    const LOG: bool = cfg!(debug_assertions);
    const KIND: u8 = KIND;
}

/// A copy of an array's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copy(pub u8);

impl Copy {
    /// For [`Every`] array.
    pub const EVERY: Copy = Copy(0);

    /// For [`Plain`] ones with flash of any kind.
    const ANY_FLASH: Copy = Copy::plain(0);

    /// For [`Plain`] ones with flash of this kind.
    pub const fn plain(kind: u8) -> Copy {
        Copy(kind + 1)
    }

    /// As the table of paths in ARCHITECTURE.md calls it.
    pub fn name(self) -> &'static str {
        match self {
            Copy::EVERY => "general array",
            Copy::ANY_FLASH => "plain array",
            _ => "plain array of one kind of flash",
        }
    }
}

/// Runs something with the features of a [`Copy`], by this name.
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
