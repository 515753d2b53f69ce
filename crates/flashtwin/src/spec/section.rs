//! Declaration of a section of keys. From one declaration of a key, [`section!`] creates the field, the row in the
//! documentation, the reader and the writer.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

use super::convert::convert;
use super::tree::{split, Node};
use crate::component::{Chosen, Component, FromSetting, Kind, Parameter, Settings, Value, Word};
use crate::units::Time;

/// Conditions of a key. The key has a meaning only if all of them are met.
pub type Only = &'static [Condition];

/// A condition: a selector (a key that chooses among words), and those of its values for which the condition is met.
pub type Condition = (&'static str, &'static [&'static str]);

/// One key of a device file.
#[derive(Clone, Copy, Debug)]
pub struct KeyDoc {
    /// Dotted name, such as `buffer.capacity`.
    pub key: &'static str,
    /// Kind of the value, with its unit.
    pub kind: Kind,
    /// TOML text of the default. `None` means that the key must be given.
    pub default: Option<&'static str>,
    /// Conditions under which the key has a meaning.
    pub only: Only,
    /// Description.
    pub doc: &'static str,
    /// Source of the key or of its default.
    pub provenance: &'static str,
}

/// Default of a key that may be omitted. An omitted key has no value, or the value of another key.
pub(super) const OPTIONAL: Option<&str> = Some("none");

/// Returns the section of a key; empty for a key of the root.
pub(super) fn section_of(doc: &KeyDoc) -> &'static str {
    split(doc.key).0
}

/// A key as its section declares it, for a field of type `T`.
pub(crate) struct Key<T> {
    pub(super) doc: KeyDoc,
    among: fn() -> Vec<Component>,
    field: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    pub(super) const fn new(doc: KeyDoc, among: fn() -> Vec<Component>) -> Key<T> {
        Key {
            doc,
            among,
            field: PhantomData,
        }
    }

    /// Returns the dotted name.
    pub(crate) const fn name(&self) -> &'static str {
        self.doc.key
    }

    /// Returns the name without the section.
    pub(super) fn short_name(&self) -> &'static str {
        split(self.doc.key).1
    }

    /// Returns the key as a row of a table.
    pub(super) const fn row<R>(self, write: fn(&R) -> Option<Value>) -> Row<R> {
        Row {
            doc: self.doc,
            among: self.among,
            write,
        }
    }
}

impl<T> fmt::Display for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A key in a table, with the function that returns the key's value in a specification of type `R`.
pub(super) struct Row<R> {
    pub doc: KeyDoc,
    /// Components among which the key chooses. Empty if the key does not choose among components.
    pub among: fn() -> Vec<Component>,
    /// Returns the key's value; `None` if the key is omitted.
    pub write: fn(&R) -> Option<Value>,
}

/// A type that fields of keys can have.
pub(super) trait Field: Sized {
    /// Returns the field's value from the values that were read.
    fn read(v: &Values, key: &Key<Self>) -> Self;

    /// Returns the value to write to a file, from which the same field is read. `None` if the key is omitted.
    fn write(&self) -> Option<Value>;
}

