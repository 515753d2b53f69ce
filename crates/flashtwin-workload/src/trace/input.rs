//! Input of a trace: opens a file or memory, decompresses gzip and zstd, and provides a moving window of the bytes.
//! Compression is recognised by magic bytes, never by the file name.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::table;
use super::utf16::{big_endian, Utf16, LOOKED_AT_BYTES};
use crate::error::{ErrorKind, WorkloadError};

/// Number of bytes requested from the reader at a time: about half the size of a second-level cache.
const CHUNK_BYTES: usize = 256 << 10;
/// Largest size of the window in bytes. A line of a trace must fit into it.
const WINDOW_MAX_BYTES: usize = 4 << 20;

/// The path that names standard input.
const STDIN: &str = "-";

/// A place from which a trace is read. It can be opened again for a second pass.
#[derive(Clone)]
pub(crate) enum Input {
    File(PathBuf),
    Memory(Arc<[u8]>),
}

impl Input {
    /// Returns the name used in messages.
    pub fn name(&self) -> String {
        match self {
            Input::File(path) => shown(path),
            Input::Memory(_) => "(memory)".to_string(),
        }
    }

    /// Returns the name of the trace for results. It does not depend on the directory of the trace.
    pub fn base_name(&self) -> String {
        match self {
            // Only regular files are named without their directory. The name of a pipe would be meaningless without it.
            Input::File(path) if path.is_file() => path
                .file_name()
                .map_or_else(|| self.name(), |name| shown(Path::new(name))),
            _ => self.name(),
        }
    }

    /// Starts reading from the first byte.
    pub fn open(&self) -> Result<Source, WorkloadError> {
        let name = self.name();
        let mut plain_bytes = None;
        let mut raw: Box<dyn Read + Send> = match self {
            Input::File(path) => {
                let opening = |e: io::Error| WorkloadError::io(&name, "open", &e);
                let mut file = if path == Path::new(STDIN) {
                    File::from(io::stdin().as_fd().try_clone_to_owned().map_err(opening)?)
                } else {
                    File::open(path).map_err(opening)?
                };
                let mut meta = file.metadata().map_err(opening)?;
                if meta.is_dir() {
                    let text = format!("{name}: is a directory; a trace is one file");
                    return Err(WorkloadError::new(ErrorKind::Io, text));
                }
                let kind = meta.file_type();
                if kind.is_char_device() || kind.is_block_device() {
                    // It may never end.
                    let text =
                        format!("{name}: is a device; give a file or a pipe, or copy it to a file");
                    return Err(WorkloadError::new(ErrorKind::Io, text));
                }
                if !meta.is_file() || path == Path::new(STDIN) {
                    file = spooled(&name, file, &meta)?;
                    meta = file.metadata().map_err(opening)?;
                }
                let mut magic = [0; 6];
                // An error of reading is reported below.
                let known = file.read_at(&mut magic, 0).unwrap_or(0);
                if let Some(form) = table::form(&magic[..known]) {
                    file = table::as_text(&name, form, &file, &meta)?;
                    meta = file.metadata().map_err(opening)?;
                }
                plain_bytes = Some(meta.len());
                Box::new(FromStart { file, at: 0 })
            }
            Input::Memory(bytes) => {
                plain_bytes.replace(bytes.len() as u64);
                Box::new(io::Cursor::new(bytes.clone()))
            }
        };
        let mut magic = Vec::with_capacity(6);
        raw.by_ref()
            .take(6)
            .read_to_end(&mut magic)
            .map_err(|e| WorkloadError::io(&name, "read", &e))?;
        let packing = Packing::of(&magic, &name)?;
        let packed_read = Arc::new(AtomicU64::new(0));
        let whole = Counting {
            inner: io::Cursor::new(magic).chain(raw),
            count: packed_read.clone(),
        };
        let reader: Box<dyn Read + Send> = match packing {
            Packing::Plain => Box::new(whole),
            Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(whole)),
            Packing::Zstd => Box::new(
                zstd::Decoder::new(whole).map_err(|e| WorkloadError::io(&name, "read", &e))?,
            ),
        };
        if packing != Packing::Plain {
            plain_bytes = None;
        }
        Ok(Source {
            name,
            packing,
            plain_bytes,
            reader,
            packed_read,
            window: Vec::new(),
            start: 0,
            end: 0,
            consumed: 0,
            ended: false,
            encoding: None,
        })
    }
}

/// Returns a path with its control characters escaped, for output to a terminal.
fn shown(path: &Path) -> String {
    let mut text = String::new();
    for c in path.display().to_string().chars() {
        match c.is_control() {
            true => text.extend(c.escape_default()),
            false => text.push(c),
        }
    }
    text
}

/// Reads the copy of a pipe's data from the start. Several readers of a copy have separate positions.
struct FromStart {
    file: File,
    at: u64,
}

