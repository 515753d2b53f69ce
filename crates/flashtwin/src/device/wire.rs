//! Transfer times of requests on the host link.

use crate::spec::{self, LinkKind};
use crate::units::Time;

/// Rate of SATA: 6 Gb/s, with 8 bits of data encoded in 10 bits.
const SATA_BYTES_PER_S: u64 = 600_000_000;
/// Largest number of data bytes in a SATA frame. Start, header, checksum and end of the frame add `SATA_FRAMING_BYTES`.
const SATA_FRAME_BYTES: u64 = 8192;
const SATA_FRAMING_BYTES: u64 = 16;
/// Time between two SATA frames. It is fitted, so that the link transfers about 560 MB/s: no SATA drive is sold with a
/// higher rate.
const SATA_TURN: Time = Time::from_ns(900);
/// Time that a request needs for its command, set-up and status frames. It is fitted, so that the link transfers about
/// 98 000 requests of 4 KiB per second, which is the most that SATA drives reach.
const SATA_COMMAND: Time = Time::from_ns(2_400);

/// Number of bytes that a PCIe packet has in addition to its payload: framing, a header of four words, and a checksum.
const PCIE_PACKET_BYTES: u64 = 24;

#[derive(Clone, Copy, Debug)]
pub(super) enum Wire {
    /// The bus of the reference simulator. `per_sector` is the transfer time of a sector; it is zero if there is no
    /// bus.
    Bus {
        per_sector: Time,
    },
    Sata,
    Pcie {
        bits_per_s: u64,
        payload: u64,
    },
}

impl Wire {
    pub fn new(link: &spec::Link) -> Wire {
        match link.kind {
            LinkKind::Reference => Wire::Bus {
                per_sector: link.bus_per_sector,
            },
            LinkKind::Sata => Wire::Sata,
            LinkKind::Pcie => {
                // PCIe encodes 8 bits of data in 10 bits in its first two generations, and 128 bits in 130 from the
                // third on.
                let lane = match link.pcie_generation {
                    1 => 2_000_000_000,
                    2 => 4_000_000_000,
                    later => (8_000_000_000 << (later - 3)) * 128 / 130,
                };
                Wire::Pcie {
                    bits_per_s: lane * u64::from(link.pcie_lanes),
                    payload: link.pcie_payload_bytes.into(),
                }
            }
        }
    }

    /// Whether the transfer of data takes no time.
    #[inline]
    pub fn is_none(self) -> bool {
        matches!(
            self,
            Wire::Bus {
                per_sector: Time::ZERO
            }
        )
    }

    /// Whether this is the bus of the reference simulator.
    #[inline(always)]
    pub fn is_bus(self) -> bool {
        matches!(self, Wire::Bus { .. })
    }

    /// Whether a command without data may arrive while the wire is transferring data.
    #[inline]
    pub fn queues_commands(self) -> bool {
        matches!(self, Wire::Sata)
    }

    /// Whether transfers in the two directions are independent.
    #[inline]
    pub fn is_duplex(self) -> bool {
        matches!(self, Wire::Pcie { .. })
    }

    /// Returns the time for which the data of one request occupy the wire.
    #[inline(always)]
    pub fn time(&self, sectors: u64) -> Time {
        match *self {
            Wire::Bus { per_sector } => per_sector * sectors,
            Wire::Sata => in_frames(sectors),
            Wire::Pcie {
                bits_per_s,
                payload,
            } => in_packets(sectors, bits_per_s, payload),
        }
    }
}

#[inline(never)]
fn in_frames(sectors: u64) -> Time {
    let bytes = sectors * u64::from(spec::SECTOR_BYTES);
    let frames = bytes.div_ceil(SATA_FRAME_BYTES);
    let bits = (bytes + frames * SATA_FRAMING_BYTES) * 8;
    SATA_COMMAND + SATA_TURN * frames + at_rate(bits, SATA_BYTES_PER_S * 8)
}

#[inline(never)]
fn in_packets(sectors: u64, bits_per_s: u64, payload: u64) -> Time {
    let bytes = sectors * u64::from(spec::SECTOR_BYTES);
    let packets = bytes.div_ceil(payload);
    at_rate((bytes + packets * PCIE_PACKET_BYTES) * 8, bits_per_s)
}

/// Returns the time to transfer `bits` at a rate of `per_s` bits per second, to the nearest picosecond.
fn at_rate(bits: u64, per_s: u64) -> Time {
    let ps = u128::from(bits) * u128::from(Time::from_s(1).0);
    Time(((ps + u128::from(per_s) / 2) / u128::from(per_s)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pcie(generation: u32, lanes: u32) -> Wire {
        Wire::new(&spec::Link {
            command_overhead: Time::ZERO,
            jitter: Time::ZERO,
            bus_per_sector: Time::ZERO,
            kind: LinkKind::Pcie,
            pcie_generation: generation,
            pcie_lanes: lanes,
            pcie_payload_bytes: 256,
        })
    }

    #[test]
    fn a_page_over_each_wire() {
        // 4 KiB are 16 packets of 280 bytes each (256 bytes of payload and 24 bytes of framing).
        assert_eq!(pcie(1, 1).time(8), Time(4480 * 4_000));
        assert_eq!(pcie(2, 1).time(8), Time(4480 * 2_000));
        assert_eq!(pcie(3, 4).time(8), Time(1_137_500));
        assert_eq!(pcie(4, 4).time(8), Time(568_750));
        assert_eq!(pcie(3, 4).time(0), Time::ZERO);
        // With framing, a page of 4 KiB is 4112 bytes. They are transferred at 600 bytes per microsecond.
        let page = Wire::Sata.time(8);
        assert_eq!(page, Time(6_853_333 + 900_000 + 2_400_000));
        assert!(!Wire::Sata.is_duplex() && pcie(3, 4).is_duplex());
    }

    #[test]
    fn long_requests_go_at_the_rates_that_drives_are_sold_with() {
        let mb_per_s = |wire: Wire| 131_072.0 / wire.time(256).as_us();
        let sata = mb_per_s(Wire::Sata);
        assert!((550.0..560.0).contains(&sata), "{sata}");
        let pcie = mb_per_s(pcie(3, 4));
        assert!((3_590.0..3_610.0).contains(&pcie), "{pcie}");
    }
}
