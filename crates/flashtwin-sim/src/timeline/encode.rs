//! Encodes a timeline as a trace for Perfetto, in its `TrackEvent` format of Protocol Buffers. Field numbers are from
//! protos/perfetto/trace/track_event/track_event.proto in Perfetto's source. Times count from the start of the
//! measurement in whole nanoseconds, rounded down.

use std::collections::HashMap;

use flashtwin::Time;

use super::lines::{lines, Tree};
use super::proto::Message;
use super::slices::{Detail, Gauge, Slice, Slices};

/// Fields of `TracePacket`.
mod packet {
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
}

/// Fields of `TrackDescriptor`.
mod descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PARENT: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const CHILD_ORDERING: u32 = 11;
    pub const RANK: u32 = 12;
    /// Child tracks are ordered by rank.
    pub const EXPLICIT: u64 = 3;
}

/// Fields of `TrackEvent`.
mod event {
    pub const DETAIL: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME: u32 = 10;
    pub const TRACK: u32 = 11;
    pub const VALUE: u32 = 30;
    pub const FLOW: u32 = 47;
    pub const FLOW_ENDS: u32 = 48;
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}

/// Fields of `DebugAnnotation`.
mod detail {
    pub const NAME: u32 = 1;
    pub const BOOL: u32 = 2;
    pub const UINT: u32 = 3;
    pub const STRING: u32 = 6;
    pub const ARRAY: u32 = 12;
}

/// Id of the only packet sequence. The first packet of the sequence defines the names.
const SEQUENCE: u64 = 1;
const CLEARED: u64 = 1;
const NEEDS_NAMES: u64 = 2;

/// Names that are written once.
#[derive(Default)]
struct Names {
    numbers: HashMap<&'static str, u64>,
    texts: Vec<&'static str>,
}

impl Names {
    fn number(&mut self, text: &'static str) -> u64 {
        let next = self.texts.len() as u64 + 1;
        let number = *self.numbers.entry(text).or_insert(next);
        if number == next {
            self.texts.push(text);
        }
        number
    }

    fn write(&self, field: u32, to: &mut Message) {
        for (i, text) in self.texts.iter().enumerate() {
            to.message(field, |entry| {
                entry.uint(1, i as u64 + 1);
                entry.text(2, text);
            });
        }
    }
}

/// Content of a packet.
#[derive(Clone, Copy)]
enum What {
    Begin(usize),
    End(usize),
    Instant(usize),
    Count(usize),
}

/// Encodes a trace whose times count from `start`.
pub(super) fn encode(all: &Slices, start: Time) -> Vec<u8> {
    let mut tree = Tree::default();
    let lines = lines(all);
    let tracks: Vec<u64> = all
        .slices
        .iter()
        .zip(&lines)
        .map(|(slice, &line)| tree.of(slice.track, line))
        .collect();
    let instants: Vec<u64> = (all.instants.iter())
        .map(|instant| tree.of(instant.track, None))
        .collect();
    let counters: Vec<u64> = (all.counts.iter())
        .map(|&(_, gauge, _)| counter_track(&mut tree, gauge))
        .collect();

    let (mut names, mut keys) = numbered(all);
    let mut trace = Message::default();
    write_packet(&mut trace, |packet| {
        packet.uint(packet::SEQUENCE_FLAGS, CLEARED);
        packet.message(packet::INTERNED_DATA, |data| {
            names.write(2, data);
            keys.write(3, data);
        });
    });
    write_tracks(&tree, &mut trace);

    let flows = flows(all);
    for (at, what) in in_order(all) {
        write_packet(&mut trace, |packet| {
            packet.uint(packet::TIMESTAMP, nanoseconds(at, start));
            packet.uint(packet::SEQUENCE_FLAGS, NEEDS_NAMES);
            packet.message(packet::TRACK_EVENT, |event| match what {
                What::Begin(id) => {
                    let slice = &all.slices[id];
                    event.uint(event::TYPE, event::BEGIN);
                    event.uint(event::TRACK, tracks[id]);
                    event.uint(event::NAME, names.number(slice.name));
                    write_details(event, &mut keys, &slice.details);
                    let duration = Detail::Number(duration(slice).0);
                    write_details(event, &mut keys, &[("duration_ps", duration)]);
                    let Flows { begin, end } = &flows[id];
                    begin
                        .iter()
                        .for_each(|&flow| event.fixed64(event::FLOW, flow));
                    end.iter()
                        .for_each(|&flow| event.fixed64(event::FLOW_ENDS, flow));
                }
                What::End(id) => {
                    event.uint(event::TYPE, event::END);
                    event.uint(event::TRACK, tracks[id]);
                }
                What::Instant(id) => {
                    let instant = &all.instants[id];
                    event.uint(event::TYPE, event::INSTANT);
                    event.uint(event::TRACK, instants[id]);
                    event.uint(event::NAME, names.number(instant.name));
                    write_details(event, &mut keys, &instant.details);
                }
                What::Count(id) => {
                    event.uint(event::TYPE, event::COUNTER);
                    event.uint(event::TRACK, counters[id]);
                    event.uint(event::VALUE, all.counts[id].2);
                }
            });
        });
    }
    trace.into_bytes()
}

