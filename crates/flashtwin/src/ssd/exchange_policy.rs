//! Replacement of the buffer's policy of a running SSD (D-144).

use super::classes::classes;
use super::{front, Ssd};
use crate::spec::{refused, SpecError};

impl Ssd {
    /// Replaces the buffer's policy by the policy `name` with these `settings` ([`crate::DeviceSpec::other_policy`]).
    /// The cached pages are inserted into the new policy in the old policy's eviction order. Clean pages are evicted if
    /// the new policy does not admit reads into the buffer. Requests in flight are not affected. Afterwards
    /// [`Ssd::spec`] names the new policy.
    ///
    /// # Errors
    /// Fails as [`crate::DeviceSpec::other_policy`] does. Also fails if the new policy writes hot and cold pages to
    /// separate blocks, but the flash was not created for such a policy. The policy is then unchanged.
    pub fn set_policy(&mut self, name: &str, settings: &[(&str, &str)]) -> Result<(), SpecError> {
        let policy = self.spec().other_policy(name, settings)?;
        let mut spec = self.backend.spec.clone();
        if let Some(buffer) = &mut spec.buffer {
            buffer.policy = policy.clone();
        }
        if spec.policy_separates() && !self.backend.nand.separates() {
            let message = "writes hot and cold pages to blocks of their own; the flash keeps one block open a \
                           die, unless it is served with such a policy from the start";
            return Err(refused("buffer.policy", name, message.into()));
        }
        self.backend.nand.exchange_classes(classes(&spec));
        self.exchange_policy(&policy, &front(&spec).setup);
        self.backend.spec = spec;
        Ok(())
    }
}
