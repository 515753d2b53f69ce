//! The connection of a client: its threads, the data of its requests in flight, and the end of the connection (D-203).
//!
//! nbdkit starts one thread for a connection and, after the handshake, `REQUESTS_MAX` workers. A worker takes the
//! connection's read lock, receives a request, releases the lock, calls the plugin, and sends the response under the
//! write lock. If the worker cannot send the response, or if the request is invalid or incomplete, the worker closes
//! the socket for sending. When another worker then sends, nbdkit before 1.34.2 aborts. Therefore this module hides
//! such errors from the workers:
//!
//! - A response that cannot be sent is dropped.
//! - Data that were not received are replaced by zeros. The plugin does not write them.
//! - The next attempt to receive a request returns the end of the connection.
//!
//! All workers then complete their requests and end.
//!
//! At first, only one worker has a thread. Further workers are started when all running ones are busy. A request is
//! received only when there is room for its data.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::interpose;
use crate::limits::{page_bytes, Limits, REQUESTS_MAX, STACK_BYTES};
use crate::{complain, refuse};

/// Time limit for a whole handshake. The next constant is the limit for each of its messages.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
const MESSAGE_TIMEOUT: libc::timeval = libc::timeval {
    tv_sec: 10,
    tv_usec: 0,
};
/// Longest wait for room for data or threads. After this time, the attempt is repeated even if nothing was released.
const ROOM_PERIOD: Duration = Duration::from_secs(1);
/// Largest data buffer, in bytes, that a worker keeps in memory between two requests.
const KEPT_BYTES: usize = 256 << 10;
/// Length in bytes of a request without its data. The lengths of the two kinds of responses follow below.
const REQUEST_BYTES: usize = 28;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_BYTES: u64 = 16;
const SIMPLE_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_BYTES: u64 = 20;
const STRUCTURED_MAGIC: u32 = 0x668e_33ef;
const READ: u16 = 0;
const WRITE: u16 = 1;
/// Largest write in bytes that nbdkit accepts. If a client sends a larger one, nbdkit closes the connection.
const DATA_BYTES_MAX: u32 = 64 << 20;

static LIMITS: OnceLock<Limits> = OnceLock::new();
/// Number of admitted connections. The next variable is the number of their workers, without the first worker of each
/// connection.
static OPEN: AtomicUsize = AtomicUsize::new(0);
static SPARE_USED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The connection that this thread serves; null if nbdkit did not start the thread for a connection.
    static SERVED: Cell<*const Connection> = const { Cell::new(ptr::null()) };
    /// The state of the worker ([`Work`]) that runs in this thread; null if the thread is no worker.
    static WORK: Cell<*const Work> = const { Cell::new(ptr::null()) };
}

/// Sets the limits before the first connection.
pub fn set_limits(limits: Limits) {
    // Called once in a process.
    let _ = LIMITS.set(limits);
}

fn limits() -> Limits {
    *LIMITS.get_or_init(|| Limits {
        connections: 1,
        spare_threads: REQUESTS_MAX - 1,
        bytes: 0,
    })
}

/// Start routine of a thread and the argument of the routine, as in pthread_create(3).
#[derive(Clone, Copy)]
pub struct Routine {
    pub run: extern "C" fn(*mut c_void) -> *mut c_void,
    pub argument: *mut c_void,
}

// SAFETY: nbdkit passes the routine and its argument for the purpose of running them in another thread.
unsafe impl Send for Routine {}

enum Worker {
    /// A worker whose thread has not started, with the routine of the thread. `None` while the thread is being started.
    Waiting(Option<Routine>),
    Running(libc::pthread_t),
}

pub struct Connection {
    socket: c_int,
    /// Whether the connection was within the limit on connections when it was opened.
    admitted: bool,
    opened: Instant,
    /// Whether a response could not be sent, or a request was received incompletely.
    broken: AtomicBool,
    state: Mutex<State>,
    /// Signals that further workers are needed, or that workers have ended.
    changed: Condvar,
    /// Signals that the amount of data in flight has decreased.
    room: Condvar,
}

#[derive(Default)]
struct State {
    workers: Vec<Worker>,
    started: usize,
    /// Workers between a request and its response.
    busy: usize,
    bytes: u64,
    ended: bool,
}

