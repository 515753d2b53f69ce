//! From TOML text to a checked [`ArraySpec`].

use super::volume::Given;
use super::{array_keys, ArraySpec, Level, MemberInGc, MemberInGcWord, Reads};
use crate::component::{Chosen, FromSetting, Settings, Value};
use crate::coordinate::{Coordination, IDEAL, SCHEMES};
use crate::spec::convert::{convert, wrong_value};
use crate::spec::error::{Problem, SpecError};
use crate::spec::keys::nearest;
use crate::spec::profiles::builtin;
use crate::spec::read::{from_tree, given};
use crate::spec::tree::{Entry, Node, Tree};
use crate::spec::{builtin_names, DeviceSpec, Mapping};
use crate::units::{narrow, saturating_u32, Time};

/// Members of an array at most: places of a stripe are bits of a word.
const MEMBERS_MAX: usize = 60;
/// Pages of a device at most: page numbers are 32-bit, and the last one means "none".
pub(super) const PAGES_MAX: u64 = u32::MAX as u64 - 1;

/// Reads problems with their places.
pub(super) struct Reader<'a> {
    pub tree: &'a Tree,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    pub fn report(&mut self, key: &str, message: String) {
        self.problems.push(Problem {
            place: self.tree.place(key),
            key: key.into(),
            message,
        });
    }

    /// The value of a key of the table, or its default; `None` if it is missing or wrong.
    fn value(&mut self, key: &str) -> Option<Value> {
        let doc = array_keys().iter().find(|doc| doc.key == key)?;
        let given = self.tree.get(key).map(|entry| entry.node.clone());
        let node = match (given, doc.default) {
            (Some(node), _) => node,
            (None, Some(text)) => Node::from_override(text),
            (None, None) => {
                self.report(key, format!("missing; must be {}", doc.kind));
                return None;
            }
        };
        let value = convert(doc.kind, &node);
        if value.is_none() {
            self.report(key, wrong_value(doc.kind, &node));
        }
        value
    }

    fn word<T: FromSetting>(&mut self, key: &str) -> Option<T> {
        self.value(key).as_ref().and_then(T::from_setting)
    }

    fn text(&mut self, key: &str) -> String {
        match self.value(key) {
            Some(Value::Text(text)) => text,
            _ => String::new(),
        }
    }

    pub fn number(&mut self, key: &str) -> u64 {
        match self.value(key) {
            Some(Value::Number(n)) => n,
            _ => 0,
        }
    }

    pub fn float(&mut self, key: &str) -> f64 {
        match self.value(key) {
            Some(Value::Float(x)) => x,
            _ => 0.0,
        }
    }
}

/// The file describes an array: it has a section `[array]`.
pub fn is_array(toml_text: &str) -> bool {
    Tree::parse(toml_text, "").is_ok_and(|tree| tree.sections.contains_key("array"))
}

impl ArraySpec {
    /// Reads and checks an array file; `origin` names it in messages.
    ///
    /// # Errors
    /// Fails if the text is not TOML, or if a key or value is wrong; the message has all of them, each with its line.
    pub fn parse(toml_text: &str, origin: &str) -> Result<ArraySpec, SpecError> {
        Self::with_overrides(toml_text, origin, &[])
    }

