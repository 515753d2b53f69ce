//! Parts of the setup of a device that writes by units (sets of blocks that are erased together): the available schemes,
//! victim rules and scopes, and the parser of the lists of handles.

use super::setup::Isolation;
use crate::component::Component;

/// Returns the components of one kind.
pub fn components(of: Choice) -> Vec<Component> {
    match of {
        Choice::Scheme => super::schemes::components(),
        Choice::Victim => crate::gc::RULES.to_vec(),
        Choice::Scope => super::scopes::SCOPES.to_vec(),
    }
}

/// One of the choices of a setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The placement scheme.
    Scheme,
    /// The victim rule.
    Victim,
    /// The scope.
    Scope,
}

impl Choice {
    /// Returns the word of the choice in setups.
    pub fn word(self) -> &'static str {
        match self {
            Choice::Scheme => "scheme",
            Choice::Victim => "victim",
            Choice::Scope => "scope",
        }
    }
}

/// Parses the types of handles from text. `8` means eight handles of type `ii` (initially isolated). `ii,pi` means one
/// handle of type `ii` and one of type `pi` (persistently isolated).
pub(crate) fn handles(text: &str) -> Result<Vec<Isolation>, String> {
    if let Ok(n) = text.parse::<u16>() {
        return Ok(vec![Isolation::Initially; usize::from(n)]);
    }
    let types = text
        .split(',')
        .map(|word| Isolation::from_word(word.trim()));
    types.collect::<Option<_>>().ok_or_else(|| {
        format!(
            "found \"{text}\"; must be a number, or {} for each handle, with commas between",
            Isolation::WORDS.join(" or ")
        )
    })
}

/// Parses the reclaim unit handle of each placement handle. The text is either `all` (each placement handle has the
/// reclaim unit handle with its own number) or a list of numbers.
pub(crate) fn namespace(text: &str, handles: usize) -> Result<Vec<u16>, String> {
    match text {
        "all" => Ok((0..handles.min(128) as u16).collect()),
        list => numbers(list).ok_or_else(|| {
            format!("found \"{text}\"; must be \"all\", or handles with commas between")
        }),
    }
}

fn numbers(list: &str) -> Option<Vec<u16>> {
    list.split(',').map(|n| n.trim().parse().ok()).collect()
}
