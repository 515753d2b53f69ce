//! Stops the server without waiting for clients (D-200). Without this module, nbdkit exits only after every client has
//! disconnected.
//!
//! The module replaces nbdkit's signal handlers. When a stop is requested, it accepts no further clients, completes the
//! requests in flight, and writes data, state and report. Then it exits, which closes the remaining connections.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, mem, ptr};

use flashtwin_live::LiveError;

use crate::{close_sockets, ffi, stop_server, trouble, SERVER};

/// Time for requests in flight to complete.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which clients may receive their last responses and disconnect.
const DISCONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// Interval between checks for requests that are in flight and clients that are connected.
const POLL: Duration = Duration::from_millis(5);
/// The signals that stop nbdkit.
const SIGNALS: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Write end of the pipe into which the signal handler writes.
static REQUESTS: AtomicI32 = AtomicI32::new(-1);
/// Whether a stop has been requested. If so, all calls of clients are rejected.
static REQUESTED: AtomicBool = AtomicBool::new(false);
/// Whether nbdkit has no connections left and exits.
static DISCONNECTED: AtomicBool = AtomicBool::new(false);
static STOPPER: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

/// Signal handler that requests a stop. A second request ends the wait for requests in flight.
extern "C" fn request(_signal: libc::c_int) {
    REQUESTED.store(true, Ordering::SeqCst);
    // SAFETY: the byte is valid memory, and write(2) is async-signal-safe. If the pipe is full, a stop has already been
    // requested.
    unsafe { libc::write(REQUESTS.load(Ordering::Relaxed), [0u8].as_ptr().cast(), 1) };
}

/// Whether a stop has been requested.
pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// Replaces nbdkit's signal handlers, and starts the thread that stops the server. Must be called after nbdkit has set
/// its handlers.
pub fn handle_signals() -> Result<(), LiveError> {
    let failed = |e| LiveError::Io {
        path: Path::new("signal handling").to_owned(),
        doing: "start",
        source: e,
    };
    let mut ends = [-1; 2];
    // SAFETY: the call fills the two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    // SAFETY: the descriptor was created above, is open, and has no other owner.
    let requests = unsafe { OwnedFd::from_raw_fd(ends[0]) };
    // The write end is never closed, because a signal may arrive until the process exits.
    REQUESTS.store(ends[1], Ordering::Relaxed);
    let stopper = thread::Builder::new()
        .name("flashtwin-stop".into())
        .spawn(move || {
            while !receive_request(&requests, Duration::MAX) {}
            stop(&requests);
        })
        .map_err(failed)?;
    *STOPPER.lock().unwrap_or_else(PoisonError::into_inner) = Some(stopper);
    // SAFETY: all zeros is a valid value. The handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = request as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        for signal in SIGNALS {
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
    Ok(())
}

/// Completes the stop. nbdkit calls it when it has no connections left, and then unloads the plugin.
pub fn finish() {
    DISCONNECTED.store(true, Ordering::Release);
    let stopper = STOPPER
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let Some(stopper) = stopper else { return };
    request(0);
    // An error is ignored: if the thread panicked, its message has already been printed.
    let _ = stopper.join();
    for signal in SIGNALS {
        // SAFETY: ignoring a signal installs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Waits for a request to stop. Returns false if there is none within `timeout`.
fn receive_request(requests: &OwnedFd, timeout: Duration) -> bool {
    let mut ready = libc::pollfd {
        fd: requests.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(-1);
    let mut byte = [0u8];
    // SAFETY: both calls receive the address of memory that they may write, and its length.
    unsafe {
        libc::poll(&mut ready, 1, timeout_ms) == 1
            && libc::read(ready.fd, byte.as_mut_ptr().cast(), 1) == 1
    }
}

fn stop(requests: &OwnedFd) {
    let Some(server) = SERVER.get() else { return };
    ffi::shutdown();
    // A panic is caught and has already been printed. The state must be written even after it.
    let _ = trouble(|| {
        server.close();
        close_sockets(server.settings().listen.as_deref());
        server.drain(DRAIN_TIMEOUT, |timeout| receive_request(requests, timeout));
        Ok(())
    });
    let succeeded = stop_server(server);
    let began = Instant::now();
    while began.elapsed() < DISCONNECT_TIMEOUT {
        if DISCONNECTED.load(Ordering::Acquire) {
            return;
        }
        thread::sleep(POLL);
    }
    // SAFETY: the call exits the process, whose memory is no longer needed.
    unsafe { libc::_exit(i32::from(!succeeded)) };
}
