//! Page operations that the front end has passed to the array, and chains of them.

use std::collections::VecDeque;

use crate::array::table::{Table, NONE};
use crate::nand::{Done, PageOp};

/// A linked list of page operations, given by its first and last entry in the table.
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

    /// Returns a chain of one operation.
    pub fn only(op: u32) -> Chain {
        Chain { head: op, tail: op }
    }
}

/// A page operation in the array.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    op: PageOp,
    /// The operation after this one in its chain, or [`NONE`].
    next: u32,
    /// For an operation that was sent to a member without a request record (an entry in the table of requests): this
    /// member. Otherwise [`NONE`].
    member: u32,
    /// For an operation that was sent to a member without a request record: its position in the order of sending.
    order: u64,
}

/// The table of page operations in flight, and the list of those that have finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ops {
    table: Table<InFlight>,
    /// Operations that have finished and were not passed to the front end yet.
    pub done: VecDeque<Done>,
}

impl Ops {
    /// Whether no operation is in the table.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    #[inline(always)]
    pub fn add(&mut self, op: PageOp) -> u32 {
        self.table.add(InFlight {
            op,
            next: NONE,
            member: NONE,
            order: 0,
        })
    }

    #[inline(always)]
    pub fn free(&mut self, op: u32) {
        self.table[op].member = NONE;
        self.table.remove(op);
    }

    /// Marks an operation as sent to a member without a request record (an entry in the table of requests).
    #[inline(always)]
    pub fn note_sent(&mut self, op: u32, member: usize, order: u64) {
        let item = &mut self.table[op];
        (item.member, item.order) = (member as u32, order);
    }

    /// Returns the operations that were sent to the member `to` (to any member if `None`) without a request record,
    /// each with its position in the order of sending. The table then no longer marks them as sent.
    pub fn take_sent(&mut self, to: Option<usize>) -> Vec<(u64, u32)> {
        let is_to = |member: u32| to.is_none_or(|to| to == member as usize);
        let all = self.table.iter_mut();
        let sent = all.filter(|(_, item)| item.member != NONE && is_to(item.member));
        sent.map(|(op, item)| {
            item.member = NONE;
            (item.order, op)
        })
        .collect()
    }

    #[inline(always)]
    pub fn get(&self, op: u32) -> &PageOp {
        &self.table[op].op
    }

    /// Returns the next operation in the chain, or [`NONE`].
    #[inline(always)]
    pub fn after(&self, op: u32) -> u32 {
        self.table[op].next
    }

    pub fn append(&mut self, chain: &mut Chain, op: u32) {
        match chain.head {
            NONE => chain.head = op,
            _ => self.table[chain.tail].next = op,
        }
        chain.tail = op;
    }

    /// Takes the first operation off a chain.
    pub fn take_first(&mut self, chain: &mut Chain) -> Option<u32> {
        let first = chain.head;
        if first == NONE {
            return None;
        }
        chain.head = std::mem::replace(&mut self.table[first].next, NONE);
        Some(first)
    }

    /// Returns the operations of a chain.
    pub fn of(&self, chain: Chain) -> impl Iterator<Item = u32> + '_ {
        let next = |&at: &u32| Some(self.after(at)).filter(|&next| next != NONE);
        std::iter::successors(Some(chain.head).filter(|&head| head != NONE), next)
    }

    /// Whether the operations of a chain are reads. All operations of a chain are of the same kind.
    pub fn are_reads(&self, chain: Chain) -> bool {
        let first = self.table.get(chain.head);
        first.is_some_and(|item| item.op.is_read())
    }
}
