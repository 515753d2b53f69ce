//! Orders to collect garbage immediately, which the host gives to a drive (D-143).

use super::Ssd;
use crate::refused::CollectError;

impl Ssd {
    /// Orders a die, or all dies, to collect at this instant, whatever the number of free blocks. Each pool of blocks
    /// in these dies then collects one block. A device that collects superblocks collects one superblock. A block is
    /// not collected if that would gain nothing. Returns the number of dies that received the order.
    ///
    /// # Errors
    /// Fails if there is no such die, if the die is dead, or if the device's translation layer accepts no orders to
    /// collect.
    pub fn collect(&mut self, die: Option<u32>) -> Result<u32, CollectError> {
        let dies = self.may_collect(die)?;
        let now = self.now();
        self.advance(now);
        self.backend.collect(die, now, &mut self.events);
        Ok(dies)
    }

    /// Returns the number of dies that would receive the order of [`Ssd::collect`].
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
