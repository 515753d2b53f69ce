//! A served device as a plugin of nbdkit. nbdkit implements the NBD protocol, forks, and calls the plugin from many
//! threads.
//!
//! The functions in this module only convert between C and Rust. No panic reaches C; a panic becomes an error of the
//! call.
//!
//! nbdkit first calls `config` for every setting, then `get_ready`. Then it forks, and calls `after_fork`. Threads may
//! be started only after the fork. nbdkit then serves clients, and calls `cleanup` when no client is connected. The
//! module `stop` ends the server without waiting for clients.

mod connection;
mod ffi;
mod interpose;
mod limits;
mod refuse;
mod stop;

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use flashtwin_live::{
    Control, Failure, LiveError, PlacementId, PreparedServer, Server, Session, Settings,
};
use limits::Limits;

/// Largest request in bytes that clients may send. Clients assume this limit if a server announces none.
const REQUEST_BYTES_MAX: u32 = 32 << 20;
/// The umask of private files.
const PRIVATE: libc::mode_t = 0o177;
/// Largest number of heaps (arenas) that the C library may create.
const ARENAS_MAX: c_int = 4;
/// Interval between two reports.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// State before the server exists.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);
static SERVER: OnceLock<Arc<Server>> = OnceLock::new();
static CONTROL: Mutex<Option<Control>> = Mutex::new(None);
static REPORTER: Mutex<Option<Reporter>> = Mutex::new(None);

enum Before {
    Settings(Box<Settings>),
    Ready(Box<PreparedServer>),
}

/// The thread that writes a report every second.
struct Reporter {
    thread: JoinHandle<()>,
    end: Arc<(Mutex<bool>, Condvar)>,
}

fn before() -> MutexGuard<'static, Option<Before>> {
    match BEFORE.lock() {
        Ok(before) => before,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// Prints an error as one of nbdkit's messages.
fn complain(message: &str) {
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    ffi::error(&text);
}

/// Runs a step of the server's start or stop. Returns the error message if the step fails or panics.
fn trouble(what: impl FnOnce() -> Result<(), LiveError>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(what)) {
        Ok(done) => done.err().map(|e| e.to_string()),
        Err(_) => Some("flashtwin: a bug; see the message above".into()),
    }
}

/// Runs a step of the server's start. Returns 0, or prints the error and returns -1.
fn step(what: impl FnOnce() -> Result<(), LiveError>) -> c_int {
    trouble(what).map_or(0, |message| {
        complain(&message);
        -1
    })
}

/// Executes a call of a client. Returns 0, or sets errno and returns -1.
fn call(what: impl FnOnce(&Server) -> Result<(), Failure>) -> c_int {
    let is_whole = connection::work().is_none_or(|work| work.is_whole());
    if !is_whole || stop::is_requested() {
        ffi::set_error(libc::ESHUTDOWN);
        return -1;
    }
    let done = catch_unwind(AssertUnwindSafe(|| match SERVER.get() {
        Some(server) => server.admit().and_then(|_call| what(server)),
        None => Err(Failure::Lost),
    }));
    let errno = match done {
        Ok(Ok(())) => return 0,
        Ok(Err(failure)) => failure.errno(),
        Err(_) => libc::EIO,
    };
    ffi::set_error(errno);
    -1
}

fn text<'a>(from: *const c_char) -> Result<&'a str, LiveError> {
    // SAFETY: the server passes strings that end in a zero byte. They are valid during the call.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str()
        .map_err(|_| LiveError::Setting(format!("{}: is not UTF-8", text.to_string_lossy())))
}

extern "C" fn config(key: *const c_char, value: *const c_char) -> c_int {
    step(|| {
        let mut before = before();
        let begun = before.get_or_insert_with(|| Before::Settings(Box::default()));
        if let Before::Settings(settings) = begun {
            settings.set(text(key)?, text(value)?)?;
        }
        Ok(())
    })
}

