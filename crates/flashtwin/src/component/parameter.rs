//! Parameters of a component. Each parameter is declared once, in the component's own file.

use super::words::Word;
use super::Kind;

/// A parameter as its component declares it.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Key of the parameter, without the name of its section.
    pub key: &'static str,
    /// Kind of the value, with its unit.
    pub kind: Kind,
    /// Default value, as TOML text.
    pub default: &'static str,
    /// Meaning of the parameter, in one sentence.
    pub doc: &'static str,
    /// Publication that is the source of the parameter or of its default.
    pub provenance: &'static str,
}

/// Declares the parameters of a component. The macro creates:
///
/// - a struct with the values of the parameters,
/// - `ROWS`, the descriptions for reading and writing device files and for the documentation,
/// - `of`, which reads the values from [`Settings`].
///
/// ```ignore
/// parameters! {
///     /// Parameters of CFLRU.
///     struct Parameters {
///         /// Least recent entries among which clean pages are evicted first.
///         window: Pages = Kind::Window, "0.25", "original: 0.25 of the capacity";
///     }
/// }
/// ```
macro_rules! parameters {
    ($(#[$meta:meta])* $vis:vis struct $Name:ident {
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $kind:expr, $default:literal, $from:literal;)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $vis struct $Name { $($(#[doc = $doc])+ $vis $field: $type,)+ }

        impl $Name {
            /// Descriptions of the parameters.
            $vis const ROWS: &'static [$crate::component::Parameter] = &[$(
                $crate::component::Parameter {
                    key: stringify!($field),
                    kind: $kind,
                    default: $default,
                    // The text of a doc comment begins with a space. The space is removed here.
                    doc: concat!($($doc),+).split_at(1).1,
                    provenance: $from,
                },
            )+];

            /// Reads the values from the settings of a component.
            $vis fn of(settings: &$crate::component::Settings) -> $Name {
                $Name { $($field: settings.get(stringify!($field)),)+ }
            }
        }
    };
}

pub(crate) use parameters;

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text: a word or a name.
    Text(String),
    /// A switch: true or false.
    Bool(bool),
    /// A whole number: a count, a number of pages, bytes, or picoseconds.
    Number(u64),
    /// A share or a percentage.
    Float(f64),
    /// Several numbers, or one: times in picoseconds.
    Numbers(Vec<u64>),
}

/// The text that a device file gives in place of a number if the component is to compute a count itself.
pub(crate) const AUTO: &str = "auto";

/// A number of pages. A device file gives it as a whole number, or as a fraction of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages(pub u32);

/// A type that a field of a parameter struct can have.
pub trait FromSetting: Sized {
    /// Converts the value; returns `None` if the value is of another type.
    fn from_setting(value: &Value) -> Option<Self>;
}

impl<T: Word> FromSetting for T {
    fn from_setting(value: &Value) -> Option<T> {
        match value {
            Value::Text(word) => T::from_word(word),
            _ => None,
        }
    }
}

impl FromSetting for u64 {
    fn from_setting(value: &Value) -> Option<u64> {
        match value {
            Value::Number(n) => Some(*n),
            _ => None,
        }
    }
}

impl FromSetting for u32 {
    fn from_setting(value: &Value) -> Option<u32> {
        match value {
            Value::Number(n) => u32::try_from(*n).ok(),
            _ => None,
        }
    }
}

/// A count. `None` means that the component computes it itself.
impl FromSetting for Option<u32> {
    fn from_setting(value: &Value) -> Option<Option<u32>> {
        match value {
            Value::Text(word) => (word == AUTO).then_some(None),
            _ => u32::from_setting(value).map(Some),
        }
    }
}

impl FromSetting for Pages {
    fn from_setting(value: &Value) -> Option<Pages> {
        u32::from_setting(value).map(Pages)
    }
}

impl FromSetting for bool {
    fn from_setting(value: &Value) -> Option<bool> {
        match value {
            Value::Bool(on) => Some(*on),
            _ => None,
        }
    }
}

impl FromSetting for String {
    fn from_setting(value: &Value) -> Option<String> {
        match value {
            Value::Text(word) => Some(word.clone()),
            _ => None,
        }
    }
}

impl FromSetting for f64 {
    fn from_setting(value: &Value) -> Option<f64> {
        match value {
            Value::Float(x) => Some(*x),
            _ => None,
        }
    }
}

/// The values of all parameters of a component, by key. Every value has been checked against the limits of its kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(Vec<(&'static str, Value)>);

impl Settings {
    /// Creates the settings of a component from the given values.
    pub(crate) fn new(values: Vec<(&'static str, Value)>) -> Settings {
        Settings(values)
    }

    /// Returns the value of a parameter. The component must declare this parameter.
    ///
    /// # Panics
    ///
    /// Panics if the component declares no parameter with this key and type.
    pub fn get<T: FromSetting>(&self, key: &str) -> T {
        let value = self.value(key).and_then(T::from_setting);
        value.unwrap_or_else(|| panic!("{key} is declared by its component, with this type"))
    }

    /// Returns the value of a key; `None` if the component has no such parameter.
    pub fn value(&self, key: &str) -> Option<&Value> {
        let mut all = self.0.iter();
        all.find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

/// Description of a component for device files and documentation. The behaviour of the component is in the same file.
#[derive(Clone, Copy, Debug)]
pub struct Component {
    /// Name of the component in device files.
    pub name: &'static str,
    /// Description of the component in one line. In texts, it follows the name of the component.
    pub line: &'static str,
    /// Parameters of the component.
    pub parameters: &'static [Parameter],
}

/// A component that a device file selects, with the values of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Name of the component.
    pub name: &'static str,
    /// The values of the component's parameters.
    pub settings: Settings,
}
