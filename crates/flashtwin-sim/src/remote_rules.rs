//! Placement rules that run in another process, for example for a served device. The device sends its questions over a
//! Unix socket, and the other process sends the replies.
//!
//! A message consists of a kind, a number of words, and the words, of eight bytes each. First, the process that runs
//! the rules sends their properties. Then the device sends questions. Each question has a reply of one word, in the
//! order of the questions. If the connection ends or a reply takes too long, the rules have failed:
//! [`RemoteRules::failed`] is set, and no further question is sent.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flashtwin::placement::{
    Class, HostPage, Isolated, MovedPage, Needs, Scheme, Survivors, UnitView, UserRules,
    UserScheme, UserVictim, VictimPool, VictimUnit,
};
use flashtwin::Lpn;

/// Longest time for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest number of words in a message. A message that describes a pool of a million units needs fewer.
const WORDS_MAX: u64 = 1 << 24;
/// Word that represents a missing value.
const NONE: u64 = u64::MAX;
/// Number of words that describe one unit of a pool. The next constant is the number of words before the units.
const UNIT_WORDS: usize = 9;
const POOL_WORDS: usize = 7;

/// Kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Kind {
    Rules,
    Name,
    Host,
    Moved,
    Closed,
    Erased,
    Trimmed,
    Choose,
}

