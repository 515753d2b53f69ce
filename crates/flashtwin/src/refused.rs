//! Reasons for which a device refuses an order. An order requests it to collect garbage, or to fail or replace
//! a member of an array.

/// Error: a member of an array cannot fail, or cannot be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberError {
    /// No member has this number.
    Unknown {
        /// Number of the requested member.
        member: usize,
        /// Number of members.
        members: usize,
    },
    /// The member has failed already.
    Missing {
        /// Number of the requested member.
        member: usize,
    },
    /// The member has not failed.
    Present {
        /// Number of the requested member.
        member: usize,
    },
    /// Data would be lost if the member failed.
    Needed {
        /// Number of the requested member.
        member: usize,
    },
    /// The array has lost data and serves no requests.
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

/// Error: a device cannot execute an order to collect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectError {
    /// The device's translation layer accepts no orders to collect, because it merges blocks when necessary.
    Unable {
        /// Description of the device.
        device: String,
    },
    /// No die has this number.
    UnknownDie {
        /// Number of the requested die.
        die: u32,
        /// Number of dies.
        dies: u32,
    },
    /// The die is dead.
    DeadDie {
        /// Number of the requested die.
        die: u32,
    },
    /// A member of the array cannot execute the order to collect.
    At {
        /// Number of the member.
        member: usize,
        /// Reason.
        why: Box<CollectError>,
    },
    /// The array has no such member, or the member has failed.
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
