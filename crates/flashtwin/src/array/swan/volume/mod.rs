//! The volume of a SWAN array: the map of its pages, its free segments, and the choice of the segment to collect next.
//! This module only keeps the tables. [`super::Swan`] sends the requests to the members.
//!
//! A *segment* is a range of pages that is the same on all members of a group. The pages with the same number on these
//! members form a page stripe, with one page of parity. The *place* of a data page is its number in the volume: places
//! are numbered segment by segment, and stripe by stripe within a segment. A place is written once, then trimmed
//! together with its whole segment.

mod state;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::array::layout::{Layout, Spot, Stripe};
use crate::chips::MovedPages;
use crate::divide::Divider;
use crate::memory::prefetch;
use crate::spec::{ArraySpec, Level};
use crate::units::{narrow, Lpn};

/// Stands for "no place", "no page" or "no segment".
pub(crate) const NONE: u32 = u32::MAX;
/// Number of free segments of a group that are reserved for moved pages. One suffices, because the valid pages of any
/// victim fit into one free segment.
const RESERVE: usize = 1;

/// State of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    /// The segment is being written.
    Open,
    Full,
    /// The segment is being collected: its valid pages move to another segment.
    Victim,
    Trimming,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub state: State,
    /// Number of valid places of the segment. A place is valid if it has the newest contents of a logical page.
    pub valid: u32,
    /// Number of pages being written.
    pub writing: u32,
    /// Number of reads and moves in flight for the segment's pages.
    pub reading: u32,
}

impl Segment {
    const FREE: Segment = Segment {
        state: State::Free,
        valid: 0,
        writing: 0,
        reading: 0,
    };
}

/// A group: members that share parity.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Free segments, in the order in which they became free.
    pub free: VecDeque<u32>,
    /// The segment that is being written ([`NONE`] if there is none). `next` is the index of the next data page to
    /// write in it.
    pub open: u32,
    pub next: u32,
    /// The victim that is being emptied ([`NONE`] if there is none). `cursor` is the index of the next data page to
    /// examine in it.
    pub victim: u32,
    pub cursor: u32,
    /// Number of segments being trimmed.
    pub trimming: u32,
    /// Whether the group may have a new candidate for collection. This is so if one of its segments has lost valid
    /// pages since a search for a victim last failed.
    look: bool,
}

/// Sizes of a volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub groups: u32,
    /// Members of a group.
    pub members: u32,
    /// Segments of a group.
    pub segments: u32,
    /// Pages of a segment on one member.
    pub pages: u32,
    /// Data pages of a segment.
    pub data: u32,
    /// Pages that the host can address.
    pub exported: u32,
}

impl Shape {
    fn of(spec: &ArraySpec) -> Option<Shape> {
        if spec.level != Level::Swan {
            return None;
        }
        let members = spec.members_per_group();
        Some(Shape {
            groups: spec.groups,
            members,
            segments: narrow(spec.segments_per_group()),
            pages: spec.segment_pages,
            data: spec.segment_pages * (members - 1),
            exported: narrow(spec.exported_pages()),
        })
    }
}

/// Locations of all pages of a SWAN array.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub shape: Shape,
    /// Layout of a page stripe on the members of a group.
    layout: Layout,
    by_data: Divider,
    by_stripe: Divider,
    by_segments: Divider,
    /// For each logical page, its place, or [`NONE`]. `pages` is the inverse: for each place, the logical page whose
    /// newest contents are there, or [`NONE`].
    pub map: Vec<u32>,
    pub pages: Vec<u32>,
    /// Places being written, as bits.
    flying: Vec<u64>,
    pub segments: Vec<Segment>,
    pub groups: Vec<Group>,
    /// The group that takes the host's writes.
    pub front: u32,
    /// Number of free segments that each group other than the front group keeps by collecting.
    target: usize,
    /// Largest number of valid pages with which a segment is worth collecting while no host write waits for room.
    worth: u32,
    /// Logical pages that were moved or trimmed. (Pages that [`Volume::write`] put elsewhere are not listed.)
    pub moved: MovedPages,
}

