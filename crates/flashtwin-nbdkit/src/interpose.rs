//! Functions that replace those of the C library and of GnuTLS with the same names. The plugin is preloaded, so nbdkit
//! calls these functions. They change calls by threads that serve connections. All other calls are passed to the
//! original functions.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem;

use crate::connection::{self, Routine};
use crate::ffi::Function;
use crate::refuse;

type Run = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    Run,
    *mut c_void,
) -> c_int;
type Join = unsafe extern "C" fn(libc::pthread_t, *mut *mut c_void) -> c_int;
type Accept =
    unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t, c_int) -> c_int;
type Read = unsafe extern "C" fn(c_int, *mut c_void, usize) -> isize;
type Recv = unsafe extern "C" fn(c_int, *mut c_void, usize, c_int) -> isize;
type Send = unsafe extern "C" fn(c_int, *const c_void, usize, c_int) -> isize;
type TlsRecv = unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> isize;
type TlsSend = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> isize;

static CREATE: Function = Function::hidden(c"pthread_create");
static JOIN: Function = Function::hidden(c"pthread_join");
static ACCEPT: Function = Function::hidden(c"accept4");
static READ: Function = Function::hidden(c"read");
static RECV: Function = Function::hidden(c"recv");
static SEND: Function = Function::hidden(c"send");
static TLS_RECV: Function = Function::hidden(c"gnutls_record_recv");
static TLS_SEND: Function = Function::hidden(c"gnutls_record_send");

/// Calls the original function that a function in this file hides, with the given arguments.
macro_rules! hidden {
    ($function:ident as $type:ty: $($argument:expr),*) => {
        // SAFETY: the type is that of the function. The caller vouches for the arguments.
        unsafe { mem::transmute::<*mut c_void, $type>($function.address())($($argument),*) }
    };
}

thread_local! {
    /// The socket that nbdkit's first thread has accepted most recently. The next thread that nbdkit starts serves it.
    static ACCEPTED: Cell<Option<c_int>> = const { Cell::new(None) };
}

/// Whether nbdkit calls the functions in this file. This is so only if this library was loaded before the C library.
pub fn is_effective() -> bool {
    static FIRST: Function = Function::of_program(c"accept4");
    let ours: *const Function = &FIRST;
    library(FIRST.address()) == library(ours.cast())
}

/// Returns the load address of the library that contains `address`.
fn library(address: *const c_void) -> *mut c_void {
    // SAFETY: all zeros is a valid value, which the call fills.
    unsafe {
        let mut about: libc::Dl_info = mem::zeroed();
        libc::dladdr(address, &mut about);
        about.dli_fbase
    }
}

/// Calls the C library's pthread_create(3).
///
/// # Safety
/// The caller meets the conditions of pthread_create(3).
pub unsafe fn create_thread(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    run: Run,
    argument: *mut c_void,
) -> c_int {
    hidden!(CREATE as Create: thread, attributes, run, argument)
}

/// Calls the C library's pthread_join(3).
///
/// # Safety
/// The caller meets the conditions of pthread_join(3).
pub unsafe fn join_thread(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int {
    hidden!(JOIN as Join: thread, result)
}

/// Replaces pthread_create(3). nbdkit calls it to start a thread for each accepted client, and to start workers from
/// that thread.
///
/// # Safety
/// The caller meets the conditions of pthread_create(3).
#[no_mangle]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    run: Run,
    argument: *mut c_void,
) -> c_int {
    let routine = Routine { run, argument };
    if let Some(socket) = ACCEPTED.take() {
        // SAFETY: guaranteed by the caller.
        return unsafe { connection::serve(thread, routine, socket) };
    }
    if let Some(connection) = connection::served() {
        return match connection.add_worker(routine) {
            Ok(number) => {
                // SAFETY: the caller provides memory for the thread's id. The number differs from the id of any real
                // thread, because the C library uses addresses as ids, which are larger.
                unsafe { *thread = number as libc::pthread_t };
                0
            }
            Err(error) => error,
        };
    }
    hidden!(CREATE as Create: thread, attributes, run, argument)
}

