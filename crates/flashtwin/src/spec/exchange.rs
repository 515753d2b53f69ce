//! Changes to a running device: another policy for its buffer, other values for the keys of the policy (D-144), and
//! other values for keys of garbage collection. Names and values are given as in a device file.

use super::convert::text;
use super::error::{Place, Problem, SpecError};
use super::keys::keys;
use super::tree::split;
use super::{ArraySpec, Buffer, DeviceSpec, Gc};
use crate::buffer::ChosenPolicy;

impl DeviceSpec {
    /// Returns the policy called `name`, set up for the device's buffer. `settings` has keys of policies and their
    /// values, such as `("buffer.window", "0.1")`. Other keys get their defaults; the values of the present policy are
    /// not kept.
    ///
    /// # Errors
    /// Fails if there is no buffer, or if the policy or a key is unknown or invalid for this buffer.
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

/// Keys of garbage collection that can change while a device runs.
const GC: [&str; 3] = [
    Gc::low_percent.name(),
    Gc::idle_percent.name(),
    Gc::preemptible.name(),
];

impl DeviceSpec {
    /// Returns this device with other values for keys of garbage collection. Only keys that can change while a device
    /// runs are permitted.
    ///
    /// # Errors
    /// Fails if a key cannot change while the device runs, or if a value is wrong for this device.
    pub fn with_gc(&self, settings: &[(&str, &str)]) -> Result<DeviceSpec, SpecError> {
        if let Some((key, value)) = settings.iter().find(|(key, _)| !GC.contains(&key.trim())) {
            let message = format!(
                "of [gc], only {} can change while a device runs; a restart takes any",
                GC.join(", ")
            );
            return Err(refused(key, value, message));
        }
        Self::with_overrides(&self.to_toml(), &self.name, settings)
    }

    /// Returns the keys of garbage collection that can change while the device runs, and their values in TOML.
    pub fn gc_settings(&self) -> Vec<(&'static str, String)> {
        let value = |key: &'static str| Some((key, self.value_toml(key)?));
        GC.into_iter().filter_map(value).collect()
    }
}

impl ArraySpec {
    /// Returns the policy called `name`, set up for the array's own buffer; see [`DeviceSpec::other_policy`].
    ///
    /// # Errors
    /// Fails if there is no buffer, or if the policy or a key is unknown or invalid for this buffer.
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

impl Buffer {
    /// Returns the keys of the policy and their values in TOML.
    pub fn policy_settings(&self) -> Vec<(&'static str, String)> {
        let of_policies = keys().iter().filter(|doc| doc.is_policy_parameter());
        let settings = of_policies.filter_map(|doc| {
            let value = self.policy.settings.value(split(doc.key).1)?;
            Some((doc.key, text(doc.kind, value)))
        });
        settings.collect()
    }

    /// Returns all keys of the present policy with their values. Keys in `changes` have the values given there. All
    /// other keys keep their present values.
    ///
    /// # Errors
    /// Fails if a given key is not a key of the policy.
    pub fn changed_settings(
        &self,
        changes: &[(&str, &str)],
    ) -> Result<Vec<(&'static str, String)>, SpecError> {
        let mut settings = self.policy_settings();
        for (key, value) in changes {
            let Some(at) = settings.iter().position(|(known, _)| *known == key.trim()) else {
                let name = self.policy.name();
                let known: Vec<&str> = settings.iter().map(|(key, _)| *key).collect();
                let known = match known.is_empty() {
                    true => format!("{name} has none"),
                    false => format!("of {name}: {}", known.join(", ")),
                };
                let message = format!(
                    "only the keys of the present policy can be set for a device at work ({known}), and {} \
                     of an SSD; a restart takes any",
                    GC.join(", ")
                );
                return Err(refused(key, value, message));
            };
            settings[at].1 = (*value).into();
        }
        Ok(settings)
    }
}

/// Returns the policy called `name`. `build` creates a buffer after setting the keys that are passed to it.
fn other(
    buffer: Option<&Buffer>,
    name: &str,
    settings: &[(&str, &str)],
    build: impl FnOnce(&[(&str, &str)]) -> Result<Option<Buffer>, SpecError>,
) -> Result<ChosenPolicy, SpecError> {
    let buffer = buffer.ok_or_else(|| no_buffer(name))?;
    if !ChosenPolicy::is_name(name) {
        let message = "there is no such policy; `flashtwin policy list` names them";
        return Err(refused(Buffer::policy.name(), name, message.into()));
    }
    let of_policies = || keys().iter().filter(|doc| doc.is_policy_parameter());
    for (key, value) in settings {
        if !of_policies().any(|doc| doc.key == key.trim()) {
            let message = "only the keys of a policy can be set for a device at work".into();
            return Err(refused(key, value, message));
        }
    }
    // The size of the read cache must not change. Without this setting, CBM would have a read cache of its default
    // size.
    let read_cache = buffer.read_cache_pages.to_string();
    let mut set: Vec<(&str, &str)> = of_policies().map(|doc| (doc.key, "none")).collect();
    set.extend([
        (Buffer::policy.name(), name),
        (Buffer::read_cache_pages.name(), &read_cache),
    ]);
    set.extend(settings);
    let other = build(&set)?.map(|buffer| buffer.policy);
    other.ok_or_else(|| no_buffer(name))
}

fn no_buffer(name: &str) -> SpecError {
    let message = "the device has no buffer of its own to be governed";
    refused(Buffer::policy.name(), name, message.into())
}

/// Returns the error of a refused setting.
pub(crate) fn refused(key: &str, value: &str, message: String) -> SpecError {
    let setting = format!("{key}={value}");
    Problem::new(Place::Override { setting }, key, message).into()
}
