//! Reads a checked [`DeviceSpec`] from TOML text.

use super::check;
use super::convert::{convert, wrong_value};
use super::error::{Place, Problem, SpecError};
use super::keys::{find, is_met, keys, unknown_key, unknown_section, POLICY};
use super::section::{default_value, section_of, Condition, KeyDoc, Values, OPTIONAL};
use super::tree::{split, Entry, Node, Tree};
use super::{over_provisioning, watermark};
use super::{Buffer, DeviceSpec, Geometry};
use crate::buffer::catalog;
use crate::buffer::ChosenPolicy;
use crate::component::Kind;

impl DeviceSpec {
    /// Reads and checks a device file. Error messages refer to the file as `origin`.
    ///
    /// # Errors
    /// Fails if the text is not TOML, or if a key or a value is wrong. The message lists all problems with their lines.
    pub fn parse(toml_text: &str, origin: &str) -> Result<DeviceSpec, SpecError> {
        Self::with_overrides(toml_text, origin, &[])
    }

    /// Reads a device file like [`DeviceSpec::parse`], but first sets the dotted keys in `overrides`. Their values are
    /// in TOML syntax, or are bare words: `("buffer.capacity", "32MiB")`.
    ///
    /// The value `none` removes a key or a section (`("buffer", "none")`). If an override changes a selector, such as
    /// the policy or the back end, some keys of the file may no longer have a meaning. These keys are dropped. In a
    /// file without overrides, a key without a meaning is an error.
    ///
    /// # Errors
    /// Fails as [`DeviceSpec::parse`] does.
    pub fn with_overrides(
        toml_text: &str,
        origin: &str,
        overrides: &[(&str, &str)],
    ) -> Result<DeviceSpec, SpecError> {
        let mut tree = Tree::parse(toml_text, origin)?;
        let overrides = overrides.iter().map(|&(key, text)| given(key, text));
        from_tree(&mut tree, overrides.collect())
    }
}

/// Converts a setting that is given as text to a key and an entry of the tree.
pub(super) fn given<'a>(key: &'a str, text: &str) -> (&'a str, Entry) {
    let key = key.trim();
    let node = match find(key).map(|doc| doc.kind) {
        // If a key takes a name or a text, its value is a word, even if it looks like `true` or `1`.
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

/// Applies the overrides to the tree, and returns the device that the tree then describes.
pub(super) fn from_tree(
    tree: &mut Tree,
    overrides: Vec<(&str, Entry)>,
) -> Result<DeviceSpec, SpecError> {
    let values = read(tree, overrides)?;
    let spec = DeviceSpec::from_values(&values);
    let mut problems = Vec::new();
    check::check(&spec, &values, &mut |key, message| {
        problems.push(tree.problem(key, message));
    });
    SpecError::from_problems(problems)?;
    Ok(spec)
}

/// Applies the overrides to the tree, and returns its values. Each value has been checked individually.
pub(super) fn read(
    tree: &mut Tree,
    mut overrides: Vec<(&str, Entry)>,
) -> Result<Values, SpecError> {
    over_provisioning::translate_file(tree)?;
    over_provisioning::translate_overrides(&mut overrides)?;
    let share = watermark::rename(tree, &mut overrides)?;
    apply(tree, overrides)?;
    watermark::resolve(tree, share);
    values(tree)
}

/// Applies overrides to the tree, in order.
fn apply(tree: &mut Tree, overrides: Vec<(&str, Entry)>) -> Result<(), SpecError> {
    let mut set: Vec<&str> = Vec::new();
    for (key, entry) in overrides {
        let removes = matches!(&entry.node, Node::Str(word) if word.trim() == "none")
            && !find(key).is_some_and(has_none);
        let is_section = !key.is_empty() && keys().iter().any(|doc| section_of(doc) == key);
        let is_known = is_section || find(key).is_some();
        if !is_known || is_section && !removes {
            let message = match is_section {
                true => {
                    let example = Buffer::capacity_pages;
                    format!("is a section; set one of its keys, as in {example}=32MiB")
                }
                false => unknown_key(key),
            };
            return Err(Problem::new(entry.place, key, message).into());
        }
        if removes {
            tree.remove(key);
            continue;
        }
        tree.set(key, entry);
        set.push(key);
    }
    // Keys of the file that no longer have a meaning, because an override changed a selector.
    let dropped: Vec<&str> = keys()
        .iter()
        .filter(|doc| {
            let from_file = tree.get(doc.key).is_some() && !set.contains(&doc.key);
            let unmet = Table { tree, keys: keys() }.unmet(doc);
            from_file && unmet.is_some_and(|(selector, _)| set.contains(&selector))
        })
        .map(|doc| doc.key)
        .collect();
    for key in dropped {
        tree.remove(key);
    }
    Ok(())
}

/// Whether the key accepts the word `none`, and `none` is not its default.
fn has_none(doc: &KeyDoc) -> bool {
    let is_default = doc
        .default
        .is_some_and(|text| text.trim_matches('"') == "none");
    matches!(doc.kind, Kind::Choice(words) if words.contains(&"none")) && !is_default
}

/// A file, and the keys that it may have.
pub(super) struct Table<'a> {
    pub tree: &'a Tree,
    pub keys: &'static [KeyDoc],
}

impl Table<'_> {
    fn find(&self, key: &str) -> Option<&KeyDoc> {
        self.keys.iter().find(|doc| doc.key == key)
    }

    /// Returns the first condition of the key that is not met; `None` if all are met.
    pub fn unmet(&self, doc: &KeyDoc) -> Option<Condition> {
        doc.only.iter().copied().find(|(selector, wanted)| {
            let value = match self.tree.get(selector).map(|entry| &entry.node) {
                Some(Node::Str(word)) => word.as_str(),
                Some(_) => return false,
                None => match self.find(selector).and_then(|doc| doc.default) {
                    Some(default) => default.trim_matches('"'),
                    None => return false,
                },
            };
            // If a selector has a wrong value, only that error is reported. Keys that depend on the selector cause no
            // further error.
            self.is_word(selector, value) && !is_met(selector, wanted, value)
        })
    }

    /// Whether it cannot be decided if the key has a meaning, because one of its selectors is missing or has a wrong
    /// value.
    fn undecided(&self, doc: &KeyDoc) -> bool {
        let mut selectors = doc.only.iter().map(|(selector, _)| selector);
        selectors.any(
            |selector| match self.tree.get(selector).map(|entry| &entry.node) {
                Some(Node::Str(word)) => !self.is_word(selector, word),
                Some(_) => true,
                None => self.find(selector).is_some_and(|doc| doc.default.is_none()),
            },
        )
    }

    /// Whether the selector permits this word.
    fn is_word(&self, selector: &str, value: &str) -> bool {
        match self.find(selector).map(|doc| doc.kind) {
            Some(Kind::Choice(words)) => words.contains(&value),
            Some(Kind::PolicyName) => ChosenPolicy::is_name(value),
            _ => false,
        }
    }

    /// Reads a key and adds its value to `values`. Returns an error message if the value is wrong or missing.
    pub fn read(&self, doc: &KeyDoc, default: Option<&str>, values: &mut Values) -> Option<String> {
        let value = match (self.tree.get(doc.key), self.unmet(doc)) {
            (Some(entry), None) => match convert(doc.kind, &entry.node) {
                Some(value) => value,
                None => return Some(wrong_value(doc.kind, &entry.node)),
            },
            (Some(entry), Some(_)) if doc.key == Geometry::channels.name() => {
                return self.channels_on_msr(entry)
            }
            (Some(_), Some((selector, wanted))) => {
                let wanted = words_or(wanted);
                return Some(format!(
                    "has no effect here; it needs {selector} = {wanted}"
                ));
            }
            (None, Some(_)) => return None,
            (None, None) => match default {
                OPTIONAL => return None,
                Some(text) => default_value(doc.kind, text),
                None => return self.missing(doc),
            },
        };
        values.0.insert(doc.key, value);
        None
    }

    /// Returns an error message for `geometry.channels` on the `msr` back end, where each chip has its own pins. The
    /// key is permitted if its value is the number of chips.
    fn channels_on_msr(&self, entry: &Entry) -> Option<String> {
        let chips = self.tree.get(Geometry::chips.name());
        if chips.map(|chips| &chips.node) == Some(&entry.node) {
            return None;
        }
        let found = entry.node.show();
        Some(format!(
            "found {found}; on the \"msr\" back end every chip has its own pins: leave the key out"
        ))
    }

    fn missing(&self, doc: &KeyDoc) -> Option<String> {
        if self.undecided(doc) {
            return None;
        }
        let mut message = format!("missing; must be {}", doc.kind);
        if let Some((selector, wanted)) = doc.only.first() {
            message += &format!("; needed with {selector} = {}", words_or(wanted));
        }
        Some(message)
    }
}

