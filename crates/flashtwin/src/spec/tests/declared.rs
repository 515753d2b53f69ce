//! Every key has a reader and a writer: if a value is set, it is in the written text.

use super::SMALL;
use crate::component::Kind;
use crate::spec::read::{given, read};
use crate::spec::tree::Tree;
use crate::spec::{array_keys, builtin_array, keys, KeyDoc};
use crate::{ArraySpec, DeviceSpec};

/// Returns a value of a key other than its default, formatted like the writer formats it.
fn sample(doc: &KeyDoc) -> String {
    let other = |values: &[String]| {
        let mut values = values.iter();
        let other = values.find(|value| doc.default != Some(value.as_str()));
        other.expect("a key takes more than its default").clone()
    };
    let text = |text: &str| format!("{text:?}");
    match doc.kind {
        Kind::Name | Kind::Text => text("x"),
        Kind::Choice(words) => {
            let words: Vec<String> = words.iter().rev().map(|word| text(word)).collect();
            other(&words)
        }
        Kind::PolicyName => text("fifo"),
        Kind::Bool => other(&["true".into(), "false".into()]),
        Kind::Count(min, max) | Kind::CountOrAuto(min, max) => {
            other(&[4, 2, 3].map(|n: u32| n.clamp(min, max).to_string()))
        }
        Kind::Size(_) => text("8 KiB"),
        Kind::MicrosByType(_) => "[7, 9]".into(),
        Kind::Micros(_) | Kind::Nanos(_) | Kind::Percent => "7.5".into(),
        Kind::Share => "0.25".into(),
        Kind::Window | Kind::Beyond | Kind::Figure => "3".into(),
    }
}

/// Returns settings with which a key has a meaning. Each selector is set before the keys that depend on it.
fn conditions(doc: &KeyDoc, keys: &[KeyDoc]) -> Vec<(String, String)> {
    let mut set: Vec<(String, String)> = Vec::new();
    for (selector, wanted) in doc.only {
        let of_selector = keys.iter().find(|doc| doc.key == *selector);
        set.extend(conditions(of_selector.expect("a selector is a key"), keys));
        let word = match (wanted[0], set.pop_if(|(key, _)| key == selector)) {
            ("gcar-*", Some((_, base))) => format!("gcar-{base}"),
            (word, _) => word.replace('*', "lru"),
        };
        set.push((selector.to_string(), word));
    }
    set
}

#[test]
fn every_key_of_a_device_is_read_and_written() {
    for doc in keys() {
        let sample = sample(doc);
        let mut set = conditions(doc, keys());
        // Some keys need others: a region needs a size, and times in SLC mode need blocks in SLC mode.
        match doc.key {
            "ftl.separation" => set.push(("ftl.region_percent".into(), "5".into())),
            key if key.starts_with("nand.pslc") => {
                set.push(("nand.pslc_percent".into(), "5".into()));
            }
            _ => {}
        }
        set.push((doc.key.into(), sample.clone()));
        if set
            .iter()
            .any(|(_, word)| word.trim_matches('"') == "modern")
        {
            set.insert(0, ("geometry.channels".into(), "1".into()));
        }
        let mut tree = Tree::parse(SMALL, "x.toml").unwrap();
        let values = read(&mut tree, set.iter().map(|(k, v)| given(k, v)).collect());
        let values = values.unwrap_or_else(|e| panic!("{e}"));
        let spec = DeviceSpec::from_values(&values);
        assert_eq!(spec.value_toml(doc.key), Some(sample), "{}", doc.key);
    }
}

#[test]
fn every_key_of_an_array_is_read_and_written() {
    for doc in array_keys() {
        let sample = match doc.key {
            "array.members" => "\"harmonia*6\"".into(),
            _ => sample(doc),
        };
        let mut set = conditions(doc, array_keys());
        if set.is_empty() {
            set.push(("array.level".into(), "raid5".into()));
        }
        if doc.key == "array.member_in_gc_share" {
            set.push(("array.member_in_gc".into(), "share".into()));
        }
        set.push((doc.key.into(), sample.clone()));
        let set: Vec<(&str, &str)> = set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let text = builtin_array("harmonia-array").unwrap();
        let spec = ArraySpec::with_overrides(text, "x.toml", &set);
        let spec = spec.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(spec.value_toml(doc.key), Some(sample), "{}", doc.key);
    }
}
