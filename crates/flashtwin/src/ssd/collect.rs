//! A drive told to collect now, by whoever serves it (D-143).

use super::Ssd;
use crate::array::MemberError;

/// Why a device cannot be told to collect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectError {
    /// Its translation layer merges blocks when it must, and takes no orders.
    Unable {
        /// What it is.
        device: String,
    },
    /// There is no such die.
    UnknownDie {
        /// The one asked for.
        die: u32,
        /// Dies there are.
        dies: u32,
    },
    /// It is dead.
    DeadDie {
        /// The one asked for.
        die: u32,
    },
    /// A member of an array cannot.
    At {
        /// Which one.
        member: usize,
        /// Why.
        why: Box<CollectError>,
    },
    /// The array has no such member, or not any more.
    Member(MemberError),
}

impl std::fmt::Display for CollectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CollectError::Unable { device } => write!(
                f,
                "{device} cannot be told to collect: its translation layer merges blocks when it must \
                 (ftl.kind = \"page\" can)"
            ),
            CollectError::UnknownDie { die, dies } => {
                write!(f, "die {die}: the device has dies 0 to {}", dies - 1)
            }
            CollectError::DeadDie { die } => write!(f, "die {die} is dead"),
            CollectError::At { member, why } => write!(f, "member {member}: {why}"),
            CollectError::Member(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for CollectError {}

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
