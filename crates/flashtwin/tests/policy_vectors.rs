//! The hand-checked vectors of the specification, in its own notation: operation, result, state
//! (most recent first). Group rows (`W1 R2`) give the state after the last operation.

use flashtwin::buffer::trace::{trace_policy, Step};
use flashtwin::spec::Policy;

fn cflru(window_pages: u32) -> Policy {
    Policy::Cflru { window_pages }
}

fn gcar(base: Policy) -> Policy {
    Policy::Gcar {
        base: Box::new(base),
    }
}

/// Steps the policy through the first column and compares the others; `-` is not compared.
fn check(policy: &Policy, capacity: usize, chips: u32, table: &str) {
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let accesses: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let steps = trace_policy(policy, capacity, chips, &accesses.join(" ")).unwrap();
    let mut done = 0;
    for row in rows {
        done += row[0].split_whitespace().count();
        let step: &Step = &steps[done - 1];
        let got = (step.result(), step.state());
        let expected = |column: usize, got: &str| match row[column] {
            "-" => got.to_owned(),
            text => text.to_owned(),
        };
        assert_eq!(
            got,
            (expected(1, &got.0), expected(2, &got.1)),
            "after {}",
            row[0]
        );
    }
}

#[test]
fn lru_1() {
    check(
        &Policy::Lru,
        3,
        1,
        "
        W1 | miss        | 1d
        R2 | miss        | 2c 1d
        W3 | miss        | 3d 2c 1d
        R1 | hit         | 1d 3d 2c
        W4 | miss, ev 2c | 4d 1d 3d
        R2 | miss, ev 3d | 2c 4d 1d
    ",
    );
}

#[test]
fn cflru_1() {
    check(
        &cflru(2),
        4,
        1,
        "
        W1 R2 W3 W4 | miss        | 4d 3d 2c 1d
        R5          | miss, ev 2c | 5c 4d 3d 1d
        W6          | miss, ev 1d | 6d 5c 4d 3d
        R7          | miss, ev 3d | 7c 6d 5c 4d
    ",
    );
}

#[test]
fn cflru_2() {
    check(
        &cflru(4),
        4,
        1,
        "
        W1 R2 W3 W4 | miss        | 4d 3d 2c 1d
        R5          | miss, ev 2c | -
        W6          | miss, ev 5c | -
        R7          | miss, ev 1d | 7c 6d 4d 3d
    ",
    );
}

#[test]
fn cflru_3_clean_pages_outside_the_window_do_not_count() {
    check(
        &cflru(2),
        4,
        1,
        "
        W1 W2 R3 R4 | miss        | 4c 3c 2d 1d
        W5          | miss, ev 1d | 5d 4c 3c 2d
    ",
    );
}

#[test]
fn gcar_1() {
    check(
        &gcar(Policy::Lru),
        4,
        2,
        "
        W1 W2 R3 W4    | miss        | 4d 3c 2d 1d
        gc+1 W6        | miss, ev 2d | 6d 4d 3c 1d
        R8             | miss, ev 4d | 8c 6d 3c 1d
        gc+0 W10       | miss, ev 1d | 10d 8c 6d 3c
        gc-0 gc-1 W12  | miss, ev 3c | 12d 10d 8c 6d
    ",
    );
    check(
        &Policy::Lru,
        4,
        2,
        "
        W1 W2 R3 W4    | miss        | 4d 3c 2d 1d
        gc+1 W6        | miss, ev 1d | -
        R8             | miss, ev 2d | -
        gc+0 W10       | miss, ev 3c | -
        gc-0 gc-1 W12  | miss, ev 4d | -
    ",
    );
}

#[test]
fn gcar_2_figure_4() {
    // D7 = page 2 and D6 = page 6 are on chip 2, which is in GC; D5 = page 1 is the victim.
    check(
        &gcar(Policy::Lru),
        7,
        4,
        "
        W2 W6 W1 W3 W4 W5 W7 | miss        | 7d 5d 4d 3d 1d 6d 2d
        gc+2 W8              | miss, ev 1d | 8d 7d 5d 4d 3d 6d 2d
    ",
    );
}

