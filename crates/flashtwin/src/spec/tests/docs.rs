//! `docs/devices.md` says what the table of keys says.

use crate::spec::{builtin_names, keys, KeyDoc};

const DOCS: &str = include_str!("../../../../../docs/devices.md");

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

#[test]
fn every_key_has_its_row() {
    let missing: Vec<String> = keys()
        .iter()
        .map(row)
        .filter(|row| !DOCS.lines().any(|line| line == row))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/devices.md lacks these rows:\n{}",
        missing.join("\n")
    );
    let rows = DOCS
        .lines()
        .filter(|line| line.starts_with("| `") && line.contains("` | "))
        .count();
    assert!(rows >= keys().len());
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
