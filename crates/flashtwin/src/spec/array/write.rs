//! An array as TOML: what reads back as the same array.

use super::{array_keys, ArraySpec, MemberInGc};
use crate::component::size;
use crate::coordinate::IDEAL;
use crate::spec::keys::keys;
use crate::spec::profiles::builtin;
use crate::spec::tree::split;
use crate::spec::write::setting_toml;
use crate::spec::DeviceSpec;

fn quote(word: &str) -> String {
    format!("{word:?}")
}

impl ArraySpec {
    /// The whole array as TOML. Of the members it has what differs from the devices they are named after.
    pub fn to_toml(&self) -> String {
        let mut text = format!("name = {:?}\n", self.name);
        text += &format!("description = {:?}\n\n[array]\n", self.description);
        for doc in array_keys() {
            if let Some(value) = self.value_toml(doc.key) {
                text += &format!("{} = {value}\n", split(doc.key).1);
            }
        }
        let front = DeviceSpec {
            link: self.link.clone(),
            controller: self.controller.clone(),
            buffer: self.buffer.clone(),
            ..self.members[0].clone()
        };
        for section in ["link", "controller", "buffer"] {
            let lines: Vec<String> = keys()
                .iter()
                .filter(|doc| split(doc.key).0 == section)
                .filter_map(|doc| {
                    let value = front.value_toml(doc.key)?;
                    Some(format!("{} = {value}\n", split(doc.key).1))
                })
                .collect();
            if !lines.is_empty() {
                text += &format!("\n[{section}]\n{}", lines.concat());
            }
        }
        let set = self.set_of_members();
        if !set.is_empty() {
            text += &format!("\n[member]\n{}", set.concat());
        }
        text
    }

    /// What the members have otherwise than the devices they are named after, a line each.
    fn set_of_members(&self) -> Vec<String> {
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
                set.push(("buffer", quote("none")));
            }
            for doc in keys() {
                let value = member.value_toml(doc.key);
                // For an ideal array this follows.
                let says = doc.key != "gc.ideal" || self.coordination.name != IDEAL;
                if value != named.value_toml(doc.key) && says {
                    set.extend(value.map(|value| (doc.key, value)));
                }
            }
        }
        set.sort();
        set.dedup();
        let lines = set.iter().map(|(key, value)| format!("{key} = {value}\n"));
        lines.collect()
    }

    /// The value of a key of `[array]` in TOML; `None` if it has none.
    pub fn value_toml(&self, key: &str) -> Option<String> {
        Some(match key {
            "array.level" => quote(self.level.name()),
            "array.members" => quote(&self.member_names()),
            "array.chunk" => {
                let bytes = u64::from(self.chunk_pages) * u64::from(self.page_bytes());
                quote(&size(bytes))
            }
            "array.rotation" => quote(self.rotation.name()),
            "array.groups" => self.volume?.groups.to_string(),
            "array.segment" => {
                let pages = u64::from(self.volume?.segment_pages);
                quote(&size(pages * u64::from(self.page_bytes())))
            }
            "array.spare_percent" => format!("{:?}", self.volume?.spare_percent),
            "array.member_in_gc" => quote(self.member_in_gc.word().name()),
            "array.member_in_gc_share" => match self.member_in_gc {
                MemberInGc::Share(share) => format!("{share:?}"),
                _ => return None,
            },
            "array.protect" => quote(self.protect.name()),
            "array.reads" => quote(self.reads.name()),
            "array.hedge_percent" => format!("{:?}", self.hedge_percent),
            "array.hedge_after_us" => (self.hedge_after?.to_ns() / 1_000).to_string(),
            "array.rebuild_depth" => self.rebuild_depth.to_string(),
            "array.rebuild_mib_per_s" => self.rebuild_mib_per_s.to_string(),
            "array.coordination" => quote(self.coordination.name),
            "array.soft_percent" => format!("{:?}", self.soft_percent),
            "array.hard_percent" => format!("{:?}", self.hard_percent?),
            "array.stop_blocks" => self.stop_blocks.to_string(),
            "array.idle_until_percent" => format!("{:?}", self.idle_until_percent?),
            _ => return setting_toml(&self.coordination.settings, split(key).1),
        })
    }

    /// `harmonia*8`, as the key takes it.
    fn member_names(&self) -> String {
        let same = self.members.chunk_by(|a, b| a.name == b.name);
        let parts: Vec<String> = same
            .map(|members| format!("{}*{}", members[0].name, members.len()))
            .collect();
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{builtin_array, builtin_array_names};

    #[test]
    fn what_is_written_reads_back_as_the_same_array() {
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
