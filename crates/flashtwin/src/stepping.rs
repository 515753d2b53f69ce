//! Applies accesses to a buffer policy one at a time, on a small device and without simulating time.

use crate::buffer::trace::{step_through, BadToken, Step};
use crate::buffer::untimed::UntimedBuffer;
use crate::buffer::{Setup, UserPolicy};
use crate::spec::{builtin, DeviceSpec, SpecError};

/// Input of a policy trace: the policy with its parameters, and the dimensions of the small device.
#[derive(Clone, Debug)]
pub struct Traceable<'a> {
    /// Name of the policy.
    pub policy: &'a str,
    /// Capacity of the buffer in pages.
    pub capacity: u32,
    /// Parameters of the policy, as keys of the section `buffer` with their values.
    pub set: &'a [(&'a str, &'a str)],
    /// Number of chips. Pages are striped over them.
    pub chips: u32,
    /// Number of consecutive pages that are on the same chip.
    pub stride_pages: u32,
    /// Number of pages of a block (N).
    pub pages_per_block: u32,
}

impl Traceable<'_> {
    /// Returns the small device with this policy.
    ///
    /// # Errors
    /// Fails if the policy or one of its keys is unknown, or if a value is not valid for this device.
    pub fn device(&self) -> Result<DeviceSpec, SpecError> {
        // The flash is large enough to hold the pages in the buffer. Nothing is written to it.
        let blocks = 2 * self.stride_pages * (64 + self.capacity / self.pages_per_block.max(1));
        let builtin = builtin("ecr").unwrap_or_default();
        let mut overrides: Vec<(String, String)> = vec![
            ("name".into(), "trace".into()),
            ("geometry.chips".into(), self.chips.to_string()),
            ("geometry.planes_per_chip".into(), "1".into()),
            ("geometry.blocks_per_plane".into(), blocks.to_string()),
            ("geometry.reserve_percent".into(), "50".into()),
            (
                "geometry.pages_per_block".into(),
                self.pages_per_block.to_string(),
            ),
            ("ftl.summary_page".into(), "false".into()),
            ("ftl.stride_pages".into(), self.stride_pages.to_string()),
            (
                "buffer.capacity".into(),
                (u64::from(self.capacity) * 4096).to_string(),
            ),
            ("buffer.policy".into(), self.policy.into()),
        ];
        for (key, value) in self.set {
            let key = key.strip_prefix("buffer.").unwrap_or(key);
            overrides.push((format!("buffer.{key}"), (*value).to_owned()));
        }
        let overrides: Vec<(&str, &str)> = overrides
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        DeviceSpec::with_overrides(builtin, "ecr", &overrides)
    }
}

/// Applies `accesses` one after the other to the buffer policy of `device`.
///
/// # Errors
/// Fails if an access cannot be parsed, or is beyond the end of the device.
pub fn trace_policy(device: &DeviceSpec, accesses: &str) -> Result<Vec<Step>, BadToken> {
    let setup = Setup::of(device);
    let Some(buffer) = &device.buffer else {
        return Ok(Vec::new());
    };
    let untimed = UntimedBuffer::new(&buffer.policy, &setup, buffer.read_cache_pages);
    step_through(untimed, setup.chips, accesses)
}

/// Applies `accesses` one after the other to a user's policy, in the buffer of `device`.
///
/// # Errors
/// Fails in the same cases as [`trace_policy`].
pub fn trace_user_policy(
    device: &DeviceSpec,
    policy: Box<dyn UserPolicy>,
    accesses: &str,
) -> Result<Vec<Step>, BadToken> {
    let setup = Setup::of(device);
    step_through(
        UntimedBuffer::with_user(policy, &setup),
        setup.chips,
        accesses,
    )
}
