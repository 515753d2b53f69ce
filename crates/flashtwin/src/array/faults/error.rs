//! Why something cannot be done about a member.

/// Why a member cannot fail, or be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberError {
    /// There is no such member.
    Unknown {
        /// The one asked for.
        member: usize,
        /// Members there are.
        members: usize,
    },
    /// It has failed already.
    Missing {
        /// The one asked for.
        member: usize,
    },
    /// It has not failed.
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
