//! Placement of pages in an array: striping, mirroring and rotating parity (D-23).
//!
//! A *unit* is a chunk of consecutive pages on one member. A *row* consists of the units at the same position on all
//! members. The pages at the same offset in the units of a row form a *page stripe*. Parity is computed per page
//! stripe, so writes are planned per page stripe. A *place* is the position of a page in its stripe: data places are
//! first, then parity places.

pub(crate) mod plan;

use std::sync::Arc;

use crate::divide::Divider;
use crate::spec::{Level, Rotation};
use crate::units::Lpn;
use plan::Places;

/// A page on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub member: usize,
    pub lpn: Lpn,
}

/// A page stripe, identified by the logical page number that its pages have on their members. This number is the same
/// on all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stripe(pub u32);

/// Maps the pages of an array to its members.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    level: Level,
    /// Number of data units in a row. (`parity` is the number of parity units.) With mirrors, the copies of a unit
    /// count as one.
    data: u32,
    pub parity: u32,
    /// Number of copies of every page.
    pub copies: u32,
    /// For each rotation of the parity, the member at each place: first the members at the data places, then those at
    /// the parity places.
    members: Arc<[u8]>,
    chunk: Divider,
    by_data: Divider,
    /// Number of data units in a *round*, that is, in as many rows as there are rotations. The number of a data unit
    /// modulo `round` determines the members of its row.
    round: Divider,
    /// Number of rotations of the parity. The row number modulo `turns` determines the rotation of the row.
    turns: Divider,
}

impl Layout {
    /// Creates a layout. `members` must be permitted by the level, and `chunk_pages` must be at least 1.
    pub fn new(level: Level, rotation: Rotation, members: u32, chunk_pages: u32) -> Layout {
        let (parity, copies) = match level {
            // With SWAN, this layout is not used. Each group of members has its own layout, that of RAID-5.
            Level::Raid0 | Level::Swan => (0, 1),
            Level::Raid1 => (0, members),
            Level::Raid10 => (0, 2),
            Level::Raid5 => (1, 1),
            Level::Raid6 => (2, 1),
        };
        let data = (members - parity) / copies;
        let turns = match parity {
            0 => 1,
            _ => members,
        };
        Layout {
            level,
            data,
            parity,
            copies,
            members: members_of_turns(rotation, members, parity, turns),
            chunk: Divider::new(chunk_pages),
            by_data: Divider::new(data),
            round: Divider::new(data * turns),
            turns: Divider::new(turns),
        }
    }

    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns the number of data units in a row.
    pub fn data(&self) -> usize {
        self.data as usize
    }

    pub fn chunk_pages(&self) -> u32 {
        self.chunk.by()
    }

    /// Whether the array has redundancy. If so, changes to one row must be executed one after the other.
    pub fn has_rows(&self) -> bool {
        self.parity > 0 || self.copies > 1
    }

    /// Returns the row of a page stripe.
    #[inline(always)]
    pub fn row_of(&self, stripe: Stripe) -> u32 {
        self.chunk.div(stripe.0)
    }

    /// Returns the page stripe of a page, and the number of the page's data place in this stripe.
    #[inline(always)]
    pub fn stripe_of(&self, lpn: Lpn) -> (Stripe, u32) {
        let (stripe, place, _) = self.placed(lpn);
        (stripe, place)
    }

    /// Returns the stripe and place of a page, with the members of the stripe.
    #[inline(always)]
    pub fn placed(&self, lpn: Lpn) -> (Stripe, u32, MembersOf<'_>) {
        let (unit, offset) = self.chunk.div_rem(lpn.0);
        let (row, place) = self.by_data.div_rem(unit);
        let stripe = Stripe(row * self.chunk.by() + offset);
        (stripe, place, self.members_of_row(row))
    }

    /// Returns the position of the unit (chunk) of a page within a round (as many rows as the parity has rotations).
    /// This position determines the members of the unit's row.
    #[inline(always)]
    pub fn place_in_round(&self, lpn: Lpn) -> u32 {
        self.round.div_rem(self.chunk.div(lpn.0)).1
    }

