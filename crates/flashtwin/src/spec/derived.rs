//! Quantities computed from the settings of a device.

use super::decimal::percent_of;
use super::{DeviceSpec, Mapping, Moves, Nand, Partial, Placement, Ppm, Separation, SlcCache};
use crate::buffer::{Programs, Setup};
use crate::component::Settings;
use crate::ftl::chip;
use crate::units::{narrow, saturating_u32, Time};

/// Bytes of a sector, the unit of host addresses.
pub const SECTOR_BYTES: u32 = 512;

impl Setup {
    /// Returns the setup of a device's buffer. If the device has no buffer, the setup has a capacity of 0 pages.
    pub fn of(spec: &DeviceSpec) -> Setup {
        let g = &spec.geometry;
        let buffer = spec.buffer.as_ref();
        Setup {
            capacity: buffer.map_or(0, |b| b.capacity_pages),
            chips: g.chips,
            channels: g.channels,
            stride_pages: (spec.ftl.placement == Placement::Static)
                .then_some(spec.ftl.stride_pages),
            pages_per_block: g.pages_per_block,
            page_bytes: g.page_bytes,
            programs: spec.programs(),
            filtered: buffer.is_some_and(|b| b.policy.gcar),
            settings: buffer.map_or_else(Settings::default, |b| b.policy.settings.clone()),
        }
    }
}

impl DeviceSpec {
    /// Returns the number of blocks of a plane that belong to the reserve.
    pub fn reserved_blocks_per_plane(&self) -> u32 {
        let g = &self.geometry;
        saturating_u32(percent_of(g.blocks_per_plane.into(), g.reserve_percent))
    }

    /// Returns the number of blocks of a plane that exported pages fill.
    pub fn usable_blocks_per_plane(&self) -> u32 {
        self.geometry.blocks_per_plane - self.reserved_blocks_per_plane()
    }

    /// Returns the number of pages of a block that hold host data: all pages, or all except the summary page.
    pub fn data_pages_per_block(&self) -> u32 {
        self.geometry.pages_per_block - u32::from(self.ftl.summary_page)
    }

    /// Returns the number of blocks of a chip.
    pub fn blocks_per_chip(&self) -> u32 {
        self.geometry.planes_per_chip * self.geometry.blocks_per_plane
    }

    /// Returns the number of pages of a chip, including those that cannot hold host data.
    pub fn physical_pages_per_chip(&self) -> u32 {
        self.blocks_per_chip() * self.geometry.pages_per_block
    }

    /// Returns the number of pages of the device, including those that cannot hold host data.
    pub fn physical_pages(&self) -> u32 {
        self.geometry.chips * self.physical_pages_per_chip()
    }

    /// Returns the number of bytes of all pages of the device, without spare bytes.
    pub fn raw_bytes(&self) -> u64 {
        u64::from(self.physical_pages()) * u64::from(self.geometry.page_bytes)
    }

    /// Returns the number of pages of one chip that the host can address.
    pub fn pages_per_chip_exported(&self) -> u32 {
        let blocks = self.usable_blocks_per_plane() * self.geometry.planes_per_chip;
        blocks * self.data_pages_per_block()
    }

    /// Returns the number of pages of the device that the host can address.
    pub fn exported_pages(&self) -> u32 {
        self.geometry.chips * self.pages_per_chip_exported()
    }

    /// Returns the number of bytes of the device that the host can address.
    pub fn exported_bytes(&self) -> u64 {
        u64::from(self.exported_pages()) * u64::from(self.geometry.page_bytes)
    }

    /// Returns the size in bytes of the two page tables (logical to physical, and back). An entry takes 4 bytes. These
    /// tables are most of the memory that a large device needs.
    pub fn tables_bytes(&self) -> u64 {
        4 * (u64::from(self.exported_pages()) + u64::from(self.physical_pages()))
    }

    /// Returns the setup of each chip's translation layer; `None` if the device has a page map.
    pub fn chip_setup(&self) -> Option<chip::Setup> {
        match &self.ftl.kind {
            Mapping::Page => None,
            Mapping::Chip(kind) => Some(chip::Setup {
                logical_pages: self.pages_per_chip_exported(),
                blocks: self.blocks_per_chip(),
                pages_per_block: self.geometry.pages_per_block,
                kind: kind.clone(),
            }),
        }
    }

    /// Returns the handling of requests for parts of pages. The setting of the buffer determines it. If there is no
    /// buffer, the setting of the FTL does (D-97).
    pub fn partial(&self) -> Partial {
        match (&self.buffer, self.ftl.partial, &self.nand) {
            (Some(buffer), ..) => buffer.partial,
            (None, Some(partial), _) => partial,
            (None, None, Nand::Msr(_)) => Partial::Round,
            (None, None, Nand::Modern(_)) => Partial::Sectors,
        }
    }

    /// Returns the number of sectors of a page.
    pub fn sectors_per_page(&self) -> u32 {
        self.geometry.page_bytes / SECTOR_BYTES
    }

    /// Returns the low watermark of a plane: a plane collects if at most this number of its blocks is free. Used by the
    /// `msr` back end with copy-back, where a pool (a set of blocks that is collected on its own) is a plane.
    pub fn low_blocks_plane(&self) -> u32 {
        saturating_u32(percent_of(
            self.geometry.blocks_per_plane.into(),
            self.gc.low_percent,
        ))
    }