extern "C" fn get_ready() -> c_int {
    step(|| {
        let settings = match before().take() {
            Some(Before::Settings(settings)) => *settings,
            _ => Settings::default(),
        };
        // With this signal ignored, a write that exceeds the limit on file sizes returns an error and does not end the
        // server. SAFETY: ignoring a signal installs no code of ours.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        if let Some(mask) = settings.umask {
            umask(mask);
        }
        if !interpose::is_effective() {
            return Err(LiveError::Setting(
                "the plugin has to be preloaded: start nbdkit with LD_PRELOAD=PLUGIN, as flashtwin serve does".into(),
            ));
        }
        // The number of arenas is limited, because each takes address space, and few threads allocate memory while they
        // serve. SAFETY: the arguments are numbers.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, ARENAS_MAX) };
        let ready = PreparedServer::prepare(settings)?;
        connection::set_limits(Limits::read()?);
        // The files created from here on (sockets, report, state) are accessible only to their owner.
        umask(umask(PRIVATE) | PRIVATE);
        *before() = Some(Before::Ready(Box::new(ready)));
        Ok(())
    })
}

extern "C" fn after_fork() -> c_int {
    step(|| {
        let Some(Before::Ready(ready)) = before().take() else {
            return Err(LiveError::Setting("the server is not ready".into()));
        };
        let server = Arc::new(ready.start()?);
        let path = server.settings().control.as_deref();
        let control = path.map(|path| Control::start(server.clone(), path));
        let control = control.transpose()?;
        // The first report is written only after the control socket exists, because clients send commands as soon as
        // there is a report.
        if let Err(e) = server.write_report() {
            if let Some(control) = control {
                control.stop();
            }
            return Err(e);
        }
        *CONTROL.lock().unwrap_or_else(PoisonError::into_inner) = control;
        let reporter = Reporter::start(server.clone());
        *REPORTER
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(reporter);
        // Called once in a process.
        let _ = SERVER.set(server);
        stop::handle_signals()
    })
}

/// Sets the umask, and returns the previous one.
fn umask(mask: libc::mode_t) -> libc::mode_t {
    // SAFETY: the argument and the result are numbers. No other thread creates files while the server starts.
    unsafe { libc::umask(mask) }
}

impl Reporter {
    fn start(server: Arc<Server>) -> Reporter {
        let end = Arc::new((Mutex::new(false), Condvar::new()));
        let signal = end.clone();
        let thread = std::thread::spawn(move || {
            let (ended, bell) = &*signal;
            let Ok(mut ended) = ended.lock() else { return };
            let complained = AtomicBool::new(false);
            while !*ended {
                match bell.wait_timeout(ended, REPORT_PERIOD) {
                    Ok((now, _)) => ended = now,
                    Err(_) => return,
                }
                if let Err(e) = server.write_report() {
                    // The error is printed only once, because it would be repeated every second.
                    if !complained.swap(true, Ordering::Relaxed) {
                        complain(&e.to_string());
                    }
                }
            }
        });
        Reporter { thread, end }
    }

    fn stop(self) {
        let (ended, bell) = &*self.end;
        if let Ok(mut ended) = ended.lock() {
            *ended = true;
        }
        bell.notify_all();
        // An error is ignored: if the thread panicked, its message has already been printed.
        let _ = self.thread.join();
    }
}

/// Stops the server. If a part of the stop fails, prints the reason and returns false. The exit code of nbdkit does not
/// show the failure. The launcher therefore recognises these messages by their prefix.
fn stop_server(server: &Server) -> bool {
    let reporting = trouble(|| {
        let reporter = REPORTER
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(reporter) = reporter {
            reporter.stop();
        }
        Ok(())
    });
    let stopped = trouble(|| server.stop());
    let mut succeeded = true;
    for message in [reporting, stopped].into_iter().flatten() {
        complain(&format!("the stop failed: {message}"));
        succeeded = false;
    }
    succeeded
}

