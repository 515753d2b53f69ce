//! The order of the tracks in a timeline. A track with overlapping slices has several lines.

use std::collections::BTreeMap;

use flashtwin::{Place, Time};

use super::slices::{Shown, Slice, Slices, Track};

/// A drawn track, a node of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Node {
    /// Parent of the track, if it has one.
    pub parent: Option<u64>,
    pub name: String,
    /// Rank among the tracks with the same parent.
    pub rank: u64,
    /// Whether the track shows a counter.
    pub counts: bool,
}

/// All tracks that are drawn. The number of a track is its index plus 1.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub nodes: Vec<Node>,
    known: BTreeMap<Node, u64>,
}

impl Tree {
    /// Returns the number of the track with these properties. Adds the track if it does not exist.
    pub fn node(&mut self, parent: Option<u64>, name: &str, rank: u64, counts: bool) -> u64 {
        let node = Node {
            parent,
            name: name.to_owned(),
            rank,
            counts,
        };
        let next = self.nodes.len() as u64 + 1;
        let number = *self.known.entry(node.clone()).or_insert(next);
        if number == next {
            self.nodes.push(node);
        }
        number
    }

    /// Returns the path of a track: the names of all tracks above it, outermost first, and its own name.
    pub fn path(&self, track: u64) -> String {
        let node = &self.nodes[track as usize - 1];
        match node.parent {
            Some(parent) => format!("{}/{}", self.path(parent), node.name),
            None => node.name.clone(),
        }
    }

    /// Returns the track under which all tracks of a member are drawn; `None` for the device itself.
    pub fn group(&mut self, member: Option<usize>) -> Option<u64> {
        member.map(|member| {
            self.node(
                None,
                &format!("member {member}"),
                100 + member as u64,
                false,
            )
        })
    }

    /// Returns the number of a track or, if `line` is given, of that line of the track.
    pub fn of(&mut self, track: Track, line: Option<usize>) -> u64 {
        let group = self.group(track.member);
        let at = match track.shown {
            Shown::Requests => self.node(group, "requests", 0, false),
            Shown::Messages => self.node(group, "coordinator", 10, false),
            Shown::Ordered => self.node(group, "ordered to collect", 11, false),
            Shown::Accesses | Shown::SlotWaits | Shown::WriteBacks => {
                let buffer = self.node(group, "buffer", 20, false);
                let (name, rank) = match track.shown {
                    Shown::Accesses => ("accesses", 0),
                    Shown::SlotWaits => ("waiting for a slot", 1),
                    _ => ("write-backs", 2),
                };
                self.node(Some(buffer), name, rank, false)
            }
            Shown::Flash(Place::Channel(channel)) => {
                let channels = self.node(group, "channels", 30, false);
                let name = format!("channel {channel}");
                self.node(Some(channels), &name, channel.into(), false)
            }
            Shown::Flash(place) => self.of_chip(group, place),
        };
        match line {
            Some(line) => self.node(Some(at), &format!("line {line}"), line as u64, false),
            None => at,
        }
    }

    fn of_chip(&mut self, group: Option<u64>, place: Place) -> u64 {
        let dies = self.node(group, "dies", 40, false);
        let (Place::Chip(die)
        | Place::Unit(die, _)
        | Place::Ahead(die)
        | Place::Collection(die)
        | Place::Channel(die)) = place;
        let die = self.node(Some(dies), &format!("die {die}"), die.into(), false);
        match place {
            Place::Unit(_, unit) => {
                let name = format!("unit {unit}");
                self.node(Some(die), &name, unit.into(), false)
            }
            Place::Ahead(_) => self.node(Some(die), "second register", 100, false),
            Place::Collection(_) => self.node(Some(die), "garbage collection", 101, false),
            Place::Chip(_) | Place::Channel(_) => die,
        }
    }
}

/// Returns, for each slice, the line of its track on which it is drawn: the first line that is free when the slice
/// begins. `None` for slices of a track without overlaps.
pub(super) fn lines(all: &Slices) -> Vec<Option<usize>> {
    let mut lines = vec![None; all.slices.len()];
    let mut order: Vec<usize> = (0..all.slices.len())
        .filter(|&id| all.slices[id].track.shown.overlaps())
        .collect();
    let key = |slice: &Slice| (slice.track, slice.begin);
    order.sort_by_key(|&id| key(&all.slices[id]));
    let (mut track, mut free_at): (Option<Track>, Vec<Time>) = (None, Vec::new());
    for id in order {
        let slice = &all.slices[id];
        if track.replace(slice.track) != Some(slice.track) {
            free_at.clear();
        }
        let end = slice.end.unwrap_or(slice.begin);
        let line = free_at.iter().position(|&at| at <= slice.begin);
        let line = line.unwrap_or_else(|| {
            free_at.push(Time::ZERO);
            free_at.len() - 1
        });
        free_at[line] = end;
        lines[id] = Some(line);
    }
    lines
}
