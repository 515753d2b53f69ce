//! From TOML text to a checked [`ArraySpec`].

use super::members::{
    check_drives, flatten_members, front_sections, member_names, Made, MemberFile, ReadMember,
};
use super::{array_keys, ArraySpec, Level, Reads, SWAN};
use crate::component::{Value, TEXT_MAX};
use crate::coordinate::Coordination;
use crate::spec::error::{Problem, SpecError};
use crate::spec::read::{given, Table};
use crate::spec::section::{section_of, Values};
use crate::spec::suggest::nearest;
use crate::spec::tree::{split, Tree};
use crate::spec::WriteUnits;
use crate::spec::{Ftl, Mapping};
use crate::units::{narrow, Time};

/// Largest number of pages of a device. Page numbers have 32 bits, and the largest number means "no page".
pub(super) const PAGES_MAX: u64 = u32::MAX as u64 - 1;
/// Name of the section whose keys apply to all members.
pub(super) const MEMBER: &str = "member";
/// Name of the section with the drives that the array file itself describes.
pub(super) const DRIVES: &str = "drives";

/// Returns the name of the section with the keys of the array.
pub(super) fn array_section() -> &'static str {
    section_of(&ArraySpec::level.doc)
}

/// Whether the file describes an array, which is the case if it has a section `[array]`.
pub fn is_array(toml_text: &str) -> bool {
    Tree::parse(toml_text, "").is_ok_and(|tree| tree.sections.contains_key(array_section()))
}

impl ArraySpec {
    /// Reads and checks an array file. Error messages refer to the file as `origin`.
    ///
    /// # Errors
    /// Fails if the text is not TOML, or if a key or a value is wrong. The message lists all problems with their lines.
    pub fn parse(toml_text: &str, origin: &str) -> Result<ArraySpec, SpecError> {
        Self::with_overrides(toml_text, origin, &[])
    }

    /// Reads an array file like [`ArraySpec::parse`], but first sets the dotted keys in `overrides`. These are keys of
    /// `[array]`, `[buffer]`, `[link]` and `[controller]`, and keys of the members such as `member.gc.low_percent`.
    /// Members that are given by device files are refused, because this function reads no files.
    ///
    /// # Errors
    /// Fails as [`ArraySpec::parse`] does.
    pub fn with_overrides(
        toml_text: &str,
        origin: &str,
        overrides: &[(&str, &str)],
    ) -> Result<ArraySpec, SpecError> {
        let read = |_: &str, _| -> Result<MemberFile, String> {
            Err("files are not read here; describe the drive in [drives.NAME]".into())
        };
        Self::with_files(toml_text, origin, overrides, &read)
    }

    /// Reads an array file like [`ArraySpec::with_overrides`]. `read` returns the device files of members.
    ///
    /// # Errors
    /// Fails as [`ArraySpec::parse`] does, or if `read` fails.
    pub fn with_files(
        toml_text: &str,
        origin: &str,
        overrides: &[(&str, &str)],
        read: ReadMember,
    ) -> Result<ArraySpec, SpecError> {
        let mut tree = Tree::parse(toml_text, origin)?;
        let mut of_front = Vec::new();
        let mut of_members = flatten_members(&tree);
        for &(key, text) in overrides {
            let key = key.trim();
            match key.split_once('.') {
                Some((MEMBER, key)) => {
                    let (_, entry) = given(key, text);
                    of_members.push((key.to_string(), entry));
                }
                Some((section, _)) if section == array_section() => {
                    tree.set(key, given(key, text).1);
                }
                _ => of_front.push(given(key, text)),
            }
        }
        let mut problems = Vec::new();
        unknown(&tree, &mut problems);
        check_drives(&tree, &mut problems);
        let v = values(&tree, &mut problems);
        let names = match v.get(&ArraySpec::members) {
            Some(Value::Text(names)) => names,
            _ => "",
        };
        let names = member_names(names);
        if let (Err(message), true) = (&names, v.has(&ArraySpec::members)) {
            problems.push(tree.problem(ArraySpec::members.name(), message.clone()));
        }
        SpecError::from_problems(problems)?;
        let names = names.expect("a wrong name was reported");
        let made = Made::read(&v, &names, &tree, read, of_front, &of_members)?;
        let spec = ArraySpec::from_values(&v, made);
        let mut problems = Vec::new();
        spec.check(&v, &mut |key, message| {
            problems.push(tree.problem(key, message))
        });
        SpecError::from_problems(problems)?;
        Ok(spec)
    }

