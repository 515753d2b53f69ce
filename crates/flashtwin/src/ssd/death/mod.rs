//! Failure of a die of a running device (D-146).

use super::{Flash, Ssd};
use crate::events::EventQueue;
use crate::nand::{Done, Nand, PageOp};
use crate::spec::Placement;
use crate::units::Time;

/// Error: a die cannot be made to fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DieError {
    /// The device cannot work without one of its dies.
    Unable {
        /// Name of the device.
        device: String,
        /// The setting or feature that prevents it.
        why: &'static str,
    },
    /// There is no such die.
    Unknown {
        /// The die's number.
        die: u32,
        /// Number of dies of the device.
        dies: u32,
    },
    /// The die is already dead.
    Dead {
        /// The die's number.
        die: u32,
    },
}

impl std::fmt::Display for DieError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DieError::Unable { device, why } => {
                write!(f, "{device} cannot do without a die: {why}")
            }
            DieError::Unknown { die, dies } => {
                write!(f, "die {die}: the device has dies 0 to {}", dies - 1)
            }
            DieError::Dead { die } => write!(f, "die {die} is dead"),
        }
    }
}

impl std::error::Error for DieError {}

impl Ssd {
    /// Makes a die fail at this instant. From then on, the die cannot be read, programmed or erased. Programs in flight
    /// to it are repeated on other dies. Pages whose flash copy is on the die are lost. A read of a lost page ends with
    /// [`crate::Status::Failed`] until the page is written again (to another die) or trimmed. Returns the number of
    /// lost pages.
    ///
    /// # Errors
    /// Fails if there is no such die, if it is dead already, or if the device cannot work without it.
    pub fn kill_die(&mut self, die: u32) -> Result<u32, DieError> {
        self.may_die(die)?;
        let now = self.now();
        self.advance(now);
        Ok(self.backend.kill(die, now, &mut self.events))
    }

    /// Whether a die is dead.
    pub(crate) fn has_dead_die(&self) -> bool {
        self.backend.has_dead
    }

    fn may_die(&self, die: u32) -> Result<(), DieError> {
        let (spec, nand) = (self.spec(), &self.backend.nand);
        let unable = |why| {
            let device = spec.name.clone();
            Err(DieError::Unable { device, why })
        };
        let dies = spec.geometry.chips;
        if !matches!(nand, Nand::Modern(_)) {
            unable("needs nand.backend = \"modern\" and ftl.kind = \"page\"")
        } else if spec.ftl.placement == Placement::Static {
            unable("every page has its own (ftl.placement = \"dynamic\" writes them elsewhere)")
        } else if spec.gc.has_superblocks() {
            unable("its superblocks are of all dies (gc.granularity = \"block\" collects each by itself)")
        } else if die >= dies {
            Err(DieError::Unknown { die, dies })
        } else if nand.is_dead(die) {
            Err(DieError::Dead { die })
        } else {
            Ok(())
        }
    }
}

impl Flash {
    #[inline]
    pub(super) fn is_dead(&self, die: usize) -> bool {
        self.has_dead && self.nand.is_dead(die as u32)
    }

    fn kill(&mut self, die: u32, now: Time, events: &mut EventQueue) -> u32 {
        let Nand::Modern(modern) = &mut self.nand else {
            return 0;
        };
        let pages = modern.pages_to_lose(die as usize);
        let waiting = modern.kill(die as usize, now);
        self.has_dead = true;
        for op in waiting {
            let to = self.next_living() as usize;
            self.nand.take_in(to, op, now, events);
        }
        self.nand.activate(die as usize, now, events);
        pages
    }

    /// Returns the next chip in turn that is not dead. If all are dead, returns any chip. Writes to this chip then find
    /// no room.
    #[cold]
    pub(super) fn next_living(&mut self) -> u32 {
        for _ in 0..self.placement.writes_a_turn() {
            let chip = self.next_turn();
            if !self.nand.is_dead(chip) {
                return chip;
            }
        }
        self.next_turn()
    }

    /// Processes the end of an operation on a device with a dead die. If the operation was a read on the dead die, it
    /// fails. If it was a program on the dead die, it is repeated on another die, with the data in the controller's
    /// memory. Returns the operation unless it is repeated.
    #[cold]
    pub(super) fn after_death(
        &mut self,
        chip: usize,
        done: Option<Done>,
        now: Time,
        events: &mut EventQueue,
    ) -> Option<Done> {
        let mut done = done?;
        if !done.written {
            return self.after_refusal(chip, done, now, events);
        }
        if !self.nand.is_dead(chip as u32) {
            return Some(done);
        }
        done.failed = done.op.is_read();
        if done.failed {
            return Some(done);
        }
        let to = self.next_living();
        self.give_again(to, done.op, 1, now, events);
        None
    }

    /// Processes the end of a program that found no room. If this is the repetition of a program whose die failed, it
    /// is passed on to the next living die, until all living dies (at most 255) have refused it. Returns the program if
    /// it is not passed on.
    fn after_refusal(
        &mut self,
        chip: usize,
        done: Done,
        now: Time,
        events: &mut EventQueue,
    ) -> Option<Done> {
        let (again, dies) = (done.op.again, self.spec.geometry.chips);
        let others = (1..dies).map(|step| (chip as u32 + step) % dies);
        let next = others.into_iter().find(|&die| !self.nand.is_dead(die));
        match next {
            Some(to) if again > 0 && again < u8::MAX && u32::from(again) < self.living() => {
                self.give_again(to, done.op, again + 1, now, events);
                None
            }
            _ => Some(done),
        }
    }

    fn give_again(&mut self, die: u32, op: PageOp, again: u8, now: Time, events: &mut EventQueue) {
        let op = PageOp { again, ..op };
        self.nand.take_in(die as usize, op, now, events);
    }

    /// Returns the number of dies that are not dead.
    pub(super) fn living(&self) -> u32 {
        self.spec.geometry.chips - self.nand.dead_dies().count() as u32
    }
}

#[cfg(test)]
mod tests;
