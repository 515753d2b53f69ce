//! Descriptions of the translation layers: `docs/ftls.md` shows all entries.
//!
//! `FLASHTWIN_WRITE_DOCS=1 cargo test -p flashtwin --test all ftls` writes the page again.

use std::fmt::Write;

use flashtwin::ftl::chip::catalog::{find, Entry};
use flashtwin::ftl::chip::trace::{steps_text, trace_ftl};
use flashtwin::ftl::chip::{Setup, ENTRIES};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ftls.md");
const DECISIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/decisions.md");
const BEGIN: &str =
    "<!-- from here on written by `FLASHTWIN_WRITE_DOCS=1 cargo test -p flashtwin --test all ftls` -->\n";
const END: &str = "<!-- up to here -->\n";

#[test]
fn every_translation_layer_has_its_entry_with_its_parameters() {
    for entry in ENTRIES {
        let keys: Vec<&str> = entry.parameters.iter().map(|p| p.key).collect();
        assert!(find(entry.name).is_some());
        let quoted = entry
            .rule
            .iter()
            .flat_map(|text| text.split('`').skip(1).step_by(2));
        for word in quoted {
            assert!(keys.contains(&word), "{}: {word}", entry.name);
        }
        for text in entry.rule.iter().chain([&entry.line, &entry.state]) {
            assert!(
                text.ends_with('.') && text.is_ascii() && !text.contains("  "),
                "{text}"
            );
        }
    }
    assert!(find("page").is_none());
}

#[test]
fn the_documentation_matches_the_entries() {
    let page = std::fs::read_to_string(PAGE).expect("docs/ftls.md is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page has its first mark");
    let (_, after) = rest.split_once(END).expect("the page has its last mark");
    let wanted = format!("{before}{BEGIN}{}{END}{after}", markdown());
    if std::env::var_os("FLASHTWIN_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, wanted).expect("docs/ftls.md can be written");
        return;
    }
    assert!(
        page == wanted,
        "docs/ftls.md does not match the translation layers; write it anew:\n  \
         FLASHTWIN_WRITE_DOCS=1 cargo test -p flashtwin --test all ftls"
    );
}

#[test]
fn every_decision_named_is_explained() {
    let page = std::fs::read_to_string(DECISIONS).expect("docs/decisions.md is there");
    let parameters = ENTRIES.iter().flat_map(|entry| entry.parameters);
    for text in parameters.map(|p| p.provenance) {
        for rest in text.split("D-").skip(1) {
            let heading = format!("\n### D-{}\n", &rest[..2]);
            assert!(
                page.contains(&heading),
                "docs/decisions.md lacks {heading:?}"
            );
        }
    }
}

fn markdown() -> String {
    let mut text = String::new();
    for entry in ENTRIES {
        section(&mut text, entry);
    }
    text.push('\n');
    text
}

fn section(text: &mut String, e: &Entry) {
    let s = e.source;
    write!(text, "\n### {}\n\n**{}.** {}\n\n", e.name, e.title, e.line).unwrap();
    let (authors, title, venue, year) = (s.authors, s.title, s.venue, s.year);
    let rule = e.provenance.sentence();
    writeln!(text, "{authors}: *{title}*, {venue}, {year}. {rule}\n").unwrap();
    for sentence in e.rule {
        writeln!(text, "- {sentence}").unwrap();
    }
    text.push_str(
        "\n| parameter | takes | default | what it does | where it comes from |\n\
         |---|---|---|---|---|\n",
    );
    for p in e.parameters {
        let (key, takes, default) = (p.key, p.kind, p.default);
        writeln!(
            text,
            "| `{key}` | {takes} | `{default}` | {} | {} |",
            p.doc, p.provenance
        )
        .unwrap();
    }
    write!(
        text,
        "\nState: {}\n\n```sh\nflashtwin ftl trace {}",
        e.state, e.name
    )
    .unwrap();
    for (key, value) in e.example.set {
        write!(text, " --set {key}={value}").unwrap();
    }
    writeln!(text, " \"{}\"\n```\n", e.example.accesses).unwrap();
    let mut setup = Setup::new(e.name, 32, 16, 4).unwrap();
    setup.set_all(e.example.set).unwrap();
    let steps = trace_ftl(&setup, false, e.example.accesses).expect("an example can be traced");
    write!(text, "```text\n{}```\n", steps_text(&steps)).unwrap();
}
