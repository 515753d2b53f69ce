//! Enums whose variants are words of device files.

/// Declares an enum together with the word of each variant, so that no word stands in a second place:
///
/// ```ignore
/// words! {
///     /// ECR's choice among chips of equal queue complete time (D-15).
///     pub enum Tie {
///         /// The chip whose victim was accessed longest ago.
///         Oldest = "oldest",
///     }
/// }
/// ```
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $Name:ident {
        $($(#[$of_variant:meta])* $Variant:ident = $word:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Name { $($(#[$of_variant])* $Variant,)+ }

        impl $Name {
            /// Names in device files.
            $vis const WORDS: &'static [&'static str] = &[$($word),+];

            /// Name in a device file.
            #[allow(dead_code)] // Not every enum is written back by itself.
            $vis fn name(self) -> &'static str {
                match self { $($Name::$Variant => $word,)+ }
            }

            /// The one that a device file calls so.
            $vis fn from_word(word: &str) -> Option<$Name> {
                match word { $($word => Some($Name::$Variant),)+ _ => None }
            }
        }

        impl $crate::component::FromSetting for $Name {
            fn from_setting(value: &$crate::component::Value) -> Option<$Name> {
                match value {
                    $crate::component::Value::Text(word) => $Name::from_word(word),
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use words;
