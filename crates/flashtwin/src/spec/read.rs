//! From TOML text to a checked [`DeviceSpec`].

use std::collections::BTreeMap;

use super::build::build;
use super::check;
use super::convert::{convert, wrong_value};
use super::error::{Place, Problem, SpecError};
use super::keys::{find, is_met, keys, unknown_key, unknown_section, KeyDoc, OPTIONAL, POLICY};
use super::tree::{split, Entry, Node, Tree};
use super::DeviceSpec;
use crate::buffer::catalog;
use crate::buffer::ChosenPolicy;
use crate::component::{FromSetting, Kind, Value};
use crate::units::{saturating_u32, Time};

impl DeviceSpec {
    /// Reads and checks a device file; `origin` names it in messages.
    ///
    /// # Errors
    /// Fails if the text is not TOML, or if a key or value is wrong; the message has all of them, each with its line.
    pub fn parse(toml_text: &str, origin: &str) -> Result<DeviceSpec, SpecError> {
        Self::with_overrides(toml_text, origin, &[])
    }

    /// As [`DeviceSpec::parse`], after setting dotted keys to values in TOML syntax or as bare
    /// words: `("buffer.capacity", "32MiB")`.
    ///
    /// The value `none` removes a key or a section (`("buffer", "none")`). When an override
    /// changes what another key depends on (the policy, the back end), keys of the file that
    /// thereby lose their meaning are dropped; as part of the file itself they are errors.
    ///
    /// # Errors
    /// Fails as [`DeviceSpec::parse`] does.
    pub fn with_overrides(
        toml_text: &str,
        origin: &str,
        overrides: &[(&str, &str)],
    ) -> Result<DeviceSpec, SpecError> {
        let mut tree =
            Tree::parse(toml_text, origin).map_err(|p| SpecError { problems: vec![p] })?;
        let overrides = overrides.iter().map(|&(key, text)| given(key, text));
        from_tree(&mut tree, overrides.collect())
    }
}

/// A setting given as text.
pub(super) fn given<'a>(key: &'a str, text: &str) -> (&'a str, Entry) {
    let key = key.trim();
    let node = match find(key).map(|doc| doc.kind) {
        // Words stay words, be they `true` or `1`.
        Some(Kind::Name | Kind::Text) if !text.trim().starts_with(['"', '\'']) => {
            Node::Str(text.into())
        }
        _ => Node::from_override(text),
    };
    let place = Place::Override {
        setting: format!("{key}={text}"),
    };
    (key, Entry { place, node })
}

/// The device that the tree describes after some of its keys were set anew.
pub(super) fn from_tree(
    tree: &mut Tree,
    overrides: Vec<(&str, Entry)>,
) -> Result<DeviceSpec, SpecError> {
    apply(tree, overrides)?;
    let values = Values::read(tree)?;
    let (spec, window) = build(&values);
    let mut problems = Vec::new();
    check::check(&spec, window, &mut |key, message| {
        problems.push(Problem {
            place: tree.place(key),
            key: key.into(),
            message,
        });
    });
    SpecError::from_problems(problems)?;
    Ok(spec)
}

/// Applies overrides to the tree, in order.
fn apply(tree: &mut Tree, overrides: Vec<(&str, Entry)>) -> Result<(), SpecError> {
    let mut set: Vec<&str> = Vec::new();
    for (key, entry) in overrides {
        let removes = matches!(&entry.node, Node::Str(word) if word.trim() == "none");
        let is_section = !key.is_empty() && keys().iter().any(|doc| split(doc.key).0 == key);
        let is_known = is_section || find(key).is_some();
        if !is_known || is_section && !removes {
            let message = match is_section {
                true => "is a section; set one of its keys, as in buffer.capacity=32MiB".into(),
                false => unknown_key(key),
            };
            return Err(SpecError {
                problems: vec![Problem {
                    place: entry.place,
                    key: key.into(),
                    message,
                }],
            });
        }
        if removes {
            tree.remove(key);
            continue;
        }
        tree.set(key, entry);
        set.push(key);
    }
    // Keys of the file that an overridden selector made meaningless.
    let dropped: Vec<&str> = keys()
        .iter()
        .filter(|doc| {
            let from_file = tree.get(doc.key).is_some() && !set.contains(&doc.key);
            from_file && unmet(doc, tree).is_some_and(|(selector, _)| set.contains(&selector))
        })
        .map(|doc| doc.key)
        .collect();
    for key in dropped {
        tree.remove(key);
    }
    Ok(())
}

