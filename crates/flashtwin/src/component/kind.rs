//! Kinds of values that keys and parameters take.

use std::fmt;

/// Longest [`Kind::Text`], in characters.
pub(crate) const TEXT_MAX: usize = 200;

/// Kind of a key's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A short name that consists of lower-case letters, digits, `-`, `_` and `.`.
    Name,
    /// Free text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The name of a replacement policy.
    PolicyName,
    /// `true` or `false`.
    Bool,
    /// A whole number. The two fields are its least and its largest value.
    Count(u32, u32),
    /// A whole number between the two fields, or `"auto"`. With `"auto"`, the component computes the number.
    CountOrAuto(u32, u32),
    /// A size in bytes, at most this many.
    Size(u64),
    /// A time in microseconds, at most this many.
    Micros(u32),
    /// One time in microseconds, or a list with one time for each page type. The field is the largest value.
    MicrosByType(u32),
    /// A time in nanoseconds, at most this many.
    Nanos(u32),
    /// A percentage from 0 to below 100.
    Percent,
    /// A number of pages of the buffer: a whole number, or a fraction of the buffer's capacity. The result is at most
    /// the capacity.
    Window,
    /// A number that is specified like a number of pages but may exceed the capacity, such as the number of remembered
    /// pages. It is a whole number up to a fixed limit, or a fraction of the buffer's capacity.
    Beyond,
    /// A share from 0 to 1.
    Share,
    /// A published figure of a drive, such as a throughput or a latency: a number above 0 and at most 1,000,000,000.
    Figure,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Name => f.write_str("a name of 1 to 64 characters out of a-z 0-9 - _ ."),
            Kind::Text => write!(f, "text of one line, at most {TEXT_MAX} characters"),
            Kind::Choice(words) => write_choice(f, words.iter().copied()),
            Kind::PolicyName => f.write_str("a policy that `flashtwin policy list` knows"),
            Kind::Bool => f.write_str("true or false"),
            Kind::Count(min, max) => write!(f, "a whole number from {min} to {max}"),
            Kind::CountOrAuto(min, max) => {
                write!(f, "a whole number from {min} to {max}, or \"auto\"")
            }
            Kind::Size(max) => {
                write!(
                    f,
                    "bytes, or a size such as \"4 KiB\", at most {}",
                    size(*max)
                )
            }
            Kind::Micros(max) => write!(f, "microseconds from 0 to {max}"),
            Kind::MicrosByType(max) => write!(
                f,
                "microseconds from 0 to {max}, or a list of them by page type"
            ),
            Kind::Nanos(max) => write!(f, "nanoseconds from 0 to {max}"),
            Kind::Percent => f.write_str("percent from 0 to below 100"),
            Kind::Window | Kind::Beyond => f.write_str(
                "a whole number of pages, or a fraction of the capacity such as 0.25, up to 1.0",
            ),
            Kind::Share => f.write_str("a share from 0 to 1"),
            Kind::Figure => f.write_str("a number above 0, at most a billion"),
        }
    }
}

fn write_choice<'a>(
    f: &mut fmt::Formatter<'_>,
    words: impl ExactSizeIterator<Item = &'a str>,
) -> fmt::Result {
    if words.len() > 1 {
        f.write_str("one of ")?;
    }
    for (i, word) in words.enumerate() {
        write!(f, "{}{word:?}", if i > 0 { ", " } else { "" })?;
    }
    Ok(())
}

/// Formats a size in the largest binary unit that divides it: `32 MiB`, `1536 B`.
pub(crate) fn size(bytes: u64) -> String {
    for (unit, factor) in [
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ] {
        if bytes > 0 && bytes.is_multiple_of(factor) {
            return format!("{} {unit}", bytes / factor);
        }
    }
    format!("{bytes} B")
}
