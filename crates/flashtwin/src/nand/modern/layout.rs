//! The layout of the pages of a block, and the times to read and program them.
//!
//! A block is striped over the planes that operate together. A *row* is one flash page of each of these planes, and a
//! flash page holds one or several logical pages. The *unit* is the number of logical pages in a row. Page `i` of a
//! block is therefore in row `i / unit`. In this row, page `i` is in plane `(i % unit) / f`, where `f` is the number of
//! logical pages of a flash page. Row `r` has page type `r mod n`, where `n` is the number of types and type 0 is the
//! lowest. (In real parts the types alternate in another order, so that the pages of a word line are not written in
//! succession. The number of rows of each type is the same.)

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

    /// Returns an empty record of reads. A record covers one read command, or the moves that share one program.
    pub fn sensing(&self) -> Sensing {
        Sensing {
            last: [NONE; PLANES_MAX],
            time: [Time::ZERO; PLANES_MAX],
        }
    }

    /// Returns the plane that reads a page, and a number that identifies the data of that read. If planes read
    /// independently, a read returns one flash page, and the number is that of the flash page. If not, a read returns a
    /// row, the number is that of the row, and the plane is always 0.
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

/// The last read and the total read time of each plane. A plane executes one read after the other.
pub(super) struct Sensing {
    last: [u32; PLANES_MAX],
    time: [Time; PLANES_MAX],
}

impl Sensing {
    /// Whether the last read of the page's plane also returned this page, so that the page needs no read of its own.
    pub fn has(&self, layout: &Layout, ppn: Ppn) -> bool {
        let (plane, what) = layout.sensed(ppn);
        self.last[plane] == what
    }

    /// Whether the page can be returned by the same command: its plane has not read yet, or the last read of the plane
    /// also returned this page.
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
