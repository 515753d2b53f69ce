//! Submission queues and the arbitration between them, at the head of the controller (D-100).
//!
//! As NVMe has it (Base Specification 2.0, 3.4.4): round robin takes up to a burst of commands from one
//! queue after the other. Weighted round robin has four classes of queues: what is urgent goes first; of
//! the others each may go as often as its weight says, high before medium before low, and when all that
//! have commands have used that up a new round begins. Within a class it is round robin.
//!
//! Requests wait in three places: at the host while their queue is full, in their queue, and behind the
//! limit of commands that the controller works on. Nothing of this takes time by itself.

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
        let [urgent, high, medium] = host.classes;
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
                _ => host.weights[class - 1],
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
        self.depth != u32::MAX || self.commands != u32::MAX
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

    /// The queue of that number; beyond the last they count from the first again.
    pub fn queue_of(&self, number: u16) -> u16 {
        (usize::from(number) % self.queues.len()) as u16
    }

    /// A request comes to the host's side of its queue; true if it has a place there.
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
    #[inline]
    pub(super) fn enter_queue(&mut self, id: ReqId, queue: u16) {
        self.requests[id].queue = queue;
        if !self.queues.is_limited() {
            return self.arrive(id);
        }
        if self.queues.enter(queue, id) {
            self.arrive(id);
        }
        self.stir();
    }

    /// A request has been finished: others have its place, once nothing is in the middle of anything.
    #[inline]
    pub(super) fn leave_queue(&mut self, queue: u16) {
        if self.queues.is_limited() {
            self.queues.finished(queue);
        }
    }

    /// Lets requests in for which there is a place now.
    #[inline]
    pub(super) fn stir(&mut self) {
        while std::mem::take(&mut self.queues.stirred) {
            while let Some(id) = self.queues.admitted() {
                self.arrive(id);
            }
            self.take_commands();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;
    use crate::rng::Rng;
    use crate::spec::builtin;
    use crate::units::Time;
    use crate::{DeviceSpec, Ssd};

    /// A device that was never written, whose processor takes 1 us for a read and nothing else does.
    fn device(host: &[(&str, &str)]) -> Ssd {
        let mut overrides = vec![
            ("controller.request_us", "1"),
            ("link.bus_ns_per_sector", "0"),
            ("link.command_overhead_us", "0"),
            ("buffer", "none"),
        ];
        overrides.extend(host);
        let spec = DeviceSpec::with_overrides(builtin("demo").unwrap(), "demo", &overrides);
        Ssd::new(&spec.unwrap_or_else(|e| panic!("{e}")))
    }

    fn read() -> Request {
        Request {
            arrival: Time::ZERO,
            offset: 0,
            bytes: 4096,
            op: Op::Read,
            fua: false,
        }
    }

    /// The queues that were served, in order, when all of `submitted` come at once.
    fn served(host: &[(&str, &str)], submitted: &[u16]) -> Vec<u64> {
        let mut ssd = device(host);
        // One that keeps the processor until all are there.
        ssd.submit_to(Time::ZERO, &read(), 99, 0).unwrap();
        for &queue in submitted {
            let tag = u64::from(queue);
            ssd.submit_to(Time::ZERO, &read(), tag, queue).unwrap();
        }
        while ssd.step() {}
        let done = ssd.completions().drain(..);
        let order: Vec<(u64, u64)> = done.map(|c| (c.tag, c.done.to_ns())).collect();
        for (i, (_, at)) in order.iter().enumerate() {
            assert_eq!(*at, 1_000 * (i as u64 + 1), "one in a microsecond");
        }
        order.iter().skip(1).map(|(tag, _)| *tag).collect()
    }

    /// Vectors ARB-1 to ARB-4.
    #[test]
    fn whose_turn_it_is_by_hand() {
        let submitted = [0, 0, 0, 1, 1, 2];
        let one = served(&[], &submitted);
        assert_eq!(one, [0, 0, 0, 1, 1, 2], "one queue: as they come");
        let round_robin = [("host.queues", "3")];
        assert_eq!(served(&round_robin, &submitted), [1, 2, 0, 1, 0, 0]);
        let bursts = [("host.queues", "3"), ("host.burst", "2")];
        // The burst of queue 0 began with the command before these.
        assert_eq!(served(&bursts, &submitted), [0, 1, 1, 2, 0, 0]);
        let weighted = [
            ("host.queues", "5"),
            ("host.arbitration", "weighted"),
            ("host.urgent_queues", "1"),
            ("host.high_queues", "2"),
            ("host.medium_queues", "1"),
            ("host.high_weight", "3"),
            ("host.medium_weight", "2"),
        ];
        // Urgent 0; high 1 and 2 by turns, three in a round; medium 3, two; low 4, one.
        let submitted = [4, 4, 4, 3, 3, 3, 2, 2, 1, 1, 1, 1, 0, 0];
        assert_eq!(
            served(&weighted, &submitted),
            [0, 0, 1, 2, 1, 3, 3, 4, 2, 1, 1, 3, 4, 4]
        );
    }

    /// Random queues, weights, bursts, limits and arrivals: every request is served once, those of a queue in
    /// order, and while all classes have commands each gets its share of every round, however small.
    #[test]
    fn nothing_is_lost_or_overtaken_and_shares_follow_weights() {
        let mut rng = Rng::new(12);
        for _ in 0..60 {
            let mut n = |most: u64| (1 + rng.below(most)) as u32;
            let (queues, burst) = ([n(3), n(3), n(3)], 1 << (n(4) - 1));
            let host = Host {
                queues: queues.iter().sum(),
                weighted: true,
                classes: [0, queues[0], queues[1]],
                weights: [n(9), n(5), n(3)],
                burst,
                queue_depth: 0,
                commands: n(2) - 1,
                assign: Assign::Turn,
            };
            let mut of = Queues::new(&host);
            let each = 400;
            for i in 0..each * host.queues {
                let queue = (i % host.queues) as u16;
                assert!(of.enter(queue, ReqId(i)));
                of.push(queue, ReqId(i));
            }
            let mut last = vec![None; host.queues as usize];
            let (mut served, mut by_class) = (0, [0u32; 3]);
            let round: u32 = host.weights.iter().sum();
            while let Some(ReqId(id)) = of.take() {
                let queue = id % host.queues;
                assert!(
                    last[queue as usize].is_none_or(|last| last < id),
                    "overtaken"
                );
                last[queue as usize] = Some(id);
                let class = match queue {
                    q if q < queues[0] => 0,
                    q if q < queues[0] + queues[1] => 1,
                    _ => 2,
                };
                by_class[class] += 1;
                served += 1;
                let full =
                    |class: usize| by_class[class] + host.weights[class] < each * queues[class];
                if served % round == 0 && (0..3).all(full) {
                    let rounds = served / round;
                    assert_eq!(by_class, host.weights.map(|weight| weight * rounds));
                }
                if of.is_limited() {
                    of.finished(queue as u16);
                }
            }
            assert_eq!(served, each * host.queues);
        }
    }

    /// Of two queues with a place each, one more request of either waits at the host until the one before
    /// it is done; with one command at a time the device does one thing after the other.
    #[test]
    fn requests_wait_for_places() {
        let ends = |host: &[(&str, &str)]| -> Vec<(u64, u64)> {
            let mut all = vec![("controller.request_us", "0"), ("host.queues", "2")];
            all.extend(host);
            let mut ssd = device(&all);
            let page = 4096;
            for tag in 0..4 {
                let write = Request {
                    offset: tag * page,
                    op: Op::Write,
                    ..read()
                };
                // Pages of chips 0 to 3; queues 0, 0, 1, 1.
                ssd.submit_to(Time::ZERO, &write, tag, tag as u16 / 2)
                    .unwrap();
            }
            while ssd.step() {}
            let metrics = ssd.metrics().op(Op::Write);
            assert_eq!(metrics.requests, 4);
            let done = ssd.completions().drain(..);
            done.map(|c| (c.tag, c.done.to_ns())).collect()
        };
        let none = ends(&[]);
        let one = none[0].1;
        assert_eq!(none, [(0, one), (1, one), (2, one), (3, one)]);
        let places = ends(&[("host.queue_depth", "1")]);
        assert_eq!(places, [(0, one), (2, one), (1, 2 * one), (3, 2 * one)]);
        let commands = ends(&[("host.commands", "1")]);
        assert_eq!(
            commands,
            [(0, one), (2, 2 * one), (1, 3 * one), (3, 4 * one)]
        );
    }

    /// Limits that are never reached change no instant of a random load, nor do several queues.
    #[test]
    fn limits_that_are_not_reached_change_nothing() {
        let run = |profile: &str, host: &[(&str, &str)]| {
            let spec = DeviceSpec::with_overrides(builtin(profile).unwrap(), profile, host);
            let mut ssd = Ssd::new(&spec.unwrap());
            let mut rng = Rng::new(4);
            for tag in 0..3_000 {
                let at = Time::from_us(rng.below(60)) + ssd.now();
                ssd.advance(at);
                let request = Request {
                    offset: rng.below(4_000) * 4096,
                    bytes: 4096 * (1 + rng.below(6)),
                    op: [Op::Read, Op::Write][rng.below(2) as usize],
                    ..read()
                };
                ssd.submit(at, &request, tag).unwrap();
            }
            while ssd.step() {}
            let done = ssd.completions().drain(..);
            let mut all: Vec<_> = done.map(|c| (c.tag, c.done, c.breakdown)).collect();
            all.sort_by_key(|&(tag, ..)| tag);
            all
        };
        for profile in ["demo", "nvme-tlc", "gcar"] {
            let plain = run(profile, &[]);
            let wide = [("host.queue_depth", "65535"), ("host.commands", "65535")];
            assert!(plain == run(profile, &wide), "{profile}");
            assert!(plain == run(profile, &[("host.queues", "4")]), "{profile}");
        }
    }

    #[test]
    fn reads_and_the_others_have_queues_of_their_own() {
        let host = Host {
            queues: 5,
            assign: Assign::Kind,
            ..Host::default()
        };
        let mut of = Queues::new(&host);
        let ops = [
            Op::Read,
            Op::Write,
            Op::Read,
            Op::Read,
            Op::Read,
            Op::Flush,
            Op::Trim,
        ];
        let queues: Vec<u16> = ops.into_iter().map(|op| of.queue_for(op)).collect();
        assert_eq!(queues, [0, 3, 1, 2, 0, 4, 3]);
        assert_eq!(of.queue_of(7), 2);
    }
}
