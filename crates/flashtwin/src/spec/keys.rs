//! The tables of all keys. Device files are checked against the tables, and suggestions for unknown keys are taken from
//! the tables. `docs/devices.md` and `flashtwin device show` show the tables.
//!
//! Keys are declared in their sections (`section.rs`). Parameters of policies, rules and layers are declared in the
//! files of these components (`crate::component`). This file combines both.

use std::sync::LazyLock;

use super::published::FIGURES;
use super::section::{section_of, Condition, KeyDoc, Row};
use super::suggest::nearest;
use super::tree::split;
use super::{
    over_provisioning, watermark, Buffer, Controller, DeviceSpec, Ftl, Gc, Geometry, Host, Link,
    ModernNand, MsrNand, Published, SlcCache, Timing, Wear, WriteUnits,
};
use crate::buffer::catalog::{entries, Entry, FILTER};
use crate::buffer::ChosenPolicy;
use crate::component::{Component, Kind, Parameter, Value};

/// The keys that sections declare, section by section.
pub(super) const ROWS: &[&[Row<DeviceSpec>]] = &[
    DeviceSpec::ROWS,
    Geometry::ROWS,
    Timing::ROWS,
    Host::ROWS,
    Link::ROWS,
    MsrNand::ROWS,
    ModernNand::ROWS,
    SlcCache::ROWS,
    Ftl::ROWS,
    Gc::ROWS,
    WriteUnits::ROWS,
    Wear::ROWS,
    Controller::ROWS,
    Buffer::ROWS,
    Published::ROWS,
];

/// All sections, in the order of the documentation.
const SECTIONS: [&str; 13] = [
    "",
    "geometry",
    "timing",
    "host",
    "link",
    "nand",
    "ftl",
    "gc",
    "placement",
    "wear",
    "controller",
    "buffer",
    "published",
];

/// Returns all keys, section by section in the order of the documentation.
pub fn keys() -> &'static [KeyDoc] {
    static KEYS: LazyLock<Vec<KeyDoc>> = LazyLock::new(|| {
        let declared = ROWS.iter().copied().flatten().flat_map(with_components);
        let all = declared.chain(of_policies()).chain(FIGURES.iter().copied());
        let mut all: Vec<KeyDoc> = all.collect();
        // The key `nand.backend` is declared with the device, not with the other keys of `[nand]`. Therefore, the rows
        // are sorted by section.
        all.sort_by_key(|doc| SECTIONS.iter().position(|name| *name == section_of(doc)));
        all
    });
    &KEYS
}

/// Returns the documentation of a key. If the key chooses among components, its text includes the names and
/// descriptions of the components. The keys of the components' parameters follow.
pub(super) fn with_components<R>(row: &Row<R>) -> Vec<KeyDoc> {
    let (doc, components) = (&row.doc, (row.among)());
    if components.is_empty() {
        return vec![*doc];
    }
    // The text is leaked because a static table needs it until the end of the program.
    let names: Vec<&str> = components.iter().map(|component| component.name).collect();
    let with_line = components.iter().filter(|c| !c.line.is_empty());
    let lines = with_line.map(|c| format!(" `{}`: {}.", c.name, c.line));
    let selector = KeyDoc {
        kind: Kind::Choice(names.leak()),
        doc: format!("{}{}", doc.doc, lines.collect::<String>()).leak(),
        ..*doc
    };
    let each = |component: Component| {
        let parameters = component.parameters.iter();
        parameters.map(move |parameter| (parameter, component.name))
    };
    let shared = shared(components.into_iter().flat_map(each));
    let row = |shared: Shared| shared.row(doc.key, None);
    [selector]
        .into_iter()
        .chain(shared.into_iter().map(row))
        .collect()
}