impl Read for FromStart {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buf, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// Copies of the data of pipes, by device and inode number. A pipe can be read only once, but a trace is opened several
/// times: for the description, and for several policies or volumes.
static SPOOLS: Mutex<BTreeMap<(u64, u64), File>> = Mutex::new(BTreeMap::new());

/// Creates a file without a name in the directory `TMPDIR`. It exists until the process ends.
pub(crate) fn nameless_file() -> io::Result<File> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let file_name = format!("flashtwin_{}_{number}", std::process::id());
    let path = std::env::temp_dir().join(file_name);
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Copies the data of a pipe to a file without a name, which exists until the process ends.
fn spooled(name: &str, mut pipe: File, meta: &Metadata) -> Result<File, WorkloadError> {
    let keeping = |e: io::Error| WorkloadError::io(name, "keep a copy of the pipe in TMPDIR", &e);
    let mut spools = SPOOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (meta.dev(), meta.ino());
    if let Some(kept) = spools.get(&key) {
        return kept.try_clone().map_err(keeping);
    }
    let mut copy = nameless_file().map_err(keeping)?;
    io::copy(&mut pipe, &mut copy).map_err(keeping)?;
    let kept = copy.try_clone().map_err(keeping)?;
    spools.insert(key, copy);
    Ok(kept)
}

/// Compression of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    fn of(magic: &[u8], name: &str) -> Result<Packing, WorkloadError> {
        if let Some(form) = table::form(magic) {
            return Err(table::unread(name, form));
        }
        let foreign = match magic {
            [0x1f, 0x8b, ..] => return Ok(Packing::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => return Ok(Packing::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz",
            [b'B', b'Z', b'h', ..] => "bzip2",
            [b'P', b'K', 3, 4, ..] => "zip",
            _ => return Ok(Packing::Plain),
        };
        Err(WorkloadError::new(
            ErrorKind::UnknownFormat,
            format!(
                "{name}: packed with {foreign}; unpack it first (plain, gzip and zstd are read)"
            ),
        ))
    }

    pub fn name(self) -> &'static str {
        match self {
            Packing::Plain => "plain",
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
        }
    }
}

/// A reader that counts the bytes read from the file. The error of a broken stream can thus name a position.
struct Counting<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A window moving over the unpacked bytes.
pub(crate) struct Source {
    name: String,
    packing: Packing,
    plain_bytes: Option<u64>,
    reader: Box<dyn Read + Send>,
    packed_read: Arc<AtomicU64>,
    window: Vec<u8>,
    start: usize,
    end: usize,
    consumed: u64,
    ended: bool,
    /// Encoding of the text; `None` until its first bytes have been read.
    encoding: Option<Encoding>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// No conversion: UTF-8, ASCII or binary data.
    Bytes,
    Utf16,
}

impl Source {
    /// Returns the name used in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the compression of the file.
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// Whether the text was UTF-16.
    pub fn is_utf16(&self) -> bool {
        self.encoding == Some(Encoding::Utf16)
    }

    /// Returns the length of the file in bytes; `None` if it is compressed or no regular file.
    pub fn plain_bytes(&self) -> Option<u64> {
        self.plain_bytes
    }

    /// Returns the bytes in the window.
    pub fn data(&self) -> &[u8] {
        &self.window[self.start..self.end]
    }

    /// Removes the first `n` bytes from the window.
    pub fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.start);
        self.start += n;
        self.consumed += n as u64;
    }

    /// Returns the number of decompressed bytes that have been removed from the window so far.
    pub fn position(&self) -> u64 {
        self.consumed
    }

    /// Returns the number of bytes read so far from the file, which may be compressed.
    pub fn packed_position(&self) -> u64 {
        self.packed_read.load(Ordering::Relaxed)
    }

    /// Reads more bytes into the window; returns false at the end of the input.
    pub fn fill(&mut self) -> Result<bool, WorkloadError> {
        if self.encoding.is_none() {
            self.find_encoding()?;
            if self.end > self.start {
                return Ok(true);
            }
        }
        self.fill_window()
    }

    /// Loads the first bytes and determines the encoding. UTF-16 text is converted to UTF-8 from its start.
    fn find_encoding(&mut self) -> Result<(), WorkloadError> {
        while self.end < LOOKED_AT_BYTES && self.fill_window()? {}
        self.encoding = Some(Encoding::Bytes);
        if let Some(big) = big_endian(&self.window[..self.end.min(LOOKED_AT_BYTES)]) {
            let mark_bytes = 2;
            let read = io::Cursor::new(self.window[mark_bytes..self.end].to_vec());
            let rest = std::mem::replace(&mut self.reader, Box::new(io::empty()));
            self.reader = Box::new(Utf16::new(read.chain(rest), big));
            self.encoding = Some(Encoding::Utf16);
            (self.start, self.end, self.ended) = (0, 0, false);
        }
        Ok(())
    }

    fn fill_window(&mut self) -> Result<bool, WorkloadError> {
        if self.ended {
            return Ok(false);
        }
        self.window.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.window.len() - self.end < CHUNK_BYTES {
            if self.end >= WINDOW_MAX_BYTES {
                return Err(WorkloadError::new(
                    ErrorKind::Malformed,
                    format!(
                        "{}: a line longer than {WINDOW_MAX_BYTES} bytes at byte {}; this is no text trace",
                        self.name, self.consumed
                    ),
                ));
            }
            self.window.resize(self.end + CHUNK_BYTES, 0);
        }
        let n = loop {
            match self.reader.read(&mut self.window[self.end..]) {
                Ok(n) => break n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.broken(&e)),
            }
        };
        self.end += n;
        self.ended = n == 0;
        Ok(n > 0)
    }

    /// Reads until `wanted` bytes are available or the input ends.
    pub fn want(&mut self, wanted: usize) -> Result<(), WorkloadError> {
        while self.end - self.start < wanted && self.fill()? {}
        Ok(())
    }

    fn broken(&self, e: &io::Error) -> WorkloadError {
        if self.packing == Packing::Plain {
            return WorkloadError::io(&self.name, "read", e);
        }
        WorkloadError::new(
            ErrorKind::Truncated,
            format!(
                "{}: the {} stream breaks off or is damaged near byte {} of the file \
                 (after {} unpacked bytes): {e}; fetch or pack the file again",
                self.name,
                self.packing.name(),
                self.packed_position(),
                self.consumed + (self.end - self.start) as u64,
            ),
        )
    }
}
