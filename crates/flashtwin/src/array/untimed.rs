//! Initial states of an array, reached in no simulated time.
//!
//! Each member is filled by itself, independently of the others. A SWAN array is an exception: its volume is filled,
//! and determines the members' operations by the same rules as in a timed run.

use super::executor::{Executor, Sequential, Task};
use super::member::Member;
use super::raid::{Array, Raid};
use super::swan::untimed;
use super::swan::volume::Volume;
use super::swan::Swan;
use crate::rng::Rng;
use crate::ssd::Ssd;
use crate::watch::{Unwatched, Watch};

/// Step between the seeds of the members.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The filling of an array: its functions bring the members into an initial state. `executor` runs one task per member.
pub struct Filling<'a> {
    array: &'a mut Array,
    executor: &'a dyn Executor,
    watch: &'a dyn Watch,
}

impl Array {
    /// Returns an object with the filling functions below. `executor` executes them, with one task per member.
    pub fn filling<'a>(&'a mut self, executor: &'a dyn Executor) -> Filling<'a> {
        Filling {
            array: self,
            executor,
            watch: &Unwatched,
        }
    }

    /// Writes `pages` uniformly random pages in total, equally many to each member, in no simulated time. In a SWAN
    /// array, the pages are written to the volume. Because the volume exports fewer pages than its members together,
    /// proportionally fewer are written. Returns false if a member wore out.
    pub fn write_random(&mut self, rng: &mut Rng, pages: u64) -> bool {
        self.filling(&Sequential).write_random(rng, pages)
    }

    /// Opens, on each member, the blocks into which its buffer policy writes some pages separately, such as blocks for
    /// hot pages. Returns false if a member wore out.
    pub fn open_policy_blocks(&mut self, seed: u64) -> bool {
        self.filling(&Sequential).open_policy_blocks(seed)
    }

    /// Writes every exported page of every member, or of the volume, once in ascending order.
    pub fn fill_sequential(&mut self) {
        self.filling(&Sequential).fill_sequential();
    }

    /// Brings every member, independently of the others, to the steady state of random writing. In a SWAN array,
    /// brings the volume and its members to this state.
    pub fn fill_steady(&mut self, seed: u64) {
        self.filling(&Sequential).fill_steady(seed);
    }

    /// Resets the erase counts of all members, because preconditioned drives count as new.
    pub fn reset_wear(&mut self) {
        for member in self.backend.io.members.iter_mut() {
            member.drive.ssd.reset_wear();
        }
    }
}

