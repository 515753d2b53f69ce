//! ECR, Co-Active and CDA-GC: test vectors and identities.

use super::harness::{on, random_accesses, On};
use flashtwin::buffer::trace::Step;

const ECR: On<'static> = On {
    policy: "ecr",
    capacity: 4,
    set: &[],
    chips: 4,
    stride_pages: 1,
    pages_per_block: 4,
};

#[test]
fn ecr_3() {
    ECR.check(
        "
        drain0=300 drain3=900 W4 W8 W5 W7 | miss        | Clean[] D0[8 4] D1[5] D3[7]
        R6                                | miss, ev 5d | Clean[6] D0[8 4] D3[7]
        W11                               | miss, ev 6c | Clean[] D0[8 4] D3[11 7]
        drain1=500 W10                    | miss, ev 4d | Clean[] D0[8] D2[10] D3[11 7]
        W9                                | miss, ev 10d | Clean[] D0[8] D1[9] D3[11 7]
    ",
    );
}

#[test]
fn ecr_4_ties() {
    let on = |tie: &'static [(&str, &str)]| On {
        capacity: 3,
        set: tie,
        ..ECR
    };
    let oldest = "
        W7 W1 W2 | miss        | -
        W0       | miss, ev 7d | Clean[] D0[0] D1[1] D2[2]
        W3       | miss, ev 1d | Clean[] D0[0] D2[2] D3[3]
    ";
    on(&[]).check(oldest);
    on(&[("tie", "\"oldest\"")]).check(oldest);
    on(&[("tie", "\"lowest\"")]).check(
        "
        W7 W1 W2 | miss        | -
        W0       | miss, ev 1d | Clean[] D0[0] D2[2] D3[7]
        W3       | miss, ev 0d | Clean[] D2[2] D3[3 7]
    ",
    );
    on(&[("tie", "\"round-robin\"")]).check(
        "
        W7 W1 W2 | miss        | -
        W0       | miss, ev 1d | Clean[] D0[0] D2[2] D3[7]
        W3       | miss, ev 2d | Clean[] D0[0] D3[3 7]
        W5       | miss, ev 7d | Clean[] D0[0] D1[5] D3[3]
        W6       | miss, ev 0d | Clean[] D1[5] D2[6] D3[3]
    ",
    );
}

#[test]
fn ecr_epsilon_ranks_clean_pages_by_chip_too() {
    let on = On {
        policy: "ecr-eps",
        ..ECR
    };
    on.check(
        "
        drain0=300 R4 W8 R1 R7 | miss        | L0[8d 4c] L1[1c] L3[7c]
        R4                     | hit         | L0[4c 8d] L1[1c] L3[7c]
        drain3=900 W6          | miss, ev 1c | L0[4c 8d] L2[6d] L3[7c]
        drain2=900 W5          | miss, ev 8d | L0[4c] L1[5d] L2[6d] L3[7c]
    ",
    );
}

#[test]
fn gcar_over_ecr_passes_over_clean_pages_and_chips() {
    let on = On {
        policy: "gcar-ecr",
        ..ECR
    };
    on.check(
        "
        gc+1 R1 R2 W4 W5 | miss        | Clean[2 1] D0[4] D1[5]
        W8               | miss, ev 2c | Clean[1] D0[8 4] D1[5]
        drain0=300 W6    | miss, ev 4d | Clean[1] D0[8] D1[5] D2[6]
        gc-1 W10         | miss, ev 1c | Clean[] D0[8] D1[5] D2[10 6]
    ",
    );
}