/// Values of keys. Each value has been checked individually.
#[derive(Debug, Default)]
pub(super) struct Values(pub BTreeMap<&'static str, Value>);

impl Values {
    /// Returns the value of a key, converted to the type of its field.
    pub fn field<T: Field>(&self, key: &Key<T>) -> T {
        T::read(self, key)
    }

    /// Returns the value of a key, converted to a type other than that of its field.
    pub fn setting<S: FromSetting, T>(&self, key: &Key<T>) -> S {
        let value = self.0.get(key.name()).cloned();
        let value = value.or_else(|| neutral(&key.doc));
        let setting = value.as_ref().and_then(S::from_setting);
        setting.unwrap_or_else(|| unreachable!("{key} was checked against its kind"))
    }

    /// Returns the unconverted value of a key; `None` if the key is omitted or has no meaning for the device.
    pub fn get<T>(&self, key: &Key<T>) -> Option<&Value> {
        self.0.get(key.name())
    }

    /// Whether the key has a value, which requires that it has a meaning for the device and is not omitted.
    pub fn has<T>(&self, key: &Key<T>) -> bool {
        self.get(key).is_some()
    }

    /// Returns the value of a parameter of the component that `selector` chooses.
    pub fn parameter<T>(&self, selector: &Key<T>, parameter: &Parameter) -> Option<&Value> {
        let section = section_of(&selector.doc);
        self.0.get(format!("{section}.{}", parameter.key).as_str())
    }
}

/// Returns the default of a key as a value.
pub(super) fn default_value(kind: Kind, text: &str) -> Value {
    let value = convert(kind, &Node::from_override(text));
    value.expect("a default is of its key's kind")
}

/// Returns the value of a field for a key that has no meaning for the device. A switch is false. Any other key has its
/// default, or zero if it has none.
fn neutral(doc: &KeyDoc) -> Option<Value> {
    match (doc.kind, doc.default) {
        (_, OPTIONAL) => None,
        (Kind::Bool, _) => Some(Value::Bool(false)),
        // The text is not converted by the kind, because the kind does not have the names of the components yet. They
        // are added when the tables are created.
        (Kind::Choice(_), Some(text)) => Some(Value::Text(text.trim_matches('"').into())),
        (kind, Some(text)) => Some(default_value(kind, text)),
        (_, None) => Some(Value::Float(0.0)),
    }
}

impl<T: Word> Field for T {
    fn read(v: &Values, key: &Key<T>) -> T {
        v.setting(key)
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Text(self.word().into()))
    }
}

/// A key that may be omitted.
impl<T: Field> Field for Option<T> {
    fn read(v: &Values, key: &Key<Option<T>>) -> Option<T> {
        v.has(key)
            .then(|| T::read(v, &Key::new(key.doc, key.among)))
    }

    fn write(&self) -> Option<Value> {
        self.as_ref()?.write()
    }
}

/// A count for which 0 in a file means "none".
impl Field for Option<NonZeroU32> {
    fn read(v: &Values, key: &Key<Option<NonZeroU32>>) -> Option<NonZeroU32> {
        NonZeroU32::new(v.setting(key))
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Number(self.map_or(0, |n| n.get().into())))
    }
}

impl Field for Chosen {
    fn read(v: &Values, key: &Key<Chosen>) -> Chosen {
        let word: String = v.setting(key);
        let component = (key.among)().into_iter().find(|known| known.name == word);
        let component = component.expect("the word was checked against the list");
        let setting = |parameter: &Parameter| {
            let value = v.parameter(key, parameter);
            let value = value.expect("a parameter has a default").clone();
            (parameter.key, value)
        };
        Chosen {
            name: component.name,
            settings: Settings::new(component.parameters.iter().map(setting).collect()),
        }
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Text(self.name.into()))
    }
}

/// Implements [`Field`] for types that can be converted to a value and back.
macro_rules! fields {
    ($($Type:ty, $field:ident => $value:expr;)+) => {$(
        impl Field for $Type {
            fn read(v: &Values, key: &Key<$Type>) -> $Type {
                v.setting(key)
            }

            fn write(&self) -> Option<Value> {
                let $field = self;
                Some($value)
            }
        }
    )+};
}

fields! {
    u32, n => Value::Number((*n).into());
    bool, on => Value::Bool(*on);
    f64, x => Value::Float(*x);
    String, text => Value::Text(text.clone());
    Time, time => Value::Number(time.0);
    Vec<Time>, times => Value::Numbers(times.iter().map(|time| time.0).collect());
}

impl FromSetting for Time {
    fn from_setting(value: &Value) -> Option<Time> {
        match value {
            Value::Number(ps) => Some(Time(*ps)),
            _ => None,
        }
    }
}

impl FromSetting for Vec<Time> {
    fn from_setting(value: &Value) -> Option<Vec<Time>> {
        match value {
            Value::Numbers(times) => Some(times.iter().map(|&ps| Time(ps)).collect()),
            _ => None,
        }
    }
}