#[test]
fn gcar_3_over_cflru() {
    check(
        &gcar(cflru(3)),
        5,
        2,
        "
        gc+1 R1 W2 W3 R4 W6 | miss        | 6d 4c 3d 2d 1c
        W8                  | miss, ev 2d | 8d 6d 4c 3d 1c
        W10                 | miss, ev 4c | 10d 8d 6d 3d 1c
        W12                 | miss, ev 6d | 12d 10d 8d 3d 1c
    ",
    );
    check(
        &cflru(3),
        5,
        2,
        "
        gc+1 R1 W2 W3 R4 W6 | miss        | 6d 4c 3d 2d 1c
        W8                  | miss, ev 1c | -
    ",
    );
}

#[test]
fn a_request_of_several_pages_is_accessed_in_page_order() {
    check(
        &Policy::Lru,
        3,
        1,
        "
        W4x3 | miss               | 6d 5d 4d
        R6   | hit                | 6d 5d 4d
        W7x2 | miss, ev 4d, ev 5d | 8d 7d 6d
    ",
    );
}

#[test]
fn a_token_that_cannot_be_read_is_named_with_its_place() {
    for (token, problem) in [
        ("X1", "not an access"),
        ("W", "\"\" is no number"),
        ("W4x0", "0 pages from page 4"),
        ("gc+7", "chip 7 of 2, counted from 0"),
    ] {
        let error = trace_policy(&Policy::Lru, 2, 2, &format!("W1 {token}")).unwrap_err();
        assert_eq!(
            (error.position, error.token.as_str(), error.problem.as_str()),
            (2, token, problem)
        );
    }
}

/// F1.3: CFLRU with an empty window is LRU; GCaR without GC is its base.
#[test]
fn identities_on_random_strings() {
    let mut rng = flashtwin::Rng::new(17);
    for _ in 0..200 {
        let accesses: Vec<String> = (0..300)
            .map(|_| {
                format!(
                    "{}{}",
                    if rng.below(2) == 0 { 'R' } else { 'W' },
                    rng.below(40)
                )
            })
            .collect();
        let accesses = accesses.join(" ");
        let trace = |policy: &Policy| trace_policy(policy, 12, 4, &accesses).unwrap();
        assert_eq!(trace(&cflru(0)), trace(&Policy::Lru));
        assert_eq!(trace(&gcar(Policy::Lru)), trace(&Policy::Lru));
        assert_eq!(trace(&gcar(cflru(3))), trace(&cflru(3)));
    }
}

/// CFLRU's window lists against the rule as published: scan the window from the least recent end.
#[test]
fn cflru_equals_its_published_scan() {
    let mut rng = flashtwin::Rng::new(23);
    for _ in 0..300 {
        let (capacity, window) = (2 + rng.below(12) as usize, rng.below(14) as u32);
        let accesses: Vec<String> = (0..400)
            .map(|_| {
                format!(
                    "{}{}",
                    if rng.below(2) == 0 { 'R' } else { 'W' },
                    rng.below(24)
                )
            })
            .collect();
        let steps = trace_policy(&cflru(window), capacity, 1, &accesses.join(" ")).unwrap();
        // (page, dirty), most recent first.
        let mut list: Vec<(u32, bool)> = Vec::new();
        for step in &steps {
            let write = step.op.starts_with('W');
            let page: u32 = step.op[1..].parse().unwrap();
            let mut dirty = write;
            if let Some(at) = list.iter().position(|p| p.0 == page) {
                dirty |= list.remove(at).1;
            } else if list.len() == capacity {
                let clean = (0..list.len())
                    .rev()
                    .take(window as usize)
                    .find(|&i| !list[i].1);
                let victim = list.remove(clean.unwrap_or(list.len() - 1));
                assert_eq!(
                    step.evicted
                        .iter()
                        .map(|v| (v.lpn, v.dirty))
                        .collect::<Vec<_>>(),
                    [victim]
                );
            }
            list.insert(0, (page, dirty));
            assert_eq!(
                step.state
                    .iter()
                    .map(|p| (p.lpn, p.dirty))
                    .collect::<Vec<_>>(),
                list
            );
        }
    }
}