/// Returns the parameters of all policies. Each parameter has the names of the policies that use it.
fn of_policies() -> Vec<KeyDoc> {
    let each = |entry: &'static Entry| {
        let name = match entry.name {
            FILTER => ANY_GCAR,
            name => name,
        };
        let own = entry.parameters.iter().copied().flatten();
        let all = own.chain(entry.filtered);
        all.map(move |parameter| (parameter, name))
    };
    let is_of_filtered = |key: &str| {
        let mut filtered = entries().flat_map(|entry| entry.filtered);
        filtered.any(|parameter| parameter.key == key)
    };
    let row = |shared: Shared| {
        let filtered = is_of_filtered(shared.parameter.key);
        shared.row(POLICY, filtered.then_some((POLICY, &[ANY_GCAR])))
    };
    shared(entries().flat_map(each))
        .into_iter()
        .map(row)
        .collect()
}

/// A parameter with the components that have it.
struct Shared {
    parameter: &'static Parameter,
    /// Description of the parameter. If components describe it differently, all of their descriptions.
    doc: String,
    names: Vec<&'static str>,
}

/// Returns each parameter once, with the names of its components, in the order of first appearance.
fn shared(all: impl Iterator<Item = (&'static Parameter, &'static str)>) -> Vec<Shared> {
    let mut found: Vec<Shared> = Vec::new();
    for (parameter, name) in all {
        match found.iter_mut().find(|s| s.parameter.key == parameter.key) {
            Some(known) => {
                if known.parameter.doc != parameter.doc {
                    known.doc += &format!(" `{name}`: {}", parameter.doc);
                }
                known.names.push(name);
            }
            None => found.push(Shared {
                parameter,
                doc: parameter.doc.into(),
                names: vec![name],
            }),
        }
    }
    found
}

impl Shared {
    /// Returns the parameter as a key, with the condition that `selector` chooses a component that has the parameter.
    /// `more` is an additional condition.
    fn row(self, selector: &'static str, more: Option<Condition>) -> KeyDoc {
        let Parameter {
            key,
            kind,
            default,
            provenance,
            ..
        } = *self.parameter;
        let mut only: Vec<Condition> = vec![(selector, self.names.leak())];
        only.extend(more);
        // The texts are leaked because a static table needs them until the end of the program.
        KeyDoc {
            key: format!("{}.{key}", split(selector).0).leak(),
            kind,
            default: Some(default),
            only: only.leak(),
            doc: self.doc.leak(),
            provenance,
        }
    }
}

/// Returns the keys that are parameters of the policy called `name`. If `name` is that of the filter GCaR, returns only
/// the keys that the filter adds to a policy.
pub fn policy_keys(name: &str) -> Vec<&'static KeyDoc> {
    let of_filter = |doc: &&KeyDoc| {
        let mut names = ChosenPolicy::base_names();
        names.any(|name| doc.is_for_policy(&format!("gcar-{name}")) && !doc.is_for_policy(name))
    };
    let all = keys().iter().filter(|doc| doc.is_policy_parameter());
    match name {
        FILTER => all.filter(of_filter).collect(),
        _ => all.filter(|doc| doc.is_for_policy(name)).collect(),
    }
}

/// The key that names the policy.
pub(super) const POLICY: &str = Buffer::policy.name();

/// Word in the conditions of a key. It stands for every policy with the filter GCaR.
const ANY_GCAR: &str = "gcar-*";

impl KeyDoc {
    /// Whether the key is a parameter of a policy.
    pub fn is_policy_parameter(&self) -> bool {
        self.only.iter().any(|(selector, _)| *selector == POLICY)
    }

    /// Whether a policy meets those conditions of the key that concern the policy. A policy with the filter GCaR also
    /// has the parameters of its base policy.
    pub fn is_for_policy(&self, name: &str) -> bool {
        let mut conditions = self.only.iter().filter(|(s, _)| *s == POLICY);
        conditions.all(|(selector, wanted)| is_met(selector, wanted, name))
    }
}

