//! The layout of the pages of a block, and the times to read and program them.
//!
//! A block is striped over the planes that operate together. A *row* consists of one flash page of each of these
//! planes. A flash page holds one or several logical pages. The *unit* is the number of logical pages in a row, so page
//! `i` of a block is in row `i / unit`. Its plane is `(i % unit) / f`, where `f` is the number of logical pages of a
//! flash page.
//!
//! Row `r` has page type `r mod n`, where `n` is the number of types and type 0 is the lowest. (In real parts the types
//! alternate in another order, so that the pages of a word line are not written in succession. The number of rows of
//! each type is the same as here.)

use crate::divide::Divider;
use crate::spec::{DeviceSpec, ModernNand};
use crate::units::{Ppn, Time};

/// Largest number of planes that operate together. It limits `nand.multi_plane`.
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
    /// Read time of each page type; a single entry if all types have equal read times. `program` has the program times.
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

    /// Returns the number of pages from page `page` of a block to the end of its row, including `page`.
    #[inline(always)]
    pub fn left_in_row(&self, page: u32) -> u32 {
        match self.unit {
            1 => 1,
            unit => unit - page % unit,
        }
    }

    /// Returns the time to move a page within the die: to read it and to program it. `None` if the time depends on the
    /// page.
    pub fn move_one(&self) -> Option<Time> {
        match (self.unit, &self.read[..], &self.program[..]) {
            (1, &[read], &[program]) => Some(read + program),
            _ => None,
        }
    }

    /// Returns the time to program the row that contains page `page` of a block.
    #[inline(always)]
    pub fn program(&self, page: u32) -> Time {
        self.of_type(&self.program, page)
    }

    /// Returns the time to read a flash page once, without repetitions because of errors.
    #[inline(always)]
    pub fn read(&self, ppn: Ppn) -> Time {
        match self.read[..] {
            [one] => one,
            _ => self.of_type(&self.read, self.by_pages_per_block.div_rem(ppn.0).1),
        }
    }

    /// Returns the plane of a page, counted among the planes that operate together. `None` if each plane operates
    /// alone.
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

    /// Creates an empty record of array reads, for one read command or for the moves that share one program.
    pub fn sensing(&self) -> Sensing {
        Sensing {
            last: [NONE; PLANES_MAX],
            time: [Time::ZERO; PLANES_MAX],
        }
    }

    /// Returns the plane that reads a page, and a number for the data that this read returns. If planes read
    /// independently, a read returns one flash page, and the number is that of the flash page. Otherwise a read returns
    /// a row, the number is that of the row, and the plane is always 0.
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

/// A record of array reads: for each plane, its last read and its total read time. A plane executes one read at a time.
pub(super) struct Sensing {
    last: [u32; PLANES_MAX],
    time: [Time; PLANES_MAX],
}

impl Sensing {
    /// Whether the page needs no further read, because the last read of its plane returned this page too.
    pub fn has(&self, layout: &Layout, ppn: Ppn) -> bool {
        let (plane, what) = layout.sensed(ppn);
        self.last[plane] == what
    }

    /// Whether the same read command can return the page. Its plane must not have read yet, or its last read must have
    /// returned this page too.
    pub fn may_join(&self, layout: &Layout, ppn: Ppn) -> bool {
        let (plane, what) = layout.sensed(ppn);
        self.last[plane] == what || self.last[plane] == NONE
    }

    pub fn add(&mut self, layout: &Layout, ppn: Ppn, time: Time) {
        let (plane, what) = layout.sensed(ppn);
        self.last[plane] = what;
        self.time[plane] += time;
    }

    /// Returns the time after which all planes have completed their reads.
    pub fn total(&self) -> Time {
        self.time.iter().copied().max().unwrap_or(Time::ZERO)
    }
}
