//! Initial states of an array, reached without time passing.
//!
//! Members know nothing of each other: each is filled by itself. Where a volume decides what they are
//! asked, its own rules decide it here too, and what they ask is done at once.

use super::executor::{Executor, Sequential, Task};
use super::layout::Spot;
use super::member::Member;
use super::raid::Raid;
use super::swan::Swan;
use super::volume::Volume;
use super::Array;
use crate::rng::Rng;
use crate::ssd::Ssd;
use crate::units::Lpn;

/// A different seed for every member.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Times its exported pages that a volume is written: what is left of its sequential start is e^-4.
const WEAR_IN: u64 = 4;

/// An array whose members `executor` brings into their initial states.
pub struct Filling<'a> {
    array: &'a mut Array,
    executor: &'a dyn Executor,
}

impl Array {
    /// The initial states below, reached with tasks of `executor`, one for each member.
    pub fn filling<'a>(&'a mut self, executor: &'a dyn Executor) -> Filling<'a> {
        Filling {
            array: self,
            executor,
        }
    }

    /// Writes uniformly random pages of the members without time passing, as many in all; false if one
    /// wore out. Of a volume random pages are written, as many as of the members would be for its size.
    pub fn write_random(&mut self, rng: &mut Rng, pages: u64) -> bool {
        self.filling(&Sequential).write_random(rng, pages)
    }

    /// Opens the blocks that buffer policies of members have for pages of their choice; false if a member
    /// wore out.
    pub fn open_policy_blocks(&mut self, seed: u64) -> bool {
        self.filling(&Sequential).open_policy_blocks(seed)
    }

    /// Every exported page of every member, or of the volume, written once in ascending order.
    pub fn fill_sequential(&mut self) {
        self.filling(&Sequential).fill_sequential();
    }

    /// Places every member in the state that random writing converges to, each in its own; or the
    /// volume, and its members with it.
    pub fn fill_steady(&mut self, seed: u64) {
        self.filling(&Sequential).fill_steady(seed);
    }

    /// Forgets wear: preconditioned drives count as new.
    pub fn reset_wear(&mut self) {
        for member in &mut self.backend.members {
            member.ssd.reset_wear();
        }
    }
}

impl Filling<'_> {
    /// See [`Array::write_random`].
    pub fn write_random(self, rng: &mut Rng, pages: u64) -> bool {
        let raid = &mut self.array.backend;
        if let Some((volume, members)) = raid.volume_and_members() {
            let of = |member: &Member| u64::from(member.ssd.spec().exported_pages());
            let all: u64 = members.iter().map(of).sum();
            let exported = u64::from(volume.shape.exported);
            let pages = (u128::from(pages) * u128::from(exported) / u128::from(all)) as u64;
            return write_random_of(volume, members, rng, pages);
        }
        let members = raid.members.len();
        let each = pages.div_ceil(members as u64);
        let seeds: Vec<u64> = (0..members).map(|_| rng.next_u64()).collect();
        self.prepare(|at, ssd| ssd.write_random(&mut Rng::new(seeds[at]), each))
    }

    /// See [`Array::open_policy_blocks`].
    pub fn open_policy_blocks(self, seed: u64) -> bool {
        self.prepare(|at, ssd| ssd.open_policy_blocks(seed_of(seed, at)))
    }

    /// See [`Array::fill_sequential`].
    pub fn fill_sequential(self) {
        if self.array.backend.swan.is_some() {
            return self.array.backend.fill_volume();
        }
        self.prepare(|_, ssd| {
            ssd.fill_sequential();
            true
        });
    }

    /// See [`Array::fill_steady`].
    pub fn fill_steady(self, seed: u64) {
        if self.array.backend.swan.is_some() {
            return self.array.backend.wear_in(seed);
        }
        self.prepare(|at, ssd| {
            ssd.fill_steady(seed_of(seed, at));
            true
        });
    }

    /// Does this to each member; whether all of them could.
    fn prepare(self, work: impl Fn(usize, &mut Ssd) -> bool + Sync) -> bool {
        let members = &mut self.array.backend.members;
        let mut done = vec![false; members.len()];
        let work = &work;
        let each = members.iter_mut().zip(&mut done).enumerate();
        let tasks = each.map(|(at, (member, done))| {
            Box::new(move || *done = work(at, &mut member.ssd)) as Task
        });
        self.executor.run(tasks.collect());
        done.iter().all(|&done| done)
    }
}

/// The seed of a member.
fn seed_of(seed: u64, member: usize) -> u64 {
    seed.wrapping_add((member as u64).wrapping_mul(SEED_STEP))
}

impl Raid {
    fn volume_and_members(&mut self) -> Option<(&mut Volume, &mut [Member])> {
        let swan = self.swan.as_mut()?;
        Some((&mut swan.volume, &mut self.members))
    }

    fn fill_volume(&mut self) {
        self.swan = Swan::of(&self.spec);
        if let Some((volume, members)) = self.volume_and_members() {
            members.iter_mut().for_each(|member| member.ssd.empty());
            for lpn in 0..volume.shape.exported {
                write(volume, members, Lpn(lpn));
            }
        }
    }

