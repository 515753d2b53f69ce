//! Saved state of a device that writes by units: its tables, its counts, and the states of its scheme and scope.

use std::io::{self, Read, Write};

use super::device::Placed;
use super::scheme::Scheme;
use crate::ftl::{read_u32, read_u64, write_u32, write_u64, StateError};

/// Largest number of words in a list of a saved state.
const WORDS_MAX: u64 = 1 << 25;
/// Number of words that are read at a time. Because of this limit, a short file cannot cause the allocation of a long
/// list.
const PORTION: u64 = 1 << 16;
/// Value for "none" in a saved state.
const NOTHING: u64 = u64::MAX;

impl Placed {
    /// Whether nothing was ever written.
    pub(crate) fn is_new(&self) -> bool {
        self.classes.clock() == 0 && self.units.is_new()
    }

    /// Writes the whole state. No collection may be running.
    pub(crate) fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.units.save(out)?;
        write_words(out, &self.classes.words())?;
        write_words(out, &self.counters())?;
        write_words(out, &self.events.words())?;
        write_words(out, &self.scheme.words())?;
        write_words(out, &self.scope.words())?;
        write_u32(out, &self.pages.written_at)?;
        out.write_all(&self.pages.moves)?;
        write_u64(out, &self.pages.next)
    }

    /// Replaces the state by one that a device with the same setup saved. After an error, the device must not be used
    /// any more.
    ///
    /// # Errors
    /// Fails if reading fails, or if the state is inconsistent.
    pub(crate) fn load(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        self.units.load(input)?;
        let of_classes = read_words(input)?;
        let counters = read_words(input)?;
        let events = read_words(input)?;
        let (of_scheme, of_scope) = (read_words(input)?, read_words(input)?);
        for (fits, what) in [
            (self.classes.set_words(&of_classes), "counts of classes"),
            (self.set_counters(&counters), "counts of handles"),
            (self.events.set_words(&events), "events"),
            (self.scheme.set_words(&of_scheme), "state of the scheme"),
            (self.scope.set_words(&of_scope), "state of the scope"),
        ] {
            if !fits {
                let message = format!("its {what} are those of another placement");
                return Err(StateError::Inconsistent(message));
            }
        }
        read_u32(input, &mut self.pages.written_at)?;
        input.read_exact(&mut self.pages.moves)?;
        read_u64(input, &mut self.pages.next)?;
        if self.units.latest() > self.classes.clock() {
            let message = "a unit was opened after the last write".into();
            return Err(StateError::Inconsistent(message));
        }
        self.check().map_err(StateError::Inconsistent)
    }

    fn counters(&self) -> Vec<u64> {
        let roams = self.roams.iter();
        let roams = roams.map(|group| group.map_or(NOTHING, u64::from));
        [self.redirected, self.fallbacks]
            .into_iter()
            .chain(self.accepted.iter().copied())
            .chain(roams)
            .collect()
    }

    fn set_counters(&mut self, words: &[u64]) -> bool {
        let handles = self.accepted.len();
        if words.len() != 2 + handles + self.roams.len() {
            return false;
        }
        (self.redirected, self.fallbacks) = (words[0], words[1]);
        self.accepted.copy_from_slice(&words[2..2 + handles]);
        let groups = u64::from(self.setup().groups);
        for (roam, &word) in self.roams.iter_mut().zip(&words[2 + handles..]) {
            *roam = match word {
                NOTHING => None,
                group if group < groups => Some(group as u32),
                _ => return false,
            };
        }
        true
    }
}

fn write_words(out: &mut dyn Write, words: &[u64]) -> io::Result<()> {
    write_u64(out, &[words.len() as u64])?;
    write_u64(out, words)
}

fn read_words(input: &mut dyn Read) -> Result<Vec<u64>, StateError> {
    let mut length = [0];
    read_u64(input, &mut length)?;
    let mut left = length[0];
    if left > WORDS_MAX {
        let message = format!("a list of {left} words; at most {WORDS_MAX}");
        return Err(StateError::Inconsistent(message));
    }
    let mut words = Vec::new();
    while left > 0 {
        let mut portion = vec![0; left.min(PORTION) as usize];
        read_u64(input, &mut portion)?;
        left -= portion.len() as u64;
        words.append(&mut portion);
    }
    Ok(words)
}