    /// Returns the low watermark of a chip: a chip collects if at most this number of its blocks is free. Used where a
    /// pool is a chip: always except with copy-back on the `msr` back end.
    pub fn low_blocks_chip(&self) -> u32 {
        saturating_u32(percent_of(
            self.blocks_per_chip().into(),
            self.gc.low_percent,
        ))
    }

    /// Returns the early GC watermark of a chip in blocks. It applies while no host operation waits.
    pub fn idle_blocks_chip(&self) -> u32 {
        let percent = self.gc.idle_percent.unwrap_or(self.gc.low_percent);
        saturating_u32(percent_of(self.blocks_per_chip().into(), percent))
    }

    /// Whether GC moves pages inside the chip (copy-back), without a transfer over the channel.
    pub fn copy_back(&self) -> bool {
        match &self.nand {
            Nand::Msr(msr) => msr.copy_back,
            Nand::Modern(modern) => modern.copy_back,
        }
    }

    /// Returns the number of blocks that a pool (a set of blocks that is collected on its own) has open at the same
    /// time. Two blocks are open if pages are separated by `ftl.separation`, by the buffer policy, or by an SLC write
    /// cache. Otherwise, one block is open.
    pub fn write_streams(&self) -> u32 {
        let one = self.ftl.separation == Separation::None
            && !self.policy_separates()
            && self.slc_cache().is_none();
        match one {
            true => 1,
            false => 2,
        }
    }

    /// Returns the share of parity and metadata, which the device programs in addition to the pages.
    pub fn media_overhead(&self) -> Ppm {
        self.nand
            .modern()
            .map_or(Ppm(0), |modern| modern.media_overhead)
    }

    /// Returns the write cache of blocks in SLC mode, if the device has one.
    pub fn slc_cache(&self) -> Option<&SlcCache> {
        self.nand.modern()?.slc_cache.as_ref()
    }

    /// Returns the largest number of blocks of a chip that may be in SLC mode.
    pub fn slc_blocks_chip(&self) -> u32 {
        let percent = self.slc_cache().map_or(0.0, |cache| cache.percent);
        saturating_u32(percent_of(self.blocks_per_chip().into(), percent))
    }

    /// Returns the number of data pages of the second open block of a pool (see [`DeviceSpec::write_streams`]). If this
    /// block is in SLC mode, the number is a multiple of the pages per program.
    pub fn hot_pages_per_block(&self) -> u32 {
        let data_pages = self.data_pages_per_block();
        match &self.nand {
            Nand::Modern(modern) if modern.slc_cache.is_some() => {
                let rows = data_pages / self.pages_per_program();
                rows / narrow(modern.cell.page_types()) * self.pages_per_program()
            }
            _ => data_pages,
        }
    }

    /// Whether the buffer policy may separate hot pages from cold ones, with or without `ftl.separation`.
    pub fn policy_separates(&self) -> bool {
        self.ftl.separation == Separation::Policy || self.own_policy_separates()
    }

    /// Whether the buffer policy separates hot pages from cold ones by itself, without `ftl.separation`.
    pub(crate) fn own_policy_separates(&self) -> bool {
        let mut policy = self.buffer.iter().map(|b| b.policy.entry());
        policy.any(|entry| entry.separates)
    }

    /// Returns the kind of open block to which GC moves pages. If the buffer policy does not separate pages, this is
    /// the cold open block.
    pub fn moves(&self) -> Moves {
        match self.policy_separates() {
            true => self.gc.moves,
            false => Moves::Cold,
        }
    }

    /// Returns the number of consecutive pages of a block that one program writes. A program writes one flash page in
    /// each of the planes that work together.
    pub fn pages_per_program(&self) -> u32 {
        match &self.nand {
            Nand::Msr(_) => 1,
            Nand::Modern(modern) => self.flash_page_pages() * modern.multi_plane,
        }
    }

    /// Returns the number of logical pages in a flash page. Returns 0 if the quotient is not a whole number; the check
    /// of the device then fails.
    pub fn flash_page_pages(&self) -> u32 {
        let (flash_page, page) = (self.geometry.flash_page_bytes, self.geometry.page_bytes);
        match flash_page.is_multiple_of(page) {
            true => flash_page / page,
            false => 0,
        }
    }

    /// Returns those properties of flash programs that buffer policies use.
    pub fn programs(&self) -> Programs {
        let slowest = self.timing.program_by_type.iter().max();
        let slowest = slowest.copied().unwrap_or(Time::ZERO);
        let pages = self.pages_per_program();
        let modern = self.nand.modern();
        let types = modern.map_or(1, |modern| narrow(modern.cell.page_types()));
        let suspends = modern.is_some_and(|modern| modern.suspend);
        let erase = if suspends {
            Time::ZERO
        } else {
            self.timing.erase
        };
        Programs {
            blocked: slowest + erase,
            pages,
            row_pages: pages.saturating_mul(types),
        }
    }

    /// Returns the time to transfer a page between controller and chip, including spare bytes.
    pub fn page_transfer(&self) -> Time {
        self.summary_transfer() * u64::from(self.sectors_per_page())
    }

    /// Returns the time to transfer a sector between controller and chip. A summary page is one sector.
    pub fn summary_transfer(&self) -> Time {
        let bytes = u64::from(SECTOR_BYTES + self.geometry.spare_bytes_per_sector);
        self.timing.transfer_per_byte * bytes
    }
}
