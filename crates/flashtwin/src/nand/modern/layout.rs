//! The layout of the pages of a block, and the times to read and program them.
//!
//! A block is striped over the planes that work together. A *row* is one flash page of each of these planes. A flash
//! page holds one or several logical pages. The *unit* is the number of logical pages in a row: page `i` of a block
//! is in row `i / unit`, and there in plane `i % unit / pages of a flash page`. Row `r` is of page type `r mod
//! types`, where type 0 is the lowest. (In real parts, the types are shifted against each other, so that the pages of
//! a word line are not written in succession. The shares of the types are the same.)

use crate::divide::Divider;
use crate::spec::{DeviceSpec, ModernNand};
use crate::units::{Ppn, Time};

/// Largest number of planes that work together; the limit of `nand.multi_plane`.
const PLANES_MAX: usize = 16;
/// Means "no flash page".
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Number of logical pages in a row. One program writes a row.
    pub unit: u32,
    flash_page: u32,
    independent: bool,
    by_pages_per_block: Divider,
    /// Time for each page type; a single entry if all types have equal times.
    read: Vec<Time>,
    program: Vec<Time>,
}

impl Layout {
    pub fn new(spec: &DeviceSpec, params: &ModernNand) -> Layout {
        Layout {
            unit: spec.pages_per_program(),
            flash_page: spec.flash_page_pages(),
            independent: params.independent_reads,
            by_pages_per_block: Divider::new(spec.geometry.pages_per_block),
            read: spec.timing.read_by_type.clone(),
            program: spec.timing.program_by_type.clone(),
        }
    }

    /// Returns the number of pages from page `page` of a block to the end of its row.
    #[inline(always)]
    pub fn left_in_row(&self, page: u32) -> u32 {
        match self.unit {
            1 => 1,
            unit => unit - page % unit,
        }
    }

    /// Returns the time to read a page and program it elsewhere; `None` if this time depends on the page.
    pub fn move_one(&self) -> Option<Time> {
        match (self.unit, &self.read[..], &self.program[..]) {
            (1, &[read], &[program]) => Some(read + program),
            _ => None,
        }
    }

    /// Returns the time to program the row of page `page` of a block.
    #[inline(always)]
    pub fn program(&self, page: u32) -> Time {
        self.of_type(&self.program, page)
    }

    /// Returns the time to read a flash page once.
    #[inline(always)]
    pub fn read(&self, ppn: Ppn) -> Time {
        match self.read[..] {
            [one] => one,
            _ => self.of_type(&self.read, self.by_pages_per_block.div_rem(ppn.0).1),
        }
    }

    /// Returns the plane of a page among the planes that work together; `None` if planes work singly.
    pub fn plane(&self, ppn: Ppn) -> Option<u32> {
        let together = self.unit > self.flash_page;
        together.then(|| ppn.0 % self.unit / self.flash_page)
    }

    #[inline(always)]
    fn of_type(&self, times: &[Time], page: u32) -> Time {
        match times {
            [one] => *one,
            _ => times[(page / self.unit) as usize % times.len()],
        }
    }

    /// Returns an empty record of reads. One record is for one read command, or for the moves that share one program.
    pub fn sensing(&self) -> Sensing {
        Sensing {
            last: [NONE; PLANES_MAX],
            time: [Time::ZERO; PLANES_MAX],
        }
    }

    /// Returns the plane that reads a page, and a number for the data that one read of this plane returns. If planes
    /// read independently, the number is that of a flash page. Otherwise the number is that of a row, and the plane
    /// is 0.
    fn sensed(&self, ppn: Ppn) -> (usize, u32) {
        match self.independent {
            true => {
                let plane = ppn.0 % self.unit / self.flash_page;
                (plane as usize, ppn.0 / self.flash_page)
            }
            false => (0, ppn.0 / self.unit),
        }
    }
}

/// For each plane, its last read and its total read time. A plane executes one read after the other.
pub(super) struct Sensing {
    last: [u32; PLANES_MAX],
    time: [Time; PLANES_MAX],
}

impl Sensing {
    /// Whether the last read of the page's plane has already returned this page, so that the page takes no further
    /// read time.
    pub fn has(&self, layout: &Layout, ppn: Ppn) -> bool {
        let (plane, what) = layout.sensed(ppn);
        self.last[plane] == what
    }

    /// Whether the page can be read without a second read of its plane: the plane has not read yet, or its last read
    /// has returned this page.
    pub fn may_join(&self, layout: &Layout, ppn: Ppn) -> bool {
        let (plane, what) = layout.sensed(ppn);
        self.last[plane] == what || self.last[plane] == NONE
    }

    pub fn add(&mut self, layout: &Layout, ppn: Ppn, time: Time) {
        let (plane, what) = layout.sensed(ppn);
        self.last[plane] = what;
        self.time[plane] += time;
    }

    /// Returns the time until all planes have completed their reads.
    pub fn total(&self) -> Time {
        self.time.iter().copied().max().unwrap_or(Time::ZERO)
    }
}
