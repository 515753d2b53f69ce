//! What an array may have, and code compiled without it.
//!
//! An array's code is written once and compiled twice: for every array, and for a *plain* one ([`Io::is_plain`]), in which
//! all members are there, respond at once and are known by whether they collect. Its code asks the constants of
//! [`Features`], so that the compiler leaves out what a plain array cannot need. [`Raid`] chooses the copy at each entry.
//!
//! [`Io::is_plain`]: super::io::Io::is_plain
//! [`Raid`]: super::raid::Raid

/// The parts of an array that a copy of its code serves.
pub(crate) trait Features {
    /// Members that are missing, slow or simulated ahead, or have a front end; coordination and timelines; hedged reads;
    /// volumes of segments.
    const ALL: bool;
    /// The log.
    const LOG: bool;
}

/// Every part.
pub(crate) enum Every {}

impl Features for Every {
    const ALL: bool = true;
    const LOG: bool = true;
}

/// None but, in builds with debug assertions, the log, which tests ask for ([`crate::Array::log_plain_path`]).
pub(crate) enum Plain {}

impl Features for Plain {
    const ALL: bool = false;
    const LOG: bool = cfg!(debug_assertions);
}

#[cfg(test)]
mod tests;
