//! Writes an array as TOML text, from which the same array can be read.

use super::members::front_sections;
use super::read::{array_section, DRIVES, MEMBER};
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
    /// Returns the whole array as TOML. The text has a key of a member only if its value differs from that in the
    /// device that `array.members` names.
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
        for drive in &self.drives {
            text += &drive_toml(drive);
        }
        text
    }

    /// Returns the keys of members with values that differ from those in the devices that `array.members` names, one
    /// key per line.
    fn set_of_members(&self) -> String {
        let named = |member: &DeviceSpec| {
            let described = self.drives.iter().find(|drive| drive.name == member.name);
            if described.is_some() {
                return described.cloned();
            }
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
                // In an array with the coordination `ideal`, `gc.ideal` of the members follows from the coordination,
                // so it is not written.
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

    /// Returns the value of a key of `[array]` as TOML text; `None` if the key has no value.
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

    /// Returns the members in the form of the key `array.members`, such as `harmonia*8`.
    pub(super) fn member_names(&self) -> String {
        let same = self.members.chunk_by(|a, b| a.name == b.name);
        let parts: Vec<String> = same
            .map(|members| format!("{}*{}", members[0].name, members.len()))
            .collect();
        parts.join(", ")
    }
}

/// Formats a drive as a section of the array's file.
fn drive_toml(drive: &DeviceSpec) -> String {
    let key = match drive.name.contains('.') {
        true => quote(&drive.name),
        false => drive.name.clone(),
    };
    let section = format!("{DRIVES}.{key}");
    let mut text = format!("\n[{section}]\n");
    for line in drive.to_toml().lines() {
        match line.strip_prefix('[') {
            Some(header) => text += &format!("[{section}.{header}\n"),
            None if line.starts_with("name = ") => {}
            None => text += &format!("{line}\n"),
        }
    }
    text
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
    use crate::spec::{builtin_array, builtin_array_names, MemberFile};

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

    /// Returns the text of a device file in which one key has a value that no profile has.
    fn drive(name: &str) -> String {
        let text = builtin("harmonia").unwrap();
        let changes = [("name", name), ("gc.low_percent", "7")];
        let spec = DeviceSpec::with_overrides(text, name, &changes).unwrap();
        spec.to_toml()
    }

    fn with_files(toml: &str, overrides: &[(&str, &str)]) -> Result<ArraySpec, String> {
        let read = |path: &str, by_override: bool| match path {
            "./a.toml" => Ok(MemberFile {
                origin: format!("a.toml, {by_override}"),
                text: drive("drive-1.5"),
            }),
            "./bad.toml" => Ok(MemberFile {
                origin: "bad.toml".into(),
                text: drive("bad").replace("chips = ", "chips = 0 # "),
            }),
            "./same.toml" => Ok(MemberFile {
                origin: "same.toml".into(),
                text: drive("harmonia"),
            }),
            _ => Err("no such file".into()),
        };
        ArraySpec::with_files(toml, "x.toml", overrides, &read).map_err(|e| e.to_string())
    }

    const OF_FILES: &str = r#"
        name = "five"
        [array]
        level = "raid5"
        members = "harmonia*2, ./a.toml*3"
        [member]
        gc.low_percent = 6
    "#;

    #[test]
    fn array_of_device_files_is_written_with_its_drives() {
        let spec = with_files(OF_FILES, &[]).unwrap();
        let names: Vec<&str> = spec.members.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names[1..3], ["harmonia", "drive-1.5"]);
        assert_eq!(spec.drives.len(), 1);
        assert_eq!(spec.members[4].gc.low_percent, 6.0);
        let text = spec.to_toml();
        assert!(text.contains("[drives.\"drive-1.5\".gc]\n"), "{text}");
        let again = ArraySpec::parse(&text, "again").unwrap();
        assert_eq!(format!("{again:?}"), format!("{spec:?}"));
        assert_eq!(again.to_toml(), text);
        let changed = ArraySpec::with_overrides(&text, "again", &[("member.gc.low_percent", "5")]);
        assert_eq!(changed.unwrap().members[4].gc.low_percent, 5.0);
        let none_set = OF_FILES.replace("gc.low_percent = 6", "");
        assert_eq!(
            with_files(&none_set, &[]).unwrap().members[4]
                .gc
                .low_percent,
            7.0
        );
    }

    #[test]
    fn wrong_member_file_is_reported_with_its_place() {
        let of = |members: &str| with_files(OF_FILES, &[("array.members", members)]).unwrap_err();
        for (members, parts) in [
            (
                "./none.toml*3",
                &["array.members", "\"./none.toml\": no such file"][..],
            ),
            ("./bad.toml*3", &["bad.toml:", "geometry.chips"]),
            (
                "harmonia*2, ./same.toml",
                &["two different members", "\"harmonia\""],
            ),
            ("nothing*3", &["\"nothing\" is no device", "./mine.toml*4"]),
        ] {
            let message = of(members);
            for part in parts {
                assert!(message.contains(part), "{members}: {message}");
            }
        }
        let by_file = with_files(OF_FILES, &[]).unwrap().to_toml();
        let wrong = by_file.replace(
            "[drives.\"drive-1.5\"]\n",
            "[drives.\"drive-1.5\"]\nname = \"x\"\n",
        );
        let message = ArraySpec::parse(&wrong, "x.toml").unwrap_err().to_string();
        assert!(message.contains("remove it"), "{message}");
        let message = ArraySpec::parse(OF_FILES, "x.toml")
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("x.toml:5:") && message.contains("[drives.NAME]"),
            "{message}"
        );
        let deep = by_file.replace(
            "[drives.\"drive-1.5\".gc]\n",
            "[drives.\"drive-1.5\".gc]\nvictimm = 1\n",
        );
        let line = deep.lines().position(|line| line == "victimm = 1").unwrap() + 1;
        let message = ArraySpec::parse(&deep, "x.toml").unwrap_err().to_string();
        assert!(message.contains(&format!("x.toml:{line}:")), "{message}");
    }
}
