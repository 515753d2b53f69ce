//! Test vectors of Harmonia's coordination (MSST 2011, section 4), and of the other schemes.

use super::global::{Inclusive, Selective};
use super::idle::Idle;
use super::soft_limit::SoftLimit;
use super::turns::Turns;
use super::*;
use crate::component::{Settings, Value};
use crate::gc::Force;
use crate::units::Time;

/// Four SSDs with one pool each. `free` has their numbers of free blocks. T_hard is 5 blocks, T_soft 8 and T_stop 6;
/// the reserve is 15 blocks.
struct Four {
    free: [u32; 4],
    views: Vec<MemberView>,
    erases: u32,
    sent: Vec<String>,
}

/// Returns the settings of the test vectors: T_idle = 10 ms, T_chk = 1 ms.
fn settings() -> Settings {
    let of = |key, n| (key, Value::Number(n));
    Settings::new(vec![of("idle_ms", 10), of("idle_check_us", 1_000)])
}

const NAMES: [char; 4] = ['A', 'B', 'C', 'D'];

impl Four {
    fn new(free: [u32; 4]) -> Four {
        let view = |&lowest: &u32| MemberView {
            soft: 8,
            hard: 5,
            stop: 6,
            idle_until: 15,
            lowest,
            ordered: false,
        };
        Four {
            free,
            views: free.iter().map(view).collect(),
            erases: 0,
            sent: Vec::new(),
        }
    }

    /// Lowers the number of free blocks of a member to `free`, and notifies the scheme.
    fn fall(&mut self, scheme: &mut dyn Coordinate, member: usize, free: u32) {
        self.free[member] = free;
        self.views[member].lowest = free;
        let mut out = Vec::new();
        scheme.on_low_free_blocks(Time::ZERO, &self.views, member, &mut out);
        self.carry_out(&out);
    }

    fn carry_out(&mut self, out: &[Message]) {
        for message in out {
            let text = match *message {
                Message::Participate { from } => format!("{} PARTICIPATE_GGC", NAMES[from]),
                Message::Request { from } => format!("{} REQUEST_GGC", NAMES[from]),
                Message::Cancel { to } => format!("cancel {}", NAMES[to]),
                Message::Force { to, force } => {
                    let mut once = force.once;
                    while !force.yields && (once || self.free[to] <= force.until) {
                        self.free[to] += 1;
                        self.erases += 1;
                        once = false;
                    }
                    self.views[to].ordered = true;
                    format!("FORCE_GC {}", NAMES[to])
                }
            };
            self.sent.push(text);
        }
    }

    fn finish(&mut self, scheme: &mut dyn Coordinate) {
        let ordered: Vec<usize> = (0..4).filter(|&m| self.views[m].ordered).collect();
        for member in ordered {
            self.views[member].ordered = false;
            scheme.finished(&self.views, member, &mut Vec::new());
        }
    }
}

/// Members A, B, C and D have 12, 8, 6 and 20 free blocks. Then a write to C takes one of its free blocks.
#[test]
fn vector_ggc_1_selective() {
    let mut four = Four::new([12, 8, 6, 20]);
    let mut rs = Selective::new(4, &settings());
    four.fall(&mut rs, 1, 8);
    four.fall(&mut rs, 2, 6);
    assert_eq!(rs.registered().collect::<Vec<_>>(), [1, 2]);
    four.sent.clear();
    four.fall(&mut rs, 2, 5);
    assert_eq!(four.sent, ["C REQUEST_GGC", "FORCE_GC B", "FORCE_GC C"]);
    assert_eq!((four.free, four.erases), ([12, 9, 7, 20], 3));
    four.finish(&mut rs);
    assert_eq!(rs.registered().count(), 0);
}

