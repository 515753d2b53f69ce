//! Operations in tables of text. They are words (`R`, `write`, the letters of Linux block tracing), or codes whose
//! meaning is given in the options (`write=2a|8a:trim=42`).

use flashtwin::Op;

use super::named::whole_number;
use crate::error::{quote, ErrorKind, WorkloadError};

/// An operation with its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    /// The operation. `None` if the line is a command without data, which is no request.
    pub op: Option<Op>,
    pub fua: bool,
    /// Whether a flush precedes the request.
    pub preflush: bool,
}

impl Action {
    pub const fn of(op: Op) -> Self {
        Action {
            op: Some(op),
            fua: false,
            preflush: false,
        }
    }
}

/// Meaning of the letters in an RWBS column. Commands that move no data (N, zone commands) have no operation.
pub(crate) struct Rwbs {
    pub preflush: bool,
    pub op: Option<Op>,
    pub fua: bool,
    /// Whether the kernel writes this combination of letters.
    pub known: bool,
}

/// Parses an RWBS column of Linux block tracing. The kernel writes the letters in this order: F for a preflush, one
/// letter for the operation (E follows D for a secure erase), F for FUA, then A (read-ahead), S (synchronous) and M
/// (metadata).
pub(crate) fn rwbs(text: &[u8]) -> Rwbs {
    let (preflush, rest) = match text {
        [b'F', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (op, rest) = match rest {
        [b'R', rest @ ..] => (Some(Op::Read), rest),
        [b'W', rest @ ..] => (Some(Op::Write), rest),
        [b'D', b'E', rest @ ..] | [b'D', rest @ ..] => (Some(Op::Trim), rest),
        rest => (None, rest),
    };
    // If there is no operation, this letter is N, or the F of a flush.
    let moves_nothing = op.is_none() && matches!(rest, [b'N' | b'F', ..]);
    let rest = if moves_nothing { &rest[1..] } else { rest };
    let (fua, modifiers) = match rest {
        [b'F', rest @ ..] if op.is_some() => (true, rest),
        rest => (false, rest),
    };
    Rwbs {
        preflush,
        op,
        fua: fua && op == Some(Op::Write),
        known: (preflush || moves_nothing || op.is_some())
            && modifiers.iter().all(|b| b"ASM".contains(b)),
    }
}

/// Parses the upper-case letters of Linux block tracing (RWBS), such as `R`, `WS`, `FWFS`, `DE` and
/// `N`.
#[inline(never)]
pub(crate) fn letters(text: &[u8]) -> Option<Action> {
    let kind = rwbs(text);
    if !kind.known {
        return None;
    }
    let flush = kind.op.is_none() && kind.preflush;
    Some(Action {
        op: if flush { Some(Op::Flush) } else { kind.op },
        fua: kind.fua,
        preflush: kind.preflush && !flush,
    })
}

/// Parses a word that denotes an operation, in upper or lower case.
pub(crate) fn word(text: &[u8]) -> Option<Action> {
    let lower = text.to_ascii_lowercase();
    let op = match lower.as_slice() {
        b"t" | b"trim" | b"discard" | b"unmap" => Op::Trim,
        b"flush" | b"sync" | b"fsync" | b"datasync" | b"fdatasync" => Op::Flush,
        [b'r', b'd', rest @ ..] if is_end(rest) => Op::Read,
        [b'w', b'r', rest @ ..] if is_end(rest) => Op::Write,
        [b'r', b'e', b'a', b'd', rest @ ..] if is_end(rest) => Op::Read,
        [b'w', b'r', b'i', b't', b'e', rest @ ..] if is_end(rest) => Op::Write,
        _ => return letters(&text.to_ascii_uppercase()),
    };
    Some(Action::of(op))
}

/// Whether a word for an operation may end before `rest`, as in `READ_10`, `read(16)` and `WR_IN`.
fn is_end(rest: &[u8]) -> bool {
    rest.first().is_none_or(|b| !b.is_ascii_alphabetic())
}

/// Largest number of distinct texts of the operation column that are remembered.
const MET_MAX: usize = 64;
/// Largest number of texts of the operation column that one message shows.
const SHOWN_MAX: usize = 8;

/// A text that occurs in the column.
struct Met {
    text: Box<[u8]>,
    action: Action,
    /// Index of the matching code in `Codes::named`.
    code: Option<usize>,
    requests: u64,
}

/// Operations of a column with codes. The options define the meaning of the codes.
pub(crate) struct Codes {
    /// Each named code with its operation. `None` if lines with the code are skipped.
    named: Vec<(Box<[u8]>, Option<Op>)>,
    /// Operation of all codes that the options do not name. Set only if all named codes are reads, or all are writes.
    other: Option<Op>,
    met: Vec<Met>,
    /// Number of requests with codes that did not fit into `met`.
    unlisted: u64,
}

impl Codes {
    /// Reads the option, such as `write=2a|8a:trim=42:skip=0`.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let wrong = |text: String| {
            Err(WorkloadError::new(
                ErrorKind::Option,
                format!(
                    "{text}; name the codes of an operation like op=flag:read=1 or op=flag:write=2a|8a:trim=42 \
                     (read, write, trim, flush, skip)"
                ),
            ))
        };
        let mut named: Vec<(Box<[u8]>, Option<Op>)> = Vec::new();
        let (mut reads, mut writes) = (false, false);
        for part in text.split(':') {
            let Some((kind, codes)) = part.split_once('=') else {
                return wrong(format!(
                    "columns: op: {} is no operation",
                    quote(part.as_bytes())
                ));
            };
            let op = match kind {
                "read" => Some(Op::Read),
                "write" => Some(Op::Write),
                "trim" => Some(Op::Trim),
                "flush" => Some(Op::Flush),
                "skip" => None,
                _ => {
                    return wrong(format!(
                        "columns: op: {} is no operation",
                        quote(kind.as_bytes())
                    ))
                }
            };
            reads |= op == Some(Op::Read);
            writes |= op == Some(Op::Write);
            for code in codes.split('|') {
                let code = code.trim();
                if code.is_empty() {
                    return wrong(format!("columns: op: {kind}= has an empty code"));
                }
                if named.iter().any(|(known, _)| **known == *code.as_bytes()) {
                    return wrong(format!("columns: op: the code {code} is named twice"));
                }
                named.push((code.as_bytes().into(), op));
            }
        }
        let other = match (reads, writes) {
            (true, false) => Some(Op::Write),
            (false, true) => Some(Op::Read),
            _ => None,
        };
        Ok(Codes {
            named,
            other,
            met: Vec::new(),
            unlisted: 0,
        })
    }

    /// Returns the operation that a text of the column denotes; `None` if it denotes no operation.
    pub fn action(&mut self, text: &[u8]) -> Option<Action> {
        if let Some(met) = self.met.iter_mut().find(|met| *met.text == *text) {
            met.requests += 1;
            return Some(met.action);
        }
        if text.is_empty() {
            return None;
        }
        let code = self.code_of(text);
        let action = match (code, self.other) {
            (Some(index), _) => Action {
                op: self.named[index].1,
                fua: false,
                preflush: false,
            },
            (None, Some(op)) => Action::of(op),
            (None, None) => word(text)?,
        };
        if self.met.len() < MET_MAX {
            self.met.push(Met {
                text: text.into(),
                action,
                code,
                requests: 1,
            });
        } else {
            self.unlisted += 1;
        }
        Some(action)
    }

    /// Whether a text has an operation.
    pub fn knows(&self, text: &[u8]) -> bool {
        !text.is_empty()
            && (self.other.is_some() || self.code_of(text).is_some() || word(text).is_some())
    }

    /// Returns the index of the code that matches a text. Codes with the same text have priority, then codes with the
    /// same number, then codes with the same text in another case.
    fn code_of(&self, text: &[u8]) -> Option<usize> {
        let find =
            |same: &dyn Fn(&[u8]) -> bool| self.named.iter().position(|(code, _)| same(code));
        let value = whole_number(text);
        find(&|code| code == text)
            .or_else(|| find(&|code| value.is_some() && whole_number(code) == value))
            .or_else(|| find(&|code| code.eq_ignore_ascii_case(text)))
    }

    /// Returns warnings about codes that were named but did not occur, and codes that occurred but were not named.
    pub fn warnings(&self) -> Vec<String> {
        let mut list = Vec::new();
        let counted = |met: &Met| format!("{} ({})", quote(&met.text), met.requests);
        let shown = |all: &[&Met]| {
            let texts: Vec<String> = all.iter().take(SHOWN_MAX).map(|met| counted(met)).collect();
            let more = if all.len() > SHOWN_MAX || self.unlisted > 0 {
                ", ..."
            } else {
                ""
            };
            texts.join(", ") + more
        };
        let all: Vec<&Met> = self.met.iter().collect();
        let absent: Vec<String> = (0..self.named.len())
            .filter(|&i| self.unlisted == 0 && self.met.iter().all(|met| met.code != Some(i)))
            .map(|i| quote(&self.named[i].0))
            .collect();
        if !absent.is_empty() && !all.is_empty() {
            list.push(format!(
                "no request has the op code {}; the codes and their requests: {}",
                absent.join(", "),
                shown(&all)
            ));
        }
        let others: Vec<&Met> = self.met.iter().filter(|met| met.code.is_none()).collect();
        if let (Some(op), true) = (self.other, others.len() > 1) {
            let kind = if op == Op::Read { "reads" } else { "writes" };
            list.push(format!(
                "op codes that are not named count as {kind}: {}; if some are no {kind}, name them, like \
                 op=COLUMN:write=2a|8a:trim=42:skip=0",
                shown(&others)
            ));
        }
        list
    }
}
