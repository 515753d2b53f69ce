//! Stepping a policy through an access string, in the notation of the specification.
//!
//! `W1 R2 W4x3 gc+1 gc-1`: write page 1, read page 2, one write request of pages 4 to 6, chip 1
//! enters and leaves GC. Chips are striped: chip = page mod chips. Write-backs take no time. Lists
//! print most recent first, `7d` dirty, `7c` clean; `ev 7d` is a victim. (policies.md 0.1)

use std::collections::HashMap;
use std::fmt;

use super::policy::AnyPolicy;
use super::{DeviceView, PageId, Policy};
use crate::spec;
use crate::units::{ChipId, Lpn, Time};

/// A page and whether it is dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The logical page.
    pub lpn: u32,
    /// It differs from flash.
    pub dirty: bool,
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.lpn, if self.dirty { 'd' } else { 'c' })
    }
}

/// What one token of the access string did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The token.
    pub op: String,
    /// Every page of it was cached; `None` for a change of chip state.
    pub hit: Option<bool>,
    /// Victims in the order of their eviction.
    pub evicted: Vec<Traced>,
    /// The cached pages afterwards, in the policy's canonical order.
    pub state: Vec<Traced>,
}

impl Step {
    /// `miss, ev 2c`
    pub fn result(&self) -> String {
        let mut text = match self.hit {
            None => String::new(),
            Some(true) => "hit".to_owned(),
            Some(false) => "miss".to_owned(),
        };
        for victim in &self.evicted {
            text += &format!(", ev {victim}");
        }
        text
    }

    /// `5c 4d 3d 1d`
    pub fn state(&self) -> String {
        let pages: Vec<String> = self.state.iter().map(Traced::to_string).collect();
        pages.join(" ")
    }
}

/// An access string that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadToken {
    /// The token.
    pub token: String,
    /// Which it is, from 1.
    pub position: usize,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for BadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "token {} \"{}\": {}; known are R7, W7, W4x3 (pages 4 to 6), gc+1, gc-1",
            self.position, self.token, self.problem
        )
    }
}

impl std::error::Error for BadToken {}

/// A buffer in which nothing takes time.
struct Stepper {
    policy: AnyPolicy,
    capacity: usize,
    ids: HashMap<u32, PageId>,
    free: Vec<PageId>,
    pages: Pages,
}

struct Pages {
    pages: Vec<Traced>,
    in_gc: Vec<bool>,
}

impl DeviceView for Pages {
    fn dirty(&self, page: PageId) -> bool {
        self.pages[page.0 as usize].dirty
    }
    fn lpn(&self, page: PageId) -> Lpn {
        Lpn(self.pages[page.0 as usize].lpn)
    }
    fn chip(&self, page: PageId) -> Option<ChipId> {
        Some(ChipId((self.lpn(page).0 % self.in_gc.len() as u32) as u16))
    }
    fn in_gc(&self, chip: ChipId) -> bool {
        self.in_gc[chip.0 as usize]
    }
    fn drain_time(&self, _chip: ChipId) -> Time {
        Time::ZERO
    }
    fn chip_idle(&self, chip: ChipId) -> bool {
        !self.in_gc(chip)
    }
    fn free_blocks(&self, _chip: ChipId) -> u32 {
        u32::MAX
    }
    fn chips_in_gc(&self) -> (u32, u32) {
        (
            self.in_gc.iter().filter(|&&gc| gc).count() as u32,
            self.in_gc.len() as u32,
        )
    }
}

impl Stepper {
    /// One page access: whether it hit, and its victim.
    fn access(&mut self, lpn: u32, write: bool) -> (bool, Option<Traced>) {
        if let Some(&id) = self.ids.get(&lpn) {
            let page = &mut self.pages.pages[id.0 as usize];
            page.dirty |= write;
            let dirty = page.dirty;
            self.policy.touch(id, dirty);
            return (true, None);
        }
        let mut victim = None;
        if self.ids.len() == self.capacity {
            if let Some(id) = self.policy.victim(&self.pages, |_| true) {
                self.policy.remove(id);
                let page = self.pages.pages[id.0 as usize];
                self.ids.remove(&page.lpn);
                self.free.push(id);
                victim = Some(page);
            }
        }
        let page = Traced { lpn, dirty: write };
        let id = self.free.pop().unwrap_or_else(|| {
            self.pages.pages.push(page);
            PageId(self.pages.pages.len() as u32 - 1)
        });
        self.pages.pages[id.0 as usize] = page;
        self.ids.insert(lpn, id);
        self.policy.insert(id, write);
        (false, victim)
    }
}

/// What a token asks for.
enum Token {
    Access { write: bool, first: u32, pages: u32 },
    Gc { chip: usize, enters: bool },
}

fn parse(token: &str, chips: u32) -> Result<Token, String> {
    let number = |text: &str| {
        text.parse::<u32>()
            .map_err(|_| format!("\"{text}\" is no number"))
    };
    for (prefix, enters) in [("gc+", true), ("gc-", false)] {
        if let Some(chip) = token.strip_prefix(prefix) {
            let chip = number(chip)?;
            if chip >= chips {
                return Err(format!("chip {chip} of {chips}, counted from 0"));
            }
            return Ok(Token::Gc {
                chip: chip as usize,
                enters,
            });
        }
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
    if pages == 0 || first.checked_add(pages).is_none() {
        return Err(format!("{pages} pages from page {first}"));
    }
    Ok(Token::Access {
        write,
        first,
        pages,
    })
}

/// Steps `policy`, with room for `capacity` pages over `chips` striped chips, through `accesses`.
pub fn trace_policy(
    policy: &spec::Policy,
    capacity: usize,
    chips: u32,
    accesses: &str,
) -> Result<Vec<Step>, BadToken> {
    let mut stepper = Stepper {
        policy: AnyPolicy::new(policy),
        capacity,
        ids: HashMap::new(),
        free: Vec::new(),
        pages: Pages {
            pages: Vec::new(),
            in_gc: vec![false; chips.max(1) as usize],
        },
    };
    let mut steps = Vec::new();
    for (i, token) in accesses.split_whitespace().enumerate() {
        let parsed = parse(token, chips.max(1)).map_err(|problem| BadToken {
            token: token.to_owned(),
            position: i + 1,
            problem,
        })?;
        let (mut hit, mut evicted) = (None, Vec::new());
        match parsed {
            Token::Gc { chip, enters } => stepper.pages.in_gc[chip] = enters,
            Token::Access {
                write,
                first,
                pages,
            } => {
                let mut all = true;
                for lpn in first..first + pages {
                    let (cached, victim) = stepper.access(lpn, write);
                    all &= cached;
                    evicted.extend(victim);
                }
                hit = Some(all);
            }
        }
        let order = stepper.policy.order();
        let state = order
            .iter()
            .map(|id| stepper.pages.pages[id.0 as usize])
            .collect();
        steps.push(Step {
            op: token.to_owned(),
            hit,
            evicted,
            state,
        });
    }
    Ok(steps)
}
