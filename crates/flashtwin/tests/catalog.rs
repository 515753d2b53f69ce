//! Descriptions of the policies: each policy has an entry, and `docs/policies.md` shows all entries.
//!
//! `FLASHTWIN_WRITE_DOCS=1 cargo test -p flashtwin --test all catalog` writes the page again.

use std::fmt::Write;

use flashtwin::buffer::catalog::{entries, find, Entry, Family, FILTER};
use flashtwin::buffer::trace::{steps_text, Step};
use flashtwin::buffer::ChosenPolicy;
use flashtwin::spec::{keys, policy_keys};
use flashtwin::stepping::{trace_policy, Traceable};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policies.md");
const DECISIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/decisions.md");
const BEGIN: &str = "<!-- from here on written by `FLASHTWIN_WRITE_DOCS=1 cargo test -p flashtwin --test all catalog` -->\n";
const END: &str = "<!-- up to here -->\n";

#[test]
fn names_are_unique_and_all_but_two_are_base_policies() {
    let names: Vec<&str> = entries().map(|entry| entry.name).collect();
    let once: std::collections::HashSet<&str> = names.iter().copied().collect();
    assert_eq!(once.len(), names.len());
    let alone: Vec<&str> = ChosenPolicy::base_names().collect();
    let others = names.into_iter().filter(|name| !alone.contains(name));
    assert_eq!(others.collect::<Vec<_>>(), [FILTER, "min"]);
}

#[test]
fn names_find_their_entries() {
    for name in ChosenPolicy::names() {
        let (entry, base) = find(&name).expect("a listed policy is described");
        assert_eq!(base.is_some(), entry.name == FILTER, "{name}");
    }
    let (filter, base) = find("gcar-sieve").unwrap();
    assert_eq!((filter.name, base.unwrap().name), (FILTER, "sieve"));
    for unknown in ["", "LRU", "gcar-", "gcar-min", "gcar-gcar-lru"] {
        assert!(find(unknown).is_none(), "{unknown}");
    }
    assert!(find("min").is_some());
}

#[test]
fn texts_are_whole_sentences_in_plain_characters() {
    for e in entries() {
        let mut texts = vec![e.line];
        texts.extend(e.rule);
        texts.extend((!e.state.is_empty()).then_some(e.state));
        for text in &texts {
            assert!(text.ends_with('.'), "{}: {text}", e.name);
            assert!(!text.contains("  "), "{}: {text}", e.name);
        }
        assert!((1..=8).contains(&e.rule.len()), "{}", e.name);
        assert!(e.line.len() <= 100 && !e.line.contains('|'), "{}", e.name);
        assert!(e.drawing.lines().count() <= 9, "{}", e.name);
        for line in e.drawing.lines() {
            assert_eq!(line, line.trim_end(), "{}", e.name);
            assert!(line.len() <= 84, "{}: {line}", e.name);
        }
        let s = e.source;
        let others = [s.authors, s.title, s.venue, e.title];
        assert!(others.iter().all(|text| !text.is_empty()), "{}", e.name);
        texts.extend(others.iter().chain([&e.drawing]));
        assert!(texts.iter().all(|text| text.is_ascii()), "{}", e.name);
        assert!((1966..2030).contains(&s.year), "{}", e.name);
    }
}

#[test]
fn a_rule_names_only_its_own_parameters_and_every_parameter_has_a_policy() {
    for entry in entries() {
        let mine = policy_keys(entry.name);
        for word in entry.rule.iter().flat_map(|sentence| quoted(sentence)) {
            let is_mine = mine.iter().any(|doc| doc.key == format!("buffer.{word}"));
            let is_policy = find(word).is_some();
            let is_other = word == "buffer.read_cache" || word.starts_with("flashtwin ");
            assert!(is_mine || is_policy || is_other, "{}: {word}", entry.name);
        }
    }
    for doc in keys().iter().filter(|doc| doc.is_policy_parameter()) {
        let has = |e: &Entry| policy_keys(e.name).iter().any(|p| p.key == doc.key);
        assert!(entries().any(has), "{}", doc.key);
    }
}

/// Words between back quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Applies the accesses of a policy's example step by step; `None` for a policy that has no example.
fn steps(entry: &Entry) -> Option<Vec<Step>> {
    let example = entry.example?;
    let device = Traceable {
        policy: entry.example_name(),
        capacity: example.capacity,
        set: example.set,
        chips: example.chips,
        stride_pages: 1,
        pages_per_block: example.pages_per_block,
    };
    let device = device
        .device()
        .unwrap_or_else(|e| panic!("{}: {e}", entry.name));
    Some(trace_policy(&device, example.accesses).expect("an example can be read"))
}

#[test]
fn every_example_shows_a_victim() {
    for entry in entries() {
        let Some(steps) = steps(entry) else {
            assert!(entry.is_offline(), "{}", entry.name);
            continue;
        };
        let evicts = steps.iter().any(|step| !step.evictions.is_empty());
        assert!(evicts, "{}", entry.name);
    }
}

