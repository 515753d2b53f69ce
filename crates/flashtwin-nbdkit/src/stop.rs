//! A stop that waits for no client (D-200). nbdkit by itself ends once every client has left; so its signals
//! are taken here: nobody is let in any more, requests under way end, data, state and report are written, and
//! the process ends, its connections with it, whether clients leave or not.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, mem, ptr};

use flashtwin_live::LiveError;

use crate::{end, ffi, shut, trouble, SERVER};

/// Requests under way have this long to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients have this long to take their last answers.
const LEAVING: Duration = Duration::from_millis(500);
/// Between two looks at whether they have left.
const LOOK: Duration = Duration::from_millis(5);
/// Those that end nbdkit.
const SIGNALS: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Where a signal writes a byte.
static ASKED: AtomicI32 = AtomicI32::new(-1);
/// All clients have left.
static LEFT: AtomicBool = AtomicBool::new(false);
static STOPPER: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

/// Asks for a stop; asked again, for one that waits for no request.
extern "C" fn ask(_signal: libc::c_int) {
    // SAFETY: the byte is there; the call may be made in a signal's handler. Where the pipe is full the stop
    // has been asked for.
    unsafe { libc::write(ASKED.load(Ordering::Relaxed), [0u8].as_ptr().cast(), 1) };
}

/// Begins to wait for a stop. nbdkit has set its own handlers already.
pub fn on_signals() -> Result<(), LiveError> {
    let wrong = |e| LiveError::Io {
        path: Path::new("stop").to_owned(),
        doing: "prepare",
        source: e,
    };
    let mut ends = [-1; 2];
    // SAFETY: the call fills the two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(wrong(io::Error::last_os_error()));
    }
    // SAFETY: the descriptor was made above, is open, and nothing else owns it.
    let asked = unsafe { OwnedFd::from_raw_fd(ends[0]) };
    // Never closed: a signal may come until the process ends.
    ASKED.store(ends[1], Ordering::Relaxed);
    let stopper = thread::Builder::new()
        .name("flashtwin-stop".into())
        .spawn(move || {
            while !is_asked(&asked, Duration::MAX) {}
            stop(&asked);
        })
        .map_err(wrong)?;
    *STOPPER.lock().unwrap_or_else(PoisonError::into_inner) = Some(stopper);
    // SAFETY: all zero is a sound value; the handler does only what a handler may.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = ask as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        for signal in SIGNALS {
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
    Ok(())
}

/// nbdkit is at its end. When this returns, it forgets the plugin.
pub fn at_the_end() {
    LEFT.store(true, Ordering::Release);
    let stopper = STOPPER
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let Some(stopper) = stopper else { return };
    ask(0);
    // Its panic has been printed.
    let _ = stopper.join();
    for signal in SIGNALS {
        // SAFETY: ignoring a signal installs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Whether a stop is asked for within that time.
fn is_asked(asked: &OwnedFd, within: Duration) -> bool {
    let mut ready = libc::pollfd {
        fd: asked.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let within_ms = i32::try_from(within.as_millis()).unwrap_or(-1);
    let mut byte = [0u8];
    // SAFETY: both calls are given what is theirs to write, and its length.
    unsafe {
        libc::poll(&mut ready, 1, within_ms) == 1
            && libc::read(ready.fd, byte.as_mut_ptr().cast(), 1) == 1
    }
}

fn stop(asked: &OwnedFd) {
    let Some(server) = SERVER.get() else { return };
    // SAFETY: takes nothing and returns at once.
    unsafe { ffi::nbdkit_shutdown() };
    // What goes wrong here must not keep the rest from being done; its message has been printed.
    let _ = trouble(|| {
        server.close();
        shut(server.settings().listen.as_deref());
        server.drain(PATIENCE, |step| is_asked(asked, step));
        Ok(())
    });
    let sound = end(server);
    let began = Instant::now();
    while began.elapsed() < LEAVING {
        if LEFT.load(Ordering::Acquire) {
            return;
        }
        thread::sleep(LOOK);
    }
    // SAFETY: ends the process; nothing of it is needed any more.
    unsafe { libc::_exit(i32::from(!sound)) };
}
