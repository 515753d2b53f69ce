//! Submission queues, and the arbitration between them in front of the controller (D-100).
//!
//! The arbitration follows the NVMe Base Specification 2.0, 3.4.4. *Round robin* takes at most a *burst* of commands
//! from one queue, then continues with the next queue. *Weighted round robin* has four classes of queues. Urgent
//! commands have priority over all others. The other classes are served in the order high, medium, low. In a round,
//! each class is served at most as many times as its weight. A new round begins when all classes with commands have
//! used up their weights. Within a class, queues are served round robin.
//!
//! A request waits at the host while its queue is full, and then in its queue until the controller takes it. The
//! controller takes no command while it is executing as many commands as its limit permits. Queues and arbitration
//! themselves take no time.

use std::collections::VecDeque;
use std::ops::Range;

use super::requests::ReqId;
use super::{Backend, Device};
use crate::request::Op;
use crate::spec::{Assign, Host};

/// A class of queues.
#[derive(Clone, Debug)]
struct Class {
    queues: Range<usize>,
    /// The queue that is being served. `burst_left` is the number of commands that may still be taken from it in this
    /// burst.
    at: usize,
    burst_left: u32,
    weight: u32,
    /// Number of commands that may still be taken in this round.
    credit: u32,
    /// Number of waiting commands.
    waiting: u32,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: VecDeque<ReqId>,
    /// Requests that wait at the host because the queue is full.
    at_host: VecDeque<ReqId>,
    /// Number of unfinished requests that have a place in this queue.
    outstanding: u32,
    class: usize,
}

/// All submission queues.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    queues: Vec<Queue>,
    /// The classes urgent, high, medium and low.
    classes: [Class; 4],
    burst: u32,
    depth: u32,
    commands: u32,
    /// Whether a request may have to wait until others are finished.
    is_limited: bool,
    assign: Assign,
    /// Next queues, in turn, for requests that do not name a queue. If queues are assigned by kind, there is one for
    /// reads and one for other requests; otherwise only the first is used.
    turns: [usize; 2],
    waiting: u32,
    in_service: u32,
    /// Whether a request has finished since the last check for waiting requests.
    stirred: bool,
}

impl Queues {
    pub fn new(host: &Host) -> Queues {
        let no_limit = |n: u32| if n == 0 { u32::MAX } else { n };
        let mut first = 0;
        let [urgent, high, medium] = host.classes();
        let low = host.queues - urgent - high - medium;
        let mut queues = vec![Queue::default(); host.queues as usize];
        let mut class = 0;
        let classes = [urgent, high, medium, low].map(|n| {
            let of_class = first..first + n as usize;
            queues[of_class.clone()]
                .iter_mut()
                .for_each(|queue| queue.class = class);
            let weight = match class {
                0 => u32::MAX,
                _ => host.weights()[class - 1],
            };
            (first, class) = (of_class.end, class + 1);
            Class {
                at: of_class.start,
                queues: of_class,
                burst_left: no_limit(host.burst),
                weight,
                credit: weight,
                waiting: 0,
            }
        });
        Queues {
            queues,
            classes,
            burst: no_limit(host.burst),
            depth: no_limit(host.queue_depth),
            commands: no_limit(host.commands),
            is_limited: host.queue_depth != 0 || host.commands != 0,
            assign: host.assign,
            turns: [0, 0],
            waiting: 0,
            in_service: 0,
            stirred: false,
        }
    }

    /// Whether a request may have to wait until others are finished.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Whether there is a single queue, and no limit.
    pub fn are_plain(&self) -> bool {
        self.queues.len() == 1 && !self.is_limited
    }

    /// Returns the queue for a request that does not name one.
    #[inline]
    pub fn queue_for(&mut self, op: Op) -> u16 {
        let n = self.queues.len();
        if n == 1 {
            return 0;
        }
        let (turn, of) = match (self.assign, op) {
            (Assign::Turn, _) => (0, 0..n),
            (Assign::Kind, Op::Read) => (0, 0..n.div_ceil(2)),
            (Assign::Kind, _) => (1, n.div_ceil(2)..n),
        };
        let queue = of.start + self.turns[turn];
        self.turns[turn] = (self.turns[turn] + 1) % of.len();
        queue as u16
    }

    /// Returns the queue with this number. Numbers beyond the last queue wrap around.
    pub fn queue_of(&self, number: u16) -> u16 {
        (usize::from(number) % self.queues.len()) as u16
    }

