//! Guesses a trace's format from its first bytes: binary forms by their marks, text by trying every
//! parser on the first lines. The share of lines that parse is the confidence.

use super::blk::{is_blktrace, Blkparse};
use super::cachesim::{is_lcs, is_oracle_general};
use super::cloud::{Alibaba, Spc, Systor, Tencent};
use super::columns::{Disksim, Mqsim};
use super::csv::{Csv, HEADER};
use super::fiu::Fiu;
use super::lines::{Line, LineParser, Units};
use super::msr::Msr;
use super::options::{AddressUnit, BlkEvent, Format, TimeUnit};
use super::{binary, vscsi};
use crate::error::{quote, ErrorKind, WorkloadError};

/// Lines tried.
const LINES_TRIED: usize = 64;
/// Of those that are no header or comment, so many must parse.
const SHARE_MIN: f64 = 0.5;

/// What the content looks like.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Guess {
    pub format: Format,
    /// Why, for `describe`.
    pub because: String,
}

/// The usual unit of a format's time column.
pub(crate) const fn usual_time_unit(format: Format) -> TimeUnit {
    match format {
        Format::Msr => TimeUnit::Filetime,
        Format::Csv | Format::Vscsi | Format::Alibaba | Format::Fio => TimeUnit::Microseconds,
        Format::Spc | Format::Systor | Format::Tencent | Format::Blkparse => TimeUnit::Seconds,
        Format::OracleGeneral | Format::Lcs => TimeUnit::Seconds,
        Format::Disksim => TimeUnit::Milliseconds,
        Format::Mqsim | Format::Ssdsim | Format::Blktrace | Format::Fiu => TimeUnit::Nanoseconds,
        Format::Binary => TimeUnit::Picoseconds,
    }
}

/// The usual unit of a format's address column.
pub(crate) const fn usual_address_unit(format: Format) -> AddressUnit {
    match format {
        Format::Csv | Format::Binary | Format::Msr | Format::Systor => AddressUnit::Bytes,
        Format::Alibaba | Format::Fio => AddressUnit::Bytes,
        Format::Spc | Format::Disksim | Format::Mqsim | Format::Ssdsim => AddressUnit::Sectors,
        Format::Tencent | Format::Fiu | Format::Vscsi => AddressUnit::Sectors,
        Format::OracleGeneral | Format::Lcs => AddressUnit::Sectors,
        Format::Blkparse | Format::Blktrace => AddressUnit::Sectors,
    }
}

/// Lines a parser reads as requests, and lines it cannot read.
fn try_parser<P: LineParser>(mut parser: P, lines: &[&[u8]]) -> (usize, usize) {
    let (mut good, mut bad) = (0, 0);
    for (i, line) in lines.iter().enumerate() {
        match parser.parse(line, i as u64 + 1) {
            Ok(Line::Request(_)) => good += 1,
            Ok(Line::Other) => {}
            Err(_) => bad += 1,
        }
    }
    (good, bad)
}