impl Volume {
    /// Creates the empty volume of a SWAN array; `None` for other arrays.
    pub fn of(spec: &ArraySpec) -> Option<Volume> {
        let shape = Shape::of(spec)?;
        let per_group = spec.exported_pages().div_ceil(shape.groups.into());
        let used = narrow(per_group.div_ceil(shape.data.into()));
        let spare = shape.segments - used;
        let group = |first: u32| Group {
            free: (first..first + shape.segments).collect(),
            open: NONE,
            next: 0,
            victim: NONE,
            cursor: 0,
            trimming: 0,
            look: false,
        };
        let segments = shape.groups * shape.segments;
        let places = segments as usize * shape.data as usize;
        // Collecting a segment is worth the moves only if its number of invalid pages is at least half the mean of all
        // segments.
        let half_spare = u64::from(shape.data) * u64::from(spare) / u64::from(2 * shape.segments);
        Some(Volume {
            layout: Layout::new(Level::Raid5, spec.rotation, shape.members, spec.chunk_pages),
            by_data: Divider::new(shape.data),
            by_stripe: Divider::new(shape.members - 1),
            by_segments: Divider::new(shape.segments),
            map: vec![NONE; shape.exported as usize],
            pages: vec![NONE; places],
            flying: vec![0; places.div_ceil(64)],
            segments: vec![Segment::FREE; segments as usize],
            groups: (0..shape.groups)
                .map(|g| group(g * shape.segments))
                .collect(),
            front: 0,
            target: (spare as usize / 2).max(RESERVE + 1),
            worth: shape.data - narrow(half_spare).max(1),
            // Every page counts as moved, because the new volume may replace another one in which pages had other
            // places.
            moved: MovedPages::any(),
            shape,
        })
    }

    // ---- places ----

    /// Returns the segment of a place.
    #[inline]
    pub fn segment_of(&self, place: u32) -> u32 {
        self.by_data.div(place)
    }

    pub fn group_of(&self, segment: u32) -> u32 {
        self.by_segments.div(segment)
    }

    /// Returns the members of the segment's group, and the first page of the segment on each of these members.
    pub fn extent(&self, segment: u32) -> (std::ops::Range<usize>, u32) {
        let (group, number) = self.by_segments.div_rem(segment);
        let first = (group * self.shape.members) as usize;
        let members = first..first + self.shape.members as usize;
        (members, number * self.shape.pages)
    }

    /// Returns the first member of the group that has this place, the page stripe, and the data place within the
    /// stripe.
    fn stripe_of(&self, place: u32) -> (usize, Stripe, u32) {
        let (segment, k) = self.by_data.div_rem(place);
        let (stripe, within) = self.by_stripe.div_rem(k);
        let (members, first) = self.extent(segment);
        (members.start, Stripe(first + stripe), within)
    }

    /// Returns the location of a place: the member, and the page on this member.
    #[inline]
    pub fn spot(&self, place: u32) -> Spot {
        let (first, stripe, within) = self.stripe_of(place);
        Spot {
            member: first + self.layout.data_member(stripe, within),
            lpn: Lpn(stripe.0),
        }
    }

    /// Returns the location of the parity of a place's stripe if the place is the last data place of the stripe.
    /// Otherwise returns `None`.
    pub fn parity_after(&self, place: u32) -> Option<Spot> {
        let (first, stripe, within) = self.stripe_of(place);
        (within + 2 == self.shape.members).then(|| Spot {
            member: first + self.layout.parity_member(stripe, 0),
            lpn: Lpn(stripe.0),
        })
    }

