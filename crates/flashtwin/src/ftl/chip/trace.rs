//! Steps a translation layer through an access string.
//!
//! `0 1 R5 T3 F` is an access string: write page 0, write page 1, read page 5, trim page 3, flush the dirty map
//! entries. `4x3` writes pages 4 to 6. Each step lists its flash operations. Here, a copy counts as one operation,
//! not as a read and a program.

use std::fmt;
use std::ops::AddAssign;

use super::{ChipFtl, FlashOp, Ftl, OpKind, Setup, SetupError, Why};

/// Flash operations of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Pages read for the host.
    pub host_reads: u64,
    /// Pages programmed for the host.
    pub host_programs: u64,
    /// Pages copied.
    pub copies: u64,
    /// Translation pages read, either for a lookup or before they are rewritten.
    pub map_reads: u64,
    /// Translation pages programmed. Copies of translation pages are not included.
    pub map_writes: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Switch merges.
    pub switch_merges: u64,
    /// Partial merges.
    pub partial_merges: u64,
    /// Full merges.
    pub full_merges: u64,
}

impl Cost {
    /// Names of the counts.
    pub const NAMES: [&'static str; 9] = [
        "host_reads",
        "host_programs",
        "copies",
        "map_reads",
        "map_writes",
        "erases",
        "switch_merges",
        "partial_merges",
        "full_merges",
    ];

    /// Returns the counts in the order of [`Cost::NAMES`].
    pub fn numbers(&self) -> [u64; 9] {
        [
            self.host_reads,
            self.host_programs,
            self.copies,
            self.map_reads,
            self.map_writes,
            self.erases,
            self.switch_merges,
            self.partial_merges,
            self.full_merges,
        ]
    }

    /// Counts flash operations by kind and purpose. The counts of merges stay 0, since operations do not show them.
    pub fn of(ops: &[FlashOp]) -> Cost {
        let mut cost = Cost::default();
        for op in ops {
            let number = match (op.kind, op.why) {
                (OpKind::Read { .. }, Why::Host) => &mut cost.host_reads,
                (OpKind::Read { .. }, _) => &mut cost.map_reads,
                (OpKind::Program { .. }, Why::Host) => &mut cost.host_programs,
                (OpKind::Program { .. }, _) => &mut cost.map_writes,
                (OpKind::Copy { .. }, _) => &mut cost.copies,
                (OpKind::Erase { .. }, _) => &mut cost.erases,
            };
            *number += 1;
        }
        cost
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.host_reads += other.host_reads;
        self.host_programs += other.host_programs;
        self.copies += other.copies;
        self.map_reads += other.map_reads;
        self.map_writes += other.map_writes;
        self.erases += other.erases;
        self.switch_merges += other.switch_merges;
        self.partial_merges += other.partial_merges;
        self.full_merges += other.full_merges;
    }
}

impl fmt::Display for Cost {
    /// Formats the counts other than 0, such as `1 host program, 3 copies, 1 erase, 1 partial merge`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = Cost::NAMES.iter().zip(self.numbers());
        let counts = counts.filter(|(_, number)| *number > 0);
        let texts: Vec<String> = counts
            .map(|(name, number)| {
                let mut name = name.replace('_', " ");
                if number == 1 {
                    name.truncate(name.len() - 1);
                    name = name.replace("ie", "y");
                }
                format!("{number} {name}")
            })
            .collect();
        f.write_str(if texts.is_empty() { "nothing" } else { "" })?;
        f.write_str(&texts.join(", "))
    }
}

/// Result of one token of the access string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The token.
    pub op: String,
    /// Flash operations of the token.
    pub cost: Cost,
    /// The state afterwards.
    pub state: String,
}

/// Reasons for which an access string cannot be traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// The translation layer cannot be made.
    Setup(SetupError),
    /// A token cannot be read.
    Token {
        /// The token.
        token: String,
        /// Position of the token, from 1.
        position: usize,
        /// Description of the problem.
        problem: String,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Setup(e) => e.fmt(f),
            TraceError::Token { token, position, problem } => write!(
                f,
                "token {position} \"{token}\": {problem}; known are 7 (write), 4x3 (write pages 4 to \
                 6), R7 (read), T7 (trim), F (flush the map)"
            ),
        }
    }
}

