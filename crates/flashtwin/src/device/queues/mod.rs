//! Submission queues and the arbitration between them, in front of the controller (D-100).
//!
//! As in NVMe (Base Specification 2.0, 3.4.4), round robin takes at most a burst of commands from one queue after the
//! other. Weighted round robin has four classes of queues. Urgent commands come first. Each of the other classes may
//! be served as often as its weight permits, high before medium before low; when all classes with commands have used
//! up their weight, a new round begins. Within a class queues are served round robin.
//!
//! Requests wait in three places: at the host while their queue is full, in their queue, and for the limit of
//! commands that the controller executes at a time. None of this takes time by itself.

use std::collections::VecDeque;
use std::ops::Range;

use super::requests::ReqId;
use super::{Backend, Device};
use crate::request::Op;
use crate::spec::{Assign, Host};

/// Queues of one class.
#[derive(Clone, Debug)]
struct Class {
    queues: Range<usize>,
    /// The queue whose burst it is, and what is left of that.
    at: usize,
    burst_left: u32,
    weight: u32,
    /// Commands that may still go in this round.
    credit: u32,
    /// Commands that wait.
    waiting: u32,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: VecDeque<ReqId>,
    /// Requests for which it has no place.
    at_host: VecDeque<ReqId>,
    /// Requests of it that the device has not finished.
    outstanding: u32,
    class: usize,
}

/// All submission queues.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    queues: Vec<Queue>,
    /// Urgent, high, medium, low.
    classes: [Class; 4],
    burst: u32,
    depth: u32,
    commands: u32,
    /// Requests may have to wait for others to be finished.
    is_limited: bool,
    assign: Assign,
    /// Where the turns of reads, and of other requests, stand.
    turns: [usize; 2],
    waiting: u32,
    in_service: u32,
    /// A request has been finished that another may have waited for.
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

    /// Requests may have to wait for others to be finished.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// There is one, and nothing waits.
    pub fn are_plain(&self) -> bool {
        self.queues.len() == 1 && !self.is_limited
    }

    /// The queue of a request that names none.
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

    /// Returns the queue for a number; numbers beyond the last queue wrap around.
    pub fn queue_of(&self, number: u16) -> u16 {
        (usize::from(number) % self.queues.len()) as u16
    }

    /// Adds a request at the host's side of its queue; returns true if the queue has a place for it.
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

    /// A request of the queue is finished.
    #[inline]
    fn finished(&mut self, queue: u16) {
        self.queues[usize::from(queue)].outstanding -= 1;
        self.in_service -= 1;
        self.stirred = true;
    }

    /// Commands that have reached the controller and wait.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// The next request that has got a place in its queue.
    fn admitted(&mut self) -> Option<ReqId> {
        let depth = self.depth;
        let has_place = |q: &&mut Queue| q.outstanding < depth && !q.at_host.is_empty();
        let queue = self.queues.iter_mut().find(has_place)?;
        queue.outstanding += 1;
        queue.at_host.pop_front()
    }

    /// The controller may take a command, and there is one.
    #[inline]
    pub fn has_next(&self) -> bool {
        self.waiting > 0 && self.in_service < self.commands
    }

    /// A command has reached the controller.
    #[inline]
    pub fn push(&mut self, queue: u16, id: ReqId) {
        let queue = &mut self.queues[usize::from(queue)];
        queue.waiting.push_back(id);
        self.classes[queue.class].waiting += 1;
        self.waiting += 1;
    }

    /// Takes the command whose turn it is.
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

    /// The class whose turn it is, among those with commands.
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
    /// A request comes to its queue.
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

    /// Releases the queue place of a finished request; other requests take it in [`Device::admit_pending`].
    #[inline]
    pub(super) fn leave_queue(&mut self, queue: u16) {
        if !B::PLAIN && self.queues.is_limited() {
            self.queues.finished(queue);
        }
    }

    /// Lets requests in for which there is a place now.
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
