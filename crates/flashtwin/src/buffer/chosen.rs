//! The policy of a device's buffer: its name and the values of its parameters.

use super::catalog::{entries, find};
use super::entry::{Entry, Make, FILTER, GCAR};
use super::policies::gcar::{self, Gcar};
use super::registry::{Base, User, UserPolicy};
use super::Setup;
use crate::component::{Parameter, Settings};

/// A replacement policy by name, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenPolicy {
    /// Whether GCaR filters the policy.
    pub gcar: bool,
    /// Name of the policy without the prefix `gcar-`.
    pub base: &'static str,
    /// Values of the parameters. Values given as fractions of the buffer have been converted to pages.
    pub settings: Settings,
}

impl ChosenPolicy {
    /// Returns LRU, which has no parameters.
    pub fn lru() -> ChosenPolicy {
        let (gcar, base) = (false, super::policies::lru::NAME);
        let settings = Settings::default();
        ChosenPolicy {
            gcar,
            base,
            settings,
        }
    }

    /// Returns the policy called `name` with the given settings; `None` if it does not exist.
    pub(crate) fn new(name: &str, settings: Settings) -> Option<ChosenPolicy> {
        let (gcar, base) = split(name)?;
        let base = base.name;
        Some(ChosenPolicy {
            gcar,
            base,
            settings,
        })
    }

    /// Names of the policies that a device can use by themselves. Each of them can also be used as `gcar-NAME`.
    pub fn base_names() -> impl Iterator<Item = &'static str> {
        let alone = entries().filter(|entry| entry.stands_alone());
        alone.map(|entry| entry.name)
    }

    /// Returns the names that listings show: all policies that a device can use by themselves, and `gcar-NAME` for the
    /// policies that the GCaR paper filters. `gcar-NAME` is also valid for other policies, but not listed.
    pub fn names() -> Vec<String> {
        let filtered = gcar::BASES_OF_THE_PAPER.iter();
        let base = Self::base_names().map(String::from);
        base.chain(filtered.map(|name| format!("{GCAR}{name}")))
            .collect()
    }

    /// Whether some policy is called `name`.
    pub fn is_name(name: &str) -> bool {
        split(name).is_some()
    }

    /// Returns the name of the policy, with the prefix `gcar-` if GCaR filters it.
    pub fn name(&self) -> String {
        let prefix = if self.gcar { GCAR } else { "" };
        format!("{prefix}{}", self.base)
    }

    /// Returns the catalogue entry of the policy. If GCaR filters the policy, this is the entry of the policy without
    /// GCaR.
    pub(crate) fn entry(&self) -> &'static Entry {
        split(self.base).expect("it was chosen among the entries").1
    }

    /// Parameters of the policy called `name`. For `gcar-X`, these are the parameters of X, those of GCaR, and those
    /// that X has only with GCaR.
    pub(crate) fn parameters(name: &str) -> impl Iterator<Item = &'static Parameter> {
        let found = split(name);
        let filter = entries().find(|entry| entry.name == FILTER && found.is_some_and(|f| f.0));
        let own = found.into_iter().flat_map(|(_, base)| base.parameters);
        let filtered = filter.into_iter().flat_map(move |filter| {
            let of_base = found.map_or(&[][..], |(_, base)| base.filtered);
            filter.parameters.iter().copied().chain([of_base])
        });
        own.copied().chain(filtered).flatten()
    }
}

/// Splits the name of a policy. Returns whether it has the prefix `gcar-`, and the entry of the policy without the
/// prefix. Returns `None` if no device can use a policy of this name.
fn split(name: &str) -> Option<(bool, &'static Entry)> {
    let (entry, base) = find(name)?;
    let alone = base.unwrap_or(entry);
    alone.stands_alone().then_some((base.is_some(), alone))
}

/// Any policy, filtered or not.
pub(crate) type AnyPolicy = Gcar<Base>;

impl AnyPolicy {
    /// Creates the policy that `chosen` specifies, for the buffer that `setup` describes.
    pub fn of(chosen: &ChosenPolicy, setup: &Setup) -> AnyPolicy {
        let Make::Base(make) = chosen.entry().make else {
            unreachable!("{}: only what stands alone can be chosen", chosen.name());
        };
        match chosen.gcar {
            true => Gcar::new(make(setup), setup),
            false => Gcar::off(make(setup)),
        }
    }

    /// Whether the policy is a user's.
    pub fn is_users(&self) -> bool {
        matches!(self.base(), Base::User(_))
    }

    /// Wraps a user's policy, without a filter.
    pub fn user(policy: Box<dyn UserPolicy>) -> AnyPolicy {
        Gcar::off(Base::User(User(policy)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for name in ChosenPolicy::names() {
            let chosen = ChosenPolicy::new(&name, Settings::default());
            assert_eq!(chosen.expect("a listed name is known").name(), name);
            assert!(ChosenPolicy::is_name(&name));
        }
        assert!(ChosenPolicy::is_name("gcar-arc"));
        for unknown in [
            "",
            "LRU",
            "gcar",
            "gcar-",
            "gcar-gcar-lru",
            "lru-gcar",
            "min",
            FILTER,
        ] {
            assert_eq!(
                ChosenPolicy::new(unknown, Settings::default()),
                None,
                "{unknown}"
            );
            assert!(!ChosenPolicy::is_name(unknown));
        }
    }
}