#[test]
fn co_active_1() {
    let on = On {
        policy: "co-active",
        chips: 2,
        set: &[("filter", "\"exact\""), ("filter_reset_ms", "1000")],
        ..ECR
    };
    on.check(
        "
        W1 W2 W3 W1 | hit            | CL[] DL[1h 3c 2c]
        idle1       | write back {3} | CL[3] DL[1h 2c]
        W5          | miss           | CL[3] DL[5c 1h 2c]
        W7          | miss, ev 3c    | CL[] DL[7c 5c 1h 2c]
        W9          | miss, ev 2d    | CL[] DL[9c 7c 5c 1h]
    ",
    );
    // A page that is written back moves to CL, at the position of its last access. Reads do not change the hot flag. If
    // all dirty pages are hot, the victim is the last page of DL.
    on.check(
        "
        W1 R2 W3 R4    | miss           | CL[4 2] DL[3c 1c]
        R2             | hit            | CL[2 4] DL[3c 1c]
        idle1          | write back {1,3} | CL[2 4 3 1] DL[]
        W3             | hit            | CL[2 4 1] DL[3h]
        R3             | hit            | CL[2 4 1] DL[3h]
        t+1000 W3      | hit            | CL[2 4 1] DL[3c]
        W3 W2 W2 W4 W4 W1 W1 | hit      | CL[] DL[1h 4h 2h 3h]
        W6             | miss, ev 3d    | CL[] DL[6c 1h 4h 2h]
    ",
    );
}

const STAGER: On<'static> = On {
    policy: "cda-gc-stager",
    chips: 16,
    ..ECR
};

/// All inserted pages are on chips in GC, so that the inserted pages are never victims.
#[test]
fn stg_1_figure_5() {
    let on = On {
        set: &[("test_num", "4"), ("cycle_num", "100")],
        ..STAGER
    };
    on.check(
        "
        gc+5 gc+7 W7 W6 W5 W4 | miss        | 4d 5d 6d 7d
        W21                   | miss, ev 6d | -
        W23                   | miss, ev 4d | -
        W37                   | miss, ev 7d | -
        W39                   | miss, ev 5d | 39d 37d 23d 21d
    ",
    );
}

/// Returns the number of entries inspected in each step.
fn inspected(steps: &[Step]) -> Vec<u64> {
    let evictions = steps.iter().flat_map(|step| &step.evictions);
    evictions.map(|e| e.inspected).collect()
}

#[test]
fn stg_2() {
    let on = On {
        capacity: 6,
        set: &[("test_num", "2"), ("cycle_num", "3")],
        ..STAGER
    };
    on.check(
        "
        gc+1 gc+3 W1x6 | miss        | 6d 5d 4d 3d 2d 1d
        W7             | miss, ev 2d | -
        W8             | miss, ev 4d | -
        W9             | miss, ev 5d | -
        W10            | miss, ev 1d | 10d 9d 8d 7d 6d 3d
        W11            | miss, ev 6d | -
    ",
    );
    let steps = on.steps("gc+1 gc+3 W1x6 W7 W8 W9 W10 W11");
    assert_eq!(inspected(&steps), [2, 2, 1, 2, 1]);
}

#[test]
fn stg_3() {
    let on = On {
        capacity: 5,
        set: &[("test_num", "2"), ("cycle_num", "4")],
        ..STAGER
    };
    on.check(
        "
        gc+1 gc+2 gc+3 W1x5 | miss        | 5d 4d 3d 2d 1d
        W6                  | miss, ev 1d | -
        W7                  | miss, ev 4d | -
        W8                  | miss, ev 5d | -
        W9                  | miss, ev 6d | 9d 8d 7d 3d 2d
        W10                 | miss, ev 2d | -
    ",
    );
}

/// If the entry under the pointer is hit or trimmed, the pointer moves to the next more recent entry. From the most
/// recent entry, the pointer moves to the tail.
#[test]
fn the_pointer_moves_on() {
    let on = On {
        capacity: 5,
        set: &[("test_num", "2"), ("cycle_num", "100")],
        ..STAGER
    };
    let begin = "
        gc+1 gc+2 gc+8 W8 W1 W2 W3 W4 | miss        | 4d 3d 2d 1d 8d
        W5                            | miss, ev 8d | 5d 4d 3d 2d 1d
        W6                            | miss, ev 3d | 6d 5d 4d 2d 1d
    ";
    for end in [
        "R4 W7       | miss, ev 5d | 7d 4d 6d 2d 1d",
        "trim4 W7 W9 | miss, ev 5d | 9d 7d 6d 2d 1d",
        "W7 W9 W10   | miss, ev 6d | 10d 9d 7d 2d 1d
         trim9 trim10 R7 W11 W12 W13 | miss, ev 1d | 13d 12d 11d 7d 2d
         W14         | miss, ev 7d | 14d 13d 12d 11d 2d",
    ] {
        on.check(&format!("{begin}\n{end}"));
    }
}

