//! Writes an array as TOML text, which reads back as the same array.

use super::members::front_sections;
use super::read::{array_section, MEMBER};
use super::{array_keys, ArraySpec};
use crate::component::Value;
use crate::coordinate::IDEAL;
use crate::spec::convert::{quote, text};
use crate::spec::keys::{has_meaning, keys, row};
use crate::spec::profiles::builtin;
use crate::spec::section::{section_of, KeyDoc, Row};
use crate::spec::tree::split;
use crate::spec::{Buffer, DeviceSpec, Gc};

/// The keys that `[array]` declares.
const ROWS: &[&[Row<ArraySpec>]] = &[ArraySpec::ROWS];

impl ArraySpec {
    /// Returns the whole array as TOML. For the members, it has only the keys that differ from the named devices.
    pub fn to_toml(&self) -> String {
        let front = DeviceSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            link: self.link.clone(),
            controller: self.controller.clone(),
            buffer: self.buffer.clone(),
            ..self.members[0].clone()
        };
        let [root, buffer, link, controller] = front_sections();
        let of_front = |section| lines(section, keys(), |key| front.value_toml(key));
        let own = lines(array_section(), array_keys(), |key| self.value_toml(key));
        let mut text = format!("{}\n[{}]\n{own}", of_front(root), array_section());
        let more = [link, controller, buffer].map(|section| (section, of_front(section)));
        for (section, lines) in more.into_iter().chain([(MEMBER, self.set_of_members())]) {
            if !lines.is_empty() {
                text += &format!("\n[{section}]\n{lines}");
            }
        }
        text
    }

    /// Returns the keys of the members that differ from the named devices, one per line.
    fn set_of_members(&self) -> String {
        let named = |member: &DeviceSpec| {
            let text = builtin(&member.name)?;
            DeviceSpec::parse(text, &member.name).ok()
        };
        let mut set: Vec<(&str, String)> = Vec::new();
        for (i, member) in self.members.iter().enumerate() {
            if self.members[..i]
                .iter()
                .any(|other| other.name == member.name)
            {
                continue;
            }
            let Some(named) = named(member) else { continue };
            if named.buffer.is_some() && member.buffer.is_none() {
                set.push((section_of(&Buffer::policy.doc), quote("none")));
            }
            for doc in keys() {
                let value = member.value_toml(doc.key);
                // In an ideal array, `gc.ideal` of the members follows from the coordination scheme.
                let is_written = doc.key != Gc::ideal.name() || self.coordination.name != IDEAL;
                if value != named.value_toml(doc.key) && is_written {
                    set.extend(value.map(|value| (doc.key, value)));
                }
            }
        }
        set.sort();
        set.dedup();
        let lines = set.iter().map(|(key, value)| format!("{key} = {value}\n"));
        lines.collect()
    }

    /// Returns the value of a key of `[array]` as TOML text; `None` if it has none.
    pub fn value_toml(&self, key: &str) -> Option<String> {
        let doc = array_keys().iter().find(|doc| doc.key == key)?;
        if !has_meaning(ROWS, self, doc) {
            return None;
        }
        match row(ROWS, key).map(|row| (row.write)(self)) {
            Some(Some(Value::Float(x))) => Some(format!("{x:?}")),
            Some(value) => Some(text(doc.kind, &value?)),
            None => {
                let value = self.coordination.settings.value(split(key).1)?;
                Some(text(doc.kind, value))
            }
        }
    }

    /// Returns the size of `pages` pages.
    pub(super) fn bytes_of(&self, pages: u32) -> Value {
        Value::Number(u64::from(pages) * u64::from(self.page_bytes()))
    }

    /// Returns the members as the key takes them, such as `harmonia*8`.
    pub(super) fn member_names(&self) -> String {
        let same = self.members.chunk_by(|a, b| a.name == b.name);
        let parts: Vec<String> = same
            .map(|members| format!("{}*{}", members[0].name, members.len()))
            .collect();
        parts.join(", ")
    }
}

/// Returns the keys of a section that have values, one per line.
fn lines(section: &str, keys: &[KeyDoc], value: impl Fn(&str) -> Option<String>) -> String {
    let of_section = keys.iter().filter(|doc| section_of(doc) == section);
    let lines = of_section.filter_map(|doc| {
        let value = value(doc.key)?;
        Some(format!("{} = {value}\n", split(doc.key).1))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{builtin_array, builtin_array_names};

    #[test]
    fn written_array_file_reads_back_as_the_same_array() {
        let changes: &[&[(&str, &str)]] = &[
            &[],
            &[
                ("array.level", "raid6"),
                ("array.coordination", "turns"),
                ("array.reads", "around-gc"),
            ],
            &[
                ("buffer.capacity", "1 GiB"),
                ("buffer.policy", "gcar-lru"),
                ("array.protect", "stripe"),
            ],
            &[("member.gc.low_percent", "6"), ("array.hard_percent", "4")],
            &[
                ("array.level", "raid5"),
                ("array.reads", "hedged"),
                ("array.hedge_after_us", "700"),
            ],
            &[("array.hedge_percent", "90")],
            &[("array.level", "swan")],
            &[
                ("array.level", "swan"),
                ("array.coordination", "ideal"),
                ("array.members", "harmonia*6"),
                ("array.groups", "3"),
                ("array.segment", "8 MiB"),
                ("array.spare_percent", "12.5"),
            ],
            &[
                ("array.coordination", "ideal"),
                ("array.members", "harmonia*3, gcar"),
            ],
        ];
        for name in builtin_array_names() {
            for change in changes {
                let text = builtin_array(name).unwrap();
                let spec = ArraySpec::with_overrides(text, name, change).unwrap();
                let again = ArraySpec::parse(&spec.to_toml(), name).unwrap();
                assert_eq!(again, spec, "{change:?}\n{}", spec.to_toml());
            }
        }
    }
}