/// Whether the value of a selector is one of the `wanted` values. For a policy with the filter GCaR, the name of its
/// base policy and the word for all such policies count, too.
pub(super) fn is_met(selector: &str, wanted: &[&str], value: &str) -> bool {
    if wanted.contains(&value) {
        return true;
    }
    match value.strip_prefix("gcar-") {
        Some(base) if selector == POLICY => wanted.contains(&base) || wanted.contains(&ANY_GCAR),
        _ => false,
    }
}

/// Returns the documentation of a key.
pub(super) fn find(key: &str) -> Option<&'static KeyDoc> {
    keys().iter().find(|doc| doc.key == key)
}

/// Returns the row of a key, if a section declares the key.
pub(super) fn row<R>(rows: &'static [&[Row<R>]], key: &str) -> Option<&'static Row<R>> {
    let mut rows = rows.iter().copied().flatten();
    rows.find(|row| row.doc.key == key)
}

/// Whether the key has a meaning for `spec`: every selector must have one of the values that the key requires.
pub(super) fn has_meaning<R>(rows: &'static [&[Row<R>]], spec: &R, doc: &KeyDoc) -> bool {
    doc.only.iter().all(|(selector, wanted)| {
        let value = row(rows, selector).and_then(|row| (row.write)(spec));
        matches!(value, Some(Value::Text(word)) if is_met(selector, wanted, &word))
    })
}

/// Returns the error message for a key that is not in the table.
pub(super) fn unknown_key(key: &str) -> String {
    let (section, name) = split(key);
    let called = |name| keys().iter().find(|doc| split(doc.key).1 == name);
    if let Some(home) = called(name) {
        return match split(home.key) {
            ("", name) => format!("unknown key; {name:?} stands before the first section"),
            (home, name) => format!("unknown key; {name:?} belongs to section [{home}]"),
        };
    }
    let in_section = keys().iter().filter(|doc| section_of(doc) == section);
    let mut here: Vec<&str> = in_section.map(|doc| split(doc.key).1).collect();
    let others = [over_provisioning::KEY, watermark::KEY].map(split);
    here.extend((others.iter().filter(|(home, _)| *home == section)).map(|(_, name)| name));
    if section.is_empty() {
        here.extend(&SECTIONS[1..]);
    }
    if let Some(near) = nearest(name, here.iter().copied()) {
        return format!("unknown key; did you mean {near:?}?");
    }
    if let Some(near) = nearest(name, keys().iter().map(|doc| split(doc.key).1)) {
        let near = called(near).map_or(near, |doc| doc.key);
        return format!("unknown key; did you mean {near:?}?");
    }
    let is_of_policies =
        |name: &str| find(&format!("{section}.{name}")).is_some_and(KeyDoc::is_policy_parameter);
    here.retain(|name| !is_of_policies(name));
    let more = match section == split(POLICY).0 {
        true => ", and the parameters of the policy",
        false => "",
    };
    format!("unknown key; known here: {}{more}", here.join(", "))
}

/// The message about a section without keys.
pub(super) fn unknown_section(name: &str) -> String {
    let known = &SECTIONS[1..];
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown section; did you mean [{near}]?"),
        None => format!("unknown section; known: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        for (i, doc) in keys().iter().enumerate() {
            assert!(
                keys()[..i].iter().all(|other| other.key != doc.key),
                "{} twice",
                doc.key
            );
            assert!(SECTIONS.contains(&section_of(doc)), "{}", doc.key);
            assert!(doc.doc.ends_with('.'), "{}", doc.key);
            for (selector, values) in doc.only {
                for name in values.iter().filter(|_| *selector == POLICY) {
                    assert!(*name == ANY_GCAR || ChosenPolicy::is_name(name), "{name}");
                }
                // Every selector must be a key in the table.
                assert!(keys().iter().any(|d| d.key == *selector), "{selector}");
                assert!(!values.is_empty());
            }
        }
    }
}
