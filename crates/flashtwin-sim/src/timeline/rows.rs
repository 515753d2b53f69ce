//! A timeline as the rows of a table: slices first, then instants.

use std::fmt::Write;

use flashtwin::{Place, Time};

use super::lines::Tree;
use super::slices::{Detail, Shown, Slices, Track};

/// A slice or an instant. Times count from the start of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Path of the track on which the slice or instant is drawn, with the names in the trace.
    pub track: String,
    /// Member of an array on which the operation ran, if any.
    pub member: Option<u32>,
    /// Die on which the operation ran, if any.
    pub die: Option<u32>,
    /// Channel on which the operation ran, if any.
    pub channel: Option<u32>,
    /// Name of the slice or instant. For a flash operation, the name is the cause of the operation.
    pub name: &'static str,
    /// Beginning.
    pub begin: Time,
    /// Length; `None` for an instant.
    pub duration: Option<Time>,
    /// Row numbers of the slices that caused this one.
    pub causes: Vec<u32>,
    /// Number of the request; `None` for rows that are neither requests nor accesses.
    pub request: Option<u64>,
    /// Logical pages.
    pub lpns: Vec<u64>,
    /// Other details, as a JSON object.
    pub details: String,
}

/// Returns all rows, with times from `start`.
pub(super) fn rows(all: &Slices, start: Time) -> Vec<Row> {
    let mut tree = Tree::default();
    let mut row = |track: Track, name, begin: Time, details: &[(&'static str, Detail)]| {
        let node = tree.of(track, None);
        let (die, channel) = match track.shown {
            Shown::Flash(Place::Channel(channel)) => (None, Some(channel)),
            Shown::Flash(
                Place::Chip(die) | Place::Unit(die, _) | Place::Ahead(die) | Place::Collection(die),
            ) => (Some(die), None),
            _ => (None, None),
        };
        Row {
            track: tree.path(node),
            member: track.member.map(|member| member as u32),
            die,
            channel,
            name,
            begin: begin.saturating_sub(start),
            request: numbers(details, "request").first().copied(),
            lpns: numbers(details, "lpn"),
            details: json(details),
            ..Row::default()
        }
    };
    let slices = all.slices.iter().map(|slice| {
        let end = slice.end.unwrap_or(slice.begin);
        (
            slice.track,
            slice.name,
            slice.begin,
            Some(end - slice.begin),
            &slice.details,
        )
    });
    let instants = (all.instants.iter()).map(|instant| {
        (
            instant.track,
            instant.name,
            instant.at,
            None,
            &instant.details,
        )
    });
    let mut rows: Vec<Row> = slices
        .chain(instants)
        .map(|(track, name, begin, duration, details)| Row {
            duration,
            ..row(track, name, begin, details)
        })
        .collect();
    for &(from, to) in &all.links {
        rows[to as usize].causes.push(from);
    }
    rows
}

fn numbers(details: &[(&'static str, Detail)], key: &str) -> Vec<u64> {
    let found = details.iter().find(|(name, _)| *name == key);
    match found.map(|(_, detail)| detail) {
        Some(Detail::Number(number)) => vec![*number],
        Some(Detail::Numbers(numbers)) => numbers.clone(),
        Some(Detail::Word(_) | Detail::Yes) | None => Vec::new(),
    }
}

/// Formats as JSON those details that have no column of their own. Keys and words are fixed and need no escapes.
fn json(details: &[(&'static str, Detail)]) -> String {
    let mut text = String::from("{");
    let others = details
        .iter()
        .filter(|(key, _)| !["request", "lpn"].contains(key));
    for (i, (key, detail)) in others.enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        // Writing to a string cannot fail.
        let _ = match detail {
            Detail::Number(number) => write!(text, "{comma}\"{key}\": {number}"),
            Detail::Numbers(numbers) => write!(text, "{comma}\"{key}\": {numbers:?}"),
            Detail::Word(word) => write!(text, "{comma}\"{key}\": \"{word}\""),
            Detail::Yes => write!(text, "{comma}\"{key}\": true"),
        };
    }
    text.push('}');
    text
}
