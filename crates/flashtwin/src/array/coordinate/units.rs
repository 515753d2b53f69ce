//! The *units* of an array: the parts for which the array's buffer observes whether they are in GC. Depending on the
//! specification, a unit is a member, a chip of a member, or a set of members that share a stripe.

use crate::array::layout::{Layout, MembersOf, Spot, Stripe};
use crate::array::member::Member;
use crate::chips::ChipSet;
use crate::memory::TrustedTable;
use crate::spec::{ArraySpec, DeviceSpec, Level, MemberInGc, Placement, Protect};
use crate::units::{narrow, ChipId, Lpn};

/// The units of an array, and which of them are in GC.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    pub collecting: ChipSet,
    /// The first unit of each member.
    first: TrustedTable<u32>,
    /// Members that count as being in GC.
    in_gc: TrustedTable<bool>,
    /// For each member: the number of its chips that must be in GC for the member to count as in GC.
    least_chips: Vec<u32>,
    /// Whether one chip in GC suffices for its member to count as in GC.
    pub any_chip_counts: bool,
    level: Level,
    protect: Protect,
    member_in_gc: MemberInGc,
    /// Units of pages, indexed by the position of the page's chunk in the repeating pattern of the layout
    /// ([`Layout::place_in_round`]). Empty if units are chips: the unit of a page then depends on the chip that holds
    /// its flash copy.
    homes: Vec<ChipId>,
    /// Whether pages may move to other units at any time. They may if units are chips and a member has dynamic
    /// placement.
    pub wander: bool,
}

impl Units {
    pub fn new(spec: &ArraySpec, layout: &Layout) -> Units {
        let (mut first, mut units) = (Vec::new(), 0);
        let least_chips = |member: &DeviceSpec| match spec.member_in_gc {
            MemberInGc::Share => {
                let share = spec.member_in_gc_share.unwrap_or(0.0);
                let chips = (share * f64::from(member.geometry.chips)).ceil();
                (chips as u32).max(1)
            }
            MemberInGc::Any | MemberInGc::Chip => 1,
        };
        for member in &spec.members {
            first.push(units);
            units += match (spec.protect, spec.member_in_gc) {
                (Protect::Stripe, _) => narrow(spec.members.len()),
                (Protect::Data, MemberInGc::Chip) => member.geometry.chips,
                (Protect::Data, _) => 1,
            };
        }
        let mut units = Units {
            collecting: ChipSet::none(units),
            // SAFETY: the index is the number of a member. This table and `first` have one entry per member.
            in_gc: unsafe { TrustedTable::new(vec![false; first.len()]) },
            // SAFETY: the index is the number of a member, and the number of members never changes.
            first: unsafe { TrustedTable::new(first) },
            least_chips: spec.members.iter().map(least_chips).collect(),
            any_chip_counts: spec.member_in_gc == MemberInGc::Any,
            level: spec.level,
            protect: spec.protect,
            member_in_gc: spec.member_in_gc,
            homes: Vec::new(),
            wander: (spec.protect, spec.member_in_gc) == (Protect::Data, MemberInGc::Chip)
                && (spec.members.iter()).any(|m| m.ftl.placement == Placement::Dynamic),
        };
        if units.protect == Protect::Stripe || units.member_in_gc != MemberInGc::Chip {
            let home = |(place, row): (u32, MembersOf)| {
                let first = units.first[row.data(place)];
                ChipId::of(match units.protect {
                    Protect::Stripe if layout.parity > 0 => first + narrow(row.parity(0)),
                    Protect::Stripe | Protect::Data => first,
                })
            };
            units.homes = layout.round().map(home).collect();
        }
        units
    }

    /// Returns the first unit of a member.
    #[inline]
    pub fn first_of(&self, member: usize) -> usize {
        self.first[member] as usize
    }

