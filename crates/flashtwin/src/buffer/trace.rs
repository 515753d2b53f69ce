//! Steps a policy through an access string.
//!
//! An access string consists of tokens:
//!
//! - `W1` writes page 1, `R2` reads page 2, `W4x3` is one write request for pages 4 to 6.
//! - `gc+1`: chip 1 enters GC. `gc-1`: chip 1 leaves GC.
//! - `drain1=500`: the queue of chip 1 completes in 500 us. `idle1`: chip 1 is idle.
//! - `trim1` drops page 1. `t+100`: 100 ms pass.
//!
//! Pages are striped over the chips. Write-backs take no time. Lists are printed with the most recent page first. `7d`
//! is a dirty page, `7c` a clean one, `ev 7d` a victim, and `ev B1{4,5}` a victim block with its pages.

use std::fmt;

use super::untimed::UntimedBuffer;
use super::Eviction;
use crate::units::{Lpn, Time};

/// A page and whether it is dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The logical page.
    pub lpn: u32,
    /// Whether the page differs from flash.
    pub dirty: bool,
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.lpn, if self.dirty { 'd' } else { 'c' })
    }
}

/// Pages that were evicted together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    /// The logical block of the pages, if the policy evicts blocks.
    pub block: Option<u32>,
    /// The pages, in the order of their eviction.
    pub pages: Vec<Traced>,
    /// Pages that are read from flash and written together with the victims.
    pub padding: Vec<u32>,
    /// Pages of the read cache that are written together with the victims.
    pub merged: Vec<u32>,
    /// Whether clean pages are written too.
    pub write_clean: bool,
    /// List entries that the published algorithm inspected.
    pub inspected: u64,
}

impl Evicted {
    fn new(eviction: &Eviction, victims: &[(Lpn, bool)]) -> Evicted {
        let pages = victims
            .iter()
            .map(|&(lpn, dirty)| Traced { lpn: lpn.0, dirty });
        Evicted {
            block: eviction.block,
            pages: pages.collect(),
            padding: eviction.padding.iter().map(|lpn| lpn.0).collect(),
            merged: eviction.merged.iter().map(|lpn| lpn.0).collect(),
            write_clean: eviction.write_clean,
            inspected: eviction.inspected,
        }
    }

    /// Pages written to flash, in ascending order.
    pub fn written(&self) -> Vec<u32> {
        let victims = self.pages.iter().filter(|p| p.dirty || self.write_clean);
        let mut pages: Vec<u32> = victims.map(|p| p.lpn).collect();
        pages.extend(&self.padding);
        pages.extend(&self.merged);
        pages.sort_unstable();
        pages
    }
}

impl fmt::Display for Evicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(block) = self.block else {
            let pages: Vec<String> = self.pages.iter().map(Traced::to_string).collect();
            return write!(f, "ev {}", pages.join(" "));
        };
        let mut pages: Vec<u32> = self.pages.iter().map(|p| p.lpn).collect();
        pages.sort_unstable();
        write!(f, "ev B{block}{}", set_text(&pages))?;
        if !self.padding.is_empty() || self.write_clean {
            let (reads, writes) = (self.padding.len(), self.written().len());
            write!(f, ": {reads} padding reads, {writes} writes")?;
        }
        if !self.merged.is_empty() {
            write!(f, ": write {}", set_text(&self.written()))?;
        }
        Ok(())
    }
}

/// Formats page numbers as a set, such as `{4,5}`.
fn set_text(pages: &[u32]) -> String {
    let texts: Vec<String> = pages.iter().map(u32::to_string).collect();
    format!("{{{}}}", texts.join(","))
}

/// Result of one token of the access string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The token.
    pub op: String,
    /// Whether all accessed pages were cached; `None` if the token is not an access.
    pub hit: Option<bool>,
    /// Evictions, in order.
    pub evictions: Vec<Evicted>,
    /// Pages that were written back and stay in the buffer. Only Co-Active and COOP write such pages.
    pub written_back: Vec<u32>,
    /// The state afterwards, as [`Policy::state`] formats it.
    pub state: String,
}

impl Step {
    /// Formats the result of the step, such as `miss, ev 2c`.
    pub fn result(&self) -> String {
        let mut parts: Vec<String> = match self.hit {
            None => Vec::new(),
            Some(true) => vec!["hit".into()],
            Some(false) => vec!["miss".into()],
        };
        parts.extend(self.evictions.iter().map(Evicted::to_string));
        if !self.written_back.is_empty() {
            parts.push(format!("write back {}", set_text(&self.written_back)));
        }
        parts.join(", ")
    }

    /// Returns all victims, in order.
    pub fn evicted(&self) -> Vec<Traced> {
        self.evictions
            .iter()
            .flat_map(|e| e.pages.clone())
            .collect()
    }
}