    /// Reports all contradictions, each as key and message.
    fn check(&self, v: &Values, report: &mut dyn FnMut(&str, String)) {
        let chunk: u64 = v.setting(&ArraySpec::chunk_pages);
        let page = u64::from(self.page_bytes());
        if chunk == 0 || !chunk.is_multiple_of(page) {
            let message = format!("found {chunk} bytes; must be whole pages of {page} bytes");
            return report(ArraySpec::chunk_pages.name(), message);
        }
        self.check_members(report);
        let names = self.member_names().len();
        if names > TEXT_MAX {
            let message = format!(
                "the names of its members have {names} characters; at most {TEXT_MAX}: shorten those \
                 in the device files"
            );
            report(ArraySpec::members.name(), message);
        }
        self.check_schemes(report);
        self.check_pages(report);
        if self.level == Level::Swan {
            self.check_volume(v, report);
        }
    }

    /// Checks that the level has enough members.
    fn check_members(&self, report: &mut dyn FnMut(&str, String)) {
        let count = self.members.len();
        let (least, even) = match self.level {
            Level::Raid0 => (1, false),
            Level::Raid1 => (2, false),
            Level::Raid10 => (2, true),
            Level::Raid5 => (3, false),
            Level::Raid6 | Level::Swan => (4, false),
        };
        if count < least || even && count % 2 == 1 {
            let message = format!(
                "{count} members; {} needs {}",
                self.level.name(),
                match even {
                    true => "an even number of them".into(),
                    false => format!("at least {least}"),
                }
            );
            report(ArraySpec::members.name(), message);
        }
    }

    /// Checks that the level and the members permit the given way of reading and the given coordination of collections.
    fn check_schemes(&self, report: &mut dyn FnMut(&str, String)) {
        let count = self.members.len();
        let read_once = self.level.redundancy(narrow(count)) == 0 && self.level != Level::Swan;
        if self.reads == Reads::Hedged && read_once {
            let message = format!(
                "found \"hedged\"; {} holds every page once: there is nothing else to read",
                self.level.name()
            );
            report(ArraySpec::reads.name(), message);
        }
        let coordinated = !Coordination::of(&self.coordination, count).is_local();
        let placed = self.members.iter().find(|m| m.placement.is_some());
        if let Some(member) = placed {
            let message = format!(
                "{}: writes by units ({}), and an array passes no placement ids on: needs members without",
                member.name,
                WriteUnits::scheme
            );
            report(ArraySpec::members.name(), message);
        }
        let layered = self.members.iter().find(|m| m.ftl.kind != Mapping::Page);
        if let (true, Some(member)) = (coordinated, layered) {
            let message = format!(
                "found {:?}; {} maps its chips one by one and takes no orders: needs members with \
                 {} = \"page\"",
                self.coordination.name,
                member.name,
                Ftl::kind
            );
            report(ArraySpec::coordination.name(), message);
        }
    }

