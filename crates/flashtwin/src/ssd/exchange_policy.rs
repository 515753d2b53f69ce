//! An SSD whose buffer gets another policy while it is at work (D-144).

use super::classes::classes;
use super::{front, Ssd};
use crate::spec::{refused, SpecError};

impl Ssd {
    /// From now on the buffer is governed by the policy of that name, with these of its keys set
    /// ([`crate::DeviceSpec::other_policy`]). It begins with the pages that the present one holds, in the order
    /// in which that would have evicted them, as if they had just come in; clean ones that it would not take in
    /// on a read are evicted. Requests in flight go on. [`Ssd::spec`] names it from then on.
    ///
    /// # Errors
    /// Fails as [`crate::DeviceSpec::other_policy`] does; the present policy then remains.
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
