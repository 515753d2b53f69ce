//! Refuses a client and sends the reason, in NBD's newstyle handshake. nbdkit itself would close the connection without
//! a reason.

use std::ffi::c_int;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const GREETING: &[u8; 18] = b"NBDMAGICIHAVEOPT\0\x03";
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// NBD_REP_ERR_POLICY.
const POLICY: u32 = (1 << 31) + 2;
const EXPORT_NAME: u32 = 1;
const ABORT: u32 = 2;
/// Largest number of options that a refused client may send. The next constant is the largest length of an option in
/// bytes.
const OPTIONS_MAX: usize = 8;
const DATA_BYTES_MAX: u32 = 64 << 10;
/// Time for each message of the client.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Largest number of clients that are refused at the same time, each in a separate thread. Further clients wait to be
/// accepted.
const AT_ONCE: usize = 32;

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

fn running() -> MutexGuard<'static, usize> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until another client may be refused. A refusal takes at most some seconds.
pub fn wait_for_room() {
    drop(ENDED.wait_while(running(), |running| *running >= AT_ONCE));
}

/// Sends `reason` in response to each option of a client, until the client gives up.
pub fn explain(socket: c_int, reason: &str) {
    *running() += 1;
    // SAFETY: the socket is open. It is not closed here, because the caller owns it.
    let client = ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(socket) });
    // An error is ignored, because the client may disconnect at any time.
    let _ = converse(&client, reason.as_bytes());
    *running() -= 1;
    ENDED.notify_one();
}

fn converse(mut client: &UnixStream, reason: &[u8]) -> io::Result<()> {
    client.set_read_timeout(Some(TIMEOUT))?;
    client.set_write_timeout(Some(TIMEOUT))?;
    client.write_all(GREETING)?;
    client.read_exact(&mut [0; 4])?;
    for _ in 0..OPTIONS_MAX {
        let (mut magic, mut option, mut length) = ([0; 8], [0; 4], [0; 4]);
        client.read_exact(&mut magic)?;
        client.read_exact(&mut option)?;
        client.read_exact(&mut length)?;
        let (option, length) = (u32::from_be_bytes(option), u32::from_be_bytes(length));
        if u64::from_be_bytes(magic) != OPTION_MAGIC
            || length > DATA_BYTES_MAX
            || option == EXPORT_NAME
        {
            break;
        }
        io::copy(&mut client.take(length.into()), &mut io::sink())?;
        let mut reply = REPLY_MAGIC.to_be_bytes().to_vec();
        reply.extend(option.to_be_bytes());
        reply.extend(POLICY.to_be_bytes());
        reply.extend((reason.len() as u32).to_be_bytes());
        reply.extend(reason);
        client.write_all(&reply)?;
        if option == ABORT {
            break;
        }
    }
    Ok(())
}
