//! Writes a trace in one of our own forms: parsed once, read back without parsing.
//! The file appears under its name only when it is whole and on disk.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::binary::BinaryWriter;
use super::csv;
use super::input::Input;
use super::options::TraceOptions;
use super::reader::TraceReader;
use crate::error::{ErrorKind, WorkloadError};
use crate::Workload;

/// zstd level of written traces: small files at still hundreds of MB/s.
const ZSTD_LEVEL: i32 = 9;

/// What `convert` did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Requests written.
    pub requests: u64,
    /// Length of the new file.
    pub bytes: u64,
    /// What was read.
    pub source: String,
    /// What looked wrong in it.
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

/// The form and packing a name asks for: `.csv` or `.ftb`, then perhaps `.zst` or `.gz`.
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

/// Reads `src` and writes it to `dst` in the form its name asks for. Volumes are laid out, times
/// rebased and ordered as `opts` specifies. An existing `dst` is replaced at the end, or left as it was.
///
/// # Errors
/// Fails if `src` cannot be read as a trace or `dst` cannot be written.
pub fn convert(src: &Path, dst: &Path, opts: &TraceOptions) -> Result<Converted, WorkloadError> {
    let (form, pack) = form_of(dst)?;
    let mut reader = TraceReader::open(Input::File(src.to_path_buf()), opts)?;
    let partial = Partial::create(dst)?;
    let writing =
        |e: io::Error| WorkloadError::io(&partial.path.display().to_string(), "write", &e);
    let file = BufWriter::with_capacity(1 << 20, partial.file.try_clone().map_err(writing)?);
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
    let bytes = partial.publish(dst)?;
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
    let mut binary = match form {
        Form::Binary => Some(BinaryWriter::start(out, &reader.describe()).map_err(writing)?),
        Form::Csv => {
            writeln!(out, "{}", csv::HEADER).map_err(writing)?;
            None
        }
    };
    while reader.next_batch(&mut batch)? > 0 {
        for request in &batch {
            match &mut binary {
                Some(binary) => binary.request(out, request).map_err(writing)?,
                None => csv::write_request(out, request).map_err(writing)?,
            }
        }
        count += batch.len() as u64;
        batch.clear();
    }
    if let Some(binary) = binary {
        binary.finish(out).map_err(writing)?;
    }
    Ok(count)
}

/// A file being written beside its final name; removed unless published.
struct Partial {
    path: PathBuf,
    file: File,
    published: bool,
}

impl Partial {
    fn create(dst: &Path) -> Result<Self, WorkloadError> {
        let mut name = dst.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.partial", std::process::id()));
        let path = dst.with_file_name(name);
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .map_err(|e| WorkloadError::io(&path.display().to_string(), "create", &e))?;
        Ok(Partial {
            path,
            file,
            published: false,
        })
    }

    /// Puts the bytes on disk, then the name, then the directory's entry.
    fn publish(mut self, dst: &Path) -> Result<u64, WorkloadError> {
        let failed = |e: io::Error| WorkloadError::io(&dst.display().to_string(), "write", &e);
        self.file.sync_all().map_err(failed)?;
        let bytes = self.file.metadata().map_err(failed)?.len();
        fs::rename(&self.path, dst).map_err(failed)?;
        self.published = true;
        let directory = dst
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        File::open(directory)
            .and_then(|d| d.sync_all())
            .map_err(failed)?;
        Ok(bytes)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.published {
            // Best effort: the error that led here is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}
