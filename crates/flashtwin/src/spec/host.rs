//! The front end in front of the flash: the host's queues, the link, and the controller's processor.

use super::section::{section, Only, Values};
use super::{DeviceSpec, STEP_US, TRANSFER_NS};
use crate::component::{words, Kind};
use crate::units::Time;

const WEIGHTED: Only = &[(Host::arbitration.name(), &[Arbitration::Weighted.name()])];
const REFERENCE: Only = &[(Link::kind.name(), &[LinkKind::Reference.name()])];
const PCIE: Only = &[(Link::kind.name(), &[LinkKind::Pcie.name()])];

words! {
    /// Rule that assigns requests to queues.
    pub enum Assign {
        /// Requests go to the queues in turn (round robin).
        Turn = "turn",
        /// Reads go to the first half of the queues, all other requests to the second half. Within each half, requests
        /// go to the queues in turn.
        Kind = "kind",
    }
}

words! {
    /// Order in which the controller serves the queues.
    pub enum Arbitration {
        /// The controller serves the queues in turn (round robin).
        RoundRobin = "round-robin",
        /// The controller serves urgent queues first, and the others by their weights.
        Weighted = "weighted",
    }
}

section! {
    /// Submission queues of the host, and the arbitration between them.
    pub struct Host(v) in (spec: DeviceSpec => Some(&spec.host)) {
        queues: u32 = "host.queues", Kind::Count(1, 65_535), Some("1"), &[],
            "Number of submission queues.", "NVMe; SATA has one";
        queue_depth: u32 = "host.queue_depth", Kind::Count(0, 65_535), Some("0"), &[],
            "Maximum number of unfinished requests per queue; further requests wait at the host. 0: no limit.", "NVMe: at most 65 535";
        commands: u32 = "host.commands", Kind::Count(0, 65_535), Some("0"), &[],
            "Maximum number of requests that the controller processes at a time, over all queues. 0: no limit.", "ours";
        assign: Assign = "host.assign", Kind::Choice(Assign::WORDS), Some("\"turn\""), &[],
            "Assignment of requests to queues: round robin (`turn`), or reads to the first half of the queues and all others to the second (`kind`).", "ours";
        arbitration: Arbitration = "host.arbitration", Kind::Choice(Arbitration::WORDS), Some("\"round-robin\""), &[],
            "Order in which the controller serves the queues: round robin, or urgent queues first and the others by weights.", "NVMe Base Specification 2.0, 3.4.4";
        burst: u32 = "host.burst", Kind::Count(0, 64), Some("1"), &[],
            "Maximum number of commands taken from a queue before the next queue is served: a power of 2. 0: no limit.", "NVMe: Arbitration Burst";
        urgent_queues: u32 = "host.urgent_queues", Kind::Count(0, 65_535), Some("0"), WEIGHTED,
            "Number of urgent queues, which are served before all others. They are the first queues.", "NVMe Base Specification 2.0, 3.4.4.2";
        high_queues: u32 = "host.high_queues", Kind::Count(0, 65_535), Some("0"), WEIGHTED,
            "Number of high-priority queues: those after the urgent ones.", "NVMe Base Specification 2.0, 3.4.4.2";
        medium_queues: u32 = "host.medium_queues", Kind::Count(0, 65_535), Some("0"), WEIGHTED,
            "Number of medium-priority queues: those after the high-priority ones. The remaining queues have low priority.", "NVMe Base Specification 2.0, 3.4.4.2";
        high_weight: u32 = "host.high_weight", Kind::Count(1, 256), Some("1"), WEIGHTED,
            "Commands per round from the high-priority queues.", "NVMe: High Priority Weight";
        medium_weight: u32 = "host.medium_weight", Kind::Count(1, 256), Some("1"), WEIGHTED,
            "Commands per round from the medium-priority queues.", "NVMe: Medium Priority Weight";
        low_weight: u32 = "host.low_weight", Kind::Count(1, 256), Some("1"), WEIGHTED,
            "Commands per round from the low-priority queues.", "NVMe: Low Priority Weight";
    }
}

impl Host {
    /// Returns the numbers of urgent, high-priority and medium-priority queues. The first queues are urgent, the next
    /// ones have high and then medium priority, and all others have low priority. Without weighted round robin, all
    /// queues have low priority.
    pub fn classes(&self) -> [u32; 3] {
        [self.urgent_queues, self.high_queues, self.medium_queues]
    }

    /// Returns the number of commands that a high-, medium- and low-priority queue may send per round.
    pub fn weights(&self) -> [u32; 3] {
        [self.high_weight, self.medium_weight, self.low_weight]
    }
}

impl Default for Host {
    /// Returns a host with one queue and no limits.
    fn default() -> Host {
        Host::from_values(&Values::default())
    }
}

words! {
    /// Interface that requests cross to reach the device.
    pub enum LinkKind {
        /// The bus of the reference simulator: one request at a time, in either direction.
        Reference = "reference",
        /// SATA at 6 Gb/s: one request at a time, in either direction.
        Sata = "sata",
        /// PCIe: reads and writes do not wait for each other.
        Pcie = "pcie",
    }
}

section! {
    /// The host interface.
    pub struct Link(v) in (spec: DeviceSpec => Some(&spec.link)) {
        kind: LinkKind = "link.kind", Kind::Choice(LinkKind::WORDS), Some("\"reference\""), &[],
            "Host link. `reference`: one bus, one request at a time, completions first. `sata`: 6 Gb/s, half duplex, as `reference` except that read commands are accepted at any time. `pcie`: full duplex.", "ours";
        command_overhead: Time = "link.command_overhead_us", Kind::Micros(STEP_US), Some("0"), &[],
            "Delay of every request before the device receives it.", "ours: no paper prints it";
        jitter: Time = "link.jitter_us", Kind::Micros(STEP_US), Some("0"), &[],
            "Mean of a further delay of every request, which is random with an exponential distribution.", "ours: D-235";
        bus_per_sector: Time = "link.bus_ns_per_sector", Kind::Nanos(TRANSFER_NS), Some("0"), REFERENCE,
            "Transfer time of a 512-byte sector on the host bus, which carries one request at a time.", "the reference as shipped: 238.4";
        pcie_generation: u32 = "link.pcie_generation", Kind::Count(1, 5), Some("3"), PCIE,
            "PCIe generation: 2.5, 5, 8, 16 or 32 GT/s per lane, 8b/10b encoding in generations 1 and 2, 128b/130b from 3.", "PCI Express Base Specification";
        pcie_lanes: u32 = "link.pcie_lanes", Kind::Count(1, 16), Some("4"), PCIE,
            "Number of PCIe lanes.", "drives in U.2 and M.2";
        pcie_payload_bytes: u32 = "link.pcie_payload_bytes", Kind::Count(128, 4096), Some("256"), PCIE,
            "Maximum payload of a packet; framing, header and checksum add 24 bytes to each.", "common hosts: 256";
    }
}

section! {
    /// Time that the controller's processor spends on requests and on other work of its own (D-10).
    pub struct Controller(v) in (spec: DeviceSpec => Some(&spec.controller)) {
        request: Time = "controller.request_us", Kind::Micros(STEP_US), Some("0"), &[],
            "Time that the controller's only processor needs for each request.", "D-10: 2 for CDA-GC's platform, else 0";
        scan_entry: Time = "controller.scan_entry_ns", Kind::Nanos(TRANSFER_NS), Some("0"), &[],
            "Time that the controller's processor needs for each list entry that the published policy inspects to find a victim.", "D-10: 100 for CDA-GC's platform, else 0";
    }
}