/// Returns the default that a key has with this policy.
fn default_with(policy: &str, doc: &KeyDoc) -> Option<&'static str> {
    let own = || {
        let (entry, base) = catalog::find(policy)?;
        let (section, key) = split(doc.key);
        let mut defaults = base.unwrap_or(entry).defaults.iter();
        let own = defaults.find(|(of, _)| section == split(POLICY).0 && *of == key);
        own.map(|(_, text)| *text)
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

/// Returns the values of all keys that have a meaning for this device: the value in the file, or the default.
fn values(tree: &Tree) -> Result<Values, SpecError> {
    let table = Table { tree, keys: keys() };
    let mut problems = unknown(tree);
    // If a key is misspelt, missing keys are not reported, because the misspelt key may be one of them.
    let misspelt = !problems.is_empty();
    let mut values = Values::default();
    let policy = match tree.get(POLICY).map(|entry| &entry.node) {
        Some(Node::Str(word)) => word,
        _ => "",
    };
    let of_buffer = split(POLICY).0;
    let has_buffer = tree.sections.contains_key(of_buffer);
    for doc in keys() {
        let default = default_with(policy, doc);
        let is_excused = misspelt && default.is_none() && tree.get(doc.key).is_none();
        if is_excused || section_of(doc) == of_buffer && !has_buffer {
            continue;
        }
        if let Some(message) = table.read(doc, default, &mut values) {
            problems.push(tree.problem(doc.key, message));
        }
    }
    SpecError::from_problems(problems)?;
    Ok(values)
}

/// Reports sections and keys that are not in the table.
fn unknown(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let is_section = |name: &str| keys().iter().any(|doc| section_of(doc) == name);
    for (section, content) in &tree.sections {
        if !is_section(section) {
            let message = match find(section) {
                Some(doc) => format!("is not a section; must be {}", doc.kind),
                None => unknown_section(section),
            };
            problems.push(Problem::new(content.place.clone(), section, message));
            continue;
        }
        for (name, entry) in &content.keys {
            let key = match section.as_str() {
                "" => name.clone(),
                section => format!("{section}.{name}"),
            };
            // A root key with a dot in its name (`"a.b"`) is not the dotted key `a.b`. A key in the section `[""]` is
            // unknown, too.
            if find(&key).is_some_and(|doc| split(doc.key) == (section, name)) {
                continue;
            }
            let message = if section.is_empty() && !name.is_empty() && is_section(name) {
                format!("found {}; must be a section, [{name}]", entry.node.show())
            } else {
                unknown_key(&key)
            };
            problems.push(Problem::new(entry.place.clone(), &key, message));
        }
    }
    problems
}
