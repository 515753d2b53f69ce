//! Saved form of the page map, as part of a device's snapshot.
//!
//! The state is a sequence of little-endian arrays. The device's specification determines their lengths, so the file
//! contains no lengths or pointers. A loaded map is validated completely before it is used.
//!
//! A device with two write streams appends its hot frontiers. A device with one stream can load a state of a device
//! with two, and the other way round. If the state has no hot frontiers, no hot block is open after loading. If the
//! device has one stream, the hot blocks of the state are closed and may be collected.
//!
//! A device with an SLC write cache appends the list of blocks in SLC mode. It can load states of devices with an SLC
//! write cache, and of devices with one stream.
//!
//! On some devices, moved pages keep the kind (hot or cold) of their block. Such a device appends the list of hot
//! blocks. If a state lacks this list, only the open hot blocks count as hot.

use std::io::{self, Read, Write};

use super::frontier::{Frontier, Pool};
use super::page::PageMap;

/// Error: a saved state that cannot be used.
#[derive(Debug)]
pub enum StateError {
    /// Reading or writing failed.
    Io(io::Error),
    /// The bytes are not a consistent state of this device. The text describes the first inconsistency.
    Inconsistent(String),
}

impl std::fmt::Display for StateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StateError::Io(e) => write!(f, "{e}"),
            StateError::Inconsistent(what) => write!(f, "not a state of this device: {what}"),
        }
    }
}

impl std::error::Error for StateError {}

impl From<io::Error> for StateError {
    fn from(e: io::Error) -> Self {
        StateError::Io(e)
    }
}

/// A writer that only counts bytes. It measures the length of a state.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateLength {
    /// Bytes written so far.
    pub bytes: u64,
}

impl Write for StateLength {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Number of values that are converted to or from bytes at once.
const CHUNK: usize = 64 * 1024;

/// Largest erase count that a saved state may have for a block. Real flash survives far fewer erases.
const ERASES_MAX: u32 = 1_000_000_000;
/// Largest number of blocks opened by a chip, and of erases of a device, that a saved state may have. At one per
/// millisecond, this number is reached after three weeks.
pub(super) const NUMBER_MAX: u32 = 2_000_000_000;

/// Checks that no count exceeds `max`. `count` and `of` name the count and its owner in the error message.
pub(super) fn check_counts(
    counts: &[u32],
    max: u32,
    (count, of): (&str, &str),
) -> Result<(), StateError> {
    match (0..).zip(counts).find(|(_, &n)| n > max) {
        None => Ok(()),
        Some((at, n)) => Err(StateError::Inconsistent(format!(
            "{of} {at}: {count} = {n}: must be at most {max}"
        ))),
    }
}

/// Checks the erases of blocks.
pub(super) fn check_erases(erases: &[u32]) -> Result<(), StateError> {
    check_counts(erases, ERASES_MAX, ("erases", "block"))
}

macro_rules! array_io {
    ($write:ident, $read:ident, $type:ty) => {
        pub(crate) fn $write(out: &mut dyn Write, array: &[$type]) -> io::Result<()> {
            let mut bytes = Vec::with_capacity(CHUNK * size_of::<$type>());
            for chunk in array.chunks(CHUNK) {
                bytes.clear();
                bytes.extend(chunk.iter().flat_map(|n| n.to_le_bytes()));
                out.write_all(&bytes)?;
            }
            Ok(())
        }
        pub(crate) fn $read(input: &mut dyn Read, array: &mut [$type]) -> io::Result<()> {
            let mut bytes = vec![0u8; CHUNK * size_of::<$type>()];
            for chunk in array.chunks_mut(CHUNK) {
                let bytes = &mut bytes[..size_of_val(chunk)];
                input.read_exact(bytes)?;
                for (n, b) in chunk.iter_mut().zip(bytes.chunks_exact(size_of::<$type>())) {
                    *n = <$type>::from_le_bytes(b.try_into().expect("chunks have the exact size"));
                }
            }
            Ok(())
        }
    };
}
array_io!(write_i16, read_i16, i16);
array_io!(write_u32, read_u32, u32);
array_io!(write_u64, read_u64, u64);

impl PageMap {
    /// Writes the whole state.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        write_u32(out, &self.map)?;
        write_u32(out, &self.reverse)?;
        write_u64(out, &self.rows.all_live())?;
        write_i16(out, &self.tally)?;
        write_u32(out, &self.rows.all_opened())?;
        write_u32(out, &self.rows.all_erases())?;
        write_u64(out, &self.free_bits)?;
        write_u32(out, &self.last_seq)?;
        for p in self.pools.iter() {
            write_u32(
                out,
                &[p.active, p.next_page, p.free, p.active_seq, p.cursor],
            )?;
        }
        write_u32(out, &self.erased_at)?;
        for hot in &self.hot {
            write_u32(out, &[hot.active, hot.next_page])?;
        }
        write_u64(out, &self.slc_bits)?;
        write_u64(out, &self.hot_blocks)
    }

