//! Saved form of the translation layers of all chips of a device.

use std::io::{self, Read, Write};

use super::Layered;
use crate::ftl::StateError;

impl Layered {
    /// Writes the state of idle flash.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        for ftl in &self.ftls {
            ftl.save(out)?;
        }
        Ok(())
    }

    /// Replaces this state by one that was saved on the same device.
    pub fn load(&mut self, input: &mut dyn Read) -> Result<(), StateError> {
        for ftl in &mut self.ftls {
            ftl.load(&self.setup, input)?;
        }
        self.reset_stats();
        Ok(())
    }
}