/// Removes the socket for clients and the control socket, and ends the thread of the control socket.
fn close_sockets(listen: Option<&Path>) {
    if let Some(listen) = listen {
        // An error is ignored: the next start removes a socket on which no process listens.
        let _ = std::fs::remove_file(listen);
    }
    let control = CONTROL
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(control) = control {
        control.stop();
    }
}

extern "C" fn cleanup() {
    stop::finish();
}

/// Refuses clients beyond the limit.
extern "C" fn preconnect(_readonly: c_int) -> c_int {
    match connection::served().is_none_or(|connection| connection.admit()) {
        true => 0,
        false => -1,
    }
}

/// Number of low bits in a connection's number. They hold a count of power losses. The bits above them hold a placement
/// id.
const CUTS_BITS: u32 = 47;

/// Opens a connection. The returned pointer is no address, but holds two numbers. Both are increased by one, since null
/// would be an error. The low bits hold the number of power losses so far. The high bits hold the placement id of the
/// connection's writes, or 0 if there is none.
extern "C" fn open(_readonly: c_int) -> *mut c_void {
    let Some(server) = SERVER.get() else {
        return std::ptr::without_provenance_mut(1);
    };
    let placement = match server.placement_of_export(&ffi::export_name()) {
        Ok(placement) => placement,
        Err(e) => {
            complain(&e.to_string());
            return std::ptr::null_mut();
        }
    };
    let id = placement.get().map_or(0, |id| u64::from(id) + 1);
    let number = (id << CUTS_BITS) | (server.connect().cuts() + 1);
    std::ptr::without_provenance_mut(number as usize)
}

/// Runs a call of a connection.
fn ask(connection: *mut c_void, what: impl FnOnce(Session<'_>) -> Result<(), Failure>) -> c_int {
    let number = connection.addr() as u64;
    let (id, cuts) = (number >> CUTS_BITS, (number & ((1 << CUTS_BITS) - 1)) - 1);
    let placement = id.checked_sub(1).and_then(|id| PlacementId::new(id as u16));
    call(|server| what(server.session(cuts).placed(placement.unwrap_or_default())))
}

extern "C" fn get_size(_: *mut c_void) -> i64 {
    let mut size = -1;
    call(|server| {
        size = i64::try_from(server.size_bytes()).map_err(|_| Failure::Beyond)?;
        Ok(())
    });
    size
}

extern "C" fn block_size(_: *mut c_void, least: *mut u32, best: *mut u32, most: *mut u32) -> c_int {
    call(|server| {
        let page = server.page_bytes();
        // The best size that is announced to clients must be a power of two.
        let best_bytes = if page.is_power_of_two() { page } else { 4096 };
        // SAFETY: the server passes the addresses of three numbers, which are valid during this call.
        unsafe { (*least, *best, *most) = (1, best_bytes, REQUEST_BYTES_MAX) };
        Ok(())
    })
}

extern "C" fn yes(_: *mut c_void) -> c_int {
    1
}

extern "C" fn can_fua(_: *mut c_void) -> c_int {
    ffi::FUA_NATIVE
}

extern "C" fn can_cache(_: *mut c_void) -> c_int {
    ffi::CACHE_NATIVE
}

extern "C" fn can_extents(_: *mut c_void) -> c_int {
    SERVER
        .get()
        .is_some_and(|server| server.has_extents())
        .into()
}

extern "C" fn pread(at: *mut c_void, to: *mut c_void, count: u32, offset: u64, _: u32) -> c_int {
    if let Some(work) = connection::work() {
        work.use_buffer(to, count as usize);
    }
    ask(at, |session| {
        // SAFETY: the server passes `count` bytes, which no other code uses during this call. They are initialised,
        // because the server clears its buffers.
        let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), count as usize) };
        session.read(to, offset)
    })
}