/// Declares the keys of a section, or of a part of a section. Creates:
///
/// - a struct with a field for each key;
/// - for each field, a constant [`Key`] of the same name, by which other code refers to the key;
/// - `ROWS`, for the tables, the writer and the documentation;
/// - the reader `from_values`.
///
/// ```ignore
/// section! {
///     /// Durations of the flash steps.
///     pub struct Timing(v) in (spec: DeviceSpec => Some(&spec.timing)) {
///         erase: Time = "timing.erase_us", Kind::Micros(STEP_US), None, &[],
///             "Block erase.", "GCaR, Harmonia, ECR: 1500";
///     } and {
///         /// Mean over the page types.
///         read: Time = mean(&read_by_type);
///     }
/// }
/// ```
///
/// `v` is a name for the values that the reader receives, and `spec` a name for the whole specification that the writer
/// receives. The expression after `=>` returns the section within this specification. An entry has the key's dotted
/// name, its kind, the text of its default, its conditions, its description and its source. After these, an entry may
/// have:
///
/// * `follows FIELD`: if the key is omitted, it has the value of an earlier field. If its value equals that of the
///   earlier field, the key is not written.
/// * `among COMPONENTS`: the key chooses among components. The keys of their parameters follow it.
/// * `read EXPR` and `write EXPR`: conversions, for a field that is not the value itself. `read` may use earlier
///   fields.
///
/// Fields after `and` are not keys; they are computed from other fields.
macro_rules! section {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident($v:ident $(, $arg:ident: $Arg:ty)*) in ($spec:ident: $Spec:ty => $part:expr) {
            $(
                $field:ident: $Type:ty = $key:literal, $kind:expr, $default:expr, $only:expr,
                    $doc:literal, $from:literal
                    $(, follows $other:ident)? $(, among $among:expr)? $(, read $read:expr)? $(, write $write:expr)?;
            )*
        }
        $(and { $($(#[$about:meta])+ $derived:ident: $Derived:ty = $made:expr;)+ })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $Name {
            $(#[doc = $doc] pub $field: $Type,)*
            $($($(#[$about])+ pub $derived: $Derived,)+)?
        }

        #[allow(non_upper_case_globals)] // A key is called as its field is.
        impl $Name {
            $(
                pub(crate) const $field: $crate::spec::section::Key<$Type> = $crate::spec::section::Key::new(
                    $crate::spec::section::KeyDoc {
                        key: $key,
                        kind: $kind,
                        default: $default,
                        only: $only,
                        doc: $doc,
                        provenance: $from,
                    },
                    $crate::spec::section::section!(@among $($among)?),
                );
            )*

            /// The keys in the order of the documentation.
            pub(in crate::spec) const ROWS: &'static [$crate::spec::section::Row<$Spec>] = &[$(
                Self::$field.row(|$spec: &$Spec| {
                    $crate::spec::section::section!(
                        @write $part, $Name, $field $(, follows $other)? $(, write $write)?
                    )
                }),
            )*];

            /// Returns the section with these values. Whether the values agree with each other has not been checked.
            pub(in crate::spec) fn from_values(
                $v: &$crate::spec::section::Values
                $(, $arg: $Arg)*
            ) -> $Name {
                $(
                    let $field: $Type = $crate::spec::section::section!(
                        @read $v, Self::$field $(, follows $other)? $(, read $read)?
                    );
                )*
                $($(let $derived: $Derived = $made;)+)?
                $Name { $($field,)* $($($derived,)+)? }
            }
        }
    };

    (@among) => { Vec::new };
    (@among $among:expr) => { || $among.to_vec() };

    (@read $v:ident, $key:expr) => { $v.field(&$key) };
    (@read $v:ident, $key:expr, follows $other:ident) => {
        if $v.has(&$key) { $v.field(&$key) } else { $other }
    };
    (@read $v:ident, $key:expr, read $read:expr) => { $read };

    (@write $part:expr, $Name:ident, $field:ident) => {{
        let part: Option<&$Name> = $part;
        $crate::spec::section::Field::write(&part?.$field)
    }};
    (@write $part:expr, $Name:ident, $field:ident, follows $other:ident) => {{
        let part: Option<&$Name> = $part;
        let part = part?;
        match part.$field == part.$other {
            true => None,
            false => $crate::spec::section::Field::write(&part.$field),
        }
    }};
    (@write $part:expr, $Name:ident, $field:ident, write $write:expr) => { $write };
}

pub(in crate::spec) use section;
