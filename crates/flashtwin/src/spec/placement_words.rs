//! Creates a placement setup from words such as `units=8 unit_pages=4 handles=ii,ii low=2`. Also lists the components
//! that the words can choose.

use super::{choose, DeviceSpec};
use crate::component::{Chosen, Word};
use crate::ftl::Shape;
use crate::placement::{
    components, handles, namespace, Choice, FreeUnit, Setup, SetupError, Survivors,
};

/// The words of a setup: for each word its name, the text of its default, and its meaning. In addition, each parameter
/// of the scheme, the victim rule and the scope is a word.
pub const PLACEMENT_WORDS: &[(&str, &str, &str)] = &[
    ("units", "8", "units of a group"),
    ("unit_pages", "4", "pages of a unit"),
    ("logical_pages", "8", "pages that the host sees"),
    ("handles", "ii", "types of the handles, separated by commas: `ii` initially isolated, `pi` persistently isolated; `8`: eight handles of type `ii`"),
    ("low", "1", "free units at or below which a group collects"),
    ("early", "auto", "free units at or below which a group collects in the background; auto: the value of `low`"),
    ("least_gain_percent", "0", "background collection skips units in which less than this share of the pages is invalid"),
    ("groups", "1", "reclaim groups"),
    ("namespace", "all", "handles to which the placement handles 0, 1, ... of the namespace refer, separated by commas"),
    ("group_bits", "auto", "number of bits of a placement id that name the group; auto: the fewest that suffice"),
    ("scheme", "handle", "the placement scheme"),
    ("survivors", "auto", "destination of moved pages: apart, same, shared, next; auto: that of the scheme"),
    ("victim", "greedy", "the victim rule"),
    ("scope", "global", "the units that the rule chooses among"),
    ("reuse", "oldest", "the free unit opened next: oldest, least-worn"),
    ("closes_at_power_cut", "false", "a power loss closes the host's open units"),
];

impl Choice {
    /// Returns the component called `name`. Its parameters have the values in `set`. Parameters that are not in `set`
    /// have their defaults.
    ///
    /// # Errors
    /// The error contains the wrong word and the permitted words.
    pub fn choose(self, name: &str, set: &[(String, String)]) -> Result<Chosen, String> {
        choose(self.word(), &components(self), name, set)
    }
}

impl Setup {
    /// Creates a setup from the given words. Words that are not given have their defaults.
    ///
    /// # Errors
    /// The error contains the wrong word, its value, and the permitted values.
    pub fn of_words(words: &[(String, String)]) -> Result<Setup, SetupError> {
        let reader = Reader { words };
        let victims = Choice::Victim;
        let (scheme, scope) = (reader.text("scheme"), reader.text("scope"));
        let victim = reader.text("victim");
        let choices = [
            (Choice::Scheme, scheme),
            (victims, victim),
            (Choice::Scope, scope),
        ];
        let known = |key: &str| PLACEMENT_WORDS.iter().any(|(word, ..)| *word == key);
        let is_of = |(of, name): (Choice, &str), key: &str| {
            let all = components(of);
            let chosen = all.iter().find(|component| component.name == name);
            chosen.is_some_and(|c| c.parameters.iter().any(|p| p.key == key))
        };
        let chosen = |of: Choice, name: &str| {
            let own = words.iter().filter(|(key, _)| is_of((of, name), key));
            let own: Vec<(String, String)> = own.cloned().collect();
            of.choose(name, &own).map_err(SetupError::new)
        };
        let setup = Setup {
            groups: reader.number("groups")?,
            units: reader.number("units")?,
            unit_pages: reader.number("unit_pages")?,
            logical_pages: reader.number("logical_pages")?,
            handles: handles(reader.text("handles"))
                .map_err(|e| SetupError::new(format!("handles: {e}")))?,
            namespace: Vec::new(),
            group_bits: 0,
            scheme: chosen(Choice::Scheme, scheme)?,
            survivors: reader.word_or_auto("survivors", Survivors::WORDS)?,
            victim: chosen(victims, victim)?,
            scope: chosen(Choice::Scope, scope)?,
            low: reader.number("low")?,
            early: match reader.text("early") {
                "auto" => 0,
                _ => reader.number("early")?,
            },
            least_gain_percent: reader.percent("least_gain_percent")?,
            reuse: reader.word("reuse", FreeUnit::WORDS)?,
            closes_at_power_cut: reader.switch("closes_at_power_cut")?,
        };
        let is_known = |key: &str| known(key) || choices.iter().any(|&choice| is_of(choice, key));
        if let Some((key, _)) = words.iter().find(|(key, _)| !is_known(key)) {
            let all: Vec<&str> = PLACEMENT_WORDS.iter().map(|(word, ..)| *word).collect();
            return Err(SetupError::new(format!(
                "{key}: no such word; the words are {}, and the parameters of {scheme}, {victim} and {scope}",
                all.join(", ")
            )));
        }
        let namespace = namespace(reader.text("namespace"), setup.handles.len())
            .map_err(|e| SetupError::new(format!("namespace: {e}")))?;
        let group_bits = match reader.text("group_bits") {
            "auto" => setup.groups.max(1).next_power_of_two().ilog2(),
            _ => reader.number("group_bits")?,
        };
        Ok(Setup {
            namespace,
            group_bits,
            ..setup
        })
    }

