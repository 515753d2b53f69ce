//! Snapshots: the flash state of a device in one file, so that a warm device is paid for once.
//!
//! The file: magic, format version, three texts (flashtwin version, fingerprint, how it was made),
//! the state as the model writes it, then the state's length, a CRC-32 of everything before it, and
//! an end mark. The fingerprint names all the state depends on, and nothing else: timing, link and
//! buffer may differ between the device saved and the one loaded. Nothing of a file is used before
//! its checksum is right, and nothing half-written is ever left under the final name.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flashtwin::{DeviceSpec, Ssd, StateError};

use crate::SimError;

const MAGIC: &[u8; 16] = b"flashtwin state\n";
const FORMAT: u32 = 1;
const END: &[u8; 4] = b"end\n";
/// Length of the state, checksum, end mark.
const TRAILER_BYTES: u64 = 8 + 4 + 4;
/// Longest of the texts in the header.
const TEXT_BYTES_MAX: u32 = 64 * 1024;
const BUFFER_BYTES: usize = 256 * 1024;

/// What the state of the flash depends on.
const FINGERPRINT_KEYS: [&str; 17] = [
    "geometry.chips",
    "geometry.planes_per_chip",
    "geometry.blocks_per_plane",
    "geometry.pages_per_block",
    "geometry.page_bytes",
    "geometry.reserve_percent",
    "nand.backend",
    "nand.parallel_units",
    "nand.copy_back",
    "nand.plane_mapping",
    "nand.allocation_pool",
    "ftl.kind",
    "ftl.placement",
    "ftl.stride_pages",
    "ftl.summary_page",
    "gc.victim",
    "gc.low_percent",
];

/// One line a key, `-` for a key that the device does not have.
fn fingerprint(spec: &DeviceSpec) -> String {
    let value = |key: &str| spec.value_toml(key).unwrap_or_else(|| "-".into());
    FINGERPRINT_KEYS.map(|key| format!("{key} = {}\n", value(key))).concat()
}

/// Saves the flash state of an idle device; `made_by` says how it came about, for people. What the
/// device's buffer holds is not saved.
pub fn save_snapshot(path: &Path, ssd: &Ssd, made_by: &str) -> Result<(), SimError> {
    if made_by.len() > TEXT_BYTES_MAX as usize {
        let message = format!("the description is longer than {TEXT_BYTES_MAX} bytes; shorten it");
        return Err(SimError::snapshot(path, message));
    }
    save_through(path, ssd, made_by, |file| Box::new(BufWriter::with_capacity(BUFFER_BYTES, file)))
}

/// Loads a snapshot of a device of the same fingerprint into an idle one; returns how it was made.
/// After an error the device is as it was.
pub fn load_snapshot(path: &Path, ssd: &mut Ssd) -> Result<String, SimError> {
    let file = File::open(path).map_err(|e| SimError::io(path, "open", e))?;
    let file_bytes = file.metadata().map_err(|e| SimError::io(path, "read", e))?.len();
    let mut input = BufReader::with_capacity(BUFFER_BYTES, file);
    let header = Header::read(&mut input, file_bytes).map_err(|e| e.at(path))?;
    if let Some(difference) = difference(&header.fingerprint, &fingerprint(ssd.spec())) {
        return Err(SimError::snapshot(path, format!("is of another device: {difference}")));
    }
    let state_bytes = verify(&mut input, file_bytes, header.bytes).map_err(|e| e.at(path))?;
    input.seek(SeekFrom::Start(header.bytes)).map_err(|e| SimError::io(path, "read", e))?;
    let mut state = input.take(state_bytes);
    ssd.load_state(&mut state).map_err(|e| match e {
        StateError::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof => SimError::snapshot(
            path,
            "holds a shorter state than this device has, although its checksum is right; it was made \
             by a different flashtwin: make it anew",
        ),
        StateError::Io(e) => SimError::io(path, "read", e),
        StateError::Inconsistent(_) => SimError::snapshot(path, format!("{e}; make it anew")),
    })?;
    if state.limit() > 0 {
        return Err(SimError::snapshot(
            path,
            format!("holds {} bytes more than the state of this device; make it anew", state.limit()),
        ));
    }
    Ok(header.made_by)
}

// ---- writing ----