/// The first condition of a key that does not hold, with the values that it wants.
fn unmet(doc: &KeyDoc, tree: &Tree) -> Option<(&'static str, &'static [&'static str])> {
    doc.only.iter().copied().find(|(selector, wanted)| {
        let value = match tree.get(selector) {
            Some(Entry {
                node: Node::Str(word),
                ..
            }) => word.as_str(),
            Some(_) => return false,
            None => match find(selector).and_then(|doc| doc.default) {
                Some(default) => default.trim_matches('"'),
                None => return false,
            },
        };
        // A selector that is itself wrong is reported for itself.
        is_word(selector, value) && !is_met(selector, wanted, value)
    })
}

/// Whether a selector of this key is missing or wrong itself.
fn undecided(doc: &KeyDoc, tree: &Tree) -> bool {
    doc.only.iter().any(
        |(selector, _)| match tree.get(selector).map(|entry| &entry.node) {
            Some(Node::Str(word)) => !is_word(selector, word),
            Some(_) => true,
            None => find(selector).is_some_and(|doc| doc.default.is_none()),
        },
    )
}

/// The default of a key with this policy.
fn default_with(policy: &str, doc: &KeyDoc) -> Option<&'static str> {
    let own = || {
        let (entry, base) = catalog::find(policy)?;
        let key = doc.key.strip_prefix("buffer.")?;
        let mut defaults = base.unwrap_or(entry).defaults.iter();
        defaults.find(|(of, _)| *of == key).map(|(_, text)| *text)
    };
    own().or(doc.default)
}

fn words_or(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("{word:?}"))
        .collect::<Vec<_>>()
        .join(" or ")
}

/// Whether the selector knows this word.
fn is_word(selector: &str, value: &str) -> bool {
    match find(selector).map(|doc| doc.kind) {
        Some(Kind::Choice(words)) => words.contains(&value),
        Some(Kind::PolicyName) => ChosenPolicy::is_name(value),
        _ => false,
    }
}

