//! Saves and loads an array. The saved state has three parts: the set of present members; the state of each present
//! member, preceded by the length of this state; and, for a SWAN array, the volume.

use std::io::{self, Read, Write};

use super::member::{Member, Members, State};
use super::raid::Array;
use super::swan::volume::Volume;
use super::swan::Swan;
use crate::device::Work;
use crate::ftl::{StateError, StateLength};
use crate::spec::ArraySpec;

impl Array {
    fn assert_idle(&self) {
        assert!(
            self.next_event().is_none() && self.outstanding() == 0,
            "an array is saved and loaded only while idle, and not while a member is rebuilt"
        );
    }

    /// Writes the state of the array: which members have failed, and the states of all others. The array must be idle,
    /// and no member may be under rebuild. The array's buffer must be empty, or its data must have been written back.
    /// For an array that has lost data, only the set of members is written, and [`Array::load_state`] rejects this
    /// state.
    ///
    /// # Errors
    /// Fails if `out` does.
    pub fn save_state(&self, out: &mut dyn Write) -> io::Result<()> {
        self.assert_idle();
        for member in self.backend.io.members.iter() {
            out.write_all(&[u8::from(member.state == State::There)])?;
        }
        // If the array has lost data, its members stopped with operations in flight. No array could continue from their
        // states, so these are not saved.
        if self.backend.io.members.lost {
            return Ok(());
        }
        for member in self.backend.io.members.iter() {
            if member.state == State::There {
                let mut length = StateLength::default();
                member.drive.ssd.save_state(&mut length)?;
                out.write_all(&length.bytes.to_le_bytes())?;
                member.drive.ssd.save_state(out)?;
            }
        }
        match &self.backend.swan {
            Some(swan) => swan.volume.save(out),
            None => Ok(()),
        }
    }

    /// Reads a state that [`Array::save_state`] wrote for the same specification. After an error the array is
    /// unchanged.
    ///
    /// # Errors
    /// Fails if reading `input` fails, or if the state does not fit this array.
    pub fn load_state(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        self.assert_idle();
        let now = self.now();
        let raid = &mut self.backend;
        let mut there = vec![0; raid.io.members.len()];
        input.read_exact(&mut there)?;
        if let Some(other) = there.iter().find(|&&byte| byte > 1) {
            let message = format!("a member is marked {other}, not 0 or 1");
            return Err(StateError::Inconsistent(message));
        }
        let missing = |member: usize| there[member] == 0;
        if let Some(member) = (0..there.len()).find(|&m| missing(m) && raid.needs(m, missing)) {
            let message = format!("member {member} is missing, and data with it");
            return Err(StateError::Inconsistent(message));
        }
        // Members that were never used are overwritten in place. The tables of a second set of members would nearly
        // double the memory that a run needs.
        let in_place = raid.io.members.iter().all(Member::is_new);
        let mut members = match in_place {
            true => raid.io.members.take(),
            false => Members::fresh(&raid.spec),
        };
        match read_members(&raid.spec, &mut members, &there, input) {
            Ok(volume) => {
                members.iter_mut().for_each(|m| m.drive.ssd.advance(now));
                raid.swan = volume.map(Swan::with);
                raid.io.members.replace(members);
                raid.io.choose_features();
                raid.io.note_gc();
                Ok(())
            }
            Err(e) => {
                if in_place {
                    let mut members = Members::fresh(&raid.spec);
                    members.iter_mut().for_each(|m| m.drive.ssd.advance(now));
                    raid.io.members.replace(members);
                }
                Err(e)
            }
        }
    }
}

/// Reads the saved states of the present members into the new members `members`. `there` has a number for each member:
/// 0 if the member is missing, otherwise 1. Returns the volume if the array is a SWAN array.
fn read_members(
    spec: &ArraySpec,
    members: &mut [Member],
    there: &[u8],
    input: &mut dyn Read,
) -> Result<Option<Volume>, StateError> {
    for (at, member) in members.iter_mut().enumerate() {
        if there[at] == 0 {
            member.state = State::Failed;
            continue;
        }
        let mut length = [0; 8];
        input.read_exact(&mut length)?;
        let mut state = (&mut *input).take(u64::from_le_bytes(length));
        member.drive.ssd.load_state(&mut state)?;
        if member.drive.ssd.has_dead_die() {
            let message = format!("member {at} has a dead die, which members cannot have");
            return Err(StateError::Inconsistent(message));
        }
        if state.limit() > 0 {
            let message = format!("member {at} has more state than it should");
            return Err(StateError::Inconsistent(message));
        }
    }
    Volume::load(spec, input, |spot| {
        let flash = &members[spot.member].drive.ssd.backend;
        flash.unit_of_copy(spot.lpn).is_some()
    })
}

#[cfg(test)]
mod tests {
    use crate::spec::builtin_array;
    use crate::{Array, ArraySpec};

    /// No command makes a die of an array's member fail. A state that is read from a file can nevertheless have a dead
    /// die; it is refused.
    #[test]
    fn a_member_with_a_dead_die_is_refused() {
        let set = [
            ("array.level", "raid0"),
            ("array.members", "nvme-tlc*2"),
            ("member.geometry.chips", "4"),
            ("member.geometry.channels", "2"),
            ("member.geometry.blocks_per_plane", "64"),
            ("member.geometry.pages_per_block", "16"),
            ("member.buffer.capacity", "64 KiB"),
        ];
        let text = builtin_array("harmonia-array").expect("it is built in");
        let spec = ArraySpec::with_overrides(text, "test", &set).expect("a sound array");
        let mut array = Array::new(&spec);
        array.fill_sequential();
        let save = |array: &Array| {
            let mut state = Vec::new();
            array.save_state(&mut state).expect("a vector takes it");
            state
        };
        let whole = save(&array);
        let ssd = &mut array.backend.io.members[1].drive.ssd;
        ssd.kill_die(2).expect("it has others");
        let dead = save(&array);
        let mut other = Array::new(&spec);
        let error = other.load_state(&mut &dead[..]).expect_err("a dead die");
        assert!(
            error.to_string().contains("member 1 has a dead die"),
            "{error}"
        );
        other.load_state(&mut &whole[..]).expect("no die is dead");
    }
}