/// Error: a token of the access string is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadToken {
    /// The token.
    pub token: String,
    /// Position of the token, from 1.
    pub position: usize,
    /// Description of the problem.
    pub problem: String,
}

impl fmt::Display for BadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "token {} \"{}\": {}; known are R7, W7, W4x3 (pages 4 to 6), trim7, gc+1, gc-1, \
             drain1=500 (us), idle1, t+100 (ms)",
            self.position, self.token, self.problem
        )
    }
}

impl std::error::Error for BadToken {}

/// Meaning of a token.
enum Token {
    Access { write: bool, first: u32, pages: u32 },
    Gc { chip: u32, enters: bool },
    Drain { chip: u32, us: u32 },
    Idle { chip: u32 },
    Trim { lpn: u32 },
    Wait { ms: u32 },
}

fn parse(token: &str, chips: u32) -> Result<Token, String> {
    let number = |text: &str| {
        text.parse::<u32>()
            .map_err(|_| format!("\"{text}\" is no number"))
    };
    let chip = |text: &str| match number(text)? {
        chip if chip < chips => Ok(chip),
        chip => Err(format!("chip {chip} of {chips}, counted from 0")),
    };
    for (prefix, enters) in [("gc+", true), ("gc-", false)] {
        if let Some(text) = token.strip_prefix(prefix) {
            let chip = chip(text)?;
            return Ok(Token::Gc { chip, enters });
        }
    }
    if let Some(text) = token.strip_prefix("drain") {
        let (text, us) = text.split_once('=').ok_or("no \"=\"")?;
        let (chip, us) = (chip(text)?, number(us)?);
        return Ok(Token::Drain { chip, us });
    }
    if let Some(text) = token.strip_prefix("idle") {
        return Ok(Token::Idle { chip: chip(text)? });
    }
    if let Some(text) = token.strip_prefix("trim") {
        return Ok(Token::Trim { lpn: number(text)? });
    }
    if let Some(text) = token.strip_prefix("t+") {
        return Ok(Token::Wait { ms: number(text)? });
    }
    let (write, rest) = match (token.strip_prefix('W'), token.strip_prefix('R')) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => return Err("not an access".to_owned()),
    };
    let (first, pages) = match rest.split_once('x') {
        Some((first, pages)) => (number(first)?, number(pages)?),
        None => (number(rest)?, 1),
    };
    if pages == 0 || pages > 65_536 || first.checked_add(pages).is_none() {
        return Err(format!("{pages} pages from page {first}"));
    }
    Ok(Token::Access {
        write,
        first,
        pages,
    })
}

/// Executes the access string `accesses` on a buffer, one token at a time. `chips` is the number of chips.
pub(crate) fn step_through(
    mut untimed: UntimedBuffer,
    chips: u32,
    accesses: &str,
) -> Result<Vec<Step>, BadToken> {
    let mut steps = Vec::new();
    for (i, token) in accesses.split_whitespace().enumerate() {
        let parsed = parse(token, chips).map_err(|problem| BadToken {
            token: token.to_owned(),
            position: i + 1,
            problem,
        })?;
        let (mut hit, mut evictions, mut written_back) = (None, Vec::new(), Vec::new());
        match parsed {
            Token::Gc { chip, enters } => {
                untimed.set_chip(chip, |state| state.in_gc = enters);
            }
            Token::Drain { chip, us } => {
                untimed.set_chip(chip, |state| state.drain = Time::from_us(us.into()));
            }
            Token::Idle { chip } => {
                written_back = untimed.idle(chip).iter().map(|lpn| lpn.0).collect();
            }
            Token::Wait { ms } => untimed.wait(Time::from_ms(ms.into())),
            Token::Trim { lpn } => {
                untimed.trim(Lpn(lpn));
            }
            Token::Access {
                write,
                first,
                pages,
            } => {
                let mut all = true;
                for lpn in first..first + pages {
                    let outcome = untimed.access(Lpn(lpn), write, i as u64, pages);
                    all &= outcome.hit;
                    if !outcome.victims.is_empty() {
                        evictions.push(Evicted::new(&outcome.eviction, &outcome.victims));
                    }
                }
                hit = Some(all);
            }
        }
        steps.push(Step {
            op: token.to_owned(),
            hit,
            evictions,
            written_back,
            state: untimed.state(),
        });
    }
    Ok(steps)
}

/// Formats steps as a table with three columns: the access, its result, and the state after it.
pub fn steps_text(steps: &[Step]) -> String {
    let mut rows = vec![["op".to_owned(), "result".to_owned(), "state".to_owned()]];
    let row = |step: &Step| [step.op.clone(), step.result(), step.state.clone()];
    rows.extend(steps.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let (op, result) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
    let mut text = String::new();
    for [what, did, state] in &rows {
        let line = format!("{what:<op$}  {did:<result$}  {state}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