/// A worker's request in hand.
pub struct Work {
    connection: Arc<Connection>,
    /// Whether the worker is between requests: no byte of the next request has been received.
    is_between: Cell<bool>,
    is_busy: Cell<bool>,
    /// Data of the request in flight.
    data_bytes: Cell<u32>,
    is_read: Cell<bool>,
    /// Number of bytes of the response that remain to be sent; `None` before the first byte is sent.
    unsent: Cell<Option<u64>>,
    /// nbdkit's buffer for the data.
    buffer: Cell<(*mut c_void, usize)>,
    /// Whether the request was received only in part.
    is_truncated: Cell<bool>,
    /// Whether this thread is inside a function of GnuTLS that receives or sends.
    is_nested: Cell<bool>,
}

/// A thread to start, with its function.
struct Start {
    routine: Routine,
    connection: Arc<Connection>,
}

/// Whether the last call failed in a way that nbdkit treats as temporary. The call must have returned -1; its errno is
/// read.
fn is_transient() -> bool {
    let errno = std::io::Error::last_os_error().raw_os_error();
    matches!(errno, Some(libc::EINTR | libc::EAGAIN))
}

fn big_endian(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Starts a thread.
///
/// # Safety
/// The caller ensures that `routine` may be run with its argument in another thread.
unsafe fn start(
    thread: *mut libc::pthread_t,
    is_detached: bool,
    run: extern "C" fn(*mut c_void) -> *mut c_void,
    routine: Routine,
    connection: &Arc<Connection>,
) -> c_int {
    let connection = connection.clone();
    let start = Box::into_raw(Box::new(Start {
        routine,
        connection,
    }));
    // SAFETY: the attributes live until they are destroyed. If the thread starts, the box belongs to it.
    unsafe {
        let mut attributes: libc::pthread_attr_t = mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstacksize(&mut attributes, STACK_BYTES);
        if is_detached {
            libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        }
        let error = interpose::create_thread(thread, &attributes, run, start.cast());
        libc::pthread_attr_destroy(&mut attributes);
        if error != 0 {
            drop(Box::from_raw(start));
        }
        error
    }
}

extern "C" fn run_connection(start: *mut c_void) -> *mut c_void {
    // SAFETY: the pointer is the box that `start` created for this thread.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    SERVED.set(Arc::as_ptr(&start.connection));
    let result = (start.routine.run)(start.routine.argument);
    SERVED.set(ptr::null());
    start.connection.leave();
    result
}

extern "C" fn run_worker(start: *mut c_void) -> *mut c_void {
    // SAFETY: the pointer is the box that `start` created for this thread.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    let work = Work::new(start.connection);
    WORK.set(&work);
    let result = (start.routine.run)(start.routine.argument);
    WORK.set(ptr::null());
    work.complete();
    let mut state = work.connection.state();
    state.ended = true;
    work.connection.changed.notify_all();
    drop(state);
    result
}

/// Serves an accepted client in a new thread. Replaces the call of pthread_create(3) by nbdkit.
///
/// # Safety
/// The caller ensures that `thread` can be written, and that `routine` may be run in another
/// thread.
pub unsafe fn serve(thread: *mut libc::pthread_t, routine: Routine, socket: c_int) -> c_int {
    let most = limits().connections;
    let more = |open: usize| (open < most).then_some(open + 1);
    let admitted = OPEN
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
        .is_ok();
    let connection = Arc::new(Connection {
        socket,
        admitted,
        opened: Instant::now(),
        broken: AtomicBool::new(false),
        state: Mutex::default(),
        changed: Condvar::new(),
        room: Condvar::new(),
    });
    set_timeout(socket, MESSAGE_TIMEOUT);
    // SAFETY: guaranteed by the caller.
    let error = unsafe { start(thread, true, run_connection, routine, &connection) };
    if error != 0 {
        connection.leave();
    }
    error
}

/// Sets a timeout for receiving from a socket. Zero means no timeout.
fn set_timeout(socket: c_int, time: libc::timeval) {
    // SAFETY: the value lives as long as the call, which receives its size.
    unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const time).cast(),
            size_of_val(&time) as libc::socklen_t,
        )
    };
}

/// Returns the connection that this thread serves; `None` if nbdkit did not start this thread for a connection.
pub fn served<'a>() -> Option<&'a Connection> {
    // SAFETY: the pointer is null or points to a connection that `run_connection` owns while this thread serves it.
    unsafe { SERVED.get().as_ref() }
}

/// Returns the state of the worker that runs in this thread; `None` if the thread is no worker.
pub fn work<'a>() -> Option<&'a Work> {
    // SAFETY: the pointer is null or points to a worker state that `run_worker` owns until this thread ends.
    unsafe { WORK.get().as_ref() }
}

