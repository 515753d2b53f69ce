//! Files of a validation case: finding, decompressing, and splitting them into fields with line numbers.

use std::io::Read;
use std::path::{Path, PathBuf};

use flashtwin::{Request, Time};
use flashtwin_workload::{Workload, WorkloadError};

use crate::SimError;

/// Role of a file in its case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Json,
    Trace,
    Events,
    Responses,
}

impl Role {
    const ENDINGS: [(Role, &'static str); 4] = [
        (Role::Json, ".json"),
        (Role::Trace, ".trace.csv"),
        (Role::Events, ".events.txt"),
        (Role::Responses, ".responses.csv"),
    ];

    /// Returns the case to which a file belongs and the role of the file in it, by the name of the file. `None` if the
    /// file belongs to no case.
    pub fn of(file_name: &str) -> Option<(&str, Role)> {
        let plain = file_name.strip_suffix(".zst").unwrap_or(file_name);
        Self::ENDINGS
            .into_iter()
            .find_map(|(role, ending)| plain.strip_suffix(ending).map(|name| (name, role)))
            .filter(|(name, _)| !name.is_empty())
    }
}

/// The files of a case that were found.
#[derive(Debug, Default)]
pub(super) struct CaseFiles([Option<PathBuf>; 4]);

/// A complete case.
#[derive(Debug)]
pub(super) enum Form<'a> {
    Events {
        json: &'a Path,
        trace: &'a Path,
        events: &'a Path,
    },
    Replay {
        json: &'a Path,
        responses: &'a Path,
    },
}

impl CaseFiles {
    pub fn add(&mut self, role: Role, file: &Path) -> Result<(), SimError> {
        match self.0[role as usize].replace(file.to_owned()) {
            None => Ok(()),
            Some(_) => Err(SimError::case(
                file,
                None,
                "here both plain and as .zst; remove one of them",
            )),
        }
    }

    /// Returns the form of the case: event log or replay, depending on which files exist.
    pub fn form(&self, directory: &Path, name: &str) -> Result<Form<'_>, SimError> {
        let [json, trace, events, responses] = self.0.each_ref().map(|f| f.as_deref());
        match (json, trace, events, responses) {
            (Some(json), Some(trace), Some(events), None) => Ok(Form::Events {
                json,
                trace,
                events,
            }),
            (Some(json), None, None, Some(responses)) => Ok(Form::Replay { json, responses }),
            _ => {
                let here = Role::ENDINGS
                    .iter()
                    .zip(&self.0)
                    .filter(|(_, file)| file.is_some());
                let here: Vec<String> = here
                    .map(|((_, ending), _)| format!("{name}{ending}"))
                    .collect();
                Err(SimError::case(
                    directory,
                    None,
                    format!(
                        "case {name}: found only {}; a case is {name}.json with {name}.trace.csv and \
                         {name}.events.txt, or {name}.json with {name}.responses.csv",
                        here.join(", ")
                    ),
                ))
            }
        }
    }
}

/// Largest permitted length of a text in bytes. No real case reaches the limit. It prevents a hostile file from
/// exhausting the memory.
const TEXT_BYTES_MAX: u64 = 1 << 30;

/// Reads the text of a file, and decompresses it if the name ends in `.zst`.
pub(super) fn read_text(path: &Path) -> Result<String, SimError> {
    let file = std::fs::File::open(path).map_err(|e| SimError::io(path, "open", e))?;
    let mut bytes = Vec::new();
    if path.extension().is_some_and(|e| e == "zst") {
        let broken = |e: std::io::Error| {
            SimError::case(
                path,
                None,
                format!("broken or truncated .zst ({e}); fetch it again"),
            )
        };
        let decoder = zstd::Decoder::new(file).map_err(broken)?;
        decoder
            .take(TEXT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(broken)?;
    } else {
        file.take(TEXT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| SimError::io(path, "read", e))?;
    }
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(SimError::case(
            path,
            None,
            "more than 1 GiB of text; no reference case is that large",
        ));
    }
    String::from_utf8(bytes).map_err(|e| {
        let valid = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&b| b == b'\n').count() as u64;
        SimError::case(path, Some(line), "not text")
    })
}

