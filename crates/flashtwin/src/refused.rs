//! Why a device does not execute an order: to collect garbage, to fail or replace a member.

/// Why a member cannot fail, or be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberError {
    /// No member has this number.
    Unknown {
        /// The one asked for.
        member: usize,
        /// Members there are.
        members: usize,
    },
    /// The member has failed already.
    Missing {
        /// The one asked for.
        member: usize,
    },
    /// The member has not failed.
    Present {
        /// The one asked for.
        member: usize,
    },
    /// Without it, data would be lost.
    Needed {
        /// The one asked for.
        member: usize,
    },
    /// The array has lost data: nothing can be done for it.
    Lost,
}

impl std::fmt::Display for MemberError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MemberError::Unknown { member, members } => {
                write!(
                    f,
                    "member {member}: the array has members 0 to {}",
                    members - 1
                )
            }
            MemberError::Missing { member } => write!(f, "member {member} has failed already"),
            MemberError::Present { member } => write!(f, "member {member} has not failed"),
            MemberError::Needed { member } => write!(
                f,
                "member {member} cannot fail: with those already missing, data would be lost"
            ),
            MemberError::Lost => f.write_str("the array has lost data and is of no use any more"),
        }
    }
}

impl std::error::Error for MemberError {}

/// Why a device cannot execute an order to collect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectError {
    /// The device's translation layer merges blocks when it must, and takes no orders.
    Unable {
        /// Description of the device.
        device: String,
    },
    /// No die has this number.
    UnknownDie {
        /// The one asked for.
        die: u32,
        /// Dies there are.
        dies: u32,
    },
    /// The die is dead.
    DeadDie {
        /// The one asked for.
        die: u32,
    },
    /// A member of an array cannot.
    At {
        /// Number of the member.
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