    /// Returns, for each data unit (chunk) of a round (as many rows as the parity has rotations), its place and the
    /// members of its row.
    pub fn round(&self) -> impl Iterator<Item = (u32, MembersOf<'_>)> {
        (0..self.round.by()).map(|unit| {
            let (row, place) = self.by_data.div_rem(unit);
            (place, self.members_of_row(row))
        })
    }

    /// Returns the page at a place of a page stripe.
    pub fn page_of(&self, stripe: Stripe, place: u32) -> Lpn {
        let (row, offset) = self.chunk.div_rem(stripe.0);
        Lpn((row * self.data + place) * self.chunk.by() + offset)
    }

    /// Returns the members of a page stripe.
    #[inline(always)]
    pub fn members_of(&self, stripe: Stripe) -> MembersOf<'_> {
        self.members_of_row(self.row_of(stripe))
    }

    #[inline(always)]
    pub fn members_of_row(&self, row: u32) -> MembersOf<'_> {
        let turn = match self.parity {
            0 => 0,
            _ => self.turns.div_rem(row).1,
        };
        MembersOf {
            layout: self,
            first: turn * self.places(),
        }
    }

    /// Returns the member with the first copy of the page at a data place of a page stripe.
    #[inline(always)]
    pub fn data_member(&self, stripe: Stripe, place: u32) -> usize {
        self.members_of(stripe).data(place)
    }

    /// Returns the member with a parity page of a page stripe: P if `which` is 0, Q if it is 1.
    #[inline(always)]
    pub fn parity_member(&self, stripe: Stripe, which: u32) -> usize {
        self.members_of(stripe).parity(which)
    }

    // ---- places of a page stripe: data, then parity; with mirrors, the copies of each page ----

    /// Returns the number of places.
    #[inline(always)]
    pub fn places(&self) -> u32 {
        self.data * self.copies + self.parity
    }

    /// Returns the member at a place.
    #[inline(always)]
    pub fn member_at(&self, stripe: Stripe, at: u32) -> usize {
        self.members_of(stripe).at(at)
    }

    /// Returns the places for which the predicate holds.
    pub fn places_where(&self, is: impl Fn(u32) -> bool) -> Places {
        let places = (0..self.places()).filter(|&at| is(at));
        places.fold(0, |bits, at| bits | 1 << at)
    }

    /// Returns the places of all copies of the given data places.
    pub fn copies_of(&self, data: Places) -> Places {
        self.places_where(|at| data >> (at / self.copies) & 1 == 1)
    }

    /// Returns the members that hold a copy of the page at a data place.
    pub fn copies_at(&self, stripe: Stripe, place: u32) -> std::ops::Range<usize> {
        let first = self.data_member(stripe, place);
        first..first + self.copies as usize
    }

    /// Returns the location of the first copy of a page.
    #[inline]
    pub fn spot(&self, lpn: Lpn) -> Spot {
        let (stripe, place, members) = self.placed(lpn);
        Spot {
            member: members.data(place),
            lpn: Lpn(stripe.0),
        }
    }
}

/// The members of one page stripe, by role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MembersOf<'a> {
    layout: &'a Layout,
    /// Index of the first place of the stripe in the table of members.
    first: u32,
}

impl MembersOf<'_> {
    /// Returns the member with the first copy of the page at a data place.
    #[inline(always)]
    pub fn data(&self, place: u32) -> usize {
        self.at(place * self.layout.copies)
    }

    /// Returns the member with a parity page: P if `which` is 0, Q if it is 1.
    #[inline(always)]
    pub fn parity(&self, which: u32) -> usize {
        self.at(self.layout.data + which)
    }

    /// Returns the member at a place of the stripe.
    #[inline(always)]
    pub fn at(&self, place: u32) -> usize {
        usize::from(self.layout.members[(self.first + place) as usize])
    }
}