extern "C" fn pwrite(
    at: *mut c_void,
    from: *const c_void,
    count: u32,
    offset: u64,
    flags: u32,
) -> c_int {
    if let Some(work) = connection::work() {
        work.use_buffer(from.cast_mut(), count as usize);
    }
    ask(at, |session| {
        // SAFETY: the server passes `count` bytes. They are not written during this call.
        let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), count as usize) };
        session.write(from, offset, flags & ffi::FLAG_FUA != 0)
    })
}

extern "C" fn flush(at: *mut c_void, _: u32) -> c_int {
    ask(at, |session| session.flush())
}

extern "C" fn trim(at: *mut c_void, count: u32, offset: u64, _: u32) -> c_int {
    ask(at, |session| session.trim(offset, count.into()))
}

extern "C" fn zero(at: *mut c_void, count: u32, offset: u64, flags: u32) -> c_int {
    let is = |flag| flags & flag != 0;
    let (fua, may_trim) = (is(ffi::FLAG_FUA), is(ffi::FLAG_MAY_TRIM));
    ask(at, |session| {
        session.zero(offset, count.into(), fua, may_trim, is(ffi::FLAG_FAST_ZERO))
    })
}

extern "C" fn cache(at: *mut c_void, count: u32, offset: u64, _: u32) -> c_int {
    ask(at, |session| session.cache(offset, count.into()))
}

extern "C" fn extents(
    _: *mut c_void,
    count: u32,
    offset: u64,
    flags: u32,
    extents: *mut ffi::Extents,
) -> c_int {
    call(|server| {
        server.extents(offset, count.into(), |extent| {
            let kind = if extent.hole {
                ffi::EXTENT_HOLE | ffi::EXTENT_ZERO
            } else {
                0
            };
            // SAFETY: `extents` is the list of this call. Extents are added in ascending order.
            let added = unsafe { ffi::add_extent(extents, extent.offset, extent.bytes, kind) };
            added == 0 && flags & ffi::FLAG_REQ_ONE == 0
        })
    })
}

/// Returns a constant text as a C string.
const fn c_text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    }
}

const VERSION: &CStr = c_text(concat!(env!("CARGO_PKG_VERSION"), "\0"));
const HELP: &CStr = c_text(Settings::HELP);

static PLUGIN: ffi::Plugin = ffi::Plugin {
    _struct_size: size_of::<ffi::Plugin>() as u64,
    _api_version: 2,
    _thread_model: ffi::THREAD_MODEL_PARALLEL,
    name: c"flashtwin".as_ptr(),
    longname: c"flashtwin: a twin of a flash device".as_ptr(),
    version: VERSION.as_ptr(),
    description: c"Serves a block device that takes as long as the flash device it is a model of."
        .as_ptr(),
    load: None,
    unload: None,
    config: Some(config),
    config_complete: None,
    config_help: HELP.as_ptr(),
    open: Some(open),
    close: None,
    get_size: Some(get_size),
    can_write: None,
    can_flush: None,
    is_rotational: None,
    can_trim: None,
    _v1: [None; 5],
    errno_is_preserved: 0,
    dump_plugin: None,
    can_zero: None,
    can_fua: Some(can_fua),
    pread: Some(pread),
    pwrite: Some(pwrite),
    flush: Some(flush),
    trim: Some(trim),
    zero: Some(zero),
    magic_config_key: c"device".as_ptr(),
    can_multi_conn: Some(yes),
    can_extents: Some(can_extents),
    extents: Some(extents),
    can_cache: Some(can_cache),
    cache: Some(cache),
    thread_model: None,
    can_fast_zero: Some(yes),
    preconnect: Some(preconnect),
    get_ready: Some(get_ready),
    after_fork: Some(after_fork),
    list_exports: None,
    default_export: None,
    export_description: None,
    cleanup: Some(cleanup),
    block_size: Some(block_size),
};

/// Returns the description of the plugin. nbdkit looks this function up by name.
#[no_mangle]
pub extern "C" fn plugin_init() -> *const ffi::Plugin {
    &PLUGIN
}