    /// Returns the words of a setup that describe the size of a device: `units`, `unit_pages` and so on. A unit is one block of every die, even if the device collects
    /// each of these blocks separately.
    pub fn device_words(spec: &DeviceSpec) -> Vec<(String, String)> {
        let shape = Shape::of(spec, false);
        let words = [
            ("units", shape.blocks_per_pool),
            ("unit_pages", shape.chips * shape.data_pages),
            ("logical_pages", shape.exported_pages),
            ("low", spec.low_blocks_chip().max(1)),
        ];
        let text = |(key, number): (&str, u32)| (key.to_string(), number.to_string());
        words.map(text).to_vec()
    }
}

struct Reader<'a> {
    words: &'a [(String, String)],
}

impl<'a> Reader<'a> {
    /// Returns the text given for a word. If the word is not given, returns the text of its default.
    fn text(&self, key: &str) -> &'a str {
        let given = self.words.iter().rfind(|(word, _)| word == key);
        let of_table = || PLACEMENT_WORDS.iter().find(|(word, ..)| *word == key);
        match given {
            Some((_, text)) => text,
            None => of_table().map_or("", |(_, default, _)| default),
        }
    }

    fn number(&self, key: &str) -> Result<u32, SetupError> {
        let text = self.text(key);
        text.parse().map_err(|_| {
            SetupError::new(format!("{key}: found \"{text}\"; must be a whole number"))
        })
    }

    fn percent(&self, key: &str) -> Result<f64, SetupError> {
        let text = self.text(key);
        (text.parse())
            .map_err(|_| SetupError::new(format!("{key}: found \"{text}\"; must be a number")))
    }

    fn switch(&self, key: &str) -> Result<bool, SetupError> {
        let text = self.text(key);
        text.parse()
            .map_err(|_| SetupError::new(format!("{key}: found \"{text}\"; must be true or false")))
    }

    fn word<W: Word>(&self, key: &str, words: &[&str]) -> Result<W, SetupError> {
        let text = self.text(key);
        W::from_word(text).ok_or_else(|| {
            SetupError::new(format!(
                "{key}: found \"{text}\"; must be one of {}",
                words.join(", ")
            ))
        })
    }

    fn word_or_auto<W: Word>(&self, key: &str, words: &[&str]) -> Result<Option<W>, SetupError> {
        match self.text(key) {
            "auto" => Ok(None),
            _ => self.word(key, words).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name has one meaning: no two parameters have the same name, and no parameter has the name of a word of the
    /// setup.
    #[test]
    fn words_and_parameters_have_names_of_their_own() {
        let mut seen: Vec<(&str, &str)> = PLACEMENT_WORDS
            .iter()
            .map(|&(word, ..)| (word, "setup"))
            .collect();
        for of in [Choice::Scheme, Choice::Victim, Choice::Scope] {
            for component in components(of) {
                for parameter in component.parameters {
                    let other = seen
                        .iter()
                        .find(|(word, kind)| *word == parameter.key && *kind != of.word());
                    assert_eq!(other, None, "{}: {}", component.name, parameter.key);
                }
                seen.extend(component.parameters.iter().map(|p| (p.key, of.word())));
            }
        }
    }
}