/// Every key that has a meaning for this device, from the file or by default.
pub(super) struct Values(BTreeMap<&'static str, Value>);

impl Values {
    fn read(tree: &Tree) -> Result<Values, SpecError> {
        let mut problems = unknown(tree);
        // What is missing may stand there misspelt: one thing at a time.
        let misspelt = !problems.is_empty();
        let mut values = BTreeMap::new();
        let policy = match tree.get(POLICY).map(|entry| &entry.node) {
            Some(Node::Str(word)) => word,
            _ => "",
        };
        for doc in keys() {
            if split(doc.key).0 == "buffer" && !tree.sections.contains_key("buffer") {
                continue;
            }
            let mut report = |message: String| {
                problems.push(Problem {
                    place: tree.place(doc.key),
                    key: doc.key.into(),
                    message,
                });
            };
            let unmet = unmet(doc, tree);
            match (tree.get(doc.key), unmet) {
                (Some(entry), None) => match convert(doc.kind, &entry.node) {
                    Some(value) => {
                        values.insert(doc.key, value);
                    }
                    None => report(wrong_value(doc.kind, &entry.node)),
                },
                // The reference's chips have their own pins: as many channels as chips.
                (Some(entry), Some(_)) if doc.key == "geometry.channels" => {
                    let chips = tree.get("geometry.chips").map(|e| &e.node);
                    if chips != Some(&entry.node) {
                        report(format!(
                            "found {}; on the \"msr\" back end every chip has its own pins: leave \
                             the key out",
                            entry.node.show()
                        ));
                    }
                }
                (Some(_), Some((selector, wanted))) => report(format!(
                    "has no effect here; it needs {selector} = {}",
                    words_or(wanted)
                )),
                (None, Some(_)) => {}
                (None, None) => match default_with(policy, doc) {
                    OPTIONAL => {}
                    Some(text) => {
                        let value = convert(doc.kind, &Node::from_override(text));
                        values.insert(doc.key, value.expect("a default is of its key's kind"));
                    }
                    None if misspelt || undecided(doc, tree) => {}
                    None => {
                        let mut message = format!("missing; must be {}", doc.kind);
                        if let Some((selector, wanted)) = doc.only.first() {
                            message += &format!("; needed with {selector} = {}", words_or(wanted));
                        }
                        report(message);
                    }
                },
            }
        }
        SpecError::from_problems(problems)?;
        Ok(Values(values))
    }

    // Each of these is asked only for keys of its own kind that `read` has filled in.

    pub(super) fn number(&self, key: &str) -> u64 {
        match self.0[key] {
            Value::Number(n) => n,
            _ => unreachable!("{key} is a number"),
        }
    }

    pub(super) fn count(&self, key: &str) -> u32 {
        saturating_u32(self.number(key))
    }

    pub(super) fn time(&self, key: &str) -> Time {
        Time(self.number(key))
    }

    pub(super) fn times(&self, key: &str) -> Vec<Time> {
        match &self.0[key] {
            Value::Numbers(times) => times.iter().map(|&ps| Time(ps)).collect(),
            _ => unreachable!("{key} is a list of times"),
        }
    }

    pub(super) fn float(&self, key: &str) -> f64 {
        match self.0[key] {
            Value::Float(x) => x,
            _ => unreachable!("{key} is a float"),
        }
    }

    pub(super) fn text(&self, key: &str) -> &str {
        match &self.0[key] {
            Value::Text(text) => text,
            _ => unreachable!("{key} is text"),
        }
    }

    // The same of keys that may have no meaning for this device.

    pub(super) fn count_or(&self, key: &str, other: u32) -> u32 {
        if self.has(key) {
            self.count(key)
        } else {
            other
        }
    }

    pub(super) fn time_or(&self, key: &str, other: Time) -> Time {
        if self.has(key) {
            self.time(key)
        } else {
            other
        }
    }

    pub(super) fn float_or(&self, key: &str, other: f64) -> f64 {
        if self.has(key) {
            self.float(key)
        } else {
            other
        }
    }

    /// A word; where the key has no meaning for this device, its default.
    pub(super) fn word<T: FromSetting>(&self, key: &str) -> T {
        let default = || {
            let doc = find(key)?;
            convert(doc.kind, &Node::from_override(doc.default?))
        };
        let value = self.get(key).cloned().or_else(default);
        let word = value.as_ref().and_then(T::from_setting);
        word.expect("the word was checked against the key's list")
    }

    pub(super) fn is_on(&self, key: &str) -> bool {
        self.get(key) == Some(&Value::Bool(true))
    }

    /// Whether the key has a meaning for this device.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.0[key] == Value::Bool(true)
    }
}

/// Sections and keys that are not in the table.
fn unknown(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let is_section = |name: &str| keys().iter().any(|doc| split(doc.key).0 == name);
    for (section, content) in &tree.sections {
        if !is_section(section) {
            problems.push(Problem {
                place: content.place.clone(),
                key: section.clone(),
                message: match find(section) {
                    Some(doc) => format!("is not a section; must be {}", doc.kind),
                    None => unknown_section(section),
                },
            });
            continue;
        }
        for (name, entry) in &content.keys {
            let key = match section.as_str() {
                "" => name.clone(),
                section => format!("{section}.{name}"),
            };
            // A root key with a dot in its name, or a key in `[""]`, is not the dotted key.
            if find(&key).is_some_and(|doc| split(doc.key) == (section, name)) {
                continue;
            }
            let message = if section.is_empty() && !name.is_empty() && is_section(name) {
                format!("found {}; must be a section, [{name}]", entry.node.show())
            } else {
                unknown_key(&key)
            };
            problems.push(Problem {
                place: entry.place.clone(),
                key,
                message,
            });
        }
    }
    problems
}