/// Assigns numbers to the names of slices and to the keys of their details.
fn numbered(all: &Slices) -> (Names, Names) {
    let (mut names, mut keys) = (Names::default(), Names::default());
    let of_slices = all.slices.iter().map(|slice| (slice.name, &slice.details));
    let of_instants = (all.instants.iter()).map(|instant| (instant.name, &instant.details));
    for (name, details) in of_slices.chain(of_instants) {
        names.number(name);
        for (key, _) in details {
            keys.number(key);
        }
    }
    keys.number("duration_ps");
    (names, keys)
}

/// Numbers of the arrows that begin at a slice, and of those that end at it.
#[derive(Clone, Default)]
struct Flows {
    begin: Vec<u64>,
    end: Vec<u64>,
}

/// Returns, for each slice, the numbers of the arrows that begin and end at it.
fn flows(all: &Slices) -> Vec<Flows> {
    let mut flows = vec![Flows::default(); all.slices.len()];
    for (i, &(from, to)) in all.links.iter().enumerate() {
        let flow = i as u64 + 1;
        flows[from as usize].begin.push(flow);
        flows[to as usize].end.push(flow);
    }
    flows
}

fn write_details(event: &mut Message, keys: &mut Names, details: &[(&'static str, Detail)]) {
    for (key, value) in details {
        event.message(event::DETAIL, |m| {
            m.uint(detail::NAME, keys.number(key));
            write_detail(value, m);
        });
    }
}

fn counter_track(tree: &mut Tree, gauge: Gauge) -> u64 {
    match gauge {
        Gauge::Requests => tree.node(None, "requests in the device", 1, true),
        Gauge::DirtyPages => tree.node(None, "dirty pages", 2, true),
        Gauge::FreeBlocks(member) => {
            let group = tree.group(member);
            tree.node(group, "free blocks", 3, true)
        }
    }
}

fn duration(slice: &Slice) -> Time {
    slice.end.unwrap_or(slice.begin) - slice.begin
}

fn nanoseconds(at: Time, start: Time) -> u64 {
    at.saturating_sub(start).0 / 1000
}

/// Returns all events in order of time. If one slice of a track ends at the instant at which another begins, the end
/// precedes the beginning.
fn in_order(all: &Slices) -> Vec<(Time, What)> {
    let mut by_begin: Vec<usize> = (0..all.slices.len()).collect();
    by_begin.sort_by_key(|&id| (all.slices[id].begin, all.slices[id].end));
    let mut order = Vec::with_capacity(all.slices.len() + all.len());
    for id in by_begin {
        let slice = &all.slices[id];
        order.push((slice.begin, What::Begin(id)));
        order.push((slice.end.unwrap_or(slice.begin), What::End(id)));
    }
    let instants = all.instants.iter().enumerate();
    order.extend(instants.map(|(id, instant)| (instant.at, What::Instant(id))));
    let counts = all.counts.iter().enumerate();
    order.extend(counts.map(|(id, &(at, ..))| (at, What::Count(id))));
    // The sort is stable, so it keeps the order created above.
    order.sort_by_key(|&(at, _)| at);
    order
}

fn write_packet(trace: &mut Message, fill: impl FnOnce(&mut Message)) {
    trace.message(1, |packet| {
        packet.uint(packet::SEQUENCE, SEQUENCE);
        fill(packet);
    });
}

fn write_tracks(tree: &Tree, trace: &mut Message) {
    for (i, node) in tree.nodes.iter().enumerate() {
        write_packet(trace, |packet| {
            packet.message(packet::TRACK_DESCRIPTOR, |track| {
                track.uint(descriptor::UUID, i as u64 + 1);
                track.text(descriptor::NAME, &node.name);
                if let Some(parent) = node.parent {
                    track.uint(descriptor::PARENT, parent);
                }
                if node.counts {
                    track.message(descriptor::COUNTER, |_| {});
                }
                track.uint(descriptor::CHILD_ORDERING, descriptor::EXPLICIT);
                track.uint(descriptor::RANK, node.rank);
            });
        });
    }
}

fn write_detail(value: &Detail, to: &mut Message) {
    match value {
        Detail::Number(number) => to.uint(detail::UINT, *number),
        Detail::Word(word) => to.text(detail::STRING, word),
        Detail::Yes => to.uint(detail::BOOL, 1),
        Detail::Numbers(numbers) => {
            for &number in numbers {
                to.message(detail::ARRAY, |item| item.uint(detail::UINT, number));
            }
        }
    }
}