#[test]
fn the_documentation_matches_the_entries() {
    let page = std::fs::read_to_string(PAGE).expect("docs/policies.md is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page has its first mark");
    let (_, after) = rest.split_once(END).expect("the page has its last mark");
    let wanted = format!("{before}{BEGIN}{}{END}{after}", markdown());
    if std::env::var_os("FLASHTWIN_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, wanted).expect("docs/policies.md can be written");
        return;
    }
    let mut lines = page.lines().zip(wanted.lines()).enumerate();
    let differ = lines.find(|(_, (found, wanted))| found != wanted);
    assert!(
        page == wanted,
        "docs/policies.md does not match the policies, first at {differ:?}; write it anew:\n  \
         FLASHTWIN_WRITE_DOCS=1 cargo test -p flashtwin --test all catalog"
    );
}

#[test]
fn every_decision_named_is_explained() {
    let page = std::fs::read_to_string(DECISIONS).expect("docs/decisions.md is there");
    let parameters = keys().iter().filter(|doc| doc.is_policy_parameter());
    let mut texts: Vec<&str> = parameters
        .flat_map(|doc| [doc.doc, doc.provenance])
        .collect();
    texts.extend(entries().flat_map(|entry| entry.rule));
    for text in texts {
        for rest in text.split("D-").skip(1) {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let heading = format!("\n### D-{}\n", &rest[..digits]);
            assert!(
                page.contains(&heading),
                "docs/decisions.md lacks {heading:?} of: {text}"
            );
        }
    }
}

/// CONTRIBUTING.md quotes code exactly as it is in the files, except for indentation.
#[test]
fn contributing_shows_the_code_as_it_is() {
    const PAGE: &str = include_str!("../../../CONTRIBUTING.md");
    const FILES: &str = concat!(
        include_str!("../src/buffer/policies/lfu.rs"),
        include_str!("policies/lfu.rs"),
        include_str!("../src/gc/rules/fifo.rs"),
        include_str!("../src/placement/schemes/none.rs"),
        include_str!("../src/spec/ftl.rs"),
        include_str!("../../flashtwin-workload/src/trace/msr.rs"),
    );
    let bare = |text: &str| {
        text.lines()
            .map(|line| line.trim().to_owned() + "\n")
            .collect()
    };
    let files: String = bare(FILES);
    let blocks = PAGE.split("```rust\n").skip(1);
    let blocks: Vec<&str> = blocks.filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 5);
    for block in blocks {
        let block: String = bare(block.trim_end());
        assert!(files.contains(&block), "no file has this:\n{block}");
    }
}

/// Returns the text of the page: the table of all policies, then a section for each policy.
fn markdown() -> String {
    let mut text = String::from(
        "\n| policy | what it does | hit | miss, as published | miss, here | rule |\n\
         |---|---|---|---|---|---|\n",
    );
    for e in entries() {
        let anchor = e.name.to_lowercase();
        let (name, line, cost) = (e.name, e.line, e.cost);
        let rule = e.provenance.word();
        let row = format!(
            "| [`{name}`](#{anchor}) | {line} | {} | {} | {} | {rule} |",
            cost.hit, cost.published, cost.here
        );
        text.push_str(&row);
        text.push('\n');
    }
    for family in Family::ALL {
        write!(text, "\n## {}\n", family.title()).unwrap();
        for entry in entries().filter(|entry| entry.family == family) {
            section(&mut text, entry);
        }
    }
    text.push('\n');
    text
}

fn section(text: &mut String, e: &Entry) {
    let s = e.source;
    let rule = e.provenance.sentence();
    write!(text, "\n### {}\n\n**{}.** {}\n\n", e.name, e.title, e.line).unwrap();
    let title = s.title;
    writeln!(
        text,
        "{}: *{title}*, {}, {}. {rule}\n",
        s.authors, s.venue, s.year
    )
    .unwrap();
    for sentence in e.rule {
        writeln!(text, "- {sentence}").unwrap();
    }
    if !e.drawing.is_empty() {
        write!(
            text,
            "\n```text\n{}\n```\n",
            e.drawing.trim_start_matches('\n')
        )
        .unwrap();
    }
    let parameters = policy_keys(e.name);
    if !parameters.is_empty() {
        text.push_str(
            "\n| parameter | takes | default | what it does | where it comes from |\n\
             |---|---|---|---|---|\n",
        );
    }
    for doc in parameters {
        let (key, kind, what, from) = (doc.key, doc.kind, doc.doc, doc.provenance);
        let default = doc.default.unwrap_or("required");
        writeln!(text, "| `{key}` | {kind} | `{default}` | {what} | {from} |").unwrap();
    }
    if let (Some(example), Some(steps)) = (e.example, steps(e)) {
        write!(text, "\nState: {}\n\n```sh\n", e.state).unwrap();
        write!(text, "flashtwin policy trace {}", e.example_name()).unwrap();
        write!(text, " --capacity {}", example.capacity).unwrap();
        for (key, value) in example.set {
            write!(text, " --set {key}={value}").unwrap();
        }
        if example.chips > 1 {
            write!(text, " --chips {}", example.chips).unwrap();
        }
        writeln!(text, " \"{}\"\n```\n", example.accesses).unwrap();
        write!(text, "```text\n{}```\n", steps_text(&steps)).unwrap();
    }
}