    /// Checks that all members have the same page size, and that the array does not have too many pages.
    fn check_pages(&self, report: &mut dyn FnMut(&str, String)) {
        let page_bytes = self.page_bytes();
        let mut members = self.members.iter();
        if let Some(other) = members.find(|member| member.geometry.page_bytes != page_bytes) {
            let message = format!(
                "{} has pages of {page_bytes} bytes, {} of {}; all members need the same",
                self.members[0].name, other.name, other.geometry.page_bytes
            );
            report(ArraySpec::members.name(), message);
        }
        if u64::from(self.chunk_pages) > self.member_pages() {
            let message = "is larger than a member".to_string();
            report(ArraySpec::chunk_pages.name(), message);
        } else if self.exported_pages() > PAGES_MAX {
            let message = format!(
                "the array would have {} pages; at most {PAGES_MAX} can be numbered: take fewer \
                 or smaller members, or larger pages",
                self.exported_pages()
            );
            report(ArraySpec::members.name(), message);
        }
    }

    /// Returns the number of pages that the array uses on each member. It is the number of pages of the smallest
    /// member.
    pub fn member_pages(&self) -> u64 {
        let pages = self.members.iter().map(|m| u64::from(m.exported_pages()));
        pages.min().unwrap_or(0)
    }

    /// Returns the minimum time between the starts of two row rebuilds, which limits the rate of a rebuild.
    pub(crate) fn rebuild_row_time(&self) -> Time {
        let row = u128::from(self.chunk_pages) * u128::from(self.page_bytes());
        let rate = u128::from(self.rebuild_mib_per_s) << 20;
        let time = (row * u128::from(Time::from_s(1).0)).checked_div(rate);
        Time(time.map_or(0, |time| time.try_into().unwrap_or(Time::NEVER.0 / 4)))
    }

    /// Returns the number of pages that the host can address.
    pub fn exported_pages(&self) -> u64 {
        let members = self.members.len() as u64;
        let data = match self.level {
            Level::Raid0 => members,
            Level::Raid1 => 1,
            Level::Raid10 => members / 2,
            Level::Raid5 => members - 1,
            Level::Raid6 => members.saturating_sub(2),
            Level::Swan => return self.volume_pages(),
        };
        let chunk = u64::from(self.chunk_pages);
        self.member_pages() / chunk * chunk * data
    }

    /// Returns the number of bytes that the host can address.
    pub fn exported_bytes(&self) -> u64 {
        self.exported_pages() * u64::from(self.page_bytes())
    }

    /// Returns the number of bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        self.members[0].geometry.page_bytes
    }
}

/// Returns the values of all keys, as given or by default. If the level is not SWAN, keys of SWAN have no values.
fn values(tree: &Tree, problems: &mut Vec<Problem>) -> Values {
    let table = Table {
        tree,
        keys: array_keys(),
    };
    let mut values = Values::default();
    for doc in array_keys() {
        let is_ignored = table.unmet(doc).is_some_and(|unmet| unmet == SWAN[0]);
        if is_ignored {
            continue;
        }
        if let Some(message) = table.read(doc, doc.default, &mut values) {
            problems.push(tree.problem(doc.key, message));
        }
    }
    values
}

/// Reports sections and keys that are not allowed in an array file.
fn unknown(tree: &Tree, problems: &mut Vec<Problem>) {
    let own = [array_section(), MEMBER, DRIVES];
    for (name, section) in &tree.sections {
        if !own.contains(&name.as_str()) && !front_sections().contains(&name.as_str()) {
            let message = format!(
                "is not a section of an array file; a member's keys go into [{MEMBER}], as in \
                 \"{name}.KEY\" = ..."
            );
            problems.push(Problem::new(section.place.clone(), name, message));
        }
    }
    let section = tree.sections.get(array_section());
    for (name, entry) in section.iter().flat_map(|section| &section.keys) {
        if array_keys().iter().all(|doc| split(doc.key).1 != name) {
            let key = format!("{}.{name}", array_section());
            let near = nearest(&key, array_keys().iter().map(|doc| doc.key));
            let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            let message = format!("is not a key{hint}");
            problems.push(Problem::new(entry.place.clone(), &key, message));
        }
    }
}
