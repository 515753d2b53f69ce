//! Another policy for the buffer of a device at work (D-144): its name and its own keys, as they would stand in
//! the device's file.

use super::error::{Place, Problem, SpecError};
use super::keys::{keys, KeyDoc};
use super::{ArraySpec, Buffer, DeviceSpec};
use crate::buffer::ChosenPolicy;

impl DeviceSpec {
    /// The policy of this name for the device's buffer. `settings` are keys of policies with their values,
    /// as in `("buffer.window", "0.1")`; those that are not given have their defaults, whatever the present
    /// policy has.
    ///
    /// # Errors
    /// Fails if there is no buffer, or if the policy or a key is unknown or wrong for it.
    pub fn other_policy(
        &self,
        name: &str,
        settings: &[(&str, &str)],
    ) -> Result<ChosenPolicy, SpecError> {
        other(self.buffer.as_ref(), name, settings, |set| {
            Ok(Self::with_overrides(&self.to_toml(), &self.name, set)?.buffer)
        })
    }
}

impl ArraySpec {
    /// The same for the array's own buffer.
    ///
    /// # Errors
    /// Fails if there is no buffer, or if the policy or a key is unknown or wrong for it.
    pub fn other_policy(
        &self,
        name: &str,
        settings: &[(&str, &str)],
    ) -> Result<ChosenPolicy, SpecError> {
        other(self.buffer.as_ref(), name, settings, |set| {
            Ok(Self::with_overrides(&self.to_toml(), &self.name, set)?.buffer)
        })
    }
}

/// It is of policies alone.
fn is_of_policies(doc: &KeyDoc) -> bool {
    let selectors = doc.only.iter().map(|(selector, _)| *selector);
    selectors
        .into_iter()
        .any(|selector| selector == "buffer.policy")
}

/// The policy of that name; `build` makes the buffer with what is to be set for it.
fn other(
    buffer: Option<&Buffer>,
    name: &str,
    settings: &[(&str, &str)],
    build: impl FnOnce(&[(&str, &str)]) -> Result<Option<Buffer>, SpecError>,
) -> Result<ChosenPolicy, SpecError> {
    let buffer = buffer.ok_or_else(|| no_buffer(name))?;
    if !ChosenPolicy::is_name(name) {
        let message = "there is no such policy; `flashtwin policy list` names them";
        return Err(refused("buffer.policy", name, message.into()));
    }
    let of_policies = || keys().iter().filter(|doc| is_of_policies(doc));
    for (key, value) in settings {
        if !of_policies().any(|doc| doc.key == key.trim()) {
            let message = "only the keys of a policy can be set for a device at work".into();
            return Err(refused(key, value, message));
        }
    }
    // CBM would have one by default.
    let read_cache = buffer.read_cache_pages.to_string();
    let mut set: Vec<(&str, &str)> = of_policies().map(|doc| (doc.key, "none")).collect();
    set.extend([("buffer.policy", name), ("buffer.read_cache", &read_cache)]);
    set.extend(settings);
    let other = build(&set)?.map(|buffer| buffer.policy);
    other.ok_or_else(|| no_buffer(name))
}

fn no_buffer(name: &str) -> SpecError {
    let message = "the device has no buffer of its own to be governed";
    refused("buffer.policy", name, message.into())
}

/// Refuses a setting.
pub(crate) fn refused(key: &str, value: &str, message: String) -> SpecError {
    SpecError {
        problems: vec![Problem {
            place: Place::Override {
                setting: format!("{key}={value}"),
            },
            key: key.into(),
            message,
        }],
    }
}
