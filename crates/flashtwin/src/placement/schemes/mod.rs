//! Placement schemes. Each scheme is a file in this directory and a line in the table below.

mod age;
mod asked;
mod bloom;
mod gc;
mod generations;
mod handle;
mod hints;
mod midas;
mod none;
mod oracle;
mod region;
mod sepbit;

use super::scheme::{
    Class, Entry, HostPage, Isolated, MovedPage, Needs, Scheme, Survivors, UnitView, UserScheme,
};
use crate::component::{Chosen, Component, Settings};
use crate::units::Lpn;

/// The table of schemes, in the order of the documentation. Each line has the file and the type of a scheme.
macro_rules! schemes {
    ($then:ident! $rest:tt) => {
        $then! { $rest
            none::None
            handle::Handle
            hints::Hints
            region::Region
            gc::Gc
            asked::Asked
            bloom::Bloom
            generations::Generations
            midas::Midas
            age::Age
            sepbit::SepBit
            oracle::Oracle
        }
    };
}

macro_rules! declare {
    (() $($file:ident::$Type:ident)+) => {
        /// A scheme with its state.
        #[derive(Clone, Debug)]
        pub(crate) enum AnyScheme {
            $($Type($file::$Type),)+
            User(User),
        }

        /// Descriptions of all schemes.
        pub const SCHEMES: &[Entry] = &[$($file::$Type::ENTRY),+];

        impl AnyScheme {
            /// Makes a scheme.
            ///
            /// # Errors
            /// The error names the parameter that is not valid.
            pub fn new(chosen: &Chosen, device: &Device) -> Result<AnyScheme, String> {
                $(if chosen.name == $file::$Type::ENTRY.component.name {
                    return $file::$Type::new(&chosen.settings, device).map(AnyScheme::$Type);
                })+
                unreachable!("{}: schemes are chosen from the table", chosen.name)
            }
        }

        impl Scheme for AnyScheme {
            fn needs(&self) -> Needs {
                match self {
                    $(AnyScheme::$Type(scheme) => scheme.needs(),)+
                    AnyScheme::User(user) => user.0.needs(),
                }
            }

            fn name(&self) -> &str {
                match self {
                    $(AnyScheme::$Type(_) => $file::$Type::ENTRY.component.name,)+
                    AnyScheme::User(user) => user.0.name(),
                }
            }

            #[inline]
            fn host(&mut self, page: &HostPage) -> Class {
                match self {
                    $(AnyScheme::$Type(scheme) => scheme.host(page),)+
                    AnyScheme::User(user) => user.0.host(page),
                }
            }

            #[inline]
            fn moved(&mut self, page: &MovedPage) -> Class {
                match self {
                    $(AnyScheme::$Type(scheme) => scheme.moved(page),)+
                    AnyScheme::User(user) => user.0.moved(page),
                }
            }

            fn closed(&mut self, unit: &UnitView, clock: u64) {
                match self {
                    $(AnyScheme::$Type(scheme) => scheme.closed(unit, clock),)+
                    AnyScheme::User(user) => user.0.closed(unit, clock),
                }
            }

            fn erased(&mut self, unit: &UnitView, valid: u32, clock: u64) {
                match self {
                    $(AnyScheme::$Type(scheme) => scheme.erased(unit, valid, clock),)+
                    AnyScheme::User(user) => user.0.erased(unit, valid, clock),
                }
            }

            fn trimmed(&mut self, lpn: Lpn) {
                match self {
                    $(AnyScheme::$Type(scheme) => scheme.trimmed(lpn),)+
                    AnyScheme::User(user) => user.0.trimmed(lpn),
                }
            }

            fn limits(&self) -> &[u32] {
                match self {
                    $(AnyScheme::$Type(scheme) => scheme.limits(),)+
                    AnyScheme::User(user) => user.0.limits(),
                }
            }

            fn words(&self) -> Vec<u64> {
                match self {
                    $(AnyScheme::$Type(scheme) => scheme.words(),)+
                    AnyScheme::User(user) => user.0.words(),
                }
            }

            fn set_words(&mut self, words: &[u64]) -> bool {
                match self {
                    $(AnyScheme::$Type(scheme) => scheme.set_words(words),)+
                    AnyScheme::User(user) => user.0.set_words(words),
                }
            }

            fn state(&self) -> String {
                match self {
                    $(AnyScheme::$Type(scheme) => scheme.state(),)+
                    AnyScheme::User(user) => user.0.state(),
                }
            }
        }
    };
}

schemes!(declare!());

/// Returns names and parameters of all schemes.
pub(crate) fn components() -> Vec<Component> {
    SCHEMES.iter().map(|entry| entry.component).collect()
}

/// Sizes of the device, from which a scheme is created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    /// Pages that the host sees.
    pub logical_pages: u32,
    /// Pages of a unit.
    pub unit_pages: u32,
    /// Handles that the host may name.
    pub handles: u16,
    /// Groups of dies, and the units of each.
    pub groups: u32,
    pub units: u32,
    /// Watermark: a group collects if at most this number of its units is free.
    pub low: u32,
}

/// A scheme of the table.
trait Shipped: Scheme + Sized {
    /// Description of the scheme.
    const ENTRY: Entry;

    /// Creates the scheme from the values of its parameters.
    fn new(settings: &Settings, device: &Device) -> Result<Self, String>;
}

/// A user's scheme.
pub(crate) struct User(pub Box<dyn UserScheme>);

impl Clone for User {
    fn clone(&self) -> User {
        User(self.0.boxed_clone())
    }
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "User({})", self.0.state())
    }
}
