//! The members of an array and its front end. Each is read as a device.

use super::read::MEMBER;
use super::ArraySpec;
use crate::coordinate::IDEAL;
use crate::spec::error::SpecError;
use crate::spec::profiles::builtin;
use crate::spec::read::from_tree;
use crate::spec::section::{section_of, Values};
use crate::spec::tree::{Entry, Node, Tree};
use crate::spec::{builtin_names, Buffer, Controller, DeviceSpec, Link};

/// Largest number of members: the members of a stripe are bits of a 64-bit word.
const MEMBERS_MAX: usize = 60;

/// The members of an array, and the device whose sections are those of the front end.
pub(in crate::spec) struct Made {
    pub members: Vec<DeviceSpec>,
    pub front: DeviceSpec,
}

impl Made {
    /// Reads the members with these names, applies the keys of `[member]` to each, and reads the front end.
    pub fn read(
        v: &Values,
        names: &[&str],
        tree: &Tree,
        of_front: Vec<(&str, Entry)>,
        of_members: &[(String, Entry)],
    ) -> Result<Made, SpecError> {
        let mut members: Vec<DeviceSpec> = Vec::new();
        for (i, name) in names.iter().enumerate() {
            let known = names[..i].iter().position(|other| other == name);
            members.push(match known {
                Some(other) => members[other].clone(),
                None => member_of(name, of_members)?,
            });
        }
        let scheme: String = v.setting(&ArraySpec::coordination);
        if scheme == IDEAL {
            members.iter_mut().for_each(|member| member.gc.ideal = true);
        }
        let front = front_of(tree, names[0], of_front)?;
        Ok(Made { members, front })
    }
}

/// Returns the sections of an array file that a device file has, too: those of the front end.
pub(super) fn front_sections() -> [&'static str; 4] {
    [
        section_of(&DeviceSpec::name.doc),
        section_of(&Buffer::policy.doc),
        section_of(&Link::kind.doc),
        section_of(&Controller::request.doc),
    ]
}

/// Expands `"harmonia*8, ecr"` to the names of nine devices.
pub(super) fn member_names(text: &str) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    for part in text.split(',') {
        let (name, count) = match part.split_once('*') {
            Some((name, count)) => (name.trim(), count.trim().parse::<usize>().ok()),
            None => (part.trim(), Some(1)),
        };
        if builtin(name).is_none() {
            let known: Vec<&str> = builtin_names().collect();
            return Err(format!(
                "{name:?} is no device that comes with flashtwin; known: {}",
                known.join(", ")
            ));
        }
        match count {
            Some(count @ 1..=MEMBERS_MAX) if names.len() + count <= MEMBERS_MAX => {
                names.extend(std::iter::repeat_n(name, count));
            }
            _ => {
                return Err(format!(
                    "{:?}; give a device and how many of it, at most {MEMBERS_MAX} in all, as in \
                     \"harmonia*8\"",
                    part.trim()
                ))
            }
        }
    }
    Ok(names)
}

/// Returns the keys of the section `[member]` as dotted keys.
pub(super) fn flatten_members(tree: &Tree) -> Vec<(String, Entry)> {
    let mut flat = Vec::new();
    let keys = tree.sections.get(MEMBER).map(|section| &section.keys);
    for (key, entry) in keys.into_iter().flatten() {
        match &entry.node {
            Node::Table(fields) => flat.extend(fields.iter().map(|(name, _, node)| {
                let place = entry.place.clone();
                let node = node.clone();
                (format!("{key}.{name}"), Entry { place, node })
            })),
            _ => flat.push((key.clone(), entry.clone())),
        }
    }
    flat
}

/// Reads the device profile `name` with the keys of `[member]` applied.
fn member_of(name: &str, set: &[(String, Entry)]) -> Result<DeviceSpec, SpecError> {
    let mut tree = profile(name)?;
    let set = set.iter().map(|(key, entry)| (key.as_str(), entry.clone()));
    from_tree(&mut tree, set.collect())
}

/// Reads the sections of the front end, and checks them together with the geometry of a member.
fn front_of(
    tree: &Tree,
    member: &str,
    overrides: Vec<(&str, Entry)>,
) -> Result<DeviceSpec, SpecError> {
    let mut front = profile(member)?;
    front.origin = tree.origin.clone();
    for section in front_sections() {
        match tree.sections.get(section) {
            Some(own) => front.sections.insert(section.into(), own.clone()),
            None => front.sections.remove(section),
        };
    }
    from_tree(&mut front, overrides)
}

fn profile(name: &str) -> Result<Tree, SpecError> {
    Ok(Tree::parse(builtin(name).unwrap_or_default(), name)?)
}