/// Returns, for each rotation, the member at each place. From one rotation to the next, the parity P moves by one
/// member; Q is always on the member after P. In symmetric layouts, the first data unit is on the member after the
/// parity. In asymmetric layouts, data units are in the order of the members.
fn members_of_turns(rotation: Rotation, members: u32, parity: u32, turns: u32) -> Arc<[u8]> {
    let of_turn = |turn| {
        let first = match rotation.goes_left() {
            true => turns - 1 - turn,
            false => turn,
        };
        let of_parity = (0..parity).map(move |which| (first + which) % members);
        let data: Vec<u32> = match parity > 0 && rotation.is_symmetric() {
            true => (parity..members).map(|n| (first + n) % members).collect(),
            false => (0..members)
                .filter(|&at| !of_parity.clone().any(|p| p == at))
                .collect(),
        };
        data.into_iter().chain(of_parity)
    };
    let places = (0..turns).flat_map(of_turn);
    places
        .map(|member| u8::try_from(member).expect("at most 60 members"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(level: Level, rotation: Rotation, members: u32, pages: u32) -> Vec<(usize, u32)> {
        let layout = Layout::new(level, rotation, members, 1);
        (0..pages)
            .map(|lpn| {
                let spot = layout.spot(Lpn(lpn));
                (spot.member, spot.lpn.0)
            })
            .collect()
    }

    /// The reference simulator (DiskSim, disksim_redun.c) places units (chunks) on 5 disks in this way.
    #[test]
    fn left_symmetric_raid_5_of_five_as_the_reference_places_it() {
        let want = [
            (0, 0),
            (1, 0),
            (2, 0),
            (3, 0),
            (4, 1),
            (0, 1),
            (1, 1),
            (2, 1),
            (3, 2),
            (4, 2),
            (0, 2),
            (1, 2),
        ];
        assert_eq!(placed(Level::Raid5, Rotation::LeftSymmetric, 5, 12), want);
    }

    #[test]
    fn the_other_rotations() {
        let members = |rotation| {
            let at = placed(Level::Raid5, rotation, 4, 12);
            at.iter().map(|&(member, _)| member).collect::<Vec<_>>()
        };
        assert_eq!(
            members(Rotation::LeftAsymmetric),
            [0, 1, 2, 0, 1, 3, 0, 2, 3, 1, 2, 3]
        );
        assert_eq!(
            members(Rotation::RightSymmetric),
            [1, 2, 3, 2, 3, 0, 3, 0, 1, 0, 1, 2]
        );
        assert_eq!(
            members(Rotation::RightAsymmetric),
            [1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2]
        );
    }

    /// Every row uses every member once. [`Layout::stripe_of`] and [`Layout::page_of`] are inverse functions.
    #[test]
    fn rows_use_every_member_once() {
        for level in [Level::Raid0, Level::Raid5, Level::Raid6] {
            for rotation in Rotation::ALL {
                for members in 4..9 {
                    for chunk in [1, 3] {
                        let layout = Layout::new(level, rotation, members, chunk);
                        for stripe in (0..40).map(Stripe) {
                            let mut used: Vec<usize> = (0..layout.data)
                                .map(|place| layout.data_member(stripe, place))
                                .chain((0..layout.parity).map(|p| layout.parity_member(stripe, p)))
                                .collect();
                            used.sort_unstable();
                            let all: Vec<usize> = (0..members as usize).collect();
                            assert_eq!(used, all, "{level:?} {rotation:?} {members} {stripe:?}");
                            for place in 0..layout.data {
                                let page = layout.page_of(stripe, place);
                                assert_eq!(layout.stripe_of(page), (stripe, place));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn mirrors_hold_every_page_and_striped_mirrors_half_of_them() {
        assert_eq!(
            placed(Level::Raid1, Rotation::LeftSymmetric, 3, 2),
            [(0, 0), (0, 1)]
        );
        assert_eq!(
            placed(Level::Raid10, Rotation::LeftSymmetric, 4, 3),
            [(0, 0), (2, 0), (0, 1)]
        );
    }
}
