//! The control socket, on which a running server accepts commands. A client sends one line of JSON and receives one
//! line, then the connection is closed. Only users with access to the server's files may connect.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{json, Value};

use crate::disturb::Disturbance;
use crate::{LiveError, Server};

/// Longest line that is read.
const LINE_BYTES_MAX: usize = 4096;
/// Maximum number of concurrent connections.
const CLIENTS_MAX: usize = 64;
/// Time limit for a client to send its command. A client that takes longer is disconnected.
const PATIENCE: Duration = Duration::from_secs(2);

/// Commands of the control socket.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, tag = "do")]
enum Command {
    /// Returns the report.
    Stats {},
    /// Simulates a power loss.
    PowerCut {
        #[serde(default)]
        torn: bool,
    },
    /// Makes a member of an array fail.
    Fail { member: usize },
    /// Replaces a failed member by a new one.
    Replace { member: usize },
    /// Multiplies a member's response times by a factor.
    Slow { member: usize, times: f64 },
    /// Orders one die to garbage-collect one block now. If `die` is missing, each die collects one block.
    Collect {
        member: Option<usize>,
        die: Option<u32>,
    },
    /// Makes a die fail for good.
    KillDie { die: u32 },
    /// Replaces the buffer's policy.
    Policy {
        name: String,
        #[serde(default)]
        set: BTreeMap<String, String>,
    },
    /// Changes values of keys of the buffer's policy.
    Set { keys: BTreeMap<String, String> },
    /// Starts injecting disturbances, such as delayed responses.
    Disturb(Disturbance),
    /// Returns the status of the placement handles.
    PlacementStatus {},
    /// Returns the log pages 20h to 23h of flexible data placement.
    PlacementLog {},
    /// Closes the units of the given placement ids.
    PlacementUpdate { ids: Vec<u16> },
    /// Stops the server cleanly, as SIGTERM does.
    Stop {},
}

/// The listening thread. Stop it before the server.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    ended: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Control {
    /// Starts to listen on a new socket at `path`. No file may exist there.
    ///
    /// # Errors
    /// Fails if the path exists or no socket can be created there.
    pub fn start(server: Arc<Server>, path: &Path) -> Result<Control, LiveError> {
        let wrong = |e| LiveError::io(path, "listen on", e);
        let listener = UnixListener::bind(path).map_err(wrong)?;
        let ended = Arc::new(AtomicBool::new(false));
        let stopping = ended.clone();
        let thread = thread::Builder::new()
            .name("flashtwin-ctl".into())
            .spawn(move || {
                let mut clients = Clients::default();
                for client in listener.incoming() {
                    if stopping.load(Ordering::Acquire) {
                        break;
                    }
                    // An error is ignored, because it concerns only this client, which may have disconnected.
                    let _ = client.and_then(|client| clients.add(&server, client));
                }
                clients.stop();
            })
            .map_err(wrong)?;
        Ok(Control {
            path: path.to_owned(),
            ended,
            thread,
        })
    }

    /// Stops listening.
    pub fn stop(self) {
        self.ended.store(true, Ordering::Release);
        // The connection wakes the listening thread. If connecting fails, no thread is listening.
        let woken = UnixStream::connect(&self.path);
        let _ = fs::remove_file(&self.path);
        if woken.is_ok() {
            // An error is ignored: if the thread panicked, its message has already been printed.
            let _ = self.thread.join();
        }
    }
}

/// Connected clients. Each has a separate thread, so that an idle client does not delay others.
#[derive(Default)]
struct Clients(VecDeque<(UnixStream, JoinHandle<()>)>);

impl Clients {
    fn add(&mut self, server: &Arc<Server>, client: UnixStream) -> io::Result<()> {
        self.0.retain(|(_, thread)| !thread.is_finished());
        if self.0.len() >= CLIENTS_MAX {
            // The oldest connection is ended, because it has had the most time to send its command.
            self.0.pop_front().map_or(Ok(()), end)?;
        }
        let (server, connection) = (server.clone(), client.try_clone()?);
        let thread = thread::Builder::new()
            .name("flashtwin-ctl".into())
            .spawn(move || {
                // An error is ignored: a client that has disconnected needs no response. The connection must be shut
                // down, because a client that reads to the end would wait otherwise. Dropping this stream would not
                // close the connection, because `stop` has a second handle of it.
                let _ = serve(&server, &client);
                let _ = client.shutdown(Shutdown::Both);
            })?;
        self.0.push_back((connection, thread));
        Ok(())
    }