    /// Returns the logical page whose newest contents are in a page of a member, if there is one.
    pub fn page_at(&self, spot: Spot) -> Option<Lpn> {
        let members = self.shape.members as usize;
        let group = narrow(spot.member / members);
        let (number, stripe) = (spot.lpn.0 / self.shape.pages, spot.lpn.0 % self.shape.pages);
        if number >= self.shape.segments {
            return None;
        }
        let within = (0..self.shape.members - 1).find(|&within| {
            let member = self.layout.data_member(Stripe(spot.lpn.0), within);
            member == spot.member % members
        })?;
        let k = stripe * (self.shape.members - 1) + within;
        let segment = group * self.shape.segments + number;
        let page = self.pages[(segment * self.shape.data + k) as usize];
        (page != NONE).then_some(Lpn(page))
    }

    /// Returns the place of a page, if it was written.
    #[inline]
    pub fn find(&self, lpn: Lpn) -> Option<u32> {
        let place = self.map[lpn.0 as usize];
        (place != NONE).then_some(place)
    }

    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.map, lpn.0 as usize);
    }

    /// Whether the place is being written.
    #[inline]
    pub fn is_flying(&self, place: u32) -> bool {
        self.flying[place as usize / 64] >> (place % 64) & 1 == 1
    }

    /// Records that a place has been written.
    pub fn landed(&mut self, place: u32) {
        self.flying[place as usize / 64] &= !(1 << (place % 64));
        self.write_ended(self.segment_of(place));
    }

    /// Records that a page of parity is being written.
    pub fn write_began(&mut self, segment: u32) {
        self.segments[segment as usize].writing += 1;
    }

    /// Records that a page of data or parity has been written.
    pub fn write_ended(&mut self, segment: u32) {
        self.segments[segment as usize].writing -= 1;
        self.touched(segment);
    }

    pub fn read_began(&mut self, place: u32) {
        let segment = self.segment_of(place);
        self.segments[segment as usize].reading += 1;
    }

    pub fn read_ended(&mut self, place: u32) {
        let segment = self.segment_of(place);
        self.segments[segment as usize].reading -= 1;
    }

    // ---- writing ----

    /// Whether a group has room for host writes.
    fn has_room(&self, group: u32) -> bool {
        let g = &self.groups[group as usize];
        g.free.len() > RESERVE || g.open != NONE && g.free.len() >= RESERVE
    }

    /// Maps a page to a new place in the front group. If the front group has no room, the group with the most free
    /// segments becomes the front group. Returns `None` if no group has room.
    pub fn write(&mut self, lpn: Lpn) -> Option<u32> {
        if !self.has_room(self.front) {
            let (front, groups) = (self.front, self.shape.groups);
            let others = (1..groups).map(|step| (front + step) % groups);
            let with_room = others.filter(|&group| self.has_room(group));
            // Of several groups with equally many free segments, the first one is wanted. Because `max_by_key` returns
            // the last, the order is reversed.
            self.front = with_room
                .rev()
                .max_by_key(|&group| self.groups[group as usize].free.len())?;
        }
        let place = self.next_place(self.front)?;
        self.unmap(lpn);
        self.put(lpn, place);
        Some(place)
    }

    /// Takes the next place of a group's open segment and marks it as being written.
    fn next_place(&mut self, group: u32) -> Option<u32> {
        let g = &mut self.groups[group as usize];
        if g.open == NONE {
            g.open = g.free.pop_front()?;
            g.next = 0;
            self.segments[g.open as usize].state = State::Open;
        }
        let segment = g.open;
        let place = segment * self.shape.data + g.next;
        g.next += 1;
        if g.next == self.shape.data {
            g.open = NONE;
            self.segments[segment as usize].state = State::Full;
        }
        self.flying[place as usize / 64] |= 1 << (place % 64);
        self.write_began(segment);
        Some(place)
    }

    fn put(&mut self, lpn: Lpn, place: u32) {
        let segment = self.segment_of(place);
        self.map[lpn.0 as usize] = place;
        self.pages[place as usize] = lpn.0;
        self.segments[segment as usize].valid += 1;
    }

    /// Unmaps a page that the host trims.
    pub fn forget(&mut self, lpn: Lpn) {
        self.unmap(lpn);
        self.moved.note(lpn);
    }

    fn unmap(&mut self, lpn: Lpn) {
        let place = std::mem::replace(&mut self.map[lpn.0 as usize], NONE);
        if place != NONE {
            let segment = self.segment_of(place);
            self.pages[place as usize] = NONE;
            self.segments[segment as usize].valid -= 1;
            self.touched(segment);
        }
    }

    // ---- collecting ----

    /// Records that a segment may now have enough invalid pages to be collected.
    fn touched(&mut self, segment: u32) {
        let s = &self.segments[segment as usize];
        if s.state == State::Full && s.valid <= self.worth && s.writing == 0 {
            let group = self.group_of(segment);
            self.groups[group as usize].look = true;
        }
    }

    /// Returns whether a group must collect, and chooses its victim if it has none. A group other than the front group
    /// collects until it has enough free segments (`target`). While host writes wait for room (`wait`), any group
    /// without room collects.
    pub fn collects(&mut self, group: u32, wait: bool) -> bool {
        let g = &self.groups[group as usize];
        let needed = wait && !self.has_room(group);
        let wanted = group != self.front && g.free.len() + (g.trimming as usize) < self.target;
        if !needed && !wanted {
            return false;
        }
        if g.victim != NONE {
            return true;
        }
        // Without a free segment, the group must wait until one of its segments is trimmed.
        if g.free.len() < RESERVE || !needed && !g.look {
            return false;
        }
        let most = match needed {
            true => self.shape.data - 1,
            false => self.worth,
        };
        let first = group * self.shape.segments;
        let all = first..first + self.shape.segments;
        let victim = all.min_by_key(|&segment| {
            let s = &self.segments[segment as usize];
            let may = s.state == State::Full && s.writing == 0;
            (!may, s.valid)
        });
        let victim = victim.filter(|&segment| {
            let s = &self.segments[segment as usize];
            s.state == State::Full && s.writing == 0 && s.valid <= most
        });
        let g = &mut self.groups[group as usize];
        match victim {
            Some(segment) => {
                (g.victim, g.cursor) = (segment, 0);
                self.segments[segment as usize].state = State::Victim;
                true
            }
            None => {
                g.look = false;
                false
            }
        }
    }

    /// Returns the next valid page of a group's victim, as its place; `None` if the victim has no more valid pages.
    pub fn next_to_move(&mut self, group: u32) -> Option<u32> {
        let g = &mut self.groups[group as usize];
        if g.victim == NONE {
            return None;
        }
        while g.cursor < self.shape.data {
            let place = g.victim * self.shape.data + g.cursor;
            g.cursor += 1;
            if self.pages[place as usize] != NONE {
                return Some(place);
            }
        }
        None
    }

    /// Returns the new place of a page that is to be moved; `None` if the page is no longer valid at `from`.
    pub fn place_for_move(&mut self, from: u32) -> Option<u32> {
        match self.pages[from as usize] {
            NONE => None,
            _ => self.next_place(self.group_of(self.segment_of(from))),
        }
    }

    /// Maps a copied page to its new place, unless the host has written the page in the meantime.
    pub fn moved(&mut self, from: u32, to: u32) {
        let page = self.pages[from as usize];
        if page != NONE {
            self.unmap(Lpn(page));
            self.put(Lpn(page), to);
            self.moved.note(Lpn(page));
        }
    }

    /// Ends the collection of a group's victim if none of its pages is valid or being read. Then returns the victim,
    /// which the caller must trim.
    pub fn take_emptied(&mut self, group: u32) -> Option<u32> {
        let g = &mut self.groups[group as usize];
        let s = self.segments.get_mut(g.victim as usize)?;
        if s.valid > 0 || s.reading > 0 {
            return None;
        }
        s.state = State::Trimming;
        g.trimming += 1;
        Some(std::mem::replace(&mut g.victim, NONE))
    }

    /// Records that all members have trimmed a segment.
    pub fn trimmed(&mut self, segment: u32) {
        self.segments[segment as usize] = Segment::FREE;
        let group = self.group_of(segment);
        let g = &mut self.groups[group as usize];
        g.trimming -= 1;
        g.free.push_back(segment);
    }
}