impl std::error::Error for TraceError {}

/// Meaning of a token.
enum Token {
    Write { first: u32, pages: u32 },
    Read { page: u32 },
    Trim { page: u32 },
    Flush,
}

fn parse(token: &str, logical_pages: u32) -> Result<Token, String> {
    let number = |text: &str| {
        let number = text.parse::<u32>();
        number.map_err(|_| format!("\"{text}\" is no number"))
    };
    let page = |text: &str| match number(text)? {
        page if page < logical_pages => Ok(page),
        page => Err(format!(
            "page {page} of {logical_pages}, counted from 0 (more with logical_pages)"
        )),
    };
    if token == "F" {
        return Ok(Token::Flush);
    }
    if let Some(text) = token.strip_prefix('R') {
        return Ok(Token::Read { page: page(text)? });
    }
    if let Some(text) = token.strip_prefix('T') {
        return Ok(Token::Trim { page: page(text)? });
    }
    let (first, pages) = token.split_once('x').unwrap_or((token, "1"));
    let (first, pages) = (page(first)?, number(pages)?);
    if pages == 0 || pages > logical_pages - first {
        return Err(format!(
            "{pages} pages from page {first} of {logical_pages}"
        ));
    }
    Ok(Token::Write { first, pages })
}

/// Executes the access string `accesses` on a new translation layer. Every page is first written in order, unless
/// `empty` is true.
///
/// # Errors
/// Fails if an access cannot be read or is beyond the chip.
pub fn trace_ftl(setup: &Setup, empty: bool, accesses: &str) -> Result<Vec<Step>, TraceError> {
    let mut ftl = Ftl::new(setup).map_err(TraceError::Setup)?;
    if !empty {
        ftl.fill();
    }
    let mut steps = Vec::new();
    let mut ops = Vec::new();
    for (i, token) in accesses.split_whitespace().enumerate() {
        let wrong = |problem| TraceError::Token {
            token: token.to_owned(),
            position: i + 1,
            problem,
        };
        let before = ftl.counters();
        ops.clear();
        match parse(token, setup.logical_pages).map_err(wrong)? {
            Token::Write { first, pages } => {
                for page in first..first + pages {
                    let written = ftl.write(page, &mut ops);
                    written.map_err(|e| wrong(e.to_string()))?;
                }
            }
            Token::Read { page } => ftl.read(page, &mut ops),
            Token::Trim { page } => ftl.trim(page, &mut ops),
            Token::Flush => ftl.flush(&mut ops),
        }
        let after = ftl.counters();
        let cost = Cost {
            switch_merges: after.switch_merges - before.switch_merges,
            partial_merges: after.partial_merges - before.partial_merges,
            full_merges: after.full_merges - before.full_merges,
            ..Cost::of(&ops)
        };
        steps.push(Step {
            op: token.to_owned(),
            cost,
            state: ftl.state(),
        });
    }
    Ok(steps)
}

/// Returns the sum of the costs of all steps.
pub fn total(steps: &[Step]) -> Cost {
    let mut total = Cost::default();
    for step in steps {
        total += step.cost;
    }
    total
}

/// Formats steps as a table with three columns: access, flash operations, and the state after the access. The last
/// row has the sums over all steps.
pub fn steps_text(steps: &[Step]) -> String {
    let mut rows = vec![["op".to_owned(), "flash".to_owned(), "state".to_owned()]];
    let row = |step: &Step| [step.op.clone(), step.cost.to_string(), step.state.clone()];
    rows.extend(steps.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max();
    let (op, cost) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
    let mut text = String::new();
    for [what, did, state] in &rows {
        let line = format!("{what:<op$}  {did:<cost$}  {state}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&format!("total: {}\n", total(steps)));
    text
}