    /// Whether no page was ever written.
    pub fn is_new(&self) -> bool {
        let unused = |pool: &Pool| pool.next_page == 0;
        self.mapped == 0
            && self.pools.iter().all(unused)
            && (0..self.tally.len() as u32).all(|block| self.erases_of(block) == 0)
    }

    /// Replaces the contents of this map by a saved state. The devices of both must have the same specification, but
    /// the number of streams may differ. After an error, the map must not be used any more.
    pub fn load(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        read_u32(input, &mut self.map)?;
        read_u32(input, &mut self.reverse)?;
        let (mut live, mut opened) = (self.rows.all_live(), self.rows.all_opened());
        let mut erases = self.rows.all_erases();
        read_u64(input, &mut live)?;
        read_i16(input, &mut self.tally)?;
        read_u32(input, &mut opened)?;
        read_u32(input, &mut erases)?;
        check_erases(&erases)?;
        check_counts(&opened, NUMBER_MAX, ("sequence number", "block"))?;
        self.rows.set_all(&live, &opened, &erases);
        read_u64(input, &mut self.free_bits)?;
        read_u32(input, &mut self.last_seq)?;
        check_counts(&self.last_seq, NUMBER_MAX, ("sequence number", "chip"))?;
        for pool in self.pools.iter_mut() {
            let mut n = [0; 5];
            read_u32(input, &mut n)?;
            let [active, next_page, free, active_seq, cursor] = n;
            *pool = Pool {
                active,
                next_page,
                free,
                active_seq,
                cursor,
            };
        }
        read_u32(input, &mut self.erased_at)?;
        check_counts(&self.erased_at, NUMBER_MAX, ("last erase", "block"))?;
        self.erase_clock = self.erased_at.iter().copied().max().unwrap_or(0);
        let streams = self.shape.streams;
        self.slc_bits.fill(0);
        self.hot = match read_hot(input, self.pools.len())? {
            None if streams == 1 => Vec::new(),
            None => self.hot_unopened(),
            Some(hot) => {
                self.load_slc(input)?;
                hot
            }
        };
        self.load_hot_blocks(input)?;
        self.slc_used = self.count_slc();
        self.mapped = live.iter().map(|w| w.count_ones() as u64).sum();
        self.recount();
        self.check().map_err(StateError::Inconsistent)?;
        if streams == 1 {
            self.close_hot();
        }
        Ok(())
    }

    /// Reads the list of hot blocks. If the state has no such list, only the open hot blocks count as hot.
    fn load_hot_blocks(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        let mut words = vec![0; self.tally.len().div_ceil(64)];
        let mut bytes = Vec::new();
        let length = size_of_val(&words[..]);
        input.take(length as u64).read_to_end(&mut bytes)?;
        self.hot_blocks.fill(0);
        if bytes.is_empty() {
            for at in 0..self.hot.len() {
                let hot = self.hot[at];
                self.set_hot(hot.active, hot.next_page < self.shape.hot_pages);
            }
            return Ok(());
        }
        if bytes.len() != length {
            let message = "it ends amid the kinds of blocks";
            return Err(StateError::Inconsistent(message.into()));
        }
        read_u64(&mut &bytes[..], &mut words)?;
        if !self.hot_blocks.is_empty() {
            self.hot_blocks = words;
        }
        Ok(())
    }

    /// Reads the list of blocks in SLC mode, and fails if the state has none. Does nothing if this device has no SLC
    /// cache.
    fn load_slc(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        if self.slc_bits.is_empty() {
            return Ok(());
        }
        read_u64(input, &mut self.slc_bits)?;
        let beyond = self.slc_bits.len() * 64 - self.tally.len();
        if self
            .slc_bits
            .last()
            .is_some_and(|last| last.leading_zeros() < beyond as u32)
        {
            let message = "a block beyond the last one is in SLC mode";
            return Err(StateError::Inconsistent(message.into()));
        }
        Ok(())
    }

    /// Seals the open hot blocks. From then on, the map has one stream.
    fn close_hot(&mut self) {
        for hot in std::mem::take(&mut self.hot) {
            if hot.next_page < self.shape.hot_pages {
                self.seal(hot.active);
            }
        }
        self.recount();
    }
}

/// Reads the hot frontiers of `pools` pools; `None` if the state ends before them.
fn read_hot(input: &mut dyn Read, pools: usize) -> Result<Option<Vec<Frontier>>, StateError> {
    let mut bytes = Vec::new();
    let length = pools * 2 * size_of::<u32>();
    input.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() != length {
        return Err(StateError::Inconsistent(
            "it ends amid the hot write frontiers".into(),
        ));
    }
    let number = |b: &[u8]| u32::from_le_bytes(b.try_into().expect("chunks have the exact size"));
    let frontier = |b: &[u8]| Frontier {
        active: number(&b[..4]),
        next_page: number(&b[4..]),
    };
    Ok(Some(bytes.chunks_exact(8).map(frontier).collect()))
}
