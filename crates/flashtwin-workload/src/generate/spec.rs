//! Specification of a generated load with one stream, its checks, and the named presets.

use flashtwin::PlacementId;
use serde::{Deserialize, Serialize};

use super::address::Address;
use super::arrival::Arrival;
use super::size::Size;
use super::space::Space;
use super::values::Range;
use crate::error::{ErrorKind, WorkloadError};

/// A generated load with one stream. The shares of writes, trims and flushes are fractions of all requests. The
/// remaining requests are reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GeneratorSpec {
    /// Addresses of requests.
    pub address: Address,
    /// Sizes of requests.
    pub size: Size,
    /// Arrivals of requests.
    pub arrival: Arrival,
    /// Share of writes.
    pub write: f64,
    /// Share of trims.
    pub trim: f64,
    /// Share of flushes.
    pub flush: f64,
    /// Share of the writes with force unit access (FUA).
    pub fua: f64,
    /// Probability that a request starts where the previous one ended. Such a request also has the kind of the previous
    /// one (as in DiskSim).
    pub sequential: f64,
    /// Probability that a request is local: its start is within `local_range` of the start of the previous one (as in
    /// DiskSim).
    pub local: f64,
    /// Largest distance in bytes, in either direction, between the start of a local request and that of the previous
    /// request.
    pub local_range: u64,
    /// Share of the requests that are split into pieces, all on the same member of a striped array (Harmonia's skewed
    /// load, D-32). A piece has `alignment` bytes. The starts of consecutive pieces are `stripe` bytes apart. The
    /// pieces arrive together, each as a separate request.
    pub pinned: f64,
    /// Bytes between the starts of two consecutive pieces of a split request.
    pub stripe: u64,
    /// Part of the device's range to use; `None` for the whole range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// Placement id of the writes, from 0 to 65 534.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<u16>,
    /// Starts are multiples of this, bytes.
    pub alignment: u64,
    /// Number of requests; `None` for an endless load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}

impl Default for GeneratorSpec {
    /// Returns an endless load of uniform 4 KiB reads in a closed loop.
    fn default() -> Self {
        GeneratorSpec {
            address: Address::UNIFORM,
            size: Size::Constant { bytes: 4096 },
            arrival: Arrival::None {},
            write: 0.0,
            trim: 0.0,
            flush: 0.0,
            fua: 0.0,
            sequential: 0.0,
            local: 0.0,
            local_range: 1 << 20,
            pinned: 0.0,
            stripe: 32 << 10,
            range: None,
            placement: None,
            alignment: 4096,
            requests: None,
        }
    }
}

/// Named loads of papers: name, text form, description.
pub const PRESETS: &[(&str, &str, &str)] = &[
    (
        "gcar-synthetic",
        "uniform:size=32k,write=0.8,interval=4ms,requests=1e6",
        "GCaR's synthetic load: 32 KiB, one request in 4 ms (Poisson), 20 % reads, not sequential",
    ),
    (
        "ecr-uniform",
        "uniform:range=300M,write=0.8,rate=10k/s,requests=2e6",
        "ECR's uniform load: pages of 4 KiB over 300 MiB, 80 % writes, 10 000 requests/s (Poisson)",
    ),
    (
        "ecr-normal",
        "normal:sigma=40000k,write=0.8,rate=10k/s,requests=2e6",
        "ECR's normal load: pages of 4 KiB, sigma 10 000 pages about the middle of the device",
    ),
    (
        "harmonia-hpc-w",
        "uniform:size=exp(508k),write=0.7988,rate=476.5/s,requests=200k",
        "Harmonia's HPC(W): 510 KB on average, 80 % writes, 476.5 requests/s (Poisson)",
    ),
    (
        "harmonia-hpc-r",
        "uniform:size=exp(508k),write=0.1992,rate=476.5/s,requests=200k",
        "Harmonia's HPC(R): the same with 20 % writes",
    ),
    (
        "harmonia-hpc-w-skew",
        "uniform:size=exp(508k),write=0.7988,rate=476.5/s,pinned=0.5,stripe=32k,requests=200k",
        "Harmonia's HPC(W,Skew): half of the requests to one of eight members with 4 KiB chunks",
    ),
    (
        "harmonia-hpc-w-burst-m",
        "uniform:size=exp(508k),write=0.7988,on_rate=4765/s,on_length=20,duty=0.1,requests=200k",
        "Harmonia's HPC(W,Burst,M): HPC(W) in bursts of ten times its rate",
    ),
    (
        "harmonia-hpc-w-burst-h",
        "uniform:size=exp(508k),write=0.7988,on_rate=47650/s,on_length=100,duty=0.01,requests=200k",
        "Harmonia's HPC(W,Burst,H): HPC(W) in bursts of a hundred times its rate",
    ),
];

