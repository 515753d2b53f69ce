//! Names of replacement policies.

use super::Policy;

/// Parameters of all policies; each takes what it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyParams {
    /// Clean-first region of CFLRU, in pages.
    pub window_pages: u32,
}

impl PolicyParams {
    /// The headline values for a buffer of `capacity_pages`: window C/4 (D-5), at least a page.
    pub fn defaults(capacity_pages: u32) -> PolicyParams {
        PolicyParams {
            window_pages: (capacity_pages / 4).max(1),
        }
    }
}

/// Prefix of a policy filtered by GCaR.
const GCAR: &str = "gcar-";

impl Policy {
    /// Names of the policies that stand alone; each also exists as `gcar-NAME`.
    pub const BASE_NAMES: &'static [&'static str] = &["lru", "cflru"];

    /// Every name that [`Policy::from_name`] knows.
    pub fn names() -> Vec<String> {
        let base = Self::BASE_NAMES.iter().map(|name| name.to_string());
        base.chain(Self::BASE_NAMES.iter().map(|name| format!("{GCAR}{name}")))
            .collect()
    }

    /// The policy called `name`; `None` if there is none.
    pub fn from_name(name: &str, params: &PolicyParams) -> Option<Policy> {
        match name {
            "lru" => Some(Policy::Lru),
            "cflru" => Some(Policy::Cflru {
                window_pages: params.window_pages,
            }),
            _ => match name.strip_prefix(GCAR)? {
                base if base.starts_with(GCAR) => None,
                base => Some(Policy::Gcar {
                    base: Box::new(Policy::from_name(base, params)?),
                }),
            },
        }
    }

    /// Its name, which [`Policy::from_name`] reads back.
    pub fn name(&self) -> String {
        match self {
            Policy::Lru => "lru".into(),
            Policy::Cflru { .. } => "cflru".into(),
            Policy::Gcar { base } => format!("{GCAR}{}", base.name()),
        }
    }

    /// The clean-first region, if the policy has one.
    pub fn window_pages(&self) -> Option<u32> {
        match self {
            Policy::Lru => None,
            Policy::Cflru { window_pages } => Some(*window_pages),
            Policy::Gcar { base } => base.window_pages(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        let params = PolicyParams { window_pages: 7 };
        for name in Policy::names() {
            let policy = Policy::from_name(&name, &params).expect("a listed name is known");
            assert_eq!(policy.name(), name);
            assert_eq!(policy.window_pages(), name.ends_with("cflru").then_some(7));
        }
        for unknown in ["", "LRU", "gcar", "gcar-", "gcar-gcar-lru", "lru-gcar"] {
            assert_eq!(Policy::from_name(unknown, &params), None, "{unknown}");
        }
    }
}
