//! Empirical locality: starts are drawn in proportion to counts, which are read from a list of `LBA,Frequency` lines,
//! made from a real trace. A draw takes constant time, by an alias table with exact integers.

use memchr::memchr;
use std::path::Path;

use super::rng::Rng;
use super::space::Space;
use crate::error::{quote, ErrorKind, WorkloadError};
use crate::trace::cursor::{Bad, Cursor};
use crate::trace::input::Input;

/// Largest number of entries in a list. The table needs 20 bytes per entry.
const ENTRIES_MAX: usize = 1 << 28;

/// The counted starts, ready to draw from.
pub(crate) struct Locality {
    starts: Vec<u64>,
    /// For each column of the table: a draw below the threshold selects the column itself, any other draw its alias.
    thresholds: Vec<u64>,
    aliases: Vec<u32>,
    total: u64,
    beyond: usize,
}

impl Locality {
    /// Reads a list. Omits starts at which even the smallest request does not fit into the space.
    pub fn open(file: &Path, space: Space, smallest: u64) -> Result<Self, WorkloadError> {
        let mut source = Input::File(file.to_path_buf()).open()?;
        let name = source.name().to_string();
        let (mut starts, mut counts) = (Vec::new(), Vec::new());
        let (mut number, mut beyond) = (0u64, 0);
        loop {
            let data = source.data();
            let (line, used) = match memchr(b'\n', data) {
                Some(end) => (&data[..end], end + 1),
                None if source.fill()? => continue,
                None => (source.data(), source.data().len()),
            };
            if used == 0 {
                break;
            }
            number += 1;
            let line = line.trim_ascii();
            if !(line.is_empty() || number == 1 && line[0].is_ascii_alphabetic()) {
                let (start, count) = entry(line).map_err(|bad| {
                    let text = format!(
                        "{name}, line {number}: {}: expected {}; the line as read: {}",
                        bad.column,
                        bad.expected,
                        quote(line)
                    );
                    WorkloadError::new(ErrorKind::Malformed, text)
                })?;
                let start = start / space.alignment * space.alignment;
                if count > 0 && space.fits(start, smallest) && starts.len() < ENTRIES_MAX {
                    starts.push(start);
                    counts.push(count);
                } else if count > 0 {
                    beyond += 1;
                }
            }
            source.consume(used);
        }
        if starts.is_empty() {
            let text = format!(
                "{name}: no start in {number} lines fits a range of {} bytes; lines LBA,Frequency (byte \
                 offset, count) are expected",
                space.bytes
            );
            return Err(WorkloadError::new(ErrorKind::Empty, text));
        }
        let mut locality = Self::from_counts(starts, &counts).ok_or_else(|| {
            let text = format!("{name}: the counts are too large (sum times entries passes 2^63)");
            WorkloadError::new(ErrorKind::TooLarge, text)
        })?;
        locality.beyond = beyond;
        Ok(locality)
    }

    /// Builds the table by Vose's alias method. The counts are multiplied by the number of entries, to avoid fractions.
    /// Returns `None` if a product overflows.
    fn from_counts(starts: Vec<u64>, counts: &[u64]) -> Option<Self> {
        let n = counts.len();
        let total = counts.iter().try_fold(0u64, |sum, &c| sum.checked_add(c))?;
        total.checked_mul(n as u64).filter(|&p| p < 1 << 63)?;
        let mut scaled: Vec<u64> = counts.iter().map(|&c| c * n as u64).collect();
        let mut thresholds = vec![total; n];
        let mut aliases: Vec<u32> = (0..n as u32).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..n as u32).partition(|&i| scaled[i as usize] < total);
        while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
            small.pop();
            let (si, li) = (s as usize, l as usize);
            thresholds[si] = scaled[si];
            aliases[si] = l;
            scaled[li] -= total - scaled[si];
            if scaled[li] < total {
                large.pop();
                small.push(l);
            }
        }
        Some(Locality {
            starts,
            thresholds,
            aliases,
            total,
            beyond: 0,
        })
    }

    /// Draws a start with a probability proportional to its count.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let column = rng.below(self.starts.len() as u64) as usize;
        if rng.below(self.total) < self.thresholds[column] {
            self.starts[column]
        } else {
            self.starts[self.aliases[column] as usize]
        }
    }

    pub fn remark(&self) -> String {
        let beyond = match self.beyond {
            0 => String::new(),
            n => format!(", {n} beyond the range left out"),
        };
        format!(
            " ({} starts, {} accesses counted{beyond})",
            self.starts.len(),
            self.total
        )
    }
}

fn entry(line: &[u8]) -> Result<(u64, u64), Bad> {
    let mut c = Cursor::<b','>::new(line);
    let start = c.uint("LBA", "a byte offset")?;
    let count = c.uint("Frequency", "a count")?;
    c.end("two columns")?;
    Ok((start, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_come_in_proportion_to_their_counts() {
        for seed in flashtwin::seeds(3) {
            let counts = [700u64, 200, 50, 49, 1];
            let starts = vec![0, 4096, 8192, 12288, 16384];
            let locality = Locality::from_counts(starts, &counts).unwrap();
            let mut rng = Rng::new(seed, 0);
            let mut drawn = [0u64; 5];
            let draws = 1_000_000;
            for _ in 0..draws {
                drawn[(locality.draw(&mut rng) / 4096) as usize] += 1;
            }
            for (got, count) in drawn.into_iter().zip(counts) {
                let expected = draws as f64 * count as f64 / 1000.0;
                assert!(
                    (got as f64 - expected).abs() < 5.0 * expected.sqrt(),
                    "{drawn:?}"
                );
            }
        }
    }

    #[test]
    fn counts_too_large_to_scale_are_refused() {
        assert!(Locality::from_counts(vec![0, 1], &[u64::MAX, 1]).is_none());
        assert!(Locality::from_counts(vec![0, 1], &[1 << 62, 1 << 61]).is_none());
    }
}
