//! Coordination of the garbage collections of the members of an array (Kim et al., "Harmonia", MSST 2011, and others).
//!
//! Each scheme is a file in this directory and a line of the table below. A scheme observes the number of free blocks
//! of each member, and sends messages. The array executes these messages.

mod global;
mod idle;
mod local;
mod scheme;
mod soft_limit;
mod turns;

use crate::component::{Chosen, Component};
use scheme::Scheme;
pub(crate) use scheme::{Coordinate, MemberView, Message};

/// The table of schemes: file and type of each, in the order of the documentation. To add a scheme, add a line.
macro_rules! schemes {
    ($then:ident! $rest:tt) => {
        $then! { $rest
            local::Local
            global::Inclusive
            global::Selective
            idle::Idle
            soft_limit::SoftLimit
            turns::Turns
            local::Ideal
        }
    };
}

macro_rules! declare {
    (() $($file:ident::$Type:ident)+) => {
        /// The scheme of an array.
        #[derive(Clone, Debug)]
        pub(crate) enum Coordination {
            $($Type($file::$Type),)+
        }

        /// Descriptions of all schemes.
        pub(crate) const SCHEMES: &[Component] = &[$($file::$Type::COMPONENT),+];

        impl Coordination {
            /// Creates the scheme that the device file selects, for an array of `members` members.
            pub fn of(chosen: &Chosen, members: usize) -> Coordination {
                $(if chosen.name == $file::$Type::COMPONENT.name {
                    return Coordination::$Type($file::$Type::new(members, &chosen.settings));
                })+
                unreachable!("{}: schemes are chosen from the table", chosen.name)
            }

            /// Whether members collect without coordination.
            pub fn is_local(&self) -> bool {
                match self { $(Coordination::$Type(_) => $file::$Type::IS_LOCAL,)+ }
            }

            /// Returns the scheme as an object; `None` if members collect without coordination.
            pub fn get(&mut self) -> Option<&mut dyn Coordinate> {
                match self {
                    $(Coordination::$Type(_) if $file::$Type::IS_LOCAL => None,
                    Coordination::$Type(scheme) => Some(scheme),)+
                }
            }
        }
    };
}

schemes!(declare!());

/// Name of the scheme in which collections take no time.
pub(crate) const IDEAL: &str = local::Ideal::COMPONENT.name;

impl Coordination {
    /// The scheme without coordination.
    pub const LOCAL: Coordination = Coordination::Local(local::Local);
}

#[cfg(test)]
mod tests;
