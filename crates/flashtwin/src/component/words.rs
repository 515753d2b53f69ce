//! Enums whose variants are words of device files.

/// An enum in which each variant stands for a word of device files.
pub trait Word: Copy {
    /// Returns the word of the variant.
    fn word(self) -> &'static str;

    /// Returns the variant that has this word.
    fn from_word(word: &str) -> Option<Self>;
}

/// Declares an enum together with the word of each variant, so that each word appears in one place
/// only:
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
            /// All words, in the order of the variants.
            $vis const WORDS: &'static [&'static str] = &[$($word),+];

            /// Returns the word of the variant.
            #[allow(dead_code)] // Not every enum is written back by itself.
            $vis const fn name(self) -> &'static str {
                match self { $($Name::$Variant => $word,)+ }
            }

            /// Returns the variant with this word.
            $vis fn from_word(word: &str) -> Option<$Name> {
                match word { $($word => Some($Name::$Variant),)+ _ => None }
            }
        }

        impl $crate::component::Word for $Name {
            fn word(self) -> &'static str {
                self.name()
            }

            fn from_word(word: &str) -> Option<$Name> {
                $Name::from_word(word)
            }
        }
    };
}

pub(crate) use words;