#[test]
fn vector_ggc_1_inclusive() {
    let mut four = Four::new([12, 8, 6, 20]);
    let mut ri = Inclusive::default();
    four.fall(&mut ri, 2, 5);
    assert_eq!((four.free, four.erases), ([13, 9, 7, 21], 5));
    // During the round, another member reaches T_hard and collects on its own.
    four.sent.clear();
    four.fall(&mut ri, 1, 5);
    assert!(four.sent.is_empty());
    four.finish(&mut ri);
    four.fall(&mut ri, 1, 5);
    assert_eq!(four.sent.len(), 5);
}

/// Member C is registered with 7 free blocks; the reserve is 15 blocks. T_idle is 10 ms and T_chk 1 ms. The last
/// completion is at 100 ms, so FORCE_GC is sent at 110 ms. A request at 120 ms makes C stop.
#[test]
fn vector_ggc_2_idle() {
    let mut four = Four::new([12, 20, 9, 20]);
    let mut pi = Idle::new(4, &settings());
    four.fall(&mut pi, 2, 7);
    pi.became_idle(Time::from_ms(100));
    assert_eq!(pi.next_check(), Time::from_ms(110));
    four.sent.clear();
    let mut out = Vec::new();
    pi.check(Time::from_ms(110), &four.views, &mut out);
    let until = match out[..] {
        [Message::Force { to: 2, force }] => force.until,
        _ => panic!("{out:?}"),
    };
    assert_eq!(until, 14, "until 15 blocks are free");
    four.carry_out(&out);
    out.clear();
    pi.on_request(&four.views, &mut out);
    assert_eq!(out, [Message::Cancel { to: 2 }]);
    assert_eq!(pi.next_check(), Time::NEVER);
}

/// If no member is registered, no member collects while the array is idle.
#[test]
fn idle_collects_only_registered_members() {
    let four = Four::new([12, 20, 9, 20]);
    let mut pi = Idle::new(4, &settings());
    pi.became_idle(Time::from_us(100_300));
    assert_eq!(pi.next_check(), Time::from_ms(111));
    let mut out = Vec::new();
    pi.check(Time::from_ms(111), &four.views, &mut out);
    assert!(out.is_empty());
}

/// One member collects at a time. Members receive the token in the order of their requests.
#[test]
fn turns_are_taken_one_after_the_other() {
    let mut four = Four::new([9, 9, 9, 9]);
    let mut turns = Turns::default();
    for member in [2, 0, 2, 3] {
        four.fall(&mut turns, member, 8);
    }
    let forced = |four: &Four| -> Vec<String> {
        let sent = four.sent.iter().filter(|text| text.starts_with("FORCE"));
        sent.cloned().collect()
    };
    assert_eq!(forced(&four), ["FORCE_GC C"]);
    for want in ["FORCE_GC A", "FORCE_GC D"] {
        let holder = (0..4).find(|&m| four.views[m].ordered).unwrap();
        four.views[holder].ordered = false;
        let mut out = Vec::new();
        turns.finished(&four.views, holder, &mut out);
        four.carry_out(&out);
        assert_eq!(forced(&four).last().unwrap(), want);
    }
}

/// The controller checks at multiples of its interval. A round consists of the members that have fallen to T_soft.
#[test]
fn the_soft_limit_collects_before_the_hard_limit() {
    let mut four = Four::new([12, 9, 9, 20]);
    let mut soft = SoftLimit::new(4, &settings());
    assert_eq!(soft.next_check(), Time::NEVER);
    let mut out = Vec::new();
    four.views[1].lowest = 8;
    soft.on_low_free_blocks(Time::from_us(2_300), &four.views, 1, &mut out);
    assert_eq!(soft.next_check(), Time::from_ms(3));
    out.clear();
    soft.check(Time::from_ms(3), &four.views, &mut out);
    let force = Force {
        until: 8,
        once: false,
        single: true,
        yields: false,
    };
    assert_eq!(out, [Message::Force { to: 1, force }]);
    assert_eq!(soft.next_check(), Time::NEVER);
}
