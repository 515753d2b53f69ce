//! Clients that disconnect while several of their responses are sent. In nbdkit before 1.34.2 one thread of the
//! connection then closes the socket for sending, and the next one asserts that it is open: the server aborts.
//! Here that thread sleeps instead. It holds nothing but the lock for sending to the client that is gone, and a
//! stop does not wait for connections.

use std::cell::Cell;
use std::{mem, ptr};

/// What nbdkit's threads do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not a thread that has served a client.
    Elsewhere,
    /// In a call of the plugin.
    Plugin,
    /// In nbdkit: it receives or sends.
    Server,
}

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place::Elsewhere) };
}

/// Marks the thread as one in a call of the plugin, until dropped.
pub struct InCall(());

impl InCall {
    pub fn begin() -> InCall {
        PLACE.set(Place::Plugin);
        InCall(())
    }
}

impl Drop for InCall {
    fn drop(&mut self) {
        PLACE.set(Place::Server);
    }
}

/// Takes over SIGABRT.
pub fn survive() {
    // SAFETY: all zeros is a valid value; the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = aborted as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGABRT, &action, ptr::null_mut());
    }
}

/// Leaves SIGABRT to the system again.
pub fn give_up() {
    // SAFETY: the default action is no code of ours.
    unsafe { libc::signal(libc::SIGABRT, libc::SIG_DFL) };
}

extern "C" fn aborted(
    signal: libc::c_int,
    about: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel hands over a valid value.
    let by_thread = unsafe { (*about).si_code } == libc::SI_TKILL;
    while by_thread && PLACE.get() == Place::Server {
        // SAFETY: takes no arguments; async-signal-safe.
        unsafe { libc::pause() };
    }
    give_up();
    // SAFETY: takes a number; async-signal-safe.
    unsafe { libc::raise(signal) };
}