#[test]
fn dsp_1() {
    let on = On {
        policy: "cda-gc-dispatcher",
        set: &[("filter", "\"exact\""), ("filter_reset_ms", "1000")],
        ..ECR
    };
    on.check(
        "
        W1        | miss | 1d
        W2        | miss | 2d 1d
        W1        | hit  | 1dh 2d
        R2        | hit  | 2d 1dh
        t+1000 W1 | hit  | 1d 2d
        W1        | hit  | 1dh 2d
        W2        | hit  | 2d 1dh
    ",
    );
    // A reset of the filter makes all pages cold. A page that was evicted and is inserted again stays cold until a
    // write finds it in the filter.
    on.check(
        "
        W1 W1 W2         | miss        | 2d 1dh
        t+999 W3         | miss        | 3d 2d 1dh
        t+1 W4           | miss        | 4d 3d 2d 1d
        W1 R5            | miss, ev 2d | -
        R6 R7 R8         | miss, ev 1d | 8c 7c 6c 5c
        R1               | miss, ev 5c | 1c 8c 7c 6c
        W1               | hit         | 1dh 8c 7c 6c
    ",
    );
}

/// With one chip, ECR equals CFLRU-epsilon, and ECR-epsilon equals LRU. The stager equals LRU as long as no chip is
/// near GC. The dispatcher alone always equals LRU.
#[test]
fn identities() {
    for seed in flashtwin::seeds(1) {
        let mut rng = flashtwin::Rng::new(seed);
        for _ in 0..300 {
            let accesses = random_accesses(&mut rng, 300, 40);
            let steps = |policy, chips, set| {
                let on = On {
                    policy,
                    capacity: 12,
                    chips,
                    set,
                    ..on(policy, 12)
                };
                on.steps(&accesses)
            };
            let results = |policy| {
                let steps = steps(policy, 1, &[]);
                steps.iter().map(Step::result).collect::<Vec<_>>()
            };
            assert_eq!(results("ecr"), results("cflru-eps"));
            assert_eq!(results("lcr"), results("cflru-eps"));
            assert_eq!(results("ecr-eps"), results("lru"));
            let lru = steps("lru", 4, &[]);
            let lookups = &[("test_num", "3"), ("cycle_num", "5")];
            assert_eq!(steps("cda-gc-stager", 4, lookups), lru);
            let dispatched = steps("cda-gc-dispatcher", 4, &[]);
            for (a, b) in dispatched.iter().zip(&lru) {
                assert_eq!(a.result(), b.result());
                assert_eq!(a.state.replace('h', ""), b.state);
            }
            assert_eq!(steps("cda-gc", 4, &[]), dispatched);
        }
    }
}

/// A Bloom filter and an exact set of pages give the same results for these accesses. The bitmap of the Bloom filter has
/// 5 % of the buffer's size, in addition to the buffer.
#[test]
fn the_filter_is_nearly_exact() {
    for seed in flashtwin::seeds(2) {
        let mut rng = flashtwin::Rng::new(seed);
        let accesses = random_accesses(&mut rng, 20_000, 4000);
        for policy in ["cda-gc", "co-active"] {
            let with = |set| On {
                set,
                capacity: 64,
                ..on(policy, 64)
            };
            let bloom = with(&[("filter", "\"bloom\"")]).steps(&accesses);
            let exact = with(&[("filter", "\"exact\"")]).steps(&accesses);
            assert_eq!(bloom, exact);
        }
    }
}