    /// As [`ArraySpec::parse`], after setting dotted keys: those of `[array]`, `[buffer]`, `[link]`
    /// and `[controller]`, and as `member.gc.low_percent` those of the members.
    ///
    /// # Errors
    /// Fails as [`ArraySpec::parse`] does.
    pub fn with_overrides(
        toml_text: &str,
        origin: &str,
        overrides: &[(&str, &str)],
    ) -> Result<ArraySpec, SpecError> {
        let one = |problem| SpecError {
            problems: vec![problem],
        };
        let mut tree = Tree::parse(toml_text, origin).map_err(one)?;
        let mut of_front = Vec::new();
        let mut of_members = flatten_members(&tree);
        for &(key, text) in overrides {
            let key = key.trim();
            match key.split_once('.') {
                Some(("member", key)) => {
                    let (_, entry) = given(key, text);
                    of_members.push((key.to_string(), entry));
                }
                Some(("array", _)) => tree.set(key, given(key, text).1),
                _ => of_front.push(given(key, text)),
            }
        }
        let mut r = Reader {
            tree: &tree,
            problems: Vec::new(),
        };
        unknown(&mut r);
        let level = r.word("array.level");
        let rotation = r.word("array.rotation");
        let coordination = coordination(&mut r);
        let share = r.float("array.member_in_gc_share");
        let member_in_gc = r.word("array.member_in_gc").map(|word| match word {
            MemberInGcWord::Any => MemberInGc::Any,
            MemberInGcWord::Chip => MemberInGc::Chip,
            MemberInGcWord::Share => MemberInGc::Share(share),
        });
        let protect = r.word("array.protect");
        let reads = r.word("array.reads");
        let hedge_after = tree.get("array.hedge_after_us");
        let hedge_after = hedge_after.map(|_| Time::from_us(r.number("array.hedge_after_us")));
        let hedge_percent = r.float("array.hedge_percent");
        let chunk_bytes = r.number("array.chunk");
        let soft_percent = r.float("array.soft_percent");
        let hard_percent = tree.get("array.hard_percent");
        let hard_percent = hard_percent.map(|_| r.float("array.hard_percent"));
        let stop_blocks = saturating_u32(r.number("array.stop_blocks"));
        let idle_until = tree.get("array.idle_until_percent");
        let idle_until_percent = idle_until.map(|_| r.float("array.idle_until_percent"));
        let rebuild_depth = saturating_u32(r.number("array.rebuild_depth"));
        let rebuild_mib_per_s = saturating_u32(r.number("array.rebuild_mib_per_s"));
        let volume = (level == Some(Level::Swan)).then(|| Given::read(&mut r));
        let names = r.text("array.members");
        let names = match names.is_empty() {
            true => Vec::new(),
            false => member_names(&names).unwrap_or_else(|message| {
                r.report("array.members", message);
                Vec::new()
            }),
        };
        SpecError::from_problems(std::mem::take(&mut r.problems))?;
        let words = level
            .zip(rotation)
            .zip(coordination)
            .zip(member_in_gc.zip(protect).zip(reads));
        let (((level, rotation), coordination), ((member_in_gc, protect), reads)) =
            words.expect("what is missing or wrong was reported");

        let mut members = Vec::new();
        let mut made: Vec<(&str, DeviceSpec)> = Vec::new();
        for name in &names {
            let known = made.iter().find(|(other, _)| other == name);
            let member = match known {
                Some((_, member)) => member.clone(),
                None => member_of(name, &of_members)?,
            };
            made.push((name, member.clone()));
            members.push(member);
        }
        if coordination.name == IDEAL {
            members.iter_mut().for_each(|member| member.gc.ideal = true);
        }
        let front = front_of(&tree, names[0], of_front)?;
        let page_bytes = members[0].geometry.page_bytes;
        let chunk_pages = chunk_bytes / u64::from(page_bytes);
        let spec = ArraySpec {
            name: front.name,
            description: front.description,
            level,
            rotation,
            chunk_pages: saturating_u32(chunk_pages),
            volume: volume.map(|given| given.with(&members[0])),
            members,
            link: front.link,
            controller: front.controller,
            buffer: front.buffer,
            member_in_gc,
            protect,
            reads,
            hedge_after,
            hedge_percent,
            rebuild_depth,
            rebuild_mib_per_s,
            coordination,
            soft_percent,
            hard_percent,
            stop_blocks,
            idle_until_percent,
        };
        let mut r = Reader {
            tree: &tree,
            problems: Vec::new(),
        };
        if chunk_pages == 0 || !chunk_bytes.is_multiple_of(u64::from(page_bytes)) {
            let message =
                format!("found {chunk_bytes} bytes; must be whole pages of {page_bytes} bytes");
            r.report("array.chunk", message);
        } else {
            spec.check(&mut r);
            if let Some(given) = volume {
                spec.check_volume(given, &mut r);
            }
        }
        SpecError::from_problems(r.problems)?;
        Ok(spec)
    }

