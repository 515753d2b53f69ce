//! The layout of the pages of a block, and the times of reading and programming them.
//!
//! A block is striped over the planes that work together. A row is one flash page of each of these planes, and a
//! flash page holds one or several pages of the map. A unit is the number of pages in a row: page `i` of a block is
//! in row `i / unit`, and there in plane `i % unit / pages of a flash page`. Row `r` is of page type `r mod types`,
//! lowest first. (Real parts shift the types against each other, so that the pages of a word line are not written in
//! succession; the shares of the types are the same.)

use crate::divide::Divider;
use crate::spec::{DeviceSpec, ModernNand};
use crate::units::{Ppn, Time};

/// Largest number of planes that work together; the limit of `nand.multi_plane`.
const PLANES_MAX: usize = 16;
/// No flash page has this number.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Pages that one program takes.
    pub unit: u32,
    flash_page: u32,
    independent: bool,
    by_pages_per_block: Divider,
    /// Times by page type; one if all types are alike.
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

    /// Pages from page `page` of a block to the end of its row.
    #[inline(always)]
    pub fn left_in_row(&self, page: u32) -> u32 {
        match self.unit {
            1 => 1,
            unit => unit - page % unit,
        }
    }

    /// Reading a page and programming it elsewhere, where that takes the same time for every page.
    pub fn move_one(&self) -> Option<Time> {
        match (self.unit, &self.read[..], &self.program[..]) {
            (1, &[read], &[program]) => Some(read + program),
            _ => None,
        }
    }

    /// Programming the row of page `page` of a block.
    #[inline(always)]
    pub fn program(&self, page: u32) -> Time {
        self.of_type(&self.program, page)
    }

    /// Reading a flash page, once.
    #[inline(always)]
    pub fn read(&self, ppn: Ppn) -> Time {
        match self.read[..] {
            [one] => one,
            _ => self.of_type(&self.read, self.by_pages_per_block.div_rem(ppn.0).1),
        }
    }

    /// The plane of a page among those that work together; `None` with single planes.
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

    /// The reads of one command, or of the moves that one program ends.
    pub fn sensing(&self) -> Sensing {
        Sensing {
            last: [NONE; PLANES_MAX],
            time: [Time::ZERO; PLANES_MAX],
        }
    }

    /// Returns the plane that works for a page, and the unit it reads: the whole row, or the flash page of one plane
    /// if planes read independently.
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

/// Last read and read time of each plane, for planes that read one page after the other.
pub(super) struct Sensing {
    last: [u32; PLANES_MAX],
    time: [Time; PLANES_MAX],
}

impl Sensing {
    /// Whether the page is part of the last read, so that it takes no further time.
    pub fn has(&self, layout: &Layout, ppn: Ppn) -> bool {
        let (plane, what) = layout.sensed(ppn);
        self.last[plane] == what
    }

    /// The page can be read without another read on its plane.
    pub fn may_join(&self, layout: &Layout, ppn: Ppn) -> bool {
        let (plane, what) = layout.sensed(ppn);
        self.last[plane] == what || self.last[plane] == NONE
    }

    pub fn add(&mut self, layout: &Layout, ppn: Ppn, time: Time) {
        let (plane, what) = layout.sensed(ppn);
        self.last[plane] = what;
        self.time[plane] += time;
    }

    /// Until all planes are done.
    pub fn total(&self) -> Time {
        self.time.iter().copied().max().unwrap_or(Time::ZERO)
    }
}