impl Connection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the connection from the number of open connections.
    fn leave(&self) {
        OPEN.fetch_sub(usize::from(self.admitted), Ordering::SeqCst);
    }

    /// Whether the client is within the limit on connections. If it is not, sends the reason to the client.
    pub fn admit(&self) -> bool {
        if self.admitted {
            return true;
        }
        let most = limits().connections;
        let reason = format!("too many clients: this server accepts {most} connections at a time");
        refuse::explain(self.socket, &reason);
        complain(&reason);
        false
    }

    /// Ends a handshake that takes too long; nbdkit itself would wait for ever. `received` is the result of a call that
    /// received from the socket. Returns `received`, or 0 (the end of the connection) if the handshake is late.
    pub fn receive_handshake(&self, socket: c_int, received: isize) -> isize {
        let is_late = (received < 0 && is_transient()) || self.opened.elapsed() > HANDSHAKE_TIMEOUT;
        match socket == self.socket && self.state().workers.is_empty() && is_late {
            true => 0,
            false => received,
        }
    }

    /// Adds a worker. Returns its number, counted from 1. The first worker is started immediately; if that fails,
    /// returns the error of pthread_create(3). Other workers are started when they are needed.
    pub fn add_worker(&self, routine: Routine) -> Result<usize, c_int> {
        let mut state = self.state();
        state.workers.push(Worker::Waiting(Some(routine)));
        let number = state.workers.len();
        drop(state);
        if number == 1 {
            // An established connection may be idle.
            set_timeout(
                self.socket,
                libc::timeval {
                    tv_sec: 0,
                    tv_usec: 0,
                },
            );
            if let Err(error) = self.start_worker(0) {
                self.state().workers.clear();
                return Err(error);
            }
        }
        Ok(number)
    }

    /// Starts the thread of a worker, unless it is running or being started.
    fn start_worker(&self, index: usize) -> Result<(), c_int> {
        let mut state = self.state();
        let Some(Worker::Waiting(routine)) = state.workers.get_mut(index) else {
            return Ok(());
        };
        let Some(routine) = routine.take() else {
            return Ok(());
        };
        drop(state);
        let mut thread = 0;
        // SAFETY: only `serve` creates a connection, in an Arc that this thread holds. nbdkit passed the routine for
        // the purpose of running it in another thread.
        let error = unsafe {
            Arc::increment_strong_count(self);
            let connection = Arc::from_raw(self);
            start(&mut thread, false, run_worker, routine, &connection)
        };
        let mut state = self.state();
        if error != 0 {
            state.workers[index] = Worker::Waiting(Some(routine));
            return Err(error);
        }
        state.workers[index] = Worker::Running(thread);
        state.started += 1;
        Ok(())
    }

    /// Waits for the end of a worker. Meanwhile, this thread starts other workers when they are needed.
    pub fn join_worker(&self, index: usize) {
        loop {
            let state = self.state();
            match state.workers[index] {
                Worker::Running(thread) => {
                    drop(state);
                    // SAFETY: the thread was started above and is not detached. It is joined only once.
                    unsafe { interpose::join_thread(thread, ptr::null_mut()) };
                    SPARE_USED.fetch_sub(usize::from(index > 0), Ordering::SeqCst);
                    return;
                }
                // The worker is run and ends immediately. This releases the data that nbdkit has allocated for it.
                Worker::Waiting(_) if state.ended => {
                    drop(state);
                    SPARE_USED.fetch_add(usize::from(index > 0), Ordering::SeqCst);
                    if self.start_worker(index).is_err() {
                        SPARE_USED.fetch_sub(usize::from(index > 0), Ordering::SeqCst);
                        self.run_here(index);
                        return;
                    }
                }
                Worker::Waiting(_) => match self.wanted(&state) {
                    0 => drop(self.changed.wait(state)),
                    wanted => self.start_more(state, wanted),
                },
            }
        }
    }

    /// Returns the number of workers to start now. If all running workers are busy, their number is doubled, within the
    /// limits.
    fn wanted(&self, state: &State) -> usize {
        if state.busy < state.started {
            return 0;
        }
        let limits = limits();
        let most = limits
            .threads(OPEN.load(Ordering::SeqCst))
            .min(state.workers.len());
        state.started.min(most.saturating_sub(state.started))
    }

    /// Starts up to `wanted` workers. If none can be started, waits, so that the next attempt is later.
    fn start_more(&self, state: MutexGuard<'_, State>, wanted: usize) {
        let first = state.started;
        drop(state);
        for index in first..first + wanted {
            let used = SPARE_USED.fetch_add(1, Ordering::SeqCst);
            if used >= limits().spare_threads || self.start_worker(index).is_err() {
                SPARE_USED.fetch_sub(1, Ordering::SeqCst);
                let state = self.state();
                if index == first && !state.ended {
                    drop(self.changed.wait_timeout(state, ROOM_PERIOD));
                }
                return;
            }
        }
    }

    /// Runs a worker in this thread. The connection has ended, and no other thread can be started for the worker.
    fn run_here(&self, index: usize) {
        let mut state = self.state();
        if let Worker::Waiting(routine) = &mut state.workers[index] {
            let routine = routine.take();
            drop(state);
            if let Some(routine) = routine {
                (routine.run)(routine.argument);
            }
        }
    }

    /// Marks the client as gone. From now on, responses are dropped, including the one that is being sent.
    fn give_up(&self) {
        if !self.broken.swap(true, Ordering::SeqCst) {
            // SAFETY: the socket is open while its workers run, and this thread is one of them.
            unsafe { libc::shutdown(self.socket, libc::SHUT_RDWR) };
            self.room.notify_all();
        }
    }

    /// Waits until there is room for `bytes` bytes of data of a request. Then counts these bytes as in flight.
    fn begin(&self, bytes: u32) {
        let mut state = self.state();
        while state.bytes > 0 {
            let most = limits().connection_bytes(OPEN.load(Ordering::SeqCst));
            if state.bytes + u64::from(bytes) <= most {
                break;
            }
            let waited = self.room.wait_timeout(state, ROOM_PERIOD);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.bytes += u64::from(bytes);
        state.busy += 1;
        if state.busy >= state.started && state.started < state.workers.len() {
            self.changed.notify_one();
        }
    }

    fn complete(&self, bytes: u32) {
        let mut state = self.state();
        state.bytes -= u64::from(bytes);
        state.busy -= 1;
        self.room.notify_one();
    }
}