    /// Adds a request to its queue. Returns true if the queue has a place for it. Otherwise the request waits at the
    /// host.
    #[inline]
    fn enter(&mut self, queue: u16, id: ReqId) -> bool {
        let queue = &mut self.queues[usize::from(queue)];
        let has_place = queue.outstanding < self.depth;
        match has_place {
            true => queue.outstanding += 1,
            false => queue.at_host.push_back(id),
        }
        has_place
    }

    /// Records that a request of the queue is finished.
    #[inline]
    fn finished(&mut self, queue: u16) {
        self.queues[usize::from(queue)].outstanding -= 1;
        self.in_service -= 1;
        self.stirred = true;
    }

    /// Returns the number of commands that wait at the controller.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Gives a free place in a queue to a request that waits for it at the host, and returns this request.
    fn admitted(&mut self) -> Option<ReqId> {
        let depth = self.depth;
        let has_place = |q: &&mut Queue| q.outstanding < depth && !q.at_host.is_empty();
        let queue = self.queues.iter_mut().find(has_place)?;
        queue.outstanding += 1;
        queue.at_host.pop_front()
    }

    /// Whether a command waits and the controller may take it.
    #[inline]
    pub fn has_next(&self) -> bool {
        self.waiting > 0 && self.in_service < self.commands
    }

    /// Adds a command that has reached the controller.
    #[inline]
    pub fn push(&mut self, queue: u16, id: ReqId) {
        let queue = &mut self.queues[usize::from(queue)];
        queue.waiting.push_back(id);
        self.classes[queue.class].waiting += 1;
        self.waiting += 1;
    }

    /// Takes the next command according to the arbitration.
    #[inline]
    pub fn take(&mut self) -> Option<ReqId> {
        if !self.has_next() {
            return None;
        }
        self.waiting -= 1;
        self.in_service += u32::from(self.is_limited());
        let class = self.next_class()?;
        let Queues {
            queues, classes, ..
        } = self;
        let class = &mut classes[class];
        class.waiting -= 1;
        if class.burst_left == 0 || queues[class.at].waiting.is_empty() {
            let after = (class.at + 1..class.queues.end).chain(class.queues.start..=class.at);
            let mut with_commands = after.filter(|&at| !queues[at].waiting.is_empty());
            class.at = with_commands.next()?;
            class.burst_left = self.burst;
        }
        class.burst_left -= 1;
        queues[class.at].waiting.pop_front()
    }

    /// Returns the class to serve next. It is one of the classes with waiting commands.
    #[inline]
    fn next_class(&mut self) -> Option<usize> {
        if self.classes[0].waiting > 0 {
            return Some(0);
        }
        let may_go = |class: &Class| class.waiting > 0 && class.credit > 0;
        let mut next = self.classes.iter().skip(1).position(may_go);
        if next.is_none() {
            self.classes
                .iter_mut()
                .for_each(|class| class.credit = class.weight);
            next = self.classes.iter().skip(1).position(may_go);
        }
        let next = next? + 1;
        self.classes[next].credit -= 1;
        Some(next)
    }
}

impl<B: Backend> Device<B> {
    /// Processes the arrival of a request at its queue.
    #[inline(always)]
    pub(super) fn enter_queue(&mut self, id: ReqId, queue: u16) {
        self.requests[id].queue = queue;
        match B::PLAIN || !self.queues.is_limited() {
            true => self.arrive(id),
            false => self.enter_limited(id, queue),
        }
    }

    #[inline(never)]
    fn enter_limited(&mut self, id: ReqId, queue: u16) {
        if self.queues.enter(queue, id) {
            self.arrive(id);
        }
        self.admit_pending();
    }

    /// Frees the place of a finished request in its queue. [`Device::admit_pending`] later gives the place to another
    /// request.
    #[inline]
    pub(super) fn leave_queue(&mut self, queue: u16) {
        if !B::PLAIN && self.queues.is_limited() {
            self.queues.finished(queue);
        }
    }

    /// Admits requests that were waiting at the host, if there is a place for them now.
    #[inline(always)]
    pub(super) fn admit_pending(&mut self) {
        if !B::PLAIN && self.queues.stirred {
            self.admit_stirred();
        }
    }

    #[inline(never)]
    fn admit_stirred(&mut self) {
        while std::mem::take(&mut self.queues.stirred) {
            while let Some(id) = self.queues.admitted() {
                self.arrive(id);
            }
            self.take_commands();
        }
    }
}

#[cfg(test)]
mod tests;