impl<'a> Filling<'a> {
    /// Reports the progress of [`Filling::fill_sequential`] and [`Filling::fill_steady`] to `watch`, which may stop
    /// them.
    pub fn watched(self, watch: &'a dyn Watch) -> Filling<'a> {
        Filling { watch, ..self }
    }

    /// See [`Array::write_random`].
    pub fn write_random(self, rng: &mut Rng, pages: u64) -> bool {
        let raid = &mut self.array.backend;
        if let Some((volume, members)) = raid.volume_and_members() {
            let of = |member: &Member| u64::from(member.drive.ssd.spec().exported_pages());
            let all: u64 = members.iter().map(of).sum();
            let exported = u64::from(volume.shape.exported);
            let pages = (u128::from(pages) * u128::from(exported) / u128::from(all)) as u64;
            return untimed::write_random(volume, members, rng, pages);
        }
        let members = raid.io.members.len();
        let each = pages.div_ceil(members as u64);
        let seeds: Vec<u64> = (0..members).map(|_| rng.next_u64()).collect();
        self.prepare(|at, ssd| ssd.write_random(&mut Rng::new(seeds[at]), each))
    }

    /// See [`Array::open_policy_blocks`].
    pub fn open_policy_blocks(self, seed: u64) -> bool {
        self.prepare(|at, ssd| ssd.open_policy_blocks(seed_of(seed, at)))
    }

    /// Fills the array as [`Array::fill_sequential`] does. Returns false if `watch` stopped the filling.
    pub fn fill_sequential(self) -> bool {
        if self.array.backend.swan.is_some() {
            return self.array.backend.fill_volume(self.watch);
        }
        let watch = self.watch;
        let pages = |ssd: &Ssd| u64::from(ssd.spec().exported_pages());
        let members = self.array.backend.io.members.iter();
        watch.expect(members.map(|member| pages(&member.drive.ssd)).sum());
        self.prepare(|_, ssd| {
            ssd.fill_sequential();
            watch.done(pages(ssd))
        })
    }

    /// Fills the array as [`Array::fill_steady`] does. Returns false if `watch` stopped the filling.
    pub fn fill_steady(self, seed: u64) -> bool {
        if self.array.backend.swan.is_some() {
            return self.array.backend.wear_in(seed, self.watch);
        }
        let watch = self.watch;
        let members = self.array.backend.io.members.iter();
        watch.expect(members.map(|member| member.drive.ssd.steady_pages()).sum());
        self.prepare(|at, ssd| ssd.fill_steady_announced(seed_of(seed, at), watch))
    }

    /// Applies `work` to each member; returns whether it returned true for all members.
    fn prepare(self, work: impl Fn(usize, &mut Ssd) -> bool + Sync) -> bool {
        let members = &mut self.array.backend.io.members;
        let mut done = vec![false; members.len()];
        let work = &work;
        let each = members.iter_mut().zip(&mut done).enumerate();
        let tasks = each.map(|(at, (member, done))| {
            Box::new(move || *done = work(at, &mut member.drive.ssd)) as Task
        });
        self.executor.run(tasks.collect());
        done.iter().all(|&done| done)
    }
}

/// Returns the random seed of a member, which differs from member to member.
fn seed_of(seed: u64, member: usize) -> u64 {
    seed.wrapping_add((member as u64).wrapping_mul(SEED_STEP))
}

impl Raid {
    fn volume_and_members(&mut self) -> Option<(&mut Volume, &mut [Member])> {
        let swan = self.swan.as_mut()?;
        Some((&mut swan.volume, &mut self.io.members))
    }

    fn fill_volume(&mut self, watch: &dyn Watch) -> bool {
        self.swan = Swan::of(&self.spec);
        let Some((volume, members)) = self.volume_and_members() else {
            return true;
        };
        watch.expect(u64::from(volume.shape.exported));
        untimed::fill(volume, members, watch)
    }

    fn wear_in(&mut self, seed: u64, watch: &dyn Watch) -> bool {
        if let Some((volume, _)) = self.volume_and_members() {
            watch.expect(untimed::wear_in_pages(volume));
        }
        if !self.fill_volume(watch) {
            return false;
        }
        let Some((volume, members)) = self.volume_and_members() else {
            return true;
        };
        untimed::wear_in(volume, members, &mut Rng::new(seed), watch)
    }
}

#[cfg(test)]
mod tests {
    use crate::array::swan::volume::State;
    use crate::device::Work;
    use crate::rng::Rng;
    use crate::spec::builtin_array;
    use crate::units::Lpn;
    use crate::{Array, ArraySpec};

    /// Checks that the members hold exactly what is written in the volume: the written part of each segment, and
    /// nothing else.
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
                State::Full | State::Victim | State::Trimming => volume.shape.data,
            };
            let (members, _) = volume.extent(segment);
            let mut want = written + written / (volume.shape.members - 1);
            for k in 0..volume.shape.data {
                let place = segment * volume.shape.data + k;
                let spots = [Some(volume.spot(place)), volume.parity_after(place)];
                for spot in spots.into_iter().flatten() {
                    assert!(members.contains(&spot.member));
                    let flash = &raid.io.members[spot.member].drive.ssd.backend;
                    let held = flash.unit_of_copy(Lpn(spot.lpn.0)).is_some();
                    assert_eq!(held, k < written, "{segment} {k}");
                    want -= u32::from(held);
                }
            }
            assert_eq!(want, 0);
        }
        for member in raid.io.members.iter() {
            member.drive.ssd.check().unwrap();
        }
    }

    #[test]
    fn members_hold_pages_of_the_volume() {
        for seed in crate::seeds(3) {
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
                assert!(array.write_random(&mut Rng::new(seed), 20_000));
                check(&array);
                array.fill_steady(1);
                check(&array);
            }
        }
    }
}
