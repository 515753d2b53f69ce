//! The text of a TOML file as sections of keys. Each section and each key has its location in the file.
//!
//! The module does not know which keys exist. Every file has two levels: sections and keys. Keys of the root are in the
//! section with the empty name.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

use super::error::{Place, Problem};
use crate::units::saturating_u32;

/// Largest length of a device file in bytes. Real files have about two kilobytes.
const TEXT_BYTES_MAX: usize = 1 << 16;

/// A value of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Str(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Table(Vec<(String, usize, Node)>),
    /// An array.
    List(Vec<Node>),
    /// A value of a type that is not permitted for any key. The text is the name of the type for error messages.
    Other(&'static str),
}

/// A value and the location of its key.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub place: Place,
    pub node: Node,
}

/// A section: the location of its header in the file, and its keys.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub place: Place,
    pub keys: BTreeMap<String, Entry>,
}

/// A whole file.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub origin: String,
    pub sections: BTreeMap<String, Section>,
    /// The text of the file, in which locations are looked up.
    text: String,
}

impl Node {
    /// Returns the value as messages show it.
    pub fn show(&self) -> String {
        match self {
            Node::Str(s) => {
                let mut short: String = s.chars().take(60).collect();
                if short.len() < s.len() {
                    short.push_str("...");
                }
                format!("{short:?}")
            }
            Node::Int(i) => i.to_string(),
            Node::Float(x) => format!("{x:?}"),
            Node::Bool(b) => b.to_string(),
            Node::Table(_) => "a section".into(),
            Node::List(_) => "an array".into(),
            Node::Other(what) => (*what).into(),
        }
    }

    /// Parses a value that is given outside a file: as TOML if possible, otherwise as a bare word.
    pub fn from_override(text: &str) -> Node {
        match toml::from_str::<Node>(&format!("v = {text}")) {
            Ok(Node::Table(mut fields)) if fields.len() == 1 && fields[0].0 == "v" => {
                fields.remove(0).2
            }
            _ => Node::Str(text.trim().into()),
        }
    }
}

impl Tree {
    /// Reads TOML text.
    pub fn parse(text: &str, origin: &str) -> Result<Tree, Problem> {
        let whole_file = Place::File {
            origin: origin.into(),
        };
        if text.len() > TEXT_BYTES_MAX {
            let message = format!(
                "the file has {} bytes; at most {TEXT_BYTES_MAX} are read",
                text.len()
            );
            return Err(Problem::new(whole_file, "", message));
        }
        let lines = Lines::new(text, origin);
        let fields = match toml::from_str::<Node>(text) {
            Ok(Node::Table(fields)) => fields,
            Ok(_) => Vec::new(),
            Err(e) => {
                let place = match e.span() {
                    Some(span) => lines.place(span.start),
                    None => whole_file,
                };
                let message = format!("not TOML: {}", e.message().trim().replace('\n', "; "));
                return Err(Problem::new(place, "", message));
            }
        };
        Ok(Tree {
            origin: origin.into(),
            sections: sections(fields, whole_file, &lines),
            text: text.into(),
        })
    }

    /// Returns the table at a dotted key as a tree, as if the table were a file. `None` if there is no table at this
    /// key.
    pub fn table(&self, key: &str) -> Option<Tree> {
        let entry = self.get(key)?;
        let Node::Table(fields) = &entry.node else {
            return None;
        };
        let lines = Lines::new(&self.text, &self.origin);
        Some(Tree {
            origin: self.origin.clone(),
            sections: sections(fields.clone(), entry.place.clone(), &lines),
            text: self.text.clone(),
        })
    }

