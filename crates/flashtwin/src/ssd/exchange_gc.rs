//! Change of the GC settings of a running SSD.

use super::Ssd;
use crate::spec::{refused, DeviceSpec, SpecError};

impl Ssd {
    /// Changes settings of garbage collection ([`DeviceSpec::with_gc`]) at this instant. A collection that is due by
    /// the new settings begins at once. One that has begun is completed. Afterwards [`Ssd::spec`] has the new values.
    ///
    /// # Errors
    /// Fails as [`Ssd::may_set_gc`] does. The settings then remain unchanged.
    pub fn set_gc(&mut self, settings: &[(&str, &str)]) -> Result<(), SpecError> {
        let spec = self.may_set_gc(settings)?;
        let now = self.now();
        self.advance(now);
        self.backend.set_gc(spec, now, &mut self.events);
        Ok(())
    }

    /// Returns the GC settings that can change while the device runs, and their values in TOML.
    pub fn gc_settings(&self) -> Vec<(&'static str, String)> {
        match self.backend.nand.can_set_gc() {
            true => self.spec().gc_settings(),
            false => Vec::new(),
        }
    }

    /// Returns the specification of this device with other values for keys of garbage collection.
    ///
    /// # Errors
    /// Fails if a key cannot change while the device runs, if a value is wrong, or if the device writes by units (sets
    /// of blocks that are erased together, [`Ssd::placement`]).
    pub fn may_set_gc(&self, settings: &[(&str, &str)]) -> Result<DeviceSpec, SpecError> {
        let spec = self.spec().with_gc(settings)?;
        if let (Some((key, value)), false) = (settings.first(), self.backend.nand.can_set_gc()) {
            let message = "a device that writes by units has its GC settings from its start; a restart takes any";
            return Err(refused(key, value, message.into()));
        }
        Ok(spec)
    }
}
