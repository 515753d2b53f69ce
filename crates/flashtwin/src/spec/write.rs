//! Writes a [`DeviceSpec`] as TOML text, from which the same specification can be read.

use super::convert::text;
use super::keys::{find, has_meaning, keys, row, ROWS};
use super::section::KeyDoc;
use super::tree::split;
use super::{Buffer, DeviceSpec, Ftl, Gc, Wear, WriteUnits};
use crate::component::Value;

impl DeviceSpec {
    /// Returns the specification as text in a standard form. The text has every key that has a meaning for this device,
    /// in the order of [`keys`](super::keys()). [`DeviceSpec::parse`] returns an equal specification for this text.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut current = "";
        for doc in keys() {
            let Some(value) = self.value_toml(doc.key) else {
                continue;
            };
            let (section, name) = split(doc.key);
            if section != current {
                text.push_str(&format!("\n[{section}]\n"));
                current = section;
            }
            text.push_str(&format!("{name} = {value}\n"));
        }
        text
    }

    /// Returns the value of a dotted key as TOML text; `None` if the key has no meaning for this device.
    pub fn value_toml(&self, key: &str) -> Option<String> {
        let doc = find(key)?;
        if !has_meaning(ROWS, self, doc) {
            return None;
        }
        match row(ROWS, key) {
            Some(row) => Some(text(doc.kind, &(row.write)(self)?)),
            None => self.parameter_toml(doc),
        }
    }

    /// Returns the value of a key that is not a field of a section: a parameter of a component, or a published figure.
    fn parameter_toml(&self, doc: &KeyDoc) -> Option<String> {
        let (section, name) = split(doc.key);
        let is_of = |selector: &str| split(selector).0 == section;
        let placement = self.placement.as_ref();
        let value = if is_of(Gc::victim.name()) {
            let of_scope = || placement?.scope.settings.value(name);
            self.gc.victim.settings.value(name).or_else(of_scope)?
        } else if is_of(WriteUnits::scheme.name()) {
            placement?.scheme.settings.value(name)?
        } else if is_of(Wear::levelling.name()) {
            self.wear.levelling.settings.value(name)?
        } else if is_of(Buffer::policy.name()) {
            self.buffer.as_ref()?.policy.settings.value(name)?
        } else if is_of(Ftl::kind.name()) {
            return self.chip_setup()?.value(name);
        } else {
            &Value::Float(self.published.figure(name)?)
        };
        Some(text(doc.kind, value))
    }
}
