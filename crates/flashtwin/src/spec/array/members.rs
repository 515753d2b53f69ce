//! The members of an array, and the array's front end. Each member and the front end are read like devices.

use super::read::{DRIVES, MEMBER};
use super::{is_array, ArraySpec};
use crate::coordinate::IDEAL;
use crate::spec::error::{Place, Problem, SpecError};
use crate::spec::profiles::builtin;
use crate::spec::read::from_tree;
use crate::spec::section::{section_of, Values};
use crate::spec::tree::{Entry, Node, Tree};
use crate::spec::{builtin_names, Buffer, Controller, DeviceSpec, Link};

/// Largest number of members. A 64-bit word has one bit for each member of a stripe.
const MEMBERS_MAX: usize = 60;

/// Largest number of device files that an array may name. The TOML text of an array includes all of these files.
const FILES_MAX: usize = 16;

/// Text of a device file that `array.members` names.
#[derive(Clone, Debug)]
pub struct MemberFile {
    /// Path in messages.
    pub origin: String,
    /// TOML text.
    pub text: String,
}

/// Reads the device file at a path given in `array.members`. The flag is true if an override gave the path; such a path
/// is not relative to the array's file. An error states why the file cannot be read.
pub type ReadMember<'a> = &'a dyn Fn(&str, bool) -> Result<MemberFile, String>;

/// The members of an array, and its front end. The front end is stored as a device, with the front-end sections of the
/// array's file.
pub(in crate::spec) struct Made {
    pub members: Vec<DeviceSpec>,
    /// Drives that are used as members and are not profiles of flashtwin, as their files describe them.
    pub drives: Vec<DeviceSpec>,
    pub front: DeviceSpec,
}

impl Made {
    /// Reads the members with these names, applies the keys of `[member]` to each of them, and reads the front end.
    pub fn read(
        v: &Values,
        names: &[&str],
        tree: &Tree,
        read: ReadMember,
        of_front: Vec<(&str, Entry)>,
        of_members: &[(String, Entry)],
    ) -> Result<Made, SpecError> {
        let wrong = |message| tree.problem(ArraySpec::members.name(), message);
        let mut members: Vec<DeviceSpec> = Vec::new();
        let mut drives: Vec<DeviceSpec> = Vec::new();
        let mut front = None;
        for (i, name) in names.iter().enumerate() {
            if let Some(other) = names[..i].iter().position(|other| other == name) {
                members.push(members[other].clone());
                continue;
            }
            let drive = drive(name, tree, read)?;
            if front.is_none() {
                front = Some(front_of(tree, drive.clone(), of_front.clone())?);
            }
            let set = of_members.iter();
            let set = set.map(|(key, entry)| (key.as_str(), entry.clone()));
            let member = from_tree(&mut drive.clone(), set.collect())?;
            if members.iter().any(|other| other.name == member.name) {
                let message = format!(
                    "two different members are called {:?}; change the name in one of their files",
                    member.name
                );
                return Err(wrong(message).into());
            }
            if is_file(name) || described(tree, name).is_some() {
                drives.push(from_tree(&mut drive.clone(), Vec::new())?);
            }
            members.push(member);
        }
        if drives.len() > FILES_MAX {
            let message = format!("{} device files; at most {FILES_MAX}", drives.len());
            return Err(wrong(message).into());
        }
        let scheme: String = v.setting(&ArraySpec::coordination);
        if scheme == IDEAL {
            members.iter_mut().for_each(|member| member.gc.ideal = true);
        }
        let front = front.expect("there is a member");
        Ok(Made {
            members,
            drives,
            front,
        })
    }
}

/// Whether a name in `array.members` is a path to a file.
fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// Returns the drive with this name, if the array's file itself describes it.
fn described(tree: &Tree, name: &str) -> Option<Tree> {
    let key = format!("{DRIVES}.{name}");
    let place = tree.get(&key)?.place.clone();
    let mut drive = tree.table(&key)?;
    let node = Node::Str(name.into());
    drive.set("name", Entry { place, node });
    Some(drive)
}

/// Returns the description of a drive. The name may be that of a device file, of a drive in the array's file, or of a
/// profile of flashtwin.
fn drive(name: &str, tree: &Tree, read: ReadMember) -> Result<Tree, SpecError> {
    let wrong = |message| tree.problem(ArraySpec::members.name(), message);
    if is_file(name) {
        let place = tree.place(ArraySpec::members.name());
        let file = read(name, matches!(place, Place::Override { .. }))
            .map_err(|why| wrong(format!("{name:?}: {why}")))?;
        if is_array(&file.text) {
            let message = format!("{name:?} describes an array; members are single drives");
            return Err(wrong(message).into());
        }
        return Ok(Tree::parse(&file.text, &file.origin)?);
    }
    if let Some(drive) = described(tree, name) {
        return Ok(drive);
    }
    let Some(text) = builtin(name) else {
        let known: Vec<&str> = builtin_names().collect();
        let message = format!(
            "{name:?} is no device that comes with flashtwin; known: {}; or give a device file, as in \
             \"./mine.toml*4\"",
            known.join(", ")
        );
        return Err(wrong(message).into());
    };
    Ok(Tree::parse(text, name)?)
}

/// Reports entries of `[drives]` that are not tables. Also reports drives that have a key `name`, because the name of a
/// drive is that of its section.
pub(super) fn check_drives(tree: &Tree, problems: &mut Vec<Problem>) {
    let drives = tree.sections.get(DRIVES);
    for (name, entry) in drives.iter().flat_map(|section| &section.keys) {
        let key = format!("{DRIVES}.{name}");
        let message = match tree.table(&key) {
            None => format!("must be a section, as in [{key}.geometry]"),
            Some(drive) if drive.get("name").is_some() => {
                "has a name, which is that of its section; remove it".into()
            }
            Some(_) => continue,
        };
        problems.push(Problem::new(entry.place.clone(), &key, message));
    }
}

/// Returns the sections that both array files and device files have: those of the front end.
pub(super) fn front_sections() -> [&'static str; 4] {
    [
        section_of(&DeviceSpec::name.doc),
        section_of(&Buffer::policy.doc),
        section_of(&Link::kind.doc),
        section_of(&Controller::request.doc),
    ]
}

/// Splits a text such as `"harmonia*8, ecr"` into the names or files of all members (nine in this example).
pub(super) fn member_names(text: &str) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    for part in text.split(',') {
        let (name, count) = match part.split_once('*') {
            Some((name, count)) => (name.trim(), count.trim().parse::<usize>().ok()),
            None => (part.trim(), Some(1)),
        };
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

/// Reads the sections of the front end, and checks them together with the geometry of a member.
fn front_of(
    tree: &Tree,
    member: Tree,
    overrides: Vec<(&str, Entry)>,
) -> Result<DeviceSpec, SpecError> {
    let mut front = member;
    front.origin = tree.origin.clone();
    for section in front_sections() {
        match tree.sections.get(section) {
            Some(own) => front.sections.insert(section.into(), own.clone()),
            None => front.sections.remove(section),
        };
    }
    from_tree(&mut front, overrides)
}
