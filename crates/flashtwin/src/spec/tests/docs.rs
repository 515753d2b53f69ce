//! `docs/devices.md` and `docs/arrays.md` say what the tables of keys say.

use crate::spec::{array_keys, builtin_array_names, builtin_names, keys, KeyDoc};

const DOCS: &str = include_str!("../../../../../docs/devices.md");
const ARRAY_DOCS: &str = include_str!("../../../../../docs/arrays.md");

/// The row of a key in the documentation.
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

/// Every key has its row; as many rows as there are keys, or with `others` more.
fn check_rows(file: &str, docs: &str, keys: &[KeyDoc], others: bool) {
    let missing: Vec<String> = keys
        .iter()
        .map(row)
        .filter(|row| !docs.lines().any(|line| line == row))
        .collect();
    assert!(
        missing.is_empty(),
        "{file} lacks these rows:\n{}",
        missing.join("\n")
    );
    let rows = docs
        .lines()
        .filter(|line| line.starts_with("| `") && line.contains("` | "))
        .count();
    assert!(rows == keys.len() || others && rows > keys.len());
}

#[test]
fn every_key_has_its_row() {
    check_rows("docs/devices.md", DOCS, keys(), true);
}

#[test]
fn every_key_of_an_array_has_its_row() {
    check_rows("docs/arrays.md", ARRAY_DOCS, array_keys(), false);
}

#[test]
fn every_array_is_described() {
    for name in builtin_array_names() {
        assert!(ARRAY_DOCS.contains(&format!("**`{name}`**")), "{name}");
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
