//! An array whose buffer gets another policy while it is at work (D-144).

use super::{front, Array};
use crate::spec::{Host, SpecError};

impl Array {
    /// What [`crate::Ssd::set_policy`] does, for the array's own buffer.
    pub fn set_policy(&mut self, name: &str, settings: &[(&str, &str)]) -> Result<(), SpecError> {
        let policy = self.spec().other_policy(name, settings)?;
        let mut spec = self.backend.spec.clone();
        if let Some(buffer) = &mut spec.buffer {
            buffer.policy = policy.clone();
        }
        let setup = front(&spec, self.backend.units(), &Host::default()).setup;
        self.exchange_policy(&policy, &setup);
        self.backend.spec = spec;
        Ok(())
    }
}