    fn wear_in(&mut self, seed: u64) {
        let mut rng = Rng::new(seed);
        self.fill_volume();
        let Some((volume, members)) = self.volume_and_members() else {
            return;
        };
        let pages = u64::from(volume.shape.exported) * WEAR_IN;
        let portion = pages.div_ceil(16 * WEAR_IN);
        for _ in 0..16 * WEAR_IN {
            write_random_of(volume, members, &mut rng, portion);
            // It is the state that is wanted, not what it costs to get there.
            members
                .iter_mut()
                .for_each(|member| member.ssd.reset_wear());
        }
    }
}

/// Writes random pages of a volume; false if a member wore out.
fn write_random_of(volume: &mut Volume, members: &mut [Member], rng: &mut Rng, pages: u64) -> bool {
    let exported = u64::from(volume.shape.exported);
    (0..pages).all(|_| write(volume, members, Lpn(rng.below(exported) as u32)))
}

/// Writes a page of a volume, and collects what is to be collected then; false if a member wore out.
fn write(volume: &mut Volume, members: &mut [Member], lpn: Lpn) -> bool {
    let mut place = volume.write(lpn);
    while place.is_none() {
        if !collect(volume, members, true) {
            return false;
        }
        place = volume.write(lpn);
    }
    let written = place.is_some_and(|place| program(volume, members, place));
    while collect(volume, members, false) {}
    written
}

/// Has the member of a place written, and that of its parity if the stripe is complete.
fn program(volume: &mut Volume, members: &mut [Member], place: u32) -> bool {
    volume.landed(place);
    let mut write = |spot: Spot| members[spot.member].ssd.write_untimed(spot.lpn);
    let data = write(volume.spot(place));
    volume.parity_after(place).is_none_or(write) & data
}

/// Collects a segment in each group that does; false if none does, or if a member wore out.
fn collect(volume: &mut Volume, members: &mut [Member], wait: bool) -> bool {
    let mut some = false;
    for group in 0..volume.shape.groups {
        if !volume.collects(group, wait) {
            continue;
        }
        while let Some(from) = volume.next_to_move(group) {
            let Some(to) = volume.place_for_move(from) else {
                continue;
            };
            if !program(volume, members, to) {
                return false;
            }
            volume.moved(from, to);
        }
        if let Some(segment) = volume.take_emptied(group) {
            let (of_group, first) = volume.extent(segment);
            for member in &mut members[of_group] {
                for page in first..first + volume.shape.pages {
                    member.ssd.trim_untimed(Lpn(page));
                }
            }
            volume.trimmed(segment);
            some = true;
        }
    }
    some
}

#[cfg(test)]
mod tests {
    use crate::array::volume::State;
    use crate::device::Work;
    use crate::rng::Rng;
    use crate::spec::builtin_array;
    use crate::units::Lpn;
    use crate::{Array, ArraySpec};

    /// Members hold what the volume says: all of a written segment, as far as it is, and nothing else.
    fn check(array: &Array) {
        let raid = &array.backend;
        let volume = &raid.swan.as_ref().unwrap().volume;
        let exported = volume.shape.exported as usize;
        assert_eq!(
            volume.map.iter().filter(|&&p| p != u32::MAX).count(),
            exported
        );
        for (segment, s) in (0..).zip(&volume.segments) {
            let group = &volume.groups[volume.group_of(segment) as usize];
            let written = match s.state {
                State::Free => 0,
                State::Open => group.next,
                _ => volume.shape.data,
            };
            let (members, _) = volume.extent(segment);
            let mut want = written + written / (volume.shape.members - 1);
            for k in 0..volume.shape.data {
                let place = segment * volume.shape.data + k;
                let spots = [Some(volume.spot(place)), volume.parity_after(place)];
                for spot in spots.into_iter().flatten() {
                    assert!(members.contains(&spot.member));
                    let flash = &raid.members[spot.member].ssd.backend;
                    let held = flash.unit_of_copy(Lpn(spot.lpn.0)).is_some();
                    assert_eq!(held, k < written, "{segment} {k}");
                    want -= u32::from(held);
                }
            }
            assert_eq!(want, 0);
        }
        for member in &raid.members {
            member.ssd.check().unwrap();
        }
    }

    #[test]
    fn members_hold_what_the_volume_says() {
        for member in ["harmonia", "nvme-tlc"] {
            let set = [
                ("array.level", "swan"),
                ("array.members", &format!("{member}*4")),
                ("array.segment", "256 KiB"),
                ("member.geometry.chips", "2"),
                ("member.geometry.planes_per_chip", "1"),
                ("member.geometry.blocks_per_plane", "64"),
                ("member.geometry.pages_per_block", "16"),
            ];
            let set = match member {
                "harmonia" => set.to_vec(),
                _ => {
                    let more = [
                        ("member.geometry.channels", "1"),
                        ("member.buffer.capacity", "64 KiB"),
                    ];
                    [&set[..], &more].concat()
                }
            };
            let text = builtin_array("harmonia-array").unwrap();
            let spec = ArraySpec::with_overrides(text, "x", &set);
            let mut array = Array::new(&spec.unwrap_or_else(|e| panic!("{e}")));
            array.fill_sequential();
            check(&array);
            assert!(array.write_random(&mut Rng::new(4), 20_000));
            check(&array);
            array.fill_steady(1);
            check(&array);
        }
    }
}