/// Guesses from the first bytes (some tens of KiB are plenty).
pub(crate) fn guess(name: &str, head: &[u8]) -> Result<Guess, WorkloadError> {
    let certain = |format, because: &str| {
        Ok(Guess {
            format,
            because: because.to_string(),
        })
    };
    if head.starts_with(binary::MAGIC) {
        return certain(Format::Binary, "its mark");
    }
    if is_lcs(head) {
        return certain(Format::Lcs, "its mark");
    }
    if is_blktrace(head) {
        return certain(Format::Blktrace, "its mark");
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if text.starts_with(b"fio version ") {
        return certain(Format::Fio, "its first line");
    }
    if text.starts_with(HEADER.as_bytes()) {
        return certain(Format::Csv, "its header");
    }
    if head.contains(&0) {
        if let Some(version) = vscsi::version_of(head) {
            let because = format!("records of version {version:?}");
            return Ok(Guess {
                format: Format::Vscsi,
                because,
            });
        }
        if is_oracle_general(head) {
            return certain(
                Format::OracleGeneral,
                "its references to next requests are right; it holds no operations, all are reads",
            );
        }
        return Err(unknown(name, head));
    }
    guess_text(name, text)
}

fn guess_text(name: &str, text: &[u8]) -> Result<Guess, WorkloadError> {
    // The last line may be cut, unless it is the only one.
    let cut = memchr::memrchr(b'\n', text).unwrap_or(text.len());
    let lines: Vec<&[u8]> = text[..cut]
        .split(|&b| b == b'\n')
        .map(|l| l.strip_suffix(b"\r").unwrap_or(l))
        .filter(|l| !l.trim_ascii().is_empty() && l[0] != b'#')
        .take(LINES_TRIED)
        .collect();
    let u = Units {
        time_ps: 1,
        address_bytes: 1,
    };
    let (event_d, event_q) = (BlkEvent::D, BlkEvent::Q);
    // First the layouts that say most; a later one wins only by reading more lines.
    let tried = [
        (Format::Msr, try_parser(Msr(u), &lines)),
        (Format::Csv, try_parser(Csv(u), &lines)),
        (Format::Systor, try_parser(Systor(u), &lines)),
        (Format::Alibaba, try_parser(Alibaba(u), &lines)),
        (Format::Tencent, try_parser(Tencent(u), &lines)),
        (Format::Spc, try_parser(Spc(u), &lines)),
        (
            Format::Blkparse,
            try_parser(
                Blkparse {
                    units: u,
                    event: event_d,
                },
                &lines,
            ),
        ),
        (
            Format::Blkparse,
            try_parser(
                Blkparse {
                    units: u,
                    event: event_q,
                },
                &lines,
            ),
        ),
        (Format::Fiu, try_parser(Fiu(u), &lines)),
        (Format::Disksim, try_parser(Disksim(u), &lines)),
        (
            Format::Mqsim,
            try_parser(
                Mqsim {
                    units: u,
                    whole: true,
                },
                &lines,
            ),
        ),
    ];
    let mut best: Option<(Format, usize, usize)> = None;
    for (format, (good, bad)) in tried {
        let enough = good > 0 && good as f64 >= SHARE_MIN * (good + bad) as f64;
        if enough && best.is_none_or(|(_, most, _)| good > most) {
            best = Some((format, good, good + bad));
        }
    }
    let Some((format, good, judged)) = best else {
        return Err(unknown(name, text));
    };
    if format == Format::Disksim {
        return Ok(five_columns(&lines, good, judged));
    }
    Ok(Guess {
        format,
        because: format!("{good} of the first {judged} lines fit"),
    })
}

/// DiskSim, MQSim and SSDSim share their columns. A decimal point in a time means DiskSim, whole
/// numbers MQSim; what the numbers count is judged in `units`.
fn five_columns(lines: &[&[u8]], good: usize, judged: usize) -> Guess {
    let decimal = lines
        .iter()
        .filter_map(|l| l.split(|b| b" \t".contains(b)).find(|w| !w.is_empty()))
        .any(|time| time.contains(&b'.'));
    let (format, times) = if decimal {
        (Format::Disksim, "times have a decimal point")
    } else {
        (Format::Mqsim, "times are whole numbers; ssdsim is the same")
    };
    Guess {
        format,
        because: format!("{good} of the first {judged} lines fit, {times}"),
    }
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
    let known: Vec<&str> = Format::ALL.iter().map(|f| f.name()).collect();
    WorkloadError::new(
        ErrorKind::UnknownFormat,
        format!(
            "{name}: no known trace format fits; the file begins {}. If it is one of these, say so \
             with format = ... (--format ...): {}. For any other table of text name its columns: columns = ... \
             (--columns time=ts:us,offset=lba:sectors,size=len:bytes,op=type)",
            quote(first),
            known.join(", ")
        ),
    )
}