/// Writes through `wrap` to a temporary file beside `path`, and renames it once all is on disk.
fn save_through(
    path: &Path,
    ssd: &Ssd,
    made_by: &str,
    wrap: for<'a> fn(&'a File) -> Box<dyn Write + 'a>,
) -> Result<(), SimError> {
    let temporary = Temporary::beside(path)?;
    let written = || -> io::Result<()> {
        let file = File::create(&temporary.0)?;
        let mut out = wrap(&file);
        write_snapshot(&mut *out, ssd, made_by)?;
        out.flush()?;
        drop(out);
        file.sync_all()?;
        fs::rename(&temporary.0, path)
    };
    written().map_err(|e| SimError::io(path, "write", e))?;
    // The rename is on disk once the directory is. Where directories cannot be synced, so be it:
    // the old name or the new one is found whole after a crash.
    if let Some(directory) = path.parent() {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let _ = File::open(directory).and_then(|d| d.sync_all());
    }
    Ok(())
}

/// A file that is gone again unless it was renamed.
struct Temporary(PathBuf);

impl Temporary {
    /// A name of its own in the directory of `path`, so that renaming needs no copy.
    fn beside(path: &Path) -> Result<Temporary, SimError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(name) = path.file_name() else {
            return Err(SimError::snapshot(path, "is no file name; give one, as in warm.snapshot"));
        };
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}.{count}.partial", std::process::id()));
        Ok(Temporary(path.with_file_name(temporary)))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nothing there: it was renamed, or never made.
        let _ = fs::remove_file(&self.0);
    }
}

fn write_snapshot(out: &mut dyn Write, ssd: &Ssd, made_by: &str) -> io::Result<()> {
    let mut out = Summed { inner: out, crc: crc32fast::Hasher::new(), bytes: 0 };
    out.write_all(MAGIC)?;
    out.write_all(&FORMAT.to_le_bytes())?;
    for text in [env!("CARGO_PKG_VERSION"), &fingerprint(ssd.spec()), made_by] {
        out.write_all(&(text.len() as u32).to_le_bytes())?;
        out.write_all(text.as_bytes())?;
    }
    let header_bytes = out.bytes;
    ssd.save_state(&mut out)?;
    let state_bytes = out.bytes - header_bytes;
    out.write_all(&state_bytes.to_le_bytes())?;
    let crc = out.crc.finalize();
    out.inner.write_all(&crc.to_le_bytes())?;
    out.inner.write_all(END)
}

/// Counts and sums what passes through.
struct Summed<'a> {
    inner: &'a mut dyn Write,
    crc: crc32fast::Hasher,
    bytes: u64,
}

impl Write for Summed<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(data)?;
        self.crc.update(&data[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

// ---- reading ----

/// Why a file cannot be used, its name still unsaid.
enum Unusable {
    Io(io::Error),
    Wrong(String),
}

impl Unusable {
    fn wrong<T>(message: impl Into<String>) -> Result<T, Unusable> {
        Err(Unusable::Wrong(message.into()))
    }

    fn at(self, path: &Path) -> SimError {
        match self {
            Unusable::Io(e) => SimError::io(path, "read", e),
            Unusable::Wrong(message) => SimError::snapshot(path, message),
        }
    }
}

impl From<io::Error> for Unusable {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::UnexpectedEof => Unusable::Wrong("ends in its header; make it anew".into()),
            _ => Unusable::Io(e),
        }
    }
}

/// What stands before the state.
struct Header {
    fingerprint: String,
    made_by: String,
    /// Length of the header.
    bytes: u64,
}

impl Header {
    fn read(input: &mut impl Read, file_bytes: u64) -> Result<Header, Unusable> {
        let mut magic = [0; MAGIC.len()];
        if file_bytes < MAGIC.len() as u64 {
            return Unusable::wrong("is no snapshot of flashtwin");
        }
        input.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Unusable::wrong("is no snapshot of flashtwin");
        }
        let format = read_u32(input)?;
        let mut bytes = MAGIC.len() as u64 + 4;
        let mut text = || -> Result<String, Unusable> {
            let length = read_u32(input)?;
            if length > TEXT_BYTES_MAX {
                return Unusable::wrong("has a damaged header; make it anew");
            }
            let mut text = vec![0; length as usize];
            input.read_exact(&mut text)?;
            bytes += 4 + u64::from(length);
            match String::from_utf8(text) {
                Ok(text) => Ok(text),
                Err(_) => Unusable::wrong("has a damaged header; make it anew"),
            }
        };
        let version = text()?;
        if format != FORMAT {
            return Unusable::wrong(format!(
                "has format {format}, written by flashtwin {}; this is flashtwin {}, which reads \
                 format {FORMAT}: make it anew",
                version.escape_debug(),
                env!("CARGO_PKG_VERSION")
            ));
        }
        let (fingerprint, made_by) = (text()?, text()?);
        Ok(Header { fingerprint, made_by, bytes })
    }
}

