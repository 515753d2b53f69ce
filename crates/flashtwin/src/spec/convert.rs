//! Converts TOML values to values of keys, in base units, and back.

use std::ops::RangeInclusive;

use super::decimal::{scale, show, Rounding};
use super::suggest::nearest;
use super::tree::Node;
use crate::buffer::ChosenPolicy;
use crate::component::{size, Kind, Value, AUTO, TEXT_MAX};

const PS_PER_US: u64 = 1_000_000;
const PS_PER_NS: u64 = 1_000;
const FIGURE_MAX: u32 = 1_000_000_000;
/// Largest number of page types. A cell has at most four bits.
const PAGE_TYPES_MAX: usize = 4;

/// Returns the error message for a value that is not permitted for the key.
pub(super) fn wrong_value(kind: Kind, node: &Node) -> String {
    let mut message = format!("found {}; must be {kind}", node.show());
    if let Node::Str(word) = node {
        let near = match kind {
            Kind::Choice(words) => nearest(word, words.iter().copied()).map(str::to_string),
            Kind::PolicyName => {
                nearest(word, ChosenPolicy::names().iter().map(String::as_str)).map(str::to_string)
            }
            _ => None,
        };
        if let Some(near) = near {
            message.push_str(&format!("; did you mean {near:?}?"));
        }
    }
    message
}

/// Returns the TOML text of a value. [`convert`] returns the same value for this text.
pub(super) fn text(kind: Kind, value: &Value) -> String {
    match (kind, value) {
        (_, Value::Text(word)) => quote(word),
        (_, Value::Bool(on)) => on.to_string(),
        (Kind::Micros(_), Value::Number(ps)) => show(*ps, PS_PER_US),
        (Kind::Nanos(_), Value::Number(ps)) => show(*ps, PS_PER_NS),
        (Kind::Size(_), Value::Number(bytes)) => quote(&size(*bytes)),
        (_, Value::Number(n)) => n.to_string(),
        // A float is formatted as the shortest text from which the same number is read. A whole number has no point.
        (_, Value::Float(x)) => x.to_string(),
        (_, Value::Numbers(times)) => match times[..] {
            [one] => show(one, PS_PER_US),
            _ => {
                let times: Vec<String> = times.iter().map(|&ps| show(ps, PS_PER_US)).collect();
                format!("[{}]", times.join(", "))
            }
        },
    }
}

/// Returns a text as a TOML string.
pub(super) fn quote(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

/// Returns the value of a key in base units. `None` if this value is not permitted for the key.
pub(super) fn convert(kind: Kind, node: &Node) -> Option<Value> {
    let number = |n: Option<u64>, min: u64, max: u64| {
        n.filter(|n| (min..=max).contains(n)).map(Value::Number)
    };
    match (kind, node) {
        (Kind::Name, Node::Str(s)) => {
            let ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
            let fits = (1..=64).contains(&s.len()) && s.chars().all(ok);
            fits.then(|| Value::Text(s.clone()))
        }
        (Kind::Text, Node::Str(s)) => {
            let fits = s.chars().count() <= TEXT_MAX && !s.chars().any(char::is_control);
            fits.then(|| Value::Text(s.clone()))
        }
        (Kind::Choice(words), Node::Str(s)) => {
            words.contains(&s.as_str()).then(|| Value::Text(s.clone()))
        }
        (Kind::PolicyName, Node::Str(s)) => {
            ChosenPolicy::is_name(s).then(|| Value::Text(s.clone()))
        }
        (Kind::Bool, Node::Bool(b)) => Some(Value::Bool(*b)),
        (Kind::Count(min, max), Node::Int(i)) => {
            number(u64::try_from(*i).ok(), min.into(), max.into())
        }
        (Kind::CountOrAuto(min, max), Node::Int(i)) => {
            number(u64::try_from(*i).ok(), min.into(), max.into())
        }
        (Kind::CountOrAuto(..), Node::Str(s)) => (s == AUTO).then(|| Value::Text(s.clone())),
        (Kind::Size(max), Node::Int(i)) => number(u64::try_from(*i).ok(), 0, max),
        (Kind::Size(max), Node::Str(s)) => number(parse_size(s), 0, max),
        (Kind::Micros(max), _) => number(time(node, PS_PER_US), 0, u64::from(max) * PS_PER_US),
        (Kind::MicrosByType(max), Node::List(nodes)) => {
            let one = |node| time(node, PS_PER_US).filter(|&t| t <= u64::from(max) * PS_PER_US);
            let times: Option<Vec<u64>> = nodes.iter().map(one).collect();
            let fits = |times: &Vec<u64>| (1..=PAGE_TYPES_MAX).contains(&times.len());
            times.filter(fits).map(Value::Numbers)
        }
        (Kind::MicrosByType(max), _) => match time(node, PS_PER_US)? {
            time if time <= u64::from(max) * PS_PER_US => Some(Value::Numbers(vec![time])),
            _ => None,
        },
        (Kind::Nanos(max), _) => number(time(node, PS_PER_NS), 0, u64::from(max) * PS_PER_NS),
        (Kind::Percent, Node::Int(i)) => whole(*i, 0..=99),
        (Kind::Percent, Node::Float(x)) => {
            // Adding zero turns -0.0 into 0.0.
            (0.0..100.0).contains(x).then_some(Value::Float(*x + 0.0))
        }
        (Kind::Window | Kind::Beyond, Node::Int(i)) => {
            number(u64::try_from(*i).ok(), 0, u32::MAX.into())
        }
        (Kind::Figure, Node::Int(i)) => whole(*i, 1..=FIGURE_MAX),
        (Kind::Figure, Node::Float(x)) => {
            (*x > 0.0 && *x <= f64::from(FIGURE_MAX)).then_some(Value::Float(*x))
        }
        (Kind::Share, Node::Int(i)) => whole(*i, 0..=1),
        (Kind::Share, Node::Float(x)) => (0.0..=1.0).contains(x).then_some(Value::Float(*x + 0.0)),
        (Kind::Window | Kind::Beyond, Node::Float(x)) => {
            (0.0..=1.0).contains(x).then_some(Value::Float(*x + 0.0))
        }
        _ => None,
    }
}

fn whole(i: i64, range: RangeInclusive<u32>) -> Option<Value> {
    let n = u32::try_from(i).ok().filter(|n| range.contains(n))?;
    Some(Value::Float(n.into()))
}

/// Returns a time in picoseconds, rounded to the nearest picosecond.
fn time(node: &Node, ps_per_unit: u64) -> Option<u64> {
    match node {
        Node::Int(i) => u64::try_from(*i).ok()?.checked_mul(ps_per_unit),
        Node::Float(x) => scale(*x, ps_per_unit, 1, Rounding::Nearest),
        _ => None,
    }
}

/// Returns the size in bytes that a text such as `"32 MiB"`, `"4KiB"` or `"1GB"` states.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits_len = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, unit) = text.split_at(digits_len);
    let factor: u64 = match unit.trim_start() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}