    /// Returns the member that a unit belongs to, and the chips of this member that the unit stands for: one chip if
    /// units are chips, otherwise all. `chips` returns the number of chips of a member.
    pub fn chips_of(
        &self,
        unit: usize,
        chips: impl Fn(usize) -> u32,
    ) -> (usize, std::ops::Range<u32>) {
        let member = self.first.partition_point(|&first| first as usize <= unit) - 1;
        match self.member_in_gc {
            MemberInGc::Chip if self.protect == Protect::Data => {
                let chip = narrow(unit - self.first_of(member));
                (member, chip..chip + 1)
            }
            MemberInGc::Any | MemberInGc::Chip | MemberInGc::Share => (member, 0..chips(member)),
        }
    }

    /// Returns the unit of a page.
    #[inline(always)]
    pub fn of_page(&self, layout: &Layout, members: &[Member], lpn: Lpn) -> Option<ChipId> {
        match self.have_homes() {
            true => Some(self.home_of(layout, lpn)),
            false => self.of_spot(members, layout.spot(lpn)),
        }
    }

    /// Whether the number of a page alone determines its unit. If not, the unit also depends on the chip that holds the
    /// flash copy of the page.
    #[inline(always)]
    pub fn have_homes(&self) -> bool {
        !self.homes.is_empty()
    }

    /// Returns the unit of a page from the number of the page alone. Must be called only if [`Units::have_homes`]
    /// returns true.
    #[inline(always)]
    pub fn home_of(&self, layout: &Layout, lpn: Lpn) -> ChipId {
        self.homes[layout.place_in_round(lpn) as usize]
    }

    /// Returns the unit of a page of a member; `None` if units are chips and no chip has the page. Must not be called
    /// if units are sets of members that share a stripe.
    #[inline(always)]
    pub fn of_spot(&self, members: &[Member], spot: Spot) -> Option<ChipId> {
        let chip = match self.member_in_gc {
            MemberInGc::Chip => members[spot.member].drive.ssd.backend_unit(spot.lpn)?.0,
            _ => 0,
        };
        Some(ChipId::of(self.first[spot.member] + u32::from(chip)))
    }

    /// Called after an event of a member: updates which units are in GC. `chips` are the chips of the member that are
    /// now in GC.
    #[inline(always)]
    pub fn note(&mut self, member: usize, chips: &ChipSet) {
        if !self.any_chip_counts || !self.is_noted(member, chips) {
            self.note_chips(member, chips);
        }
    }

    /// Whether the table of members in GC is up to date for a member. `chips` are the chips of the member that are in
    /// GC. Must be called only if one chip in GC suffices for the member to count as in GC. The table must then list
    /// the member as in GC exactly if `chips` is not empty.
    #[inline(always)]
    pub fn is_noted(&self, member: usize, chips: &ChipSet) -> bool {
        chips.is_empty() != self.in_gc[member]
    }

    /// Records which units are in GC. Called when the set of a member's chips that are in GC may have changed.
    #[inline(never)]
    fn note_chips(&mut self, member: usize, chips: &ChipSet) {
        if (self.protect, self.member_in_gc) == (Protect::Data, MemberInGc::Chip) {
            let first = self.first[member];
            for chip in 0..chips.of() {
                let collecting = chips.contains(ChipId::of(chip));
                self.collecting.set(ChipId::of(first + chip), collecting);
            }
            return;
        }
        let collecting = chips.len() >= self.least_chips[member];
        if std::mem::replace(&mut self.in_gc[member], collecting) != collecting {
            self.mark(member);
        }
    }

    /// Updates the units after a member has begun or ended GC.
    fn mark(&mut self, member: usize) {
        if self.protect == Protect::Data {
            let unit = ChipId::of(self.first[member]);
            return self.collecting.set(unit, self.in_gc[member]);
        }
        let members = self.in_gc.len();
        for data in 0..members {
            for with in 0..members {
                let touched = match self.level {
                    Level::Raid0 | Level::Swan => self.in_gc[data],
                    Level::Raid1 => self.in_gc.contains(&true),
                    Level::Raid10 => self.in_gc[data] || self.in_gc[data ^ 1],
                    Level::Raid5 => self.in_gc[data] || self.in_gc[with],
                    Level::Raid6 => {
                        let q = (with + 1) % members;
                        self.in_gc[data] || self.in_gc[with] || self.in_gc[q]
                    }
                };
                let unit = ChipId::of(self.first[data] + narrow(with));
                self.collecting.set(unit, touched);
            }
        }
    }