fn read_u32(input: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Checks end mark, length and checksum; returns the length of the state.
fn verify(
    input: &mut (impl Read + Seek),
    file_bytes: u64,
    header_bytes: u64,
) -> Result<u64, Unusable> {
    let truncated = || Unusable::wrong("is truncated; make it anew");
    let Some(state_bytes) = file_bytes.checked_sub(header_bytes + TRAILER_BYTES) else {
        return truncated();
    };
    input.seek(SeekFrom::Start(0))?;
    let mut crc = crc32fast::Hasher::new();
    let mut left = file_bytes - 8;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut length = [0; 8];
    while left > 0 {
        let n = left.min(BUFFER_BYTES as u64) as usize;
        input.read_exact(&mut buffer[..n])?;
        crc.update(&buffer[..n]);
        left -= n as u64;
        // The last eight bytes summed are the length; they may straddle two buffers.
        let kept = n.min(8);
        length.rotate_left(kept);
        length[8 - kept..].copy_from_slice(&buffer[n - kept..n]);
    }
    let expected_crc = read_u32(input)?;
    let mut end = [0; END.len()];
    input.read_exact(&mut end)?;
    if end != *END || u64::from_le_bytes(length) != state_bytes {
        return truncated();
    }
    if crc.finalize() != expected_crc {
        return Unusable::wrong("is damaged: its checksum is wrong; make it anew");
    }
    Ok(state_bytes)
}

/// The first line in which two fingerprints differ, in words.
fn difference(of_file: &str, of_device: &str) -> Option<String> {
    let mut file_lines = of_file.lines();
    for line in of_device.lines() {
        let found = file_lines.next().unwrap_or_default();
        if line != found {
            let key = line.split_once(" = ").map_or(line, |(key, _)| key);
            let value = |line: &str| match line.split_once(" = ") {
                Some((of, value)) if of == key => value.escape_debug().to_string(),
                _ => "-".into(),
            };
            let (snapshot, device) = (value(found), value(line));
            return Some(format!("{key} is {snapshot} in the snapshot, {device} in the device"));
        }
    }
    file_lines.next().map(|line| format!("the snapshot also has {}", line.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(overrides: &[(&str, &str)]) -> Ssd {
        let profile = flashtwin::spec::builtin("demo").expect("demo is built in");
        let mut all = vec![
            ("geometry.chips", "2"),
            ("geometry.blocks_per_plane", "40"),
            ("geometry.reserve_percent", "20"),
        ];
        all.extend_from_slice(overrides);
        Ssd::new(&DeviceSpec::with_overrides(profile, "demo", &all).expect("a sound device"))
    }

    fn warm() -> Ssd {
        let mut ssd = device(&[]);
        ssd.fill_steady(3);
        ssd
    }

    /// A directory of its own, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("flashtwin-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).expect("the temporary directory is writable");
            Directory(path)
        }

        fn files(&self) -> usize {
            fs::read_dir(&self.0).expect("it is there").count()
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Saves a warm device, changes the bytes, and loads them into `into`.
    fn load_changed(name: &str, into: &mut Ssd, change: impl FnOnce(&mut Vec<u8>)) -> SimError {
        let directory = Directory::new(name);
        let path = directory.0.join("warm");
        save_snapshot(&path, &warm(), "steady, seed 3").expect("room on the disk");
        let mut bytes = fs::read(&path).expect("just written");
        change(&mut bytes);
        fs::write(&path, &bytes).expect("room on the disk");
        load_snapshot(&path, into).expect_err("it was changed")
    }

    #[test]
    fn says_how_it_was_made_and_takes_another_timing_and_buffer() {
        let directory = Directory::new("made");
        let path = directory.0.join("warm");
        save_snapshot(&path, &warm(), "steady, seed 3").expect("room on the disk");
        let mut other = device(&[("timing.read_us", "60"), ("buffer", "none"), ("name", "other")]);
        assert_eq!(load_snapshot(&path, &mut other).expect("the same flash"), "steady, seed 3");
        assert_eq!(other.pages_mapped(), warm().pages_mapped());
        assert_eq!(directory.files(), 1);
    }

    #[test]
    fn every_truncation_is_noticed() {
        let mut sizes = vec![0, 5, 16, 19, 24, 200, 1000];
        sizes.extend([1, 4, 8, 12, 16, 4096].map(|less| usize::MAX - less));
        for size in sizes {
            let mut ssd = device(&[]);
            let error = load_changed("truncated", &mut ssd, |bytes| {
                let size = if size > bytes.len() { bytes.len() - (usize::MAX - size) } else { size };
                bytes.truncate(size);
            });
            assert!(matches!(error, SimError::Snapshot { .. }), "{size}: {error}");
            assert_eq!(ssd.pages_mapped(), 0, "the device was changed");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let length = {
            let directory = Directory::new("length");
            save_snapshot(&directory.0.join("warm"), &warm(), "").expect("room on the disk");
            fs::metadata(directory.0.join("warm")).expect("just written").len() as usize
        };
        for at in (0..700).step_by(23).chain((700..length).step_by(length / 40)) {
            let mut ssd = device(&[]);
            let error = load_changed("flipped", &mut ssd, |bytes| bytes[at] ^= 1 << (at % 8));
            assert!(matches!(error, SimError::Snapshot { .. }), "{at}: {error}");
            assert_eq!(ssd.pages_mapped(), 0, "the device was changed");
        }
    }

    #[test]
    fn another_device_is_refused_with_the_first_difference() {
        for (key, value, expected) in [
            ("geometry.chips", "4", "geometry.chips is 2 in the snapshot, 4 in the device"),
            ("gc.low_percent", "6", "gc.low_percent is 5"),
            ("nand.copy_back", "false", "nand.parallel_units is 4 in the snapshot, 1 in the device"),
        ] {
            let mut overrides = vec![(key, value)];
            if key == "nand.copy_back" {
                overrides.push(("nand.parallel_units", "1"));
            }
            let error = load_changed("other", &mut device(&overrides), |_| ()).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn other_files_and_other_formats_are_told_apart() {
        let error = load_changed("text", &mut device(&[]), |bytes| bytes[0] = b'x').to_string();
        assert!(error.contains("no snapshot"), "{error}");
        let error = load_changed("format", &mut device(&[]), |bytes| bytes[16] = 9).to_string();
        assert!(error.contains("format 9") && error.contains("make it anew"), "{error}");
        let error = load_snapshot(Path::new("/nonexistent/warm"), &mut device(&[])).expect_err("none");
        assert!(error.to_string().contains("/nonexistent/warm: cannot open"), "{error}");
    }

    /// A disk with room for 100 000 bytes.
    struct Full<'a>(&'a File, usize);

    impl Write for Full<'_> {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            if self.1 + data.len() > 100_000 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.1 += data.len();
            self.0.write(data)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    #[test]
    fn a_full_disk_leaves_nothing_new_and_the_old_snapshot_whole() {
        let directory = Directory::new("full");
        let path = directory.0.join("warm");
        let full = |path: &Path| save_through(path, &warm(), "new", |file| Box::new(Full(file, 0)));
        let error = full(&path).expect_err("the disk is full").to_string();
        assert!(error.contains("free some space"), "{error}");
        assert_eq!(directory.files(), 0);

        save_snapshot(&path, &warm(), "old").expect("room on the disk");
        full(&path).expect_err("the disk is full");
        assert_eq!(directory.files(), 1);
        assert_eq!(load_snapshot(&path, &mut device(&[])).expect("the old one"), "old");
    }

    #[test]
    fn a_name_that_cannot_be_written_is_an_error() {
        let error = save_snapshot(Path::new("/nonexistent/warm"), &warm(), "").expect_err("no directory");
        assert!(error.to_string().contains("/nonexistent/warm: cannot write"), "{error}");
        save_snapshot(Path::new("/"), &warm(), "").expect_err("no file name");
    }
}