const KINDS: [Kind; 8] = [
    Kind::Rules,
    Kind::Name,
    Kind::Host,
    Kind::Moved,
    Kind::Closed,
    Kind::Erased,
    Kind::Trimmed,
    Kind::Choose,
];

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn send(to: &mut impl Write, kind: Kind, words: &[u64]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(16 + 8 * words.len());
    for word in [kind as u64, words.len() as u64].iter().chain(words) {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    to.write_all(&bytes)
}

fn word(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Receives a message into `words`.
fn receive(from: &mut impl Read, words: &mut Vec<u64>) -> io::Result<Kind> {
    let (kind, n) = (word(from)?, word(from)?);
    let kind = usize::try_from(kind).ok().and_then(|at| KINDS.get(at));
    let kind = *kind.ok_or_else(|| broken("a message of an unknown kind"))?;
    if n > WORDS_MAX {
        return Err(broken("a message that is too long"));
    }
    words.clear();
    for _ in 0..n {
        words.push(word(from)?);
    }
    Ok(kind)
}

fn optional(value: Option<impl Into<u64>>) -> u64 {
    value.map_or(NONE, Into::into)
}

fn given<T: TryFrom<u64>>(word: u64) -> Option<T> {
    (word != NONE).then(|| T::try_from(word).ok()).flatten()
}

/// Converts a word to a smaller type. A word that is too large for the type becomes 0; a correct peer sends none.
fn low<T: TryFrom<u64> + Default>(word: u64) -> T {
    T::try_from(word).unwrap_or_default()
}

fn of_unit(unit: &UnitView) -> [u64; 8] {
    [
        unit.number.into(),
        unit.group.into(),
        optional(unit.class),
        unit.survivors.into(),
        unit.opened_at,
        unit.pages.into(),
        unit.live.into(),
        unit.erases.into(),
    ]
}

fn unit_of(words: &[u64]) -> io::Result<UnitView> {
    let &[number, group, class, survivors, opened_at, pages, live, erases] = words else {
        return Err(broken("a unit of another length"));
    };
    Ok(UnitView {
        number: low(number),
        group: low(group),
        class: given(class),
        survivors: survivors != 0,
        opened_at,
        pages: low(pages),
        live: low(live),
        erases: low(erases),
    })
}

// ---- the side of the device ----

/// The connection, and whether it has failed.
struct Line {
    stream: Mutex<BufReader<UnixStream>>,
    failed: Arc<AtomicBool>,
}

impl Line {
    /// Sends a question and returns the reply; `None` if the rules have failed.
    fn ask(&self, kind: Kind, words: &[u64]) -> Option<u64> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = send(stream.get_mut(), kind, words).and_then(|()| word(&mut *stream));
        match asked {
            Ok(reply) => Some(reply),
            Err(_) => {
                self.failed.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}

/// Rules that run in another process.
pub struct RemoteRules {
    /// The rules, for a device.
    pub rules: UserRules,
    /// Set once the rules have failed.
    pub failed: Arc<AtomicBool>,
}

#[derive(Clone)]
struct RemoteScheme {
    line: Arc<Line>,
    name: String,
    needs: Needs,
}

#[derive(Clone)]
struct RemoteVictim {
    line: Arc<Line>,
    name: String,
}

impl RemoteRules {
    /// Connects to rules: receives their properties from the process at the other end of `stream`.
    ///
    /// # Errors
    /// Fails if the connection ends, or if the other process does not follow the protocol of this module.
    pub fn connect(stream: UnixStream) -> io::Result<RemoteRules> {
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        let mut stream = BufReader::new(stream);
        let mut words = Vec::new();
        let kind = receive(&mut stream, &mut words)?;
        let (Kind::Rules, &[has_scheme, has_victim, classes, needs, places, isolated]) =
            (kind, words.as_slice())
        else {
            return Err(broken("no description of the rules"));
        };
        let mut needed = Needs::classes(low(classes));
        (needed.age, needed.moves) = (needs & 1 != 0, needs & 2 != 0);
        (needed.future, needed.old) = (needs & 4 != 0, needs & 8 != 0);
        if places != 0 {
            needed.survivors = Survivors::Scheme;
        }
        if isolated != 0 {
            needed.isolated = Isolated::All;
        }
        let mut name = || -> io::Result<String> {
            let kind = receive(&mut stream, &mut words)?;
            let bytes: Vec<u8> = words.iter().map(|&word| low(word)).collect();
            let name = String::from_utf8(bytes).ok();
            (name.filter(|_| kind == Kind::Name)).ok_or_else(|| broken("no name of the rules"))
        };
        let (of_scheme, of_victim) = (name()?, name()?);
        let failed = Arc::new(AtomicBool::new(false));
        let line = Arc::new(Line {
            stream: Mutex::new(stream),
            failed: failed.clone(),
        });
        let scheme = (has_scheme != 0).then(|| {
            Box::new(RemoteScheme {
                line: line.clone(),
                name: of_scheme,
                needs: needed,
            }) as Box<dyn UserScheme>
        });
        let victim = (has_victim != 0).then(|| {
            Box::new(RemoteVictim {
                line: line.clone(),
                name: of_victim,
            }) as Box<dyn UserVictim>
        });
        Ok(RemoteRules {
            rules: UserRules { scheme, victim },
            failed,
        })
    }
}

impl RemoteScheme {
    fn class(&self, kind: Kind, words: &[u64]) -> Class {
        let reply = self.line.ask(kind, words).unwrap_or(0);
        let class: Class = low(reply);
        // If the rules have failed, any class may be returned, but it must be an existing one.
        class.min(self.needs.classes.saturating_sub(1))
    }
}

impl Scheme for RemoteScheme {
    fn needs(&self) -> Needs {
        self.needs
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn host(&mut self, page: &HostPage) -> Class {
        let words = [
            page.lpn.0.into(),
            page.handle.into(),
            optional(page.id),
            page.clock,
            optional(page.old_class),
            page.age,
            page.next,
            page.request_pages.into(),
        ];
        self.class(Kind::Host, &words)
    }

    fn moved(&mut self, page: &MovedPage) -> Class {
        let words = [
            page.lpn.0.into(),
            page.from.into(),
            page.age,
            page.moves.into(),
            page.next,
            page.clock,
        ];
        self.class(Kind::Moved, &words)
    }

    fn closed(&mut self, unit: &UnitView, clock: u64) {
        let words: Vec<u64> = of_unit(unit).into_iter().chain([clock]).collect();
        self.line.ask(Kind::Closed, &words);
    }

    fn erased(&mut self, unit: &UnitView, valid: u32, clock: u64) {
        let words: Vec<u64> = of_unit(unit)
            .into_iter()
            .chain([valid.into(), clock])
            .collect();
        self.line.ask(Kind::Erased, &words);
    }

    fn trimmed(&mut self, lpn: Lpn) {
        self.line.ask(Kind::Trimmed, &[lpn.0.into()]);
    }
}

impl UserVictim for RemoteVictim {
    fn choose(&mut self, pool: &VictimPool) -> Option<u32> {
        let mut words = vec![
            pool.pages.into(),
            optional(pool.class),
            pool.group.into(),
            pool.free.into(),
            pool.low.into(),
            pool.clock,
            pool.in_use.len() as u64,
        ];
        words.extend(pool.in_use.iter().map(|&units| u64::from(units)));
        for unit in &pool.units {
            let of: [u64; UNIT_WORDS] = [
                unit.number.into(),
                unit.valid.into(),
                unit.written.into(),
                unit.age.into(),
                optional(unit.class),
                unit.survivors.into(),
                unit.erases.into(),
                unit.opened_at,
                unit.last_death,
            ];
            words.extend(of);
        }
        given(self.line.ask(Kind::Choose, &words)?)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn boxed_clone(&self) -> Box<dyn UserVictim> {
        Box::new(self.clone())
    }
}

// ---- the side of the rules ----

/// Replies to the questions of a device until the device closes the connection, or until `stop` returns true after a
/// question.
///
/// # Errors
/// Fails if the connection fails, or if the other process does not follow the protocol of this module.
pub fn reply_for_rules(
    stream: UnixStream,
    rules: UserRules,
    stop: impl Fn() -> bool,
) -> io::Result<()> {
    let UserRules {
        mut scheme,
        mut victim,
    } = rules;
    let mut stream = BufReader::new(stream);
    describe(stream.get_mut(), scheme.as_deref(), victim.as_deref())?;
    let mut words = Vec::new();
    loop {
        let kind = match receive(&mut stream, &mut words) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            other => other?,
        };
        let reply = match (kind, scheme.as_mut(), victim.as_mut()) {
            (Kind::Choose, _, Some(victim)) => {
                let pool = pool_of(&words).ok_or_else(|| broken("units that do not fit"))?;
                optional(victim.choose(&pool))
            }
            (_, Some(scheme), _) => of_scheme(scheme.as_mut(), kind, &words)?,
            _ => return Err(broken("a question to a rule that there is not")),
        };
        if stop() {
            return Ok(());
        }
        stream.get_mut().write_all(&reply.to_le_bytes())?;
    }
}

fn describe(
    to: &mut impl Write,
    scheme: Option<&dyn UserScheme>,
    victim: Option<&dyn UserVictim>,
) -> io::Result<()> {
    let needs = scheme.map_or(Needs::classes(1), |scheme| scheme.needs());
    let flags = [needs.age, needs.moves, needs.future, needs.old];
    let flags = flags
        .iter()
        .rev()
        .fold(0, |all, &flag| all << 1 | u64::from(flag));
    let words = [
        scheme.is_some().into(),
        victim.is_some().into(),
        needs.classes.into(),
        flags,
        (needs.survivors == Survivors::Scheme).into(),
        (needs.isolated == Isolated::All).into(),
    ];
    send(to, Kind::Rules, &words)?;
    for name in [
        scheme.map_or("", |scheme| scheme.name()),
        victim.map_or("", |victim| victim.name()),
    ] {
        let bytes: Vec<u64> = name.bytes().map(u64::from).collect();
        send(to, Kind::Name, &bytes)?;
    }
    Ok(())
}

/// Calls the method of the scheme that a question of the kind `kind` requests. Methods without a result reply 0, so
/// that the device can wait until they have run.
fn of_scheme(scheme: &mut dyn UserScheme, kind: Kind, words: &[u64]) -> io::Result<u64> {
    match (kind, words) {
        (Kind::Host, &[lpn, handle, id, clock, old, age, next, pages]) => {
            let page = HostPage {
                lpn: Lpn(low(lpn)),
                handle: low(handle),
                id: given(id),
                clock,
                old_class: given(old),
                age,
                next,
                request_pages: low(pages),
            };
            Ok(scheme.host(&page).into())
        }
        (Kind::Moved, &[lpn, from, age, moves, next, clock]) => {
            let page = MovedPage {
                lpn: Lpn(low(lpn)),
                from: low(from),
                age,
                moves: low(moves),
                next,
                clock,
            };
            Ok(scheme.moved(&page).into())
        }
        (Kind::Closed, [unit @ .., clock]) => {
            scheme.closed(&unit_of(unit)?, *clock);
            Ok(0)
        }
        (Kind::Erased, [unit @ .., valid, clock]) => {
            scheme.erased(&unit_of(unit)?, low(*valid), *clock);
            Ok(0)
        }
        (Kind::Trimmed, &[lpn]) => {
            scheme.trimmed(Lpn(low(lpn)));
            Ok(0)
        }
        _ => Err(broken("a question that is not known")),
    }
}

fn pool_of(words: &[u64]) -> Option<VictimPool> {
    let (head, rest) = words.split_at_checked(POOL_WORDS)?;
    let (in_use, units) = rest.split_at_checked(usize::try_from(head[6]).ok()?)?;
    if units.len() % UNIT_WORDS != 0 {
        return None;
    }
    Some(VictimPool {
        units: units
            .chunks_exact(UNIT_WORDS)
            .map(|unit| VictimUnit {
                number: low(unit[0]),
                valid: low(unit[1]),
                written: low(unit[2]),
                age: low(unit[3]),
                class: given(unit[4]),
                survivors: unit[5] != 0,
                erases: low(unit[6]),
                opened_at: unit[7],
                last_death: unit[8],
            })
            .collect(),
        pages: low(head[0]),
        class: given(head[1]),
        group: low(head[2]),
        free: low(head[3]),
        low: low(head[4]),
        clock: head[5],
        in_use: in_use.iter().map(|&units| low(units)).collect(),
    })
}

#[cfg(test)]
#[path = "remote_rules/tests.rs"]
mod tests;