    /// Stops reading from all clients, and completes the commands received so far.
    fn stop(self) {
        for client in self.0 {
            // Fails only if the client has already disconnected.
            let _ = end(client);
        }
    }
}

/// Stops reading from a client, and waits until its command has completed.
fn end((client, thread): (UnixStream, JoinHandle<()>)) -> io::Result<()> {
    let shut = client.shutdown(Shutdown::Read);
    // An error is ignored: if the thread panicked, its message has already been printed.
    let _ = thread.join();
    shut
}

fn serve(server: &Server, mut client: &UnixStream) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let response = match line(client)? {
        Some(line) => match serde_json::from_slice(&line) {
            Ok(command) => carry_out(server, &command),
            Err(e) => json!({
                "error": format!("{e}; a command is a line as in {{\"do\": \"stats\"}}, of stats, \
                                  power-cut, fail, replace, slow, collect, kill-die, policy, set, disturb, \
                                  placement-status, placement-log, placement-update and stop")
            }),
        },
        None => json!({"error": format!("give a line of at most {LINE_BYTES_MAX} bytes, soon")}),
    };
    client.write_all(format!("{response}\n").as_bytes())
}

/// Returns the first line that the client sends; `None` if it is too long or too late.
fn line(mut client: &UnixStream) -> io::Result<Option<Vec<u8>>> {
    let began = Instant::now();
    let (mut line, mut part) = (Vec::new(), [0; 512]);
    loop {
        let left = PATIENCE.saturating_sub(began.elapsed());
        if left.is_zero() || line.len() > LINE_BYTES_MAX {
            return Ok(None);
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut part) {
            Ok(0) => return Ok(Some(line)),
            Ok(n) => {
                line.extend_from_slice(&part[..n]);
                if let Some(end) = line.iter().position(|&byte| byte == b'\n') {
                    line.truncate(end);
                    return Ok(Some(line));
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(None)
            }
            Err(e) => return Err(e),
        }
    }
}

fn handles(status: Value) -> Value {
    json!({ "handles": status })
}

fn carry_out(server: &Server, command: &Command) -> Value {
    let done = match command {
        Command::Stats {} => Ok(json!(server.report())),
        Command::PowerCut { torn } => server.cut_power(*torn).map(|cut| json!(cut)),
        Command::Fail { member } => server.fail_member(*member).map(|()| json!({})),
        Command::Replace { member } => server.replace_member(*member).map(|()| json!({})),
        Command::Slow { member, times } => {
            let done = server.slow_member(*member, *times);
            done.map(|()| json!({ "times": times }))
        }
        Command::Collect { member, die } => {
            let ordered = server.collect(*member, *die);
            ordered.map(|dies| json!({ "dies": dies }))
        }
        Command::KillDie { die } => {
            let pages = server.kill_die(*die);
            pages.map(|pages| json!({ "pages": pages }))
        }
        Command::Policy { name, set } => {
            let set: Vec<_> = set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            let done = server.set_policy(name, &set);
            done.map(|()| json!({ "policy": name }))
        }
        Command::Set { keys } => {
            let set: Vec<_> = keys.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            let done = server.set_keys(&set);
            done.map(|keys| json!(keys.into_iter().collect::<BTreeMap<_, _>>()))
        }
        Command::PlacementStatus {} => server.placement_status().map(handles),
        Command::PlacementLog {} => server.placement_logs().map(|logs| json!({ "logs": logs })),
        Command::PlacementUpdate { ids } => server.placement_update(ids).map(handles),
        Command::Disturb(how) => server.disturb(*how).map(|()| json!(how)),
        Command::Stop {} => {
            // SAFETY: the arguments are numbers. The signal is sent to this process, and the server handles it.
            unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
            Ok(json!({}))
        }
    };
    done.unwrap_or_else(|e| json!({"error": e.to_string()}))
}

#[cfg(test)]
mod tests;
