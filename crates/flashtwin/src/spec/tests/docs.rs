//! `docs/devices.md` and `docs/arrays.md` contain the tables of keys.

use crate::ftl::chip;
use crate::spec::{array_keys, builtin_array_names, builtin_names, keys, KeyDoc};

const DOCS: &str = include_str!("../../../../../docs/devices.md");
const ARRAY_DOCS: &str = include_str!("../../../../../docs/arrays.md");

/// Returns the row of a key in the documentation.
fn row(doc: &KeyDoc) -> String {
    let default = doc
        .default
        .map_or("required".into(), |text| format!("`{text}`"));
    let only: Vec<String> = doc
        .only
        .iter()
        .map(|(selector, words)| format!(" Only with `{selector}` = {}.", words.join(" or ")))
        .collect();
    format!(
        "| `{}` | {} | {default} | {}{} | {} |",
        doc.key,
        doc.kind,
        doc.doc,
        only.concat(),
        doc.provenance
    )
}

/// First line of a table of keys, and the line below it.
const HEAD: &str =
    "| key | takes | default | what it does | where it comes from |\n|---|---|---|---|---|\n";

/// Returns the page with new tables. Each new table has the keys from the first key of the old table up to, but
/// without, the first key of the next table.
fn written(page: &str, keys: &[KeyDoc]) -> String {
    let (before, rest) = page.split_once(HEAD).expect("a table of keys");
    let tables: Vec<&str> = rest.split(HEAD).collect();
    let first_key = |table: &&str| {
        let key = table.split('`').nth(1).expect("a table has a row");
        let at = keys.iter().position(|doc| doc.key == key);
        at.unwrap_or_else(|| panic!("{key} is no key"))
    };
    let mut starts: Vec<usize> = tables.iter().map(first_key).collect();
    starts.push(keys.len());
    let mut text = before.to_owned();
    for (table, of) in tables.iter().zip(starts.windows(2)) {
        let behind = table.find("\n\n").map_or("", |end| &table[end + 1..]);
        text.push_str(HEAD);
        for doc in &keys[of[0]..of[1]] {
            text.push_str(&row(doc));
            text.push('\n');
        }
        text.push_str(behind);
    }
    text
}

/// First two lines of the table that shows which translation layers and back ends have a key.
const BY_LAYER: &str =
    "| key | page map, `msr` | page map, `modern` | layers of chips, `msr` | layers of chips, \
                        `modern` |\n|---|---|---|---|---|\n";

/// Returns the page with a new table of those keys that exist only with some translation layers and back ends.
fn written_by_layer(page: &str) -> String {
    let layers = chip::ENTRIES.iter().map(|entry| entry.name);
    let layers: Vec<&str> = layers.collect();
    let columns = ["page", "layers"].map(|kind| [(kind, "msr"), (kind, "modern")]);
    let goes_with = |doc: &KeyDoc, (kind, backend): (&str, &str)| {
        doc.only.iter().all(|(selector, words)| match *selector {
            "ftl.kind" if kind == "page" => words.contains(&"page"),
            "ftl.kind" => words.iter().any(|word| layers.contains(word)),
            "nand.backend" => words.contains(&backend),
            _ => true,
        })
    };
    let mut table = String::from(BY_LAYER);
    for doc in keys() {
        let has = columns
            .concat()
            .into_iter()
            .map(|column| goes_with(doc, column));
        let has: Vec<bool> = has.collect();
        if has.contains(&false) {
            let words = has.iter().map(|&yes| if yes { "yes" } else { "no" });
            let words: Vec<&str> = words.collect();
            table.push_str(&format!("| `{}` | {} |\n", doc.key, words.join(" | ")));
        }
    }
    let (before, rest) = page
        .split_once(BY_LAYER)
        .expect("the table of keys by layer");
    let behind = rest.find("\n\n").map_or("", |end| &rest[end + 1..]);
    format!("{before}{table}{behind}")
}

/// Checks that a page has the tables that follow from the keys. With `FLASHTWIN_WRITE_DOCS=1`, writes the tables
/// instead.
fn check_page(file: &str, written: impl Fn(&str) -> String) {
    let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let wanted = written(&page);
    if std::env::var_os("FLASHTWIN_WRITE_DOCS").is_some() {
        return std::fs::write(&path, wanted).expect("the page can be written");
    }
    let differ = page
        .lines()
        .zip(wanted.lines())
        .find(|(found, wanted)| found != wanted);
    assert!(
        page == wanted,
        "docs/{file} is not what the keys say, first at {differ:?}; write it anew:\n  \
         FLASHTWIN_WRITE_DOCS=1 cargo test -p flashtwin --lib docs"
    );
}

#[test]
fn key_tables_of_the_docs_match_the_declarations() {
    check_page("devices.md", |page| written(page, keys()));
    check_page("arrays.md", |page| written(page, array_keys()));
    check_page("ftls.md", written_by_layer);
}

#[test]
fn every_array_is_described() {
    for name in builtin_array_names() {
        assert!(ARRAY_DOCS.contains(&format!("\n| `{name}` |")), "{name}");
    }
}

#[test]
fn every_profile_is_described() {
    for name in builtin_names() {
        assert!(DOCS.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn every_quirk_is_settled() {
    for quirk in 1..=16 {
        assert!(DOCS.contains(&format!("| Q{quirk} |")), "Q{quirk}");
    }
}
