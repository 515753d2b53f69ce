//! Matches two series of timed operations. Operations at the same instant may be in any order.

use flashtwin::Time;

/// An operation with the instant of its beginning. Operations without a duration have a duration of 0.
#[derive(Clone, Debug)]
pub(super) struct Timed<K> {
    /// Properties that must be equal for two operations to match.
    pub key: K,
    pub at: Time,
    pub duration: Time,
    /// Number that error messages show: that of the line in the event log, or that of the operation.
    pub number: u64,
}

/// Operations left after matching, in order of time.
#[derive(Debug)]
pub(super) struct Unmatched<K> {
    pub expected: Vec<Timed<K>>,
    pub got: Vec<Timed<K>>,
}

/// Returns the operations without a match. Two operations match if their keys are equal and their instants and
/// durations differ by at most `tolerance`.
pub(super) fn unmatched<K: Ord + Clone>(
    mut expected: Vec<Timed<K>>,
    mut got: Vec<Timed<K>>,
    tolerance: Time,
) -> Unmatched<K> {
    for list in [&mut expected, &mut got] {
        list.sort_by(|a, b| (&a.key, a.at, a.duration).cmp(&(&b.key, b.at, b.duration)));
    }
    let apart = |a: Time, b: Time| a.0.abs_diff(b.0) > tolerance.0;
    let mut left = Unmatched {
        expected: Vec::new(),
        got: Vec::new(),
    };
    let (mut e, mut g) = (expected.iter().peekable(), got.iter().peekable());
    loop {
        let expected_first = match (e.peek(), g.peek()) {
            (None, None) => break,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(a), Some(b)) if a.key != b.key => a.key < b.key,
            (Some(a), Some(b)) if apart(a.at, b.at) => a.at < b.at,
            (Some(a), Some(b)) if apart(a.duration, b.duration) => a.duration < b.duration,
            (Some(_), Some(_)) => {
                e.next();
                g.next();
                continue;
            }
        };
        if expected_first {
            left.expected.extend(e.next().cloned());
        } else {
            left.got.extend(g.next().cloned());
        }
    }
    left.expected.sort_by_key(|t| t.at);
    left.got.sort_by_key(|t| t.at);
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[(char, u64, u64)]) -> Vec<Timed<char>> {
        let timed = |&(key, at, duration): &(char, u64, u64)| Timed {
            key,
            at: Time::from_ns(at),
            duration: Time::from_ns(duration),
            number: 0,
        };
        items.iter().map(timed).collect()
    }

    fn left(expected: &[(char, u64, u64)], got: &[(char, u64, u64)]) -> (usize, usize) {
        let left = unmatched(list(expected), list(got), Time::from_ns(5));
        (left.expected.len(), left.got.len())
    }

    #[test]
    fn order_within_an_instant_is_free_and_times_may_be_off_by_the_tolerance() {
        assert_eq!(
            left(
                &[('a', 100, 9), ('b', 100, 9)],
                &[('b', 104, 9), ('a', 95, 14)]
            ),
            (0, 0)
        );
        assert_eq!(left(&[('a', 100, 9)], &[('a', 106, 9)]), (1, 1));
        assert_eq!(left(&[('a', 100, 9)], &[('a', 100, 15)]), (1, 1));
        assert_eq!(left(&[('a', 100, 9)], &[('b', 100, 9)]), (1, 1));
    }

    #[test]
    fn one_operation_too_many_or_too_few_does_not_shift_the_others() {
        let full = [('a', 100, 1), ('a', 200, 1), ('a', 300, 1), ('a', 300, 50)];
        assert_eq!(left(&full, &full[1..]), (1, 0));
        assert_eq!(left(&full[..2], &full), (0, 2));
        assert_eq!(left(&[], &full), (0, 4));
    }
}