impl Work {
    fn new(connection: Arc<Connection>) -> Work {
        Work {
            connection,
            is_between: Cell::new(true),
            is_busy: Cell::new(false),
            data_bytes: Cell::new(0),
            is_read: Cell::new(false),
            unsent: Cell::new(None),
            buffer: Cell::new((ptr::null_mut(), 0)),
            is_truncated: Cell::new(false),
            is_nested: Cell::new(false),
        }
    }

    /// Whether `socket` is that of the connection, and this thread uses it directly rather than from a function of
    /// GnuTLS.
    pub fn is_on(&self, socket: c_int) -> bool {
        socket == self.connection.socket && !self.is_nested.get()
    }

    /// Calls a function of GnuTLS. While it runs, GnuTLS itself makes the calls on the socket.
    pub fn nested(&self, call: impl FnOnce() -> isize) -> isize {
        self.is_nested.set(true);
        let result = call();
        self.is_nested.set(false);
        result
    }

    /// Whether the request was received whole.
    pub fn is_whole(&self) -> bool {
        !self.is_truncated.get()
    }

    /// Records which buffer nbdkit uses for the data of the request in flight.
    pub fn use_buffer(&self, buffer: *mut c_void, bytes: usize) {
        self.buffer.set((buffer, bytes));
    }