/// A line of a file, with its position for error messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub path: &'a Path,
    pub number: u64,
    pub text: &'a str,
}

impl<'a> Line<'a> {
    /// Returns the lines of `text` that are not empty.
    pub fn all(path: &'a Path, text: &'a str) -> impl Iterator<Item = Line<'a>> {
        let lines = text
            .lines()
            .zip(1..)
            .map(move |(text, number)| Line { path, number, text });
        lines.filter(|line| !line.text.trim().is_empty())
    }

    /// Returns an error about this line. The error quotes the line.
    pub fn error(&self, message: &str) -> SimError {
        let shown: String = self.text.chars().take(120).collect();
        let message = format!("{message}; found \"{}\"", shown.escape_debug());
        SimError::case(self.path, Some(self.number), message)
    }

    /// Splits the line at commas into exactly `N` fields.
    pub fn fields<const N: usize>(&self, names: &str) -> Result<[&'a str; N], SimError> {
        let fields: Vec<&str> = self.text.trim().split(',').collect();
        fields
            .try_into()
            .map_err(|_| self.error(&format!("expected the {N} fields {names}")))
    }

    /// Parses a whole number.
    pub fn whole<T: std::str::FromStr>(&self, name: &str, text: &str) -> Result<T, SimError> {
        text.parse()
            .map_err(|_| self.error(&format!("{name} must be a whole number")))
    }

    /// Parses a time in ms.
    pub fn ms(&self, name: &str, text: &str) -> Result<Time, SimError> {
        parse_ms(text)
            .ok_or_else(|| self.error(&format!("{name} must be a time in ms, at most 10 days")))
    }
}

/// Parses a time in milliseconds as a decimal number. Up to 9 decimal places are exact.
pub(super) fn parse_ms(text: &str) -> Option<Time> {
    const MS_MAX: u64 = 864_000_000;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 9 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let ms: u64 = whole.parse().ok()?;
    let kept = &fraction[..fraction.len().min(9)];
    let parts: u64 = format!("{kept:0<9}").parse().ok()?;
    let rounded = parts + u64::from(fraction.as_bytes().get(9).is_some_and(|&b| b >= b'5'));
    (ms < MS_MAX).then(|| Time(ms * 1_000_000_000 + rounded))
}

/// A list of requests that serves as a workload.
pub(super) struct Listed(std::vec::IntoIter<Request>);

impl Listed {
    pub fn new(requests: Vec<Request>) -> Listed {
        Listed(requests.into_iter())
    }
}

impl Workload for Listed {
    fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        let before = out.len();
        out.extend(self.0.by_ref().take(4096));
        Ok(out.len() - before)
    }

    fn requests_total(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }

    fn describe(&self) -> String {
        format!("{} listed requests", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_exact_to_the_picosecond() {
        assert_eq!(parse_ms("0.001907"), Some(Time(1_907_000)));
        assert_eq!(parse_ms("20000.000000"), Some(Time::from_s(20)));
        assert_eq!(parse_ms("0.0002384"), Some(Time(238_400)));
        assert_eq!(parse_ms("7"), Some(Time::from_ms(7)));
        assert_eq!(parse_ms("0.0000000015"), Some(Time(2)));
        for wrong in [
            "",
            ".5",
            "-1",
            "1e3",
            "nan",
            "1.2.3",
            "864000000",
            " 1",
            "99999999999999999999",
        ] {
            assert_eq!(parse_ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn roles_follow_the_ending_of_the_name() {
        assert_eq!(Role::of("a.b.json"), Some(("a.b", Role::Json)));
        assert_eq!(Role::of("a.trace.csv.zst"), Some(("a", Role::Trace)));
        assert_eq!(Role::of("a.events.txt"), Some(("a", Role::Events)));
        assert_eq!(
            Role::of("a.responses.csv.zst"),
            Some(("a", Role::Responses))
        );
        assert_eq!(Role::of("README.md"), None);
        assert_eq!(Role::of(".json"), None);
    }
}
