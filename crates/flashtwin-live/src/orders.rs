//! Commands to a running device that are no client requests, such as commands from the control socket. An SSD and an
//! array execute them in different ways.

use flashtwin::placement::Placed;
use flashtwin::spec::Buffer;
use flashtwin::{Array, Ssd};

use crate::LiveError;

/// A device that takes orders.
pub trait Orders {
    /// Orders one die, or all dies if `die` is `None`, to collect one block each. On an array, the order is for one
    /// member, or for all members if `member` is `None`. Returns the number of dies.
    ///
    /// # Errors
    /// Fails if there is no such member or die, or if the device cannot collect a single block.
    fn collect(&mut self, member: Option<usize>, die: Option<u32>) -> Result<u32, LiveError>;
    /// Makes a die fail and returns the number of pages lost.
    ///
    /// # Errors
    /// Fails if there is no such die, or if the device cannot work without it.
    fn kill_die(&mut self, die: u32) -> Result<u32, LiveError>;
    /// Sets the policy of the buffer.
    ///
    /// # Errors
    /// Fails if there is no buffer, or if the policy or a key is unknown or wrong for it.
    fn set_policy(&mut self, name: &str, settings: &[(&str, &str)]) -> Result<(), LiveError>;
    /// Returns the buffer, if there is one.
    fn buffer(&self) -> Option<&Buffer>;
    /// Returns the tables and rules of a device that writes by units; `None` for other devices.
    fn placement(&mut self) -> Option<&mut Placed> {
        None
    }
    /// Changes keys of the buffer's policy. Returns all keys of the policy with their values. The present policy is
    /// replaced by a new one of the same kind, as by [`Orders::set_policy`].
    ///
    /// # Errors
    /// Fails if there is no buffer, if a key does not belong to its policy, or if a value is wrong.
    fn set_keys(&mut self, changes: &[(&str, &str)]) -> Result<PolicyKeys, LiveError> {
        let no_buffer =
            || LiveError::Setting("the device has no buffer, whose policy has keys".into());
        let buffer = self.buffer().ok_or_else(no_buffer)?;
        let (name, settings) = (buffer.policy.name(), buffer.changed_settings(changes)?);
        let settings: Vec<_> = settings
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        self.set_policy(&name, &settings)?;
        Ok(self.buffer().ok_or_else(no_buffer)?.policy_settings())
    }
}

/// Keys of a policy and their values in TOML.
pub type PolicyKeys = Vec<(&'static str, String)>;

impl Orders for Ssd {
    fn placement(&mut self) -> Option<&mut Placed> {
        self.placement_mut()
    }
    fn collect(&mut self, member: Option<usize>, die: Option<u32>) -> Result<u32, LiveError> {
        match member {
            Some(_) => Err(no_members()),
            None => self.collect(die).map_err(refused),
        }
    }
    fn kill_die(&mut self, die: u32) -> Result<u32, LiveError> {
        self.kill_die(die).map_err(refused)
    }
    fn buffer(&self) -> Option<&Buffer> {
        self.spec().buffer.as_ref()
    }
    fn set_policy(&mut self, name: &str, settings: &[(&str, &str)]) -> Result<(), LiveError> {
        Ok(self.set_policy(name, settings)?)
    }
}

impl Orders for Array {
    fn collect(&mut self, member: Option<usize>, die: Option<u32>) -> Result<u32, LiveError> {
        self.collect(member, die).map_err(refused)
    }
    fn kill_die(&mut self, _die: u32) -> Result<u32, LiveError> {
        let message =
            "the device is an array, which does without a whole member or not at all: have the \
                       member fail instead (flashtwin ctl SOCKET fail N)";
        Err(LiveError::Setting(message.into()))
    }
    fn buffer(&self) -> Option<&Buffer> {
        self.spec().buffer.as_ref()
    }
    fn set_policy(&mut self, name: &str, settings: &[(&str, &str)]) -> Result<(), LiveError> {
        Ok(self.set_policy(name, settings)?)
    }
}

/// Returns the error for a command that names a member of a device without members.
pub(crate) fn no_members() -> LiveError {
    LiveError::Setting("the device has no members: it is no array".into())
}

/// Returns the error for a command that the model refuses.
pub(crate) fn refused(why: impl std::error::Error) -> LiveError {
    LiveError::Setting(why.to_string())
}
