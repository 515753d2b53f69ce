//! Orders: commands to a running device that are not client requests, for example from the control socket. SSDs and
//! arrays execute them in different ways.

use flashtwin::placement::Placed;
use flashtwin::spec::Buffer;
use flashtwin::{Array, Ssd};

use crate::LiveError;

/// A device that takes orders.
pub trait Orders {
    /// Orders the die `die` to garbage-collect one block. If `die` is `None`, each die collects one block. On an array,
    /// the order is for one member, or for all members if `member` is `None`. Returns the number of dies that received
    /// the order.
    ///
    /// # Errors
    /// Fails if there is no such member or die, or if the device cannot collect a single block.
    fn collect(&mut self, member: Option<usize>, die: Option<u32>) -> Result<u32, LiveError>;
    /// Makes a die fail. Returns the number of pages lost.
    ///
    /// # Errors
    /// Fails if there is no such die, or if the device cannot work without it.
    fn kill_die(&mut self, die: u32) -> Result<u32, LiveError>;
    /// Sets the policy of the buffer.
    ///
    /// # Errors
    /// Fails if there is no buffer, or if the policy or a key is unknown or wrong for this device.
    fn set_policy(&mut self, name: &str, settings: &[(&str, &str)]) -> Result<(), LiveError>;
    /// Returns the buffer, if there is one.
    fn buffer(&self) -> Option<&Buffer>;
    /// Returns the placement tables and rules of a device that writes by units (blocks that are erased together);
    /// `None` for other devices.
    fn placement(&mut self) -> Option<&mut Placed> {
        None
    }
    /// Returns the GC settings that can change.
    fn gc_settings(&self) -> LiveKeys;
    /// Checks changes of GC settings.
    ///
    /// # Errors
    /// Fails if a setting cannot change while the device runs, or if a value is wrong.
    fn may_set_gc(&self, settings: &[(&str, &str)]) -> Result<(), LiveError>;
    /// Changes GC settings.
    ///
    /// # Errors
    /// Fails as [`Orders::may_set_gc`] does.
    fn set_gc(&mut self, settings: &[(&str, &str)]) -> Result<(), LiveError>;
    /// Restores the GC settings `start`, which [`Orders::gc_settings`] returned when the server started. Called before
    /// the state of the flash is saved, because the state must fit the device as it was started.
    ///
    /// # Errors
    /// Fails as [`Orders::may_set_gc`] does.
    fn restore_gc(&mut self, start: &LiveKeys) -> Result<(), LiveError> {
        let present = self.gc_settings();
        if present == *start {
            return Ok(());
        }
        let mut settings: Vec<_> = (start.iter())
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        for (key, _) in &present {
            if start.iter().all(|(known, _)| known != key) {
                settings.push((key, "none"));
            }
        }
        self.set_gc(&settings)
    }
    /// Changes GC settings and keys of the buffer's policy. Returns all keys that can change, with their values. If
    /// keys of the policy are given, a new policy with the same name replaces the present one ([`Orders::set_policy`]).
    ///
    /// # Errors
    /// Fails if a key cannot change, or if a value is wrong. In that case, nothing is changed.
    fn set_keys(&mut self, changes: &[(&str, &str)]) -> Result<LiveKeys, LiveError> {
        let (gc, of_policy): (Vec<_>, Vec<_>) =
            (changes.iter().copied()).partition(|(key, _)| key.trim().starts_with("gc."));
        self.may_set_gc(&gc)?;
        if !of_policy.is_empty() {
            let no_buffer =
                || LiveError::Setting("the device has no buffer, whose policy has keys".into());
            let buffer = self.buffer().ok_or_else(no_buffer)?;
            let (name, settings) = (buffer.policy.name(), buffer.changed_settings(&of_policy)?);
            let settings: Vec<_> = settings
                .iter()
                .map(|(key, value)| (*key, value.as_str()))
                .collect();
            self.set_policy(&name, &settings)?;
        }
        if !gc.is_empty() {
            self.set_gc(&gc)?;
        }
        let mut keys = self
            .buffer()
            .map_or(LiveKeys::new(), Buffer::policy_settings);
        keys.extend(self.gc_settings());
        Ok(keys)
    }
}

/// Keys that can change while a device runs, each with its value in TOML.
pub type LiveKeys = Vec<(&'static str, String)>;

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
    fn gc_settings(&self) -> LiveKeys {
        self.gc_settings()
    }
    fn may_set_gc(&self, settings: &[(&str, &str)]) -> Result<(), LiveError> {
        self.may_set_gc(settings)?;
        Ok(())
    }
    fn set_gc(&mut self, settings: &[(&str, &str)]) -> Result<(), LiveError> {
        Ok(self.set_gc(settings)?)
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
    fn gc_settings(&self) -> LiveKeys {
        LiveKeys::new()
    }
    fn may_set_gc(&self, settings: &[(&str, &str)]) -> Result<(), LiveError> {
        let Some((key, _)) = settings.first() else {
            return Ok(());
        };
        let message = format!(
            "{key}: the members of an array have their GC settings from their start; a restart takes any"
        );
        Err(LiveError::Setting(message))
    }
    fn set_gc(&mut self, settings: &[(&str, &str)]) -> Result<(), LiveError> {
        self.may_set_gc(settings)
    }
}

/// Returns the error for a command that names a member, on a device that is no array.
pub(crate) fn no_members() -> LiveError {
    LiveError::Setting("the device has no members: it is no array".into())
}

/// Returns the error for a command that the model refuses.
pub(crate) fn refused(why: impl std::error::Error) -> LiveError {
    LiveError::Setting(why.to_string())
}