    /// Whether the member counts as in GC.
    #[cfg(test)]
    pub fn is_in_gc(&self, member: usize) -> bool {
        self.in_gc[member]
    }
}

/// Whether the chip that holds the member's page of a stripe is in GC.
#[inline]
pub(crate) fn collects_at(member: &Member, stripe: Stripe) -> bool {
    let ssd = &member.drive.ssd;
    let chips = ssd.chips_in_gc();
    !chips.is_empty()
        && ssd
            .backend_unit(Lpn(stripe.0))
            .is_some_and(|chip| chips.contains(chip))
}

#[cfg(test)]
mod tests {
    use crate::array::layout::Layout;
    use crate::chips::ChipSet;
    use crate::spec::builtin_array;
    use crate::units::{ChipId, Lpn};
    use crate::{Array, ArraySpec};

    fn array(level: &str, protect: &str) -> Array {
        let set = [
            ("array.level", level),
            ("array.members", "harmonia*4"),
            ("array.protect", protect),
            ("member.geometry.chips", "2"),
            ("member.geometry.blocks_per_plane", "32"),
        ];
        let text = builtin_array("harmonia-array").unwrap();
        Array::new(&ArraySpec::with_overrides(text, "harmonia-array", &set).unwrap())
    }

    /// Returns those of the array's first 12 pages whose unit is in GC while only `member` is in GC.
    fn kept(level: &str, protect: &str, member: usize) -> Vec<u32> {
        let io = &mut array(level, protect).backend.io;
        let units = &mut io.watch.units;
        units.in_gc[member] = true;
        units.mark(member);
        let in_gc = |lpn: &u32| {
            let unit = units.of_page(&io.layout, &io.members, Lpn(*lpn)).unwrap();
            units.collecting.contains(unit)
        };
        (0..12).filter(in_gc).collect()
    }

    #[test]
    fn a_chip_in_gc_is_the_unit_of_that_chip() {
        let set = [
            ("array.members", "harmonia*3"),
            ("array.member_in_gc", "chip"),
            ("member.geometry.chips", "4"),
        ];
        let text = builtin_array("harmonia-array").unwrap();
        let spec = ArraySpec::with_overrides(text, "harmonia-array", &set).unwrap();
        let layout = Layout::new(spec.level, spec.rotation, 3, spec.chunk_pages);
        let mut units = super::Units::new(&spec, &layout);
        let mut chips = ChipSet::none(4);
        for chip in [1, 3] {
            chips.set(ChipId(chip), true);
        }
        units.note(2, &chips);
        let collecting = |units: &super::Units| -> Vec<u16> {
            let all = 0..12;
            all.filter(|&unit| units.collecting.contains(ChipId(unit)))
                .collect()
        };
        assert_eq!(collecting(&units), [9, 11]);
        units.note(1, &chips);
        units.note(2, &ChipSet::none(4));
        assert_eq!(collecting(&units), [5, 7]);
    }

    /// A left-symmetric RAID-5 of four members has these rows, with P for parity: 0 1 2 P, 4 5 P 3, 8 P 6 7, P 9 10
    /// 11.
    #[test]
    fn a_stripe_is_kept_for_its_parity_too() {
        assert_eq!(kept("raid5", "data", 3), [3, 7, 11]);
        assert_eq!(kept("raid5", "stripe", 3), [0, 1, 2, 3, 7, 11]);
        assert_eq!(kept("raid10", "data", 1), [0; 0]);
        assert_eq!(kept("raid10", "stripe", 1), [0, 2, 4, 6, 8, 10]);
        assert_eq!(kept("raid0", "stripe", 1), [1, 5, 9]);
    }
}