    /// Returns the entry of a dotted key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        let (section, name) = split(key);
        self.sections.get(section)?.keys.get(name)
    }

    /// Returns the location to report for a key: that of the key itself if it is in the file, otherwise that of its
    /// section, otherwise the whole file.
    pub fn place(&self, key: &str) -> Place {
        if let Some(entry) = self.get(key) {
            return entry.place.clone();
        }
        match self.sections.get(split(key).0) {
            Some(section) => section.place.clone(),
            None => Place::File {
                origin: self.origin.clone(),
            },
        }
    }

    /// Returns a problem of a key.
    pub fn problem(&self, key: &str, message: String) -> Problem {
        Problem::new(self.place(key), key, message)
    }

    /// Sets a dotted key.
    pub fn set(&mut self, key: &str, entry: Entry) {
        let (section, name) = split(key);
        self.sections
            .entry(section.into())
            .or_insert_with(|| Section {
                place: entry.place.clone(),
                keys: BTreeMap::new(),
            })
            .keys
            .insert(name.into(), entry);
    }

    /// Removes a dotted key, or a section by its name.
    pub fn remove(&mut self, key: &str) {
        let (section, name) = split(key);
        if section.is_empty() && !name.is_empty() {
            self.sections.remove(name);
        }
        if let Some(section) = self.sections.get_mut(section) {
            section.keys.remove(name);
        }
    }
}

/// Converts the fields of a table to sections. Fields that are not tables become keys of the root section, which gets
/// the location `root`.
fn sections(
    fields: Vec<(String, usize, Node)>,
    root: Place,
    lines: &Lines,
) -> BTreeMap<String, Section> {
    let mut root = Section {
        place: root,
        keys: BTreeMap::new(),
    };
    let mut sections = BTreeMap::new();
    for (name, offset, node) in fields {
        let place = lines.place(offset);
        match node {
            // The header `[""]` creates no section, because the empty name is that of the root section. It becomes a
            // key of the root.
            Node::Table(fields) if !name.is_empty() => {
                let entry = |(key, offset, node)| {
                    let place = lines.place(offset);
                    (key, Entry { place, node })
                };
                let keys = fields.into_iter().map(entry).collect();
                sections.insert(name, Section { place, keys });
            }
            node => {
                root.keys.insert(name, Entry { place, node });
            }
        }
    }
    sections.insert(String::new(), root);
    sections
}

/// Splits `buffer.capacity` into (`buffer`, `capacity`). For a key of the root, the section is the empty text.
pub(super) fn split(key: &str) -> (&str, &str) {
    key.split_once('.').unwrap_or(("", key))
}

/// Byte offsets at which the lines of a text begin, for the conversion of offsets to lines and columns.
struct Lines<'a> {
    text: &'a str,
    origin: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str, origin: &'a str) -> Lines<'a> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        Lines {
            text,
            origin,
            starts: starts.collect(),
        }
    }

    /// Returns the line and column of a byte offset.
    fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|&start| start <= offset);
        let before = self.text.get(self.starts[line - 1]..offset).unwrap_or("");
        Place::Line {
            origin: self.origin.into(),
            line: saturating_u32(line),
            column: saturating_u32(1 + before.chars().count()),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a TOML value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Node, E> {
        Ok(Node::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Node, E> {
        Ok(Node::Int(v))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Node, E> {
        Ok(Node::Float(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Node, E> {
        Ok(Node::Str(v.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        loop {
            // Every key of a document has a span, with one exception: the parser's placeholder for a date.
            let Ok(key) = map.next_key::<Spanned<String>>() else {
                return Ok(Node::Other("a date"));
            };
            let Some(key) = key else { break };
            let offset = key.span().start;
            fields.push((key.into_inner(), offset, map.next_value()?));
        }
        Ok(Node::Table(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_without_the_section_that_has_its_name() {
        let mut tree = Tree::parse("[gc]\nbuffer = 1\n[buffer]\ngc = 2\n", "t").unwrap();
        tree.remove("gc.buffer");
        assert!(tree.get("gc.buffer").is_none() && tree.get("buffer.gc").is_some());
        tree.remove("buffer");
        assert!(tree.get("buffer.gc").is_none());
    }
}
