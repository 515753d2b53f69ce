//! A drive told to collect now, by whoever serves it (D-143).

use super::Ssd;
use crate::refused::CollectError;

impl Ssd {
    /// Tells a die, or all of them, to collect a block each at this instant, as many free blocks as there
    /// may be; where superblocks are collected, one of those. What is not worth collecting stays. How many dies were told.
    pub fn collect(&mut self, die: Option<u32>) -> Result<u32, CollectError> {
        let told = self.may_collect(die)?;
        let now = self.now();
        self.advance(now);
        self.backend.collect(die, now, &mut self.events);
        Ok(told)
    }

    /// How many dies [`Ssd::collect`] would tell.
    pub(crate) fn may_collect(&self, die: Option<u32>) -> Result<u32, CollectError> {
        let dies = self.spec().geometry.chips;
        if self.backend.nand.orders().is_none() {
            let device = self.spec().name.clone();
            return Err(CollectError::Unable { device });
        }
        match die {
            Some(die) if die >= dies => Err(CollectError::UnknownDie { die, dies }),
            Some(die) if self.backend.nand.is_dead(die) => Err(CollectError::DeadDie { die }),
            Some(_) => Ok(1),
            None => Ok(self.backend.living()),
        }
    }
}