    /// Receives a part of a request. `more` executes the receiving call that nbdkit has made, such as recv(2), with the
    /// given memory.
    ///
    /// # Safety
    /// The caller ensures that `to` can be written for `count` bytes, and that `more` writes no
    /// other bytes.
    pub unsafe fn receive(
        &self,
        to: *mut u8,
        count: usize,
        mut more: impl FnMut(*mut u8, usize) -> isize,
    ) -> isize {
        if self.is_between.get() && count == REQUEST_BYTES {
            self.complete();
            // SAFETY: guaranteed by the caller.
            return unsafe { self.receive_request(to, more) };
        }
        if !self.is_truncated.get() {
            let received = more(to, count);
            if received > 0 || (received < 0 && is_transient()) {
                return received;
            }
            self.is_truncated.set(true);
            self.connection.give_up();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { ptr::write_bytes(to, 0, count) };
        count as isize
    }

    /// Receives a whole request without its data. Returns 0 (the end of the connection) in three cases: the client
    /// sends no further request, it sends an invalid or incomplete one, or it is gone. Bytes that are still in the
    /// socket are then dropped.
    ///
    /// # Safety
    /// The caller ensures that `to` can be written for the bytes of a request, and that `more`
    /// writes no other bytes.
    unsafe fn receive_request(
        &self,
        to: *mut u8,
        mut more: impl FnMut(*mut u8, usize) -> isize,
    ) -> isize {
        if self.connection.broken.load(Ordering::SeqCst) {
            return 0;
        }
        let mut filled = 0;
        while filled < REQUEST_BYTES {
            // SAFETY: the remaining bytes are within the caller's memory.
            let received = more(unsafe { to.add(filled) }, REQUEST_BYTES - filled);
            if received < 0 && is_transient() {
                continue;
            }
            if received <= 0 {
                if received < 0 || filled > 0 {
                    self.connection.give_up();
                }
                return 0;
            }
            filled += received as usize;
        }
        // SAFETY: the bytes have been received above.
        let request = unsafe { std::slice::from_raw_parts(to, REQUEST_BYTES) };
        let command = (big_endian(request, 4) & 0xffff) as u16;
        let length = big_endian(request, 24);
        let is_invalid = big_endian(request, 0) != REQUEST_MAGIC;
        if is_invalid || (command == WRITE && length > DATA_BYTES_MAX) {
            complain("a client is disconnected: what it sent is no request, or longer than 64 MiB");
            self.connection.give_up();
            return 0;
        }
        let data_bytes = match command {
            READ | WRITE => length.min(DATA_BYTES_MAX),
            _ => 0,
        };
        self.connection.begin(data_bytes);
        self.data_bytes.set(data_bytes);
        self.is_read.set(command == READ);
        self.is_between.set(false);
        self.is_busy.set(true);
        self.unsent.set(None);
        self.is_truncated.set(false);
        REQUEST_BYTES as isize
    }

    /// Sends a part of a response. After an error, the client is marked as gone, and the remaining bytes are dropped.
    ///
    /// # Safety
    /// The caller ensures that `from` can be read for `count` bytes.
    pub unsafe fn send(
        &self,
        from: *const u8,
        count: usize,
        send: impl FnOnce() -> isize,
    ) -> isize {
        if self.unsent.get().is_none() {
            // SAFETY: guaranteed by the caller.
            let start = unsafe { std::slice::from_raw_parts(from, count) };
            self.unsent.set(Some(self.response_bytes(start)));
        }
        let mut sent = count as isize;
        if !self.connection.broken.load(Ordering::SeqCst) {
            let result = send();
            if result < 0 && is_transient() {
                return result;
            }
            match result < 0 {
                true => self.connection.give_up(),
                false => sent = result,
            }
        }
        let unsent = self.unsent.get().unwrap_or(0).saturating_sub(sent as u64);
        self.unsent.set(Some(unsent));
        if unsent == 0 {
            self.complete();
        }
        sent
    }

    /// Returns the length in bytes of the response whose first bytes are `start`.
    fn response_bytes(&self, start: &[u8]) -> u64 {
        match start.len() as u64 {
            SIMPLE_BYTES if big_endian(start, 0) == SIMPLE_MAGIC => {
                let has_data = self.is_read.get() && big_endian(start, 4) == 0;
                SIMPLE_BYTES
                    + if has_data {
                        self.data_bytes.get().into()
                    } else {
                        0
                    }
            }
            STRUCTURED_BYTES if big_endian(start, 0) == STRUCTURED_MAGIC => {
                STRUCTURED_BYTES + u64::from(big_endian(start, 16))
            }
            // The length is unknown. The end of the response is noticed only when the worker receives its next request.
            _ => u64::MAX,
        }
    }

    /// Completes the request in flight, if there is one.
    fn complete(&self) {
        self.is_between.set(true);
        if !self.is_busy.replace(false) {
            return;
        }
        let (buffer, bytes) = self.buffer.replace((ptr::null_mut(), 0));
        if bytes > KEPT_BYTES {
            let page = page_bytes();
            let start = (buffer as usize).next_multiple_of(page);
            let end = (buffer as usize + bytes) / page * page;
            // SAFETY: these are whole pages within nbdkit's buffer for the requests of this thread. The response has
            // been sent, and nbdkit fills the buffer before it reads it again. Therefore zeros in it do no harm.
            unsafe { libc::madvise(start as *mut c_void, end - start, libc::MADV_DONTNEED) };
        }
        self.connection.complete(self.data_bytes.get());
    }
}
