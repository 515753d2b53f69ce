//! Request sizes.

use serde::{Deserialize, Serialize};

use super::rng::Rng;
use crate::error::{ErrorKind, WorkloadError};

/// Sizes of requests, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Size {
    /// All requests have one size.
    Constant {
        /// Bytes.
        bytes: u64,
    },
    /// Exponentially distributed sizes, rounded up to the alignment. Rounding increases the mean by about half the
    /// alignment.
    Exponential {
        /// Mean before rounding, bytes.
        mean: u64,
    },
    /// Geometrically distributed multiples of the alignment; the smallest is the alignment itself.
    Geometric {
        /// Mean, bytes.
        mean: u64,
    },
    /// Every multiple of the alignment from `min` to `max` is equally likely.
    Uniform {
        /// Smallest, bytes.
        min: u64,
        /// Largest, bytes.
        max: u64,
    },
    /// A few sizes with weights.
    List {
        /// Bytes and weight of each.
        choices: Vec<(u64, f64)>,
    },
}

/// Largest size of a generated request (4 GiB).
pub(crate) const SIZE_MAX_BYTES: u64 = 1 << 32;

fn wrong(text: impl Into<String>) -> WorkloadError {
    WorkloadError::new(ErrorKind::Option, text)
}

impl Size {
    pub(crate) fn validate(&self, alignment: u64) -> Result<(), WorkloadError> {
        let in_range = |what: &str, bytes: u64| match bytes {
            1..=SIZE_MAX_BYTES => Ok(()),
            _ => Err(wrong(format!(
                "size: {what} is {bytes} bytes; from 1 byte to 4 GiB is possible"
            ))),
        };
        match self {
            Size::Constant { bytes } => in_range("the constant", *bytes),
            Size::Exponential { mean } => in_range("the mean", *mean),
            Size::Geometric { mean } if *mean < alignment => Err(wrong(format!(
                "size: a geometric mean of {mean} bytes is below the alignment of {alignment}"
            ))),
            Size::Geometric { mean } => in_range("the mean", *mean),
            Size::Uniform { min, max } => {
                in_range("the smallest", *min)?;
                in_range("the largest", *max)?;
                if min > max || min % alignment != 0 || max % alignment != 0 {
                    return Err(wrong(format!(
                        "size: uniform from {min} to {max} needs min <= max, both multiples of the \
                         alignment {alignment}"
                    )));
                }
                Ok(())
            }
            Size::List { choices } => {
                for (bytes, weight) in choices {
                    in_range("one of the list", *bytes)?;
                    if !(weight.is_finite() && *weight > 0.0) {
                        return Err(wrong(format!(
                            "size: the weight {weight} of {bytes} must be above 0"
                        )));
                    }
                }
                if choices.is_empty() {
                    return Err(wrong("size: the list is empty"));
                }
                Ok(())
            }
        }
    }

    /// Returns the mean of the sizes drawn, in bytes.
    pub(crate) fn mean(&self, alignment: u64) -> f64 {
        match self {
            Size::Constant { bytes } => *bytes as f64,
            // Rounding up makes it geometric.
            Size::Exponential { mean } => {
                let units = *mean as f64 / alignment as f64;
                alignment as f64 / -libm::expm1(-1.0 / units)
            }
            Size::Geometric { mean } => *mean as f64,
            Size::Uniform { min, max } => (*min as f64 + *max as f64) / 2.0,
            Size::List { choices } => {
                let weights: f64 = choices.iter().map(|c| c.1).sum();
                choices.iter().map(|c| c.0 as f64 * c.1).sum::<f64>() / weights
            }
        }
    }

    /// Returns the smallest size that can be drawn.
    pub(crate) fn smallest(&self, alignment: u64) -> u64 {
        match self {
            Size::Constant { bytes } => *bytes,
            Size::Exponential { .. } | Size::Geometric { .. } => alignment,
            Size::Uniform { min, .. } => *min,
            Size::List { choices } => choices.iter().map(|c| c.0).min().unwrap_or(0),
        }
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng, alignment: u64) -> u64 {
        let units = |n: f64| (n.min((SIZE_MAX_BYTES / alignment) as f64) as u64).max(1) * alignment;
        match self {
            Size::Constant { bytes } => *bytes,
            Size::Exponential { mean } => units(libm::ceil(
                rng.exponential() * *mean as f64 / alignment as f64,
            )),
            Size::Geometric { mean } => {
                let p = alignment as f64 / *mean as f64;
                if p >= 1.0 {
                    return alignment;
                }
                units(1.0 + libm::floor(-rng.exponential() / libm::log1p(-p)))
            }
            Size::Uniform { min, max } => min + rng.below((max - min) / alignment + 1) * alignment,
            Size::List { choices } => {
                let total: f64 = choices.iter().map(|c| c.1).sum();
                let mut left = rng.unit() * total;
                for &(bytes, weight) in choices {
                    left -= weight;
                    if left <= 0.0 {
                        return bytes;
                    }
                }
                choices[choices.len() - 1].0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_is_that_of_the_sizes_drawn() {
        let sizes = [
            Size::Constant { bytes: 5000 },
            Size::Exponential { mean: 6000 },
            Size::Geometric { mean: 9000 },
            Size::Uniform {
                min: 4096,
                max: 65_536,
            },
            Size::List {
                choices: vec![(4096, 7.0), (131_072, 3.0)],
            },
        ];
        for seed in flashtwin::seeds(3) {
            for size in &sizes {
                let mut rng = Rng::new(seed, 0);
                let draws = 200_000;
                let sum: u64 = (0..draws).map(|_| size.draw(&mut rng, 4096)).sum();
                let ratio = sum as f64 / f64::from(draws) / size.mean(4096);
                assert!((ratio - 1.0).abs() < 0.02, "{size:?}: {ratio}");
            }
        }
    }
}
