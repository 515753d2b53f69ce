//! The rows of a member under rebuild that are already restored.

/// A set of rows, stored as one bit per row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    bits: Vec<u64>,
    pub there: u32,
    /// Total number of rows.
    pub of: u32,
}

impl Rows {
    pub fn none(of: u32) -> Rows {
        Rows {
            bits: vec![0; of.div_ceil(64) as usize],
            there: 0,
            of,
        }
    }

    #[inline]
    pub fn contain(&self, row: u32) -> bool {
        self.bits[row as usize / 64] >> (row % 64) & 1 == 1
    }

    /// Adds a row, which may already be in the set; returns true if the set now has all rows.
    pub fn add(&mut self, row: u32) -> bool {
        self.there += u32::from(!self.contain(row));
        self.bits[row as usize / 64] |= 1 << (row % 64);
        self.there == self.of
    }

    /// Returns the first row from `from` on that is not in the set; `None` if there is none.
    pub fn lacking_from(&self, from: u32) -> Option<u32> {
        (from..self.of).find(|&row| !self.contain(row))
    }
}
