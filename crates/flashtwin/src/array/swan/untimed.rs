//! Fills a SWAN volume and its members in no simulated time. The volume determines the operations of the members by its
//! usual rules. The members execute these operations immediately.

use super::volume::Volume;
use crate::array::layout::Spot;
use crate::array::member::Member;
use crate::rng::Rng;
use crate::units::{narrow, Lpn};
use crate::watch::{each_page, Watch};

/// Number of random writes, per exported page, that bring a volume into steady state. After them, only a fraction e^-4
/// of the pages still has its contents of the initial sequential fill.
const WEAR_IN: u64 = 4;
/// Number of portions into which [`wear_in`] divides its writes. The wear of the members is reset after each portion.
const PORTIONS: u64 = 16 * WEAR_IN;

/// Writes every exported page of an empty volume once, in ascending order. Returns false if `watch` stopped the fill.
pub(crate) fn fill(volume: &mut Volume, members: &mut [Member], watch: &dyn Watch) -> bool {
    members.iter_mut().for_each(|m| m.drive.ssd.empty());
    each_page(watch, u64::from(volume.shape.exported), |lpn| {
        // If a member wears out, the fill continues with the other members.
        write(volume, members, Lpn(narrow(lpn)));
        true
    })
}

/// Returns the number of pages that [`wear_in`] writes.
pub(crate) fn wear_in_pages(volume: &Volume) -> u64 {
    PORTIONS * portion(volume)
}

/// Returns the number of pages in one of the [`PORTIONS`] of [`wear_in`].
fn portion(volume: &Volume) -> u64 {
    (u64::from(volume.shape.exported) * WEAR_IN).div_ceil(PORTIONS)
}

/// Writes random pages of a filled volume until the volume is in steady state. Returns false if `watch` stopped the
/// writing.
pub(crate) fn wear_in(
    volume: &mut Volume,
    members: &mut [Member],
    rng: &mut Rng,
    watch: &dyn Watch,
) -> bool {
    for _ in 0..PORTIONS {
        let pages = portion(volume);
        write_random(volume, members, rng, pages);
        // The writes that lead to steady state must not wear the members.
        members.iter_mut().for_each(|m| m.drive.ssd.reset_wear());
        if !watch.done(pages) {
            return false;
        }
    }
    true
}

/// Writes random pages of a volume; returns false if a member wore out.
pub(crate) fn write_random(
    volume: &mut Volume,
    members: &mut [Member],
    rng: &mut Rng,
    pages: u64,
) -> bool {
    let exported = u64::from(volume.shape.exported);
    (0..pages).all(|_| write(volume, members, Lpn(narrow(rng.below(exported)))))
}

/// Writes a page of a volume, and collects segments as long as the volume's rules require it. Returns false if a member
/// wore out.
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

/// Writes the page at a place to its member. If this page completes a page stripe, writes the parity, too.
fn program(volume: &mut Volume, members: &mut [Member], place: u32) -> bool {
    volume.landed(place);
    let mut write = |spot: Spot| members[spot.member].drive.ssd.write_untimed(spot.lpn);
    let data = write(volume.spot(place));
    volume.parity_after(place).is_none_or(write) & data
}

/// Collects a segment in each group that must collect. Returns false if no group must collect, or if a member wore
/// out.
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
                    member.drive.ssd.trim_untimed(Lpn(page));
                }
            }
            volume.trimmed(segment);
            some = true;
        }
    }
    some
}