/// # Safety
/// The caller meets the conditions of pthread_join(3).
#[no_mangle]
pub unsafe extern "C" fn pthread_join(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int {
    match connection::served() {
        Some(connection) => {
            connection.join_worker(thread as usize - 1);
            0
        }
        None => hidden!(JOIN as Join: thread, result),
    }
}

/// # Safety
/// The caller meets the conditions of accept(2).
#[no_mangle]
pub unsafe extern "C" fn accept4(
    socket: c_int,
    address: *mut libc::sockaddr,
    bytes: *mut libc::socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the two calls take no arguments and return numbers.
    let is_first = unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) };
    if is_first {
        refuse::wait_for_room();
    }
    let accepted = hidden!(ACCEPT as Accept: socket, address, bytes, flags);
    if is_first && accepted >= 0 {
        ACCEPTED.set(Some(accepted));
    }
    accepted
}

/// # Safety
/// The caller meets the conditions of read(2).
#[no_mangle]
pub unsafe extern "C" fn read(file: c_int, to: *mut c_void, count: usize) -> isize {
    let more = |to: *mut u8, count| hidden!(READ as Read: file, to.cast(), count);
    // SAFETY: guaranteed by the caller.
    unsafe { receive(file, to.cast(), count, more) }
}

/// # Safety
/// The caller meets the conditions of recv(2).
#[no_mangle]
pub unsafe extern "C" fn recv(file: c_int, to: *mut c_void, count: usize, flags: c_int) -> isize {
    let more = |to: *mut u8, count| hidden!(RECV as Recv: file, to.cast(), count, flags);
    // SAFETY: guaranteed by the caller.
    unsafe { receive(file, to.cast(), count, more) }
}

/// # Safety
/// The caller ensures that `to` can be written for `count` bytes.
unsafe fn receive(
    file: c_int,
    to: *mut u8,
    count: usize,
    mut more: impl FnMut(*mut u8, usize) -> isize,
) -> isize {
    match (connection::work(), connection::served()) {
        // SAFETY: guaranteed by the caller.
        (Some(work), _) if work.is_on(file) => unsafe { work.receive(to, count, more) },
        (None, Some(connection)) => connection.receive_handshake(file, more(to, count)),
        _ => more(to, count),
    }
}

/// # Safety
/// The caller meets the conditions of send(2).
#[no_mangle]
pub unsafe extern "C" fn send(
    file: c_int,
    from: *const c_void,
    count: usize,
    flags: c_int,
) -> isize {
    let send = || hidden!(SEND as Send: file, from, count, flags);
    match connection::work() {
        // SAFETY: guaranteed by the caller.
        Some(work) if work.is_on(file) => unsafe { work.send(from.cast(), count, send) },
        _ => send(),
    }
}

/// # Safety
/// The caller meets the conditions of the GnuTLS function of this name.
#[no_mangle]
pub unsafe extern "C" fn gnutls_record_recv(
    session: *mut c_void,
    to: *mut c_void,
    count: usize,
) -> isize {
    let more = |to: *mut u8, count| hidden!(TLS_RECV as TlsRecv: session, to.cast(), count);
    match connection::work() {
        // SAFETY: guaranteed by the caller.
        Some(work) => unsafe {
            work.receive(to.cast(), count, |to, count| {
                as_errno(work.nested(|| more(to, count)))
            })
        },
        None => more(to.cast(), count),
    }
}

/// # Safety
/// The caller meets the conditions of the GnuTLS function of this name.
#[no_mangle]
pub unsafe extern "C" fn gnutls_record_send(
    session: *mut c_void,
    from: *const c_void,
    count: usize,
) -> isize {
    let send = || hidden!(TLS_SEND as TlsSend: session, from, count);
    match connection::work() {
        // SAFETY: guaranteed by the caller.
        Some(work) => unsafe { work.send(from.cast(), count, || as_errno(work.nested(send))) },
        None => send(),
    }
}

/// Converts the result of a function of GnuTLS to the form of the C library, which `Work` expects: an error becomes -1,
/// with errno set.
fn as_errno(result: isize) -> isize {
    /// GNUTLS_E_AGAIN and GNUTLS_E_INTERRUPTED.
    const TRANSIENT: [isize; 2] = [-28, -52];
    if result >= 0 {
        return result;
    }
    let errno = if TRANSIENT.contains(&result) {
        libc::EINTR
    } else {
        libc::EIO
    };
    // SAFETY: the address of this thread's errno can be written.
    unsafe { *libc::__errno_location() = errno };
    -1
}
