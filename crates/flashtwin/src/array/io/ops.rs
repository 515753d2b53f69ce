//! Page operations of the front end while they are with the array, and chains of them.

use std::collections::VecDeque;

use crate::array::table::{Table, NONE};
use crate::nand::{Done, PageOp};

/// Page operations one after the other, first and last by their places in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub head: u32,
    pub tail: u32,
}

impl Chain {
    pub const EMPTY: Chain = Chain {
        head: NONE,
        tail: NONE,
    };

    /// One operation.
    pub fn only(op: u32) -> Chain {
        Chain { head: op, tail: op }
    }
}

/// The table of page operations, and those that are done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ops {
    /// Each with what follows it in its chain.
    table: Table<(PageOp, u32)>,
    /// Done, and not handed to the front end yet.
    pub done: VecDeque<Done>,
}

impl Ops {
    /// All that were added are done.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    #[inline(always)]
    pub fn add(&mut self, op: PageOp) -> u32 {
        self.table.add((op, NONE))
    }

    #[inline(always)]
    pub fn free(&mut self, op: u32) {
        self.table.remove(op);
    }

    #[inline(always)]
    pub fn get(&self, op: u32) -> &PageOp {
        &self.table[op].0
    }

    /// What follows an operation in its chain, or [`NONE`].
    #[inline(always)]
    pub fn after(&self, op: u32) -> u32 {
        self.table[op].1
    }

    pub fn append(&mut self, chain: &mut Chain, op: u32) {
        match chain.head {
            NONE => chain.head = op,
            _ => self.table[chain.tail].1 = op,
        }
        chain.tail = op;
    }

    /// Takes the first operation off a chain.
    pub fn take_first(&mut self, chain: &mut Chain) -> Option<u32> {
        let first = chain.head;
        if first == NONE {
            return None;
        }
        chain.head = std::mem::replace(&mut self.table[first].1, NONE);
        Some(first)
    }

    /// The operations of a chain.
    pub fn of(&self, chain: Chain) -> impl Iterator<Item = u32> + '_ {
        let next = |&at: &u32| Some(self.after(at)).filter(|&next| next != NONE);
        std::iter::successors(Some(chain.head).filter(|&head| head != NONE), next)
    }

    /// These, if there are any, are reads.
    pub fn are_reads(&self, chain: Chain) -> bool {
        let first = self.table.get(chain.head);
        first.is_some_and(|(op, _)| op.is_read())
    }
}
