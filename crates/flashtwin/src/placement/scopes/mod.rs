//! Scopes. A scope is the set of closed units among which a victim rule chooses. Each scope is a file in this directory
//! and a line in the table below.

mod chain;
mod global;
mod handle;
mod noisy;
mod quota;
mod save_sequential;
mod scan;

use super::scheme::Class;
use super::setup::Setup;
use super::state::Classes;
use crate::component::{Chosen, Component, Settings};
use crate::ftl::{Unit, Units};

/// The table of scopes, in the order of the documentation. Each line has the file and the type of a scope.
macro_rules! scopes {
    ($then:ident! $rest:tt) => {
        $then! { $rest
            global::Global
            handle::ByHandle
            noisy::Noisy
            save_sequential::SaveSequential
            scan::Scan
            chain::Chain
        }
    };
}

macro_rules! declare {
    (() $($file:ident::$Type:ident)+) => {
        /// A scope with its state.
        #[derive(Clone, Debug)]
        pub(crate) enum AnyScope {
            $($Type($file::$Type),)+
        }

        /// Descriptions of all scopes.
        pub(crate) const SCOPES: &[Component] = &[$($file::$Type::COMPONENT),+];

        impl AnyScope {
            /// Makes a scope.
            ///
            /// # Errors
            /// The error names the parameter that is not valid.
            pub fn new(chosen: &Chosen, setup: &Setup) -> Result<AnyScope, String> {
                $(if chosen.name == $file::$Type::COMPONENT.name {
                    return $file::$Type::new(&chosen.settings, setup).map(AnyScope::$Type);
                })+
                unreachable!("{}: scopes are chosen from the table", chosen.name)
            }

            /// Prepares the scope for calls of [`AnyScope::has`].
            pub fn prepare(&mut self, pool: &Asked) {
                match self { $(AnyScope::$Type(scope) => scope.prepare(pool),)+ }
            }

            /// Whether a unit is within the scope.
            #[inline]
            pub fn has(&self, pool: &Asked, number: u32, unit: &Unit) -> bool {
                match self { $(AnyScope::$Type(scope) => scope.has(pool, number, unit),)+ }
            }

            /// Returns the state for a snapshot; empty if the scope has none.
            pub fn words(&self) -> Vec<u64> {
                match self { $(AnyScope::$Type(scope) => scope.words(),)+ }
            }

            /// Restores the state from a snapshot. Returns false if the words are not a state of this scope.
            pub fn set_words(&mut self, words: &[u64]) -> bool {
                match self { $(AnyScope::$Type(scope) => scope.set_words(words),)+ }
            }

            /// Returns the number of live pages by which a victim within the scope may exceed the closed unit with the
            /// fewest, in percent of a unit's pages. `None` means no limit.
            pub fn tolerance_percent(&self) -> Option<f64> {
                match self { $(AnyScope::$Type(scope) => scope.tolerance_percent(),)+ }
            }
        }
    };
}

scopes!(declare!());

/// The units of a group, and the class that needs room.
pub(crate) struct Asked<'a> {
    pub units: &'a Units,
    pub classes: &'a Classes,
    pub group: u32,
    /// Class of the page that needs room; `None` if no page waits for room.
    pub class: Option<Class>,
    /// Number of units that each class may hold; empty if the scheme sets no limits.
    pub limits: &'a [u32],
}

/// A scope.
trait Scope: Sized {
    /// Description of the scope.
    const COMPONENT: Component;

    /// Creates the scope with the values of its parameters.
    fn new(settings: &Settings, setup: &Setup) -> Result<Self, String>;

    /// Prepares the scope for calls of [`Scope::has`].
    fn prepare(&mut self, _pool: &Asked) {}

    /// Whether a unit is within the scope.
    fn has(&self, pool: &Asked, number: u32, unit: &Unit) -> bool;

    /// See [`AnyScope::words`].
    fn words(&self) -> Vec<u64> {
        Vec::new()
    }

    /// See [`AnyScope::set_words`].
    fn set_words(&mut self, words: &[u64]) -> bool {
        words.is_empty()
    }

    /// See [`AnyScope::tolerance_percent`].
    fn tolerance_percent(&self) -> Option<f64> {
        None
    }
}

/// Whether a unit is closed (because it is full, or was closed early) and all pages assigned in it are programmed.
fn is_closed(unit: &Unit) -> bool {
    !unit.bound && unit.awaited == 0 && unit.given > 0
}

/// Parses the tolerance that a parameter specifies: a percentage, or `none`.
fn tolerance(text: &str) -> Result<Option<f64>, String> {
    if text == "none" {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Some(percent)),
        _ => Err(format!(
            "tolerance_percent: found {text:?}; must be from 0 to 100, or \"none\""
        )),
    }
}
