//! Saved form of a translation layer. A device's snapshot has one per chip.
//!
//! The state has the contents of each page and the use of each block (free, data, log). The maps are rebuilt from
//! these. All numbers are 32-bit and little-endian. A list has either a length that the setup determines, or a stored
//! length that the setup limits. A state is validated completely before it is used: each block has one use, each
//! logical page is on flash at most once, and logs obey their rules.

use std::io::{self, Read, Write};

use super::store::Store;
use super::{dispatch, each, layers, ChipFtl, Ftl, Setup};
use crate::ftl::state::{read_u32, write_u32};
use crate::ftl::StateError;

impl Ftl {
    /// Writes the whole state.
    pub(crate) fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        each!(self, ftl => ftl.save(out))
    }

    /// Replaces the state of this layer by a saved one. `setup` is the setup of this layer, and must be that of the
    /// saved one.
    pub(crate) fn load(&mut self, setup: &Setup, input: &mut dyn Read) -> Result<(), StateError> {
        let mut new = match Ftl::new(setup) {
            Ok(new) => new,
            Err(e) => return wrong(&e.to_string()),
        };
        each!(&mut new, ftl => ftl.load(input)?);
        new.check().map_err(StateError::Inconsistent)?;
        *self = new;
        Ok(())
    }
}

pub(super) fn wrong<T>(what: &str) -> Result<T, StateError> {
    Err(StateError::Inconsistent(what.to_owned()))
}

/// For each block, whether it has an owner.
pub(super) struct Roles(Vec<bool>);

impl Roles {
    /// Creates the table of owners, that is, of the uses of blocks. At first only the free blocks of `store` have an
    /// owner: the list of free blocks. Fails if a free block is not erased.
    pub fn of(store: &Store) -> Result<Roles, StateError> {
        let mut roles = Roles(vec![false; store.blocks() as usize]);
        for block in store.free() {
            roles.take(block)?;
            if !store.is_written_to(block, 0) {
                return wrong("a free block is not erased");
            }
        }
        Ok(roles)
    }

    /// Records that a block now has an owner (a use, such as data block). Fails if the block already has one.
    pub fn take(&mut self, block: u32) -> Result<(), StateError> {
        match self.0.get_mut(block as usize) {
            Some(taken @ false) => {
                *taken = true;
                Ok(())
            }
            _ => wrong("a block does not exist, or is used for two things"),
        }
    }

    /// Returns the blocks without an owner.
    pub fn left(self) -> impl Iterator<Item = u32> {
        let blocks = (0u32..).zip(self.0);
        blocks.filter_map(|(block, taken)| (!taken).then_some(block))
    }
}

/// Writes a list with its length.
pub(super) fn write_list(out: &mut dyn Write, list: impl Iterator<Item = u32>) -> io::Result<()> {
    let list: Vec<u32> = list.collect();
    write_u32(out, &[list.len() as u32])?;
    write_u32(out, &list)
}

/// Reads a list of at most `most` numbers.
pub(super) fn read_list(input: &mut dyn Read, most: u32) -> Result<Vec<u32>, StateError> {
    let [length] = read_numbers(input)?;
    if length > most {
        return wrong("a list is longer than it can be");
    }
    let mut list = vec![0; length as usize];
    read_u32(input, &mut list)?;
    Ok(list)
}

pub(super) fn read_numbers<const N: usize>(input: &mut dyn Read) -> io::Result<[u32; N]> {
    let mut numbers = [0; N];
    read_u32(input, &mut numbers)?;
    Ok(numbers)
}

/// Writes bits, 32 per number, lowest bit first.
pub(super) fn write_bits(out: &mut dyn Write, bits: &[bool]) -> io::Result<()> {
    let number = |bits: &[bool]| {
        let ones = (0..).zip(bits).map(|(i, &bit)| u32::from(bit) << i);
        ones.fold(0, |number, one| number | one)
    };
    write_u32(out, &bits.chunks(32).map(number).collect::<Vec<_>>())
}

/// Reads a list of bits that [`write_bits`] wrote, until `bits` is full.
pub(super) fn read_bits(input: &mut dyn Read, bits: &mut [bool]) -> io::Result<()> {
    let mut numbers = vec![0; bits.len().div_ceil(32)];
    read_u32(input, &mut numbers)?;
    for (bits, number) in bits.chunks_mut(32).zip(numbers) {
        for (i, bit) in bits.iter_mut().enumerate() {
            *bit = number >> i & 1 == 1;
        }
    }
    Ok(())
}