    fn check(&self, r: &mut Reader) {
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
            r.report("array.members", message);
        }
        let read_once = self.level.redundancy(narrow(count)) == 0 && self.level != Level::Swan;
        if self.reads == Reads::Hedged && read_once {
            let message = format!(
                "found \"hedged\"; {} holds every page once: there is nothing else to read",
                self.level.name()
            );
            r.report("array.reads", message);
        }
        let coordinated = !Coordination::of(&self.coordination, count).is_local();
        let layered = self.members.iter().find(|m| m.ftl.kind != Mapping::Page);
        if let (true, Some(member)) = (coordinated, layered) {
            let message = format!(
                "found {:?}; {} maps its chips one by one and takes no orders: needs members with \
                 ftl.kind = \"page\"",
                self.coordination.name, member.name
            );
            r.report("array.coordination", message);
        }
        let page_bytes = self.members[0].geometry.page_bytes;
        if let Some(other) = self
            .members
            .iter()
            .find(|member| member.geometry.page_bytes != page_bytes)
        {
            let message = format!(
                "{} has pages of {page_bytes} bytes, {} of {}; all members need the same",
                self.members[0].name, other.name, other.geometry.page_bytes
            );
            r.report("array.members", message);
        }
        if u64::from(self.chunk_pages) > self.member_pages() {
            let message = "is larger than a member".to_string();
            r.report("array.chunk", message);
        } else if self.exported_pages() > PAGES_MAX {
            let message = format!(
                "the array would have {} pages; at most {PAGES_MAX} can be numbered: take fewer \
                 or smaller members, or larger pages",
                self.exported_pages()
            );
            r.report("array.members", message);
        }
    }

    /// Pages that every member gives: those of the smallest.
    pub fn member_pages(&self) -> u64 {
        let pages = self.members.iter().map(|m| u64::from(m.exported_pages()));
        pages.min().unwrap_or(0)
    }

    /// Time between two rows that are rebuilt.
    pub(crate) fn rebuild_row_time(&self) -> Time {
        let row = u128::from(self.chunk_pages) * u128::from(self.page_bytes());
        let rate = u128::from(self.rebuild_mib_per_s) << 20;
        let time = (row * u128::from(Time::from_s(1).0)).checked_div(rate);
        Time(time.map_or(0, |time| time.try_into().unwrap_or(Time::NEVER.0 / 4)))
    }

    /// Pages the host can address.
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

    /// Bytes the host can address.
    pub fn exported_bytes(&self) -> u64 {
        self.exported_pages() * u64::from(self.page_bytes())
    }

    /// Bytes in a page.
    pub fn page_bytes(&self) -> u32 {
        self.members[0].geometry.page_bytes
    }
}

/// The scheme of `array.coordination` with the values of its parameters; parameters of others are refused.
fn coordination(r: &mut Reader) -> Option<Chosen> {
    let name = r.text("array.coordination");
    let chosen = SCHEMES.iter().find(|scheme| scheme.name == name)?;
    for doc in array_keys() {
        let of_others = |(key, names): &(&str, &[&str])| {
            *key == "array.coordination" && !names.contains(&chosen.name)
        };
        if let Some((key, names)) = doc.only.iter().copied().find(of_others) {
            if r.tree.get(doc.key).is_some() {
                let needed = names.join("\" or \"");
                let message = format!("has no effect here; it needs {key} = \"{needed}\"");
                r.report(doc.key, message);
            }
        }
    }
    let mut settings = Vec::new();
    for parameter in chosen.parameters {
        settings.push((parameter.key, r.value(&format!("array.{}", parameter.key))?));
    }
    Some(Chosen {
        name: chosen.name,
        settings: Settings::new(settings),
    })
}

/// Sections and keys that an array file does not have.
fn unknown(r: &mut Reader) {
    const SECTIONS: [&str; 6] = ["", "array", "member", "buffer", "link", "controller"];
    let tree = r.tree;
    for (name, section) in &tree.sections {
        if !SECTIONS.contains(&name.as_str()) {
            r.problems.push(Problem {
                place: section.place.clone(),
                key: name.clone(),
                message: format!(
                    "is not a section of an array file; a member's keys go into [member], as in \
                     \"{name}.KEY\" = ..."
                ),
            });
        }
    }
    let Some(section) = tree.sections.get("array") else {
        return;
    };
    for (name, entry) in &section.keys {
        let key = format!("array.{name}");
        if array_keys().iter().all(|doc| doc.key != key) {
            let near = nearest(&key, array_keys().iter().map(|doc| doc.key));
            let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            r.problems.push(Problem {
                place: entry.place.clone(),
                key,
                message: format!("is not a key{hint}"),
            });
        }
    }
}

/// `"harmonia*8, ecr"` as the names of nine devices.
fn member_names(text: &str) -> Result<Vec<&str>, String> {
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
fn flatten_members(tree: &Tree) -> Vec<(String, Entry)> {
    let mut flat = Vec::new();
    let keys = tree.sections.get("member").map(|section| &section.keys);
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
    for section in ["", "buffer", "link", "controller"] {
        match tree.sections.get(section) {
            Some(own) => front.sections.insert(section.into(), own.clone()),
            None => front.sections.remove(section),
        };
    }
    from_tree(&mut front, overrides)
}

fn profile(name: &str) -> Result<Tree, SpecError> {
    Tree::parse(builtin(name).unwrap_or_default(), name).map_err(|problem| SpecError {
        problems: vec![problem],
    })
}
