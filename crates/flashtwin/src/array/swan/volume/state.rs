//! Saved form of a volume. The number of the front group is first. The open segment, the victim and the free segments
//! of each group follow, then the logical page at each place. Numbers are little-endian. The sizes of the tables follow
//! from the specification. Everything that is read is validated.

use std::io::{self, Read, Write};

use super::{State, Volume, NONE, RESERVE};
use crate::array::layout::Spot;
use crate::ftl::StateError;
use crate::spec::ArraySpec;
use crate::units::{narrow, Lpn};

/// Number of page numbers that are converted to bytes at a time.
const CHUNK: usize = 16 * 1024;

fn wrong<T>(what: String) -> Result<T, StateError> {
    Err(StateError::Inconsistent(what))
}

fn number(input: &mut dyn Read) -> Result<u32, StateError> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

impl Volume {
    /// Writes the volume of an idle array.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut head = vec![self.front];
        for g in &self.groups {
            head.extend([g.open, g.next, g.victim, g.cursor, narrow(g.free.len())]);
            head.extend(&g.free);
        }
        let numbers = |some: &[u32]| -> Vec<u8> {
            let bytes = some.iter().flat_map(|n| n.to_le_bytes());
            bytes.collect()
        };
        out.write_all(&numbers(&head))?;
        for some in self.pages.chunks(CHUNK) {
            out.write_all(&numbers(some))?;
        }
        Ok(())
    }

    /// Reads a volume that [`Volume::save`] wrote for the same specification. `holds` returns whether a member has
    /// written a page. Returns `None` if the array is not a SWAN array.
    pub fn load(
        spec: &ArraySpec,
        input: &mut dyn Read,
        holds: impl Fn(Spot) -> bool,
    ) -> Result<Option<Volume>, StateError> {
        let Some(mut volume) = Volume::of(spec) else {
            return Ok(None);
        };
        volume.front = number(input)?;
        if volume.front >= volume.shape.groups {
            return wrong(format!("group {} is the front", volume.front));
        }
        for s in &mut volume.segments {
            s.state = State::Full;
        }
        for group in 0..volume.shape.groups {
            volume.load_group(group, input)?;
        }
        volume.load_pages(input, holds)?;
        for group in 0..volume.shape.groups {
            volume.check_room(group)?;
        }
        Ok(Some(volume))
    }

    fn load_group(&mut self, group: u32, input: &mut dyn Read) -> Result<(), StateError> {
        let data = self.shape.data;
        let first = group * self.shape.segments;
        let [open, next, victim, cursor, count] = {
            let mut numbers = [0; 5];
            for n in &mut numbers {
                *n = number(input)?;
            }
            numbers
        };
        let g = &mut self.groups[group as usize];
        (g.open, g.next, g.victim, g.cursor) = (open, next, victim, cursor);
        g.look = true;
        g.free.clear();
        if count > self.shape.segments {
            return wrong(format!("group {group} has {count} free segments"));
        }
        if open != NONE && !(1..data).contains(&next) || next > data || cursor > data {
            return wrong(format!(
                "a cursor of group {group} points beyond its segment"
            ));
        }
        let mut marked = vec![(open, State::Open), (victim, State::Victim)];
        marked.retain(|&(segment, _)| segment != NONE);
        for _ in 0..count {
            let segment = number(input)?;
            self.groups[group as usize].free.push_back(segment);
            marked.push((segment, State::Free));
        }
        for (segment, state) in marked {
            let within = first..first + self.shape.segments;
            let s = self.segments.get_mut(segment as usize);
            match s.filter(|s| within.contains(&segment) && s.state == State::Full) {
                Some(s) => s.state = state,
                None => {
                    let what = format!(
                        "group {group} has a segment {segment} that is not its own or twice"
                    );
                    return wrong(what);
                }
            }
        }
        Ok(())
    }

    fn load_pages(
        &mut self,
        input: &mut dyn Read,
        holds: impl Fn(Spot) -> bool,
    ) -> Result<(), StateError> {
        let mut bytes = vec![0; 4 * CHUNK];
        let places = self.pages.len();
        let mut place = 0;
        while (place as usize) < places {
            let some = 4 * CHUNK.min(places - place as usize);
            input.read_exact(&mut bytes[..some])?;
            for word in bytes[..some].chunks_exact(4) {
                let page = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                if page != NONE {
                    self.load_page(page, place, &holds)?;
                }
                place += 1;
            }
        }
        Ok(())
    }

    fn load_page(
        &mut self,
        page: u32,
        place: u32,
        holds: impl Fn(Spot) -> bool,
    ) -> Result<(), StateError> {
        let segment = self.segment_of(place);
        let k = place - segment * self.shape.data;
        let g = &self.groups[self.group_of(segment) as usize];
        let written = match self.segments[segment as usize].state {
            State::Open => k < g.next,
            // The pages before the cursor have been moved already.
            State::Victim => k >= g.cursor,
            State::Full => true,
            State::Free | State::Trimming => false,
        };
        if !written || !holds(self.spot(place)) {
            return wrong(format!("page {page} lies where nothing is written"));
        }
        match self.map.get(page as usize) {
            Some(&NONE) => self.put(Lpn(page), place),
            Some(_) => return wrong(format!("page {page} lies in two places")),
            None => return wrong(format!("page {page} is beyond the volume")),
        }
        Ok(())
    }

    /// Checks that a group can continue to collect: it must have a free segment, or its open segment must have room
    /// for the valid pages of its victim.
    fn check_room(&self, group: u32) -> Result<(), StateError> {
        let g = &self.groups[group as usize];
        let rest = match g.open {
            NONE => 0,
            _ => self.shape.data - g.next,
        };
        let victim = self.segments.get(g.victim as usize);
        match g.free.len() >= RESERVE || victim.is_some_and(|s| s.valid <= rest) {
            true => Ok(()),
            false => wrong(format!("group {group} has no room left to collect")),
        }
    }
}
