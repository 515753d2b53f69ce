//! Clients that disconnect while several of their responses are sent. In nbdkit before 1.34.2 one thread of the
//! connection then closes the socket for sending, and the next one asserts that it is open: the server aborts.
//! Here that thread sleeps instead. It holds nothing but the lock for sending to the client that is gone, and a
//! stop does not wait for connections. The client's other threads with responses then wait for that lock.

use std::cell::Cell;
use std::ffi::{c_char, CStr};
use std::{mem, ptr};

/// Name of a connection's threads in the kernel.
const NAME: &CStr = c"flashtwin-nbd";
/// Longest name of a thread, with its final zero byte.
const NAME_BYTES: usize = 16;

thread_local! {
    static IN_CALL: Cell<bool> = const { Cell::new(false) };
}

/// Marks the thread as one in a call of the plugin, until dropped.
pub struct InCall(());

impl InCall {
    pub fn begin() -> InCall {
        IN_CALL.set(true);
        InCall(())
    }
}

impl Drop for InCall {
    fn drop(&mut self) {
        IN_CALL.set(false);
    }
}

/// Names the thread of a connection. Its workers, which nbdkit starts later, inherit the name: one of them may send
/// a response before it has called the plugin, as when nbdkit itself refuses the request.
pub fn name_connection() {
    // SAFETY: the name is a string that ends in a zero byte.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
}

/// Whether nbdkit is running in this thread of a connection: it receives or sends.
fn in_nbdkit() -> bool {
    let mut name: [c_char; NAME_BYTES] = [0; NAME_BYTES];
    // SAFETY: the call fills the array with a string that ends in a zero byte; async-signal-safe.
    let named = unsafe {
        libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) == 0
            && CStr::from_ptr(name.as_ptr()) == NAME
    };
    named && !IN_CALL.get()
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
    while by_thread && in_nbdkit() {
        // SAFETY: takes no arguments; async-signal-safe.
        unsafe { libc::pause() };
    }
    give_up();
    // SAFETY: takes a number; async-signal-safe.
    unsafe { libc::raise(signal) };
}
