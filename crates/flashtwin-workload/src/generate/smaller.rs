//! Loads for a smaller device that have the locality of the load on the large device (D-234).

use super::address::Address;
use super::load::LoadSpec;
use super::spec::GeneratorSpec;
use super::stream::StreamSpec;
use super::values::{wrong, Part, Range};
use crate::error::WorkloadError;

impl LoadSpec {
    /// Returns the load for a device with 1/`factor` of the capacity. Lengths in bytes that refer to the device are
    /// divided by `factor`, and about `factor` ranks of a Zipf distribution share a place. Sizes, rates and the number of
    /// requests stay the same. `factor` must be at least 1.
    ///
    /// # Errors
    /// Fails if the places of a pattern cannot be divided.
    pub fn smaller(&self, factor: f64) -> Result<LoadSpec, WorkloadError> {
        if factor <= 1.0 {
            return Ok(self.clone());
        }
        let load = self.map_streams(|stream| {
            Ok(StreamSpec {
                requests: stream.requests.smaller(factor)?,
                ..stream.clone()
            })
        })?;
        Ok(load.noted(&format!(" (at 1/{factor:.2} of its lengths)")))
    }
}

impl GeneratorSpec {
    fn smaller(&self, factor: f64) -> Result<GeneratorSpec, WorkloadError> {
        let mut spec = self.clone();
        let divided = |bytes: u64| (bytes as f64 / factor) as u64;
        match &mut spec.address {
            Address::Uniform { .. } | Address::Hotcold { .. } | Address::Sequential {} => {}
            Address::Normal { sigma, mean } => {
                *sigma = divided(*sigma).max(1);
                *mean = mean.map(divided);
            }
            Address::Zipf {
                ranks_per_place,
                fio: false,
                ..
            } => *ranks_per_place = ranks_per_place.saturating_mul(factor.round() as u64),
            Address::Zipf { .. } => {
                return wrong(
                    "scale: zipf as in fio (fio=true) has no ranks that could share a place"
                        .to_string(),
                )
            }
            Address::Stack { .. } => {
                return wrong(
                    "scale: the distances of the pattern stack do not depend on the device"
                        .to_string(),
                )
            }
            Address::Locality { .. } => {
                return wrong("scale: the addresses of the pattern locality are fixed".to_string())
            }
        }
        if let Some(range) = &mut spec.range {
            let part = |part: Part| match part {
                Part::Bytes(bytes) => Part::Bytes(divided(bytes)),
                percent => percent,
            };
            *range = Range {
                start: part(range.start),
                end: part(range.end),
            };
        }
        Ok(spec)
    }
}
