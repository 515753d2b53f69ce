//! Limits on the connections, threads and bytes of a server. With them, the server never exhausts the process ids,
//! descriptors or address space of its host (D-203).

use std::fs;
use std::path::{Path, PathBuf};

use flashtwin_live::LiveError;

/// Largest number of requests of one connection that the device executes at the same time. nbdkit starts a thread for
/// each.
pub const REQUESTS_MAX: usize = 256;
/// Size in bytes of the stack of a thread that serves a connection.
pub const STACK_BYTES: usize = 1 << 20;
/// Most threads of all connections.
const THREADS_MAX: u64 = 4096;
/// Fewest threads that a server starts with.
const THREADS_MIN: u64 = 64;
/// Divisor of the number of threads that the host can still start. The result is the largest number of threads of the
/// server.
const THREADS_SHARE: u64 = 2;
/// Mean number of threads per connection. One of them receives, and one or more work.
const THREADS_PER_CONNECTION: u64 = 8;
/// Number of descriptors of a connection: one of its socket and two of a pipe.
const FILES_PER_CONNECTION: u64 = 3;
/// Descriptors of the server itself.
const FILES_OF_SERVER: u64 = 64;
/// Limits on the data of all requests in flight. The amount may not exceed [`BYTES_MAX`], the free memory divided by
/// [`BYTES_SHARE`], or the free address space divided by [`BYTES_SHARE`].
const BYTES_MAX: u64 = 4 << 30;
const BYTES_SHARE: u64 = 4;
/// Smallest free address space in bytes that a server needs in addition to that of the device. It is used for the
/// threads of one connection, the data of their requests, and the heap.
const ADDRESSES_MIN: u64 = 1 << 30;
/// Smallest and largest limit on the data in flight of one connection, in bytes.
const CONNECTION_BYTES: (u64, u64) = (64 << 20, 256 << 20);

/// Resources of all connections together.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most connections at a time.
    pub connections: usize,
    /// Number of threads that the connections share, in addition to two threads of each connection.
    pub spare_threads: usize,
    /// Largest amount of data, in bytes, of all requests in flight on all connections.
    pub bytes: u64,
}

impl Limits {
    /// Computes the limits from the free resources of the host, the limits of the user, and those of the control group.
    ///
    /// # Errors
    /// Fails if the free resources do not suffice for a server.
    pub fn read() -> Result<Limits, LiveError> {
        let threads = threads_left() / THREADS_SHARE;
        let addresses = addresses_left();
        if addresses < ADDRESSES_MIN {
            return Err(LiveError::Setting(format!(
                "ulimit -v leaves {} MiB of address space beside the device, of which a server needs {}: raise it",
                addresses >> 20,
                ADDRESSES_MIN >> 20
            )));
        }
        let threads = threads
            .min(addresses / 2 / STACK_BYTES as u64)
            .min(THREADS_MAX);
        if threads < THREADS_MIN {
            return Err(LiveError::Setting(format!(
                "half of the processes and threads that can still be started are {threads}, of which a server \
                 needs {THREADS_MIN}: raise ulimit -u, pids.max of the control group or kernel.pid_max"
            )));
        }
        let files =
            limit(libc::RLIMIT_NOFILE).saturating_sub(FILES_OF_SERVER) / FILES_PER_CONNECTION;
        let connections = (threads / THREADS_PER_CONNECTION).min(files).max(1);
        Ok(Limits {
            connections: connections as usize,
            spare_threads: (threads - 2 * connections) as usize,
            bytes: (memory_left().min(addresses) / BYTES_SHARE).min(BYTES_MAX),
        })
    }

    /// Returns the largest number of workers of a connection while `open` connections are open.
    pub fn threads(&self, open: usize) -> usize {
        1 + (self.spare_threads / open.max(1)).min(REQUESTS_MAX - 1)
    }

    /// Returns the largest amount of data in flight, in bytes, of a connection while `open` connections are open.
    pub fn connection_bytes(&self, open: usize) -> u64 {
        let (least, most) = CONNECTION_BYTES;
        (self.bytes / open.max(1) as u64).clamp(least, most)
    }
}

/// Returns the number of processes and threads that can still be started.
fn threads_left() -> u64 {
    let running = fs::read_to_string("/proc/loadavg").ok();
    let running = running.as_deref().and_then(|text| {
        let (_, all) = text.split(' ').nth(3)?.split_once('/')?;
        all.parse().ok()
    });
    let running: u64 = running.unwrap_or(0);
    let of_kernel = ["pid_max", "threads-max"]
        .iter()
        .filter_map(|name| number(&Path::new("/proc/sys/kernel").join(name)))
        .map(|most| most.saturating_sub(running));
    let of_groups = control_groups().into_iter().filter_map(|group| {
        let used = number(&group.join("pids.current"))?;
        // Without a limit, the file contains "max".
        Some(number(&group.join("pids.max"))?.saturating_sub(used))
    });
    of_kernel
        .chain(of_groups)
        .chain(of_user())
        .min()
        .unwrap_or(THREADS_MAX)
}

/// Returns the number of threads that RLIMIT_NPROC still permits to this user. Returns `None` for root, to which the
/// limit does not apply.
fn of_user() -> Option<u64> {
    // SAFETY: the call takes no arguments and returns a number.
    let user = unsafe { libc::geteuid() };
    let most = limit(libc::RLIMIT_NPROC);
    if user == 0 || most == u64::MAX {
        return None;
    }
    use std::os::unix::fs::MetadataExt;
    let processes = fs::read_dir("/proc").ok()?.flatten().filter(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
            && entry.metadata().is_ok_and(|found| found.uid() == user)
    });
    let threads =
        processes.filter_map(|entry| Some(fs::read_dir(entry.path().join("task")).ok()?.count()));
    Some(most.saturating_sub(threads.sum::<usize>() as u64))
}

/// Returns the directories of the control groups that limit this process, and of all their parents. The groups may be
/// of version 1 or 2.
fn control_groups() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
            continue;
        };
        let root = match controllers {
            "" => Path::new("/sys/fs/cgroup"),
            _ if controllers.split(',').any(|name| name == "pids") => {
                Path::new("/sys/fs/cgroup/pids")
            }
            _ => continue,
        };
        let group = root.join(group.trim_start_matches('/'));
        let inside = group
            .ancestors()
            .take_while(|folder| folder.starts_with(root));
        folders.extend(inside.map(Path::to_owned));
    }
    folders
}

/// Returns the number of bytes of address space that RLIMIT_AS still permits.
fn addresses_left() -> u64 {
    let most = limit(libc::RLIMIT_AS);
    if most == u64::MAX {
        return most;
    }
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages
        .as_deref()
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    most.saturating_sub(pages.unwrap_or(0) * page_bytes() as u64)
}

/// Returns the number of bytes of memory that can be used without swapping.
fn memory_left() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib << 10)
}

/// Returns the soft limit on a resource; `u64::MAX` if it is unlimited.
fn limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the call fills the struct.
    unsafe { libc::getrlimit(resource, &mut limit) };
    limit.rlim_cur
}

/// Bytes of a page of the host's memory.
pub fn page_bytes() -> usize {
    // SAFETY: the argument and the result are numbers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}
