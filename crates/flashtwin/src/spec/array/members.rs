//! The members of an array and its front end, each read as a device.

use super::read::MEMBER;
use super::ArraySpec;
use crate::coordinate::IDEAL;
use crate::spec::error::SpecError;
use crate::spec::profiles::builtin;
use crate::spec::read::from_tree;
use crate::spec::section::{section_of, Values};
use crate::spec::tree::{Entry, Node, Tree};
use crate::spec::{builtin_names, Buffer, Controller, DeviceSpec, Link};

/// Members of an array at most: places of a stripe are bits of a word.
const MEMBERS_MAX: usize = 60;

/// The members of an array, and the device whose sections are those of the front end.
pub(in crate::spec) struct Made {
    pub members: Vec<DeviceSpec>,
    pub front: DeviceSpec,
}

impl Made {
    /// The members of these names, with keys set for all of them, and the front end of the file.
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

/// Sections of an array file that are those of a device: the front end's.
pub(super) fn front_sections() -> [&'static str; 4] {
    [
        section_of(&DeviceSpec::name.doc),
        section_of(&Buffer::policy.doc),
        section_of(&Link::kind.doc),
        section_of(&Controller::request.doc),
    ]
}

/// `"harmonia*8, ecr"` as the names of nine devices.
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

/// The keys below the section `[member]`, dotted.
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

/// The member called `name`, with what `[member]` sets.
fn member_of(name: &str, set: &[(String, Entry)]) -> Result<DeviceSpec, SpecError> {
    let mut tree = profile(name)?;
    let set = set.iter().map(|(key, entry)| (key.as_str(), entry.clone()));
    from_tree(&mut tree, set.collect())
}

/// The front end's sections, checked beside the geometry of a member.
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
