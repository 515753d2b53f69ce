//! Detects the format of a trace from its first bytes. Binary formats have marks or recognisable records. For text,
//! every parser is tried on the first lines. The format with the most readable lines is chosen.

use super::format::{known, Fit};
use super::Format;
use crate::error::{quote, ErrorKind, WorkloadError};

/// Number of lines that are tried.
const LINES_TRIED: usize = 64;
/// Smallest share of readable lines for a format to be chosen. Headers and comments are not counted.
const SHARE_MIN: f64 = 0.5;

/// The format that the content suggests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Guess {
    pub format: Format,
    /// Reason for the guess, for `describe`.
    pub because: String,
}

/// Detects the format from the first bytes of a trace. Some tens of KiB suffice.
pub(crate) fn guess(name: &str, head: &[u8]) -> Result<Guess, WorkloadError> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let all = || Format::ALL.iter().map(|f| (*f, &f.reader().detection));
    let found = |(format, because)| Guess { format, because };
    let marked = all().find_map(|(f, d)| Some((f, (d.mark)(text)?.to_string())));
    if let Some(marked) = marked {
        return Ok(found(marked));
    }
    if head.contains(&0) {
        let fitting = all().find_map(|(f, d)| Some((f, (d.records)(head)?)));
        return fitting.map(found).ok_or_else(|| unknown(name, head));
    }
    guess_text(name, text)
}

fn guess_text(name: &str, text: &[u8]) -> Result<Guess, WorkloadError> {
    // The last line is skipped unless it is the only one, because it may be incomplete.
    let cut = memchr::memrchr(b'\n', text).unwrap_or(text.len());
    let lines: Vec<&[u8]> = text[..cut]
        .split(|&b| b == b'\n')
        .map(|l| l.strip_suffix(b"\r").unwrap_or(l))
        .filter(|l| !l.trim_ascii().is_empty() && l[0] != b'#')
        .take(LINES_TRIED)
        .collect();
    let mut best: Option<(Format, Fit)> = None;
    for &format in Format::ALL {
        let fit = (format.reader().detection.lines)(&lines);
        let enough = fit.good > 0 && fit.good as f64 >= SHARE_MIN * (fit.good + fit.bad) as f64;
        if enough && best.is_none_or(|(_, most)| fit.good > most.good) {
            best = Some((format, fit));
        }
    }
    let Some((format, fit)) = best else {
        return Err(unknown(name, text));
    };
    let (good, judged) = (fit.good, fit.good + fit.bad);
    let mut because = format!("{good} of the first {judged} lines fit");
    if !fit.note.is_empty() {
        because = format!("{because}, {}", fit.note);
    }
    Ok(Guess { format, because })
}

fn unknown(name: &str, head: &[u8]) -> WorkloadError {
    if head.is_empty() {
        return WorkloadError::new(ErrorKind::Empty, format!("{name}: the file is empty"));
    }
    if head.get(257..262) == Some(b"ustar") {
        let text = format!("{name}: a tar archive; unpack it and name one trace inside");
        return WorkloadError::new(ErrorKind::UnknownFormat, text);
    }
    let first = head.split(|&b| b == b'\n').next().unwrap_or(b"");
    let first = first.trim_ascii();
    if !first.is_empty() && first.iter().all(u8::is_ascii_digit) {
        return WorkloadError::new(
            ErrorKind::UnknownFormat,
            format!(
                "{name}: no known trace format fits; the file begins {}. If it is a column of keys (a cache trace), \
                 give columns = \"offset=1:pages\" (--columns offset=1:pages)",
                quote(first)
            ),
        );
    }
    WorkloadError::new(
        ErrorKind::UnknownFormat,
        format!(
            "{name}: no known trace format fits; the file begins {}. If it is one of these, specify it \
             with format = ... (--format ...): {}. For any other table of text name its columns: columns = ... \
             (--columns time=ts:us,offset=lba:sectors,size=len:bytes,op=type)",
            quote(first),
            known()
        ),
    )
}