impl GeneratorSpec {
    /// Returns the mean number of bytes of a request, where a flush has 0 bytes.
    pub(crate) fn mean_bytes(&self) -> f64 {
        self.size.mean(self.alignment) * (1.0 - self.flush)
    }

    fn validate_shares(&self) -> Result<(), WorkloadError> {
        for (key, share) in [
            ("write", self.write),
            ("trim", self.trim),
            ("flush", self.flush),
            ("fua", self.fua),
            ("sequential", self.sequential),
            ("local", self.local),
            ("pinned", self.pinned),
        ] {
            need(
                (0.0..=1.0).contains(&share),
                format!("{key}: {share} is no share; from 0 to 1 is possible"),
            )?;
        }
        let sum = self.write + self.trim + self.flush;
        need(
            sum <= 1.0 + 1e-9,
            format!("write + trim + flush = {sum}; at most 1 is possible"),
        )?;
        let sum = self.sequential + self.local;
        need(
            sum <= 1.0 + 1e-9,
            format!("sequential + local = {sum}; at most 1 is possible"),
        )?;
        Ok(())
    }

    /// Checks all properties that can be checked without opening a file. Returns the part of the device that the load
    /// uses.
    pub(crate) fn validate(&self, range_bytes: u64) -> Result<Space, WorkloadError> {
        self.validate_shares()?;
        need(
            (1..=1 << 30).contains(&self.alignment),
            format!(
                "alignment: {} bytes; from 1 byte to 1 GiB is possible",
                self.alignment
            ),
        )?;
        need(
            self.local_range <= 1 << 60,
            format!(
                "local_range: {} bytes is beyond any device",
                self.local_range
            ),
        )?;
        need(
            self.pinned == 0.0
                || self.stripe >= self.alignment && self.stripe.is_multiple_of(self.alignment),
            format!(
                "stripe: {} bytes; a multiple of the alignment of {} bytes is needed",
                self.stripe, self.alignment
            ),
        )?;
        need(
            self.requests != Some(0),
            "requests: 0 would generate nothing".to_string(),
        )?;
        self.arrival.validate()?;
        self.size.validate(self.alignment)?;
        need(
            self.placement.is_none_or(|id| id <= PlacementId::MAX),
            "placement: 65535 stands for no id; from 0 to 65534 is possible".to_string(),
        )?;
        if let Address::Uniform { permute: true, .. } = self.address {
            need(
                self.sequential == 0.0 && self.local == 0.0,
                "permute=true draws every place once; leave seq and local out".to_string(),
            )?;
        }
        let (first, asked) = match self.range {
            Some(range) => range.of(range_bytes, self.alignment)?,
            None => (0, range_bytes),
        };
        let bytes = asked / self.alignment * self.alignment;
        let smallest = self.size.smallest(self.alignment);
        need(
            bytes >= smallest && bytes > 0,
            format!("range: {asked} bytes do not hold one request of {smallest} bytes"),
        )?;
        need(
            bytes <= 1 << 62,
            format!("range: {bytes} bytes is beyond 2^62"),
        )?;
        Ok(Space {
            first,
            bytes,
            alignment: self.alignment,
        })
    }
}

fn need(ok: bool, text: String) -> Result<(), WorkloadError> {
    if ok {
        Ok(())
    } else {
        Err(WorkloadError::new(ErrorKind::Option, text))
    }
}
