//! Writes a trace in one of flashtwin's own forms, which are fast to read. The file gets its final name only when it is
//! complete and on disk.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::binary::{BinaryWriter, Version};
use super::csv::CsvColumns;
use super::input::Input;
use super::options::TraceOptions;
use super::reader::TraceReader;
use crate::error::{ErrorKind, WorkloadError};
use crate::partial::{sync_directory, Partial};
use crate::Workload;

/// Compression level of zstd for written traces. It gives small files at some hundred MB/s.
const ZSTD_LEVEL: i32 = 9;

/// Result of `convert`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Requests written.
    pub requests: u64,
    /// Length of the new file.
    pub bytes: u64,
    /// Description of the input.
    pub source: String,
    /// Warnings about the input.
    pub warnings: Vec<String>,
}

enum Form {
    Csv,
    Binary,
}

enum Pack {
    Plain,
    Gzip,
    Zstd,
}

/// Returns the form and the compression that a file name specifies: `.csv` or `.ftb`, optionally followed by `.zst` or
/// `.gz`.
fn form_of(dst: &Path) -> Result<(Form, Pack), WorkloadError> {
    let name = dst.file_name().and_then(|n| n.to_str()).unwrap_or("");
    let (bare, pack) = if let Some(bare) = name.strip_suffix(".zst") {
        (bare, Pack::Zstd)
    } else if let Some(bare) = name.strip_suffix(".gz") {
        (bare, Pack::Gzip)
    } else {
        (name, Pack::Plain)
    };
    let form = match bare.rsplit_once('.') {
        Some((_, "csv")) => Form::Csv,
        Some((_, "ftb")) => Form::Binary,
        _ => {
            return Err(WorkloadError::new(
                ErrorKind::Option,
                format!(
                "{}: the name must end in .csv (text) or .ftb (binary), then perhaps .zst or .gz",
                dst.display()
            ),
            ))
        }
    };
    Ok((form, pack))
}

/// Reads the trace `src` and writes it to `dst` in the form that the file name of `dst` specifies. `opts` determines
/// how volumes are laid out, how times are ordered, and how they are made relative. An existing `dst` is replaced only
/// after the new file is complete. After an error, it is unchanged.
///
/// # Errors
/// Fails if `src` cannot be read as a trace or `dst` cannot be written.
pub fn convert(src: &Path, dst: &Path, opts: &TraceOptions) -> Result<Converted, WorkloadError> {
    let (form, pack) = form_of(dst)?;
    let mut reader = TraceReader::open(Input::File(src.to_path_buf()), opts)?;
    let writing = |e: io::Error| WorkloadError::io(&dst.display().to_string(), "write", &e);
    let partial = Partial::create(dst).map_err(writing)?;
    let file = BufWriter::with_capacity(1 << 20, partial.file());
    let requests = match pack {
        Pack::Plain => {
            let mut out = file;
            let n = write_all(&mut reader, &mut out, &form, &writing)?;
            out.flush().map_err(writing)?;
            n
        }
        Pack::Gzip => {
            let mut out = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            let n = write_all(&mut reader, &mut out, &form, &writing)?;
            out.finish().and_then(|mut f| f.flush()).map_err(writing)?;
            n
        }
        Pack::Zstd => {
            let mut out = zstd::Encoder::new(file, ZSTD_LEVEL).map_err(writing)?;
            out.include_checksum(true).map_err(writing)?;
            let n = write_all(&mut reader, &mut out, &form, &writing)?;
            out.finish().and_then(|mut f| f.flush()).map_err(writing)?;
            n
        }
    };
    let bytes = partial.publish(dst).map_err(writing)?;
    sync_directory(dst).map_err(writing)?;
    Ok(Converted {
        requests,
        bytes,
        source: reader.describe(),
        warnings: reader.warnings(),
    })
}

fn write_all(
    reader: &mut TraceReader,
    out: &mut dyn Write,
    form: &Form,
    writing: &dyn Fn(io::Error) -> WorkloadError,
) -> Result<u64, WorkloadError> {
    let mut batch = Vec::new();
    let mut count = 0;
    let mut more = reader.next_batch(&mut batch)? > 0;
    let columns = match reader.has_placement() {
        true => CsvColumns::Placement,
        false => CsvColumns::Four,
    };
    let mut binary = match form {
        Form::Binary => {
            let version = Version::of(reader.has_placement());
            Some(BinaryWriter::start(out, version, &reader.describe()).map_err(writing)?)
        }
        Form::Csv => {
            writeln!(out, "{}", columns.header()).map_err(writing)?;
            None
        }
    };
    while more {
        for request in &batch {
            match &mut binary {
                Some(binary) => binary.request(out, request).map_err(writing)?,
                None => columns.write_request(out, request).map_err(writing)?,
            }
        }
        count += batch.len() as u64;
        batch.clear();
        more = reader.next_batch(&mut batch)? > 0;
    }
    if let Some(binary) = binary {
        binary.finish(out).map_err(writing)?;
    }
    Ok(count)
}
