//! Page policies: the test vectors of the specification, and vectors derived from the definitions in the papers. Each
//! policy is compared with a naive implementation, with and without GCaR. MIN is compared with the best of all possible
//! choices of victims.

use super::harness::{compare, on, Case, On};
use super::page_naive::{
    most_hits, AdLru, Arc, CcfLru, Lirs, OneList, Ring, Rule, S3Fifo, Sieve, TwoQ,
};
use flashtwin::buffer::untimed::UntimedBuffer;
use flashtwin::buffer::{min, Setup};
use flashtwin::stepping::Traceable;
use flashtwin::{Lpn, Rng};

#[test]
fn wsr_1() {
    on("lru-wsr", 3).check(
        "
        W1 R2 W3 | miss        | 3d0 2c0 1d0
        W4       | miss, ev 2c | 4d0 1d1 3d0
        W5       | miss, ev 1d | 5d0 3d1 4d0
        W6       | miss, ev 3d | 6d0 4d1 5d0
    ",
    );
}

#[test]
fn lru_wsr_evicts_a_clean_page_whatever_its_flag_and_a_hit_clears_the_flag() {
    on("lru-wsr", 3).check(
        "
        W1 W2 W3 | miss        | 3d0 2d0 1d0
        R4       | miss, ev 1d | 4c0 3d1 2d1
        R2       | hit         | 2d0 4c0 3d1
        R5       | miss, ev 3d | 5c0 2d0 4c0
        R6       | miss, ev 4c | 6c0 5c0 2d0
    ",
    );
}

#[test]
fn ccf_1() {
    on("ccf-lru", 3).check(
        "
        W1 W1 R2 R2 W3 W3 | hit         | ML[3d0 2c0 1d0] CCL[]
        W4                | miss, ev 1d | ML[4d1 3d1] CCL[2c1]
    ",
    );
}

#[test]
fn ccf_2() {
    on("ccf-lru", 3).check(
        "
        W1 R2 R2 R3 | miss        | ML[2c0 1d1] CCL[3c1]
        W4          | miss, ev 3c | ML[4d1 2c0 1d1] CCL[]
        W5          | miss, ev 1d | ML[5d1 4d1 2c0] CCL[]
        R6          | miss, ev 4d | ML[5d1] CCL[6c1 2c1]
    ",
    );
}

#[test]
fn ad_1() {
    let ad_lru = On {
        set: &[("min_lc", "1")],
        ..on("ad-lru", 4)
    };
    ad_lru.check(
        "
        W1 R2 W3 W1 R4 | miss        | Lc[4c0 3d0 2c0] Lh[1d0]
        W5             | miss, ev 2c | Lc[5d0 4c0 3d0] Lh[1d0]
        W6             | miss, ev 4c | Lc[6d0 5d0 3d0] Lh[1d0]
        W7             | miss, ev 3d | Lc[7d0 6d1 5d1] Lh[1d0]
    ",
    );
}

#[test]
fn ad_lru_takes_from_lh_when_lc_is_at_its_least() {
    let ad_lru = On {
        set: &[("min_lc", "2")],
        ..on("ad-lru", 4)
    };
    ad_lru.check(
        "
        W1 R2 W1 R2 W3 W4 | miss        | Lc[4d0 3d0] Lh[2c0 1d0]
        W5                | miss, ev 2c | Lc[5d0 4d0 3d0] Lh[1d0]
        R6                | miss, ev 3d | Lc[6c0 5d1 4d1] Lh[1d0]
    ",
    );
}

#[test]
fn fifo_is_not_moved_by_hits() {
    on("fifo", 3).check(
        "
        W1 R2 W3 | miss        | 3d 2c 1d
        R1       | hit         | 3d 2c 1d
        W4       | miss, ev 1d | 4d 3d 2c
        R1       | miss, ev 2c | 1c 4d 3d
    ",
    );
}

#[test]
fn clock_passes_once_over_a_referenced_page() {
    let clock = on("clock", 3);
    clock.check(
        "
        W1 R2 W3    | miss        | 3d0 2c0 1d0
        R1          | hit         | 3d0 2c0 1d1
        W4          | miss, ev 2c | 4d0 1d0 3d0
        R3          | hit         | 4d0 1d0 3d1
        R5          | miss, ev 1d | 5c0 3d0 4d0
        R4 R3 R5    | hit         | 5c1 3d1 4d1
        W6          | miss, ev 4d | 6d0 5c0 3d0
    ",
    );
    let steps = clock.steps("W1 W2 W3 R1 R2 R3 W4");
    let round = &steps.last().unwrap().evictions[0];
    assert_eq!(round.inspected, 4, "three second chances and the victim");
}

#[test]
fn gcar_clock_leaves_skipped_pages_their_place_and_bit() {
    let clock = On {
        chips: 2,
        ..on("gcar-clock", 4)
    };
    clock.check(
        "
        W1 W2 R3 W4 R1 R2 | hit         | 4d0 3c0 2d1 1d1
        gc+1 W6           | miss, ev 4d | 6d0 2d0 3c0 1d1
        gc-1 W8           | miss, ev 3c | 8d0 1d0 6d0 2d0
    ",
    );
}

#[test]
fn two_q_full_version() {
    let two_q = On {
        set: &[("k_in", "1"), ("k_out", "2")],
        ..on("2q", 4)
    };
    two_q.check(
        "
        W1 R2 W3 R4 | miss        | A1in[4c 3d 2c 1d] Am[] A1out[]
        R2          | hit         | A1in[4c 3d 2c 1d] Am[] A1out[]
        W5          | miss, ev 1d | A1in[5d 4c 3d 2c] Am[] A1out[1]
        R1          | miss, ev 2c | A1in[5d 4c 3d] Am[1c] A1out[2]
        W6          | miss, ev 3d | A1in[6d 5d 4c] Am[1c] A1out[3 2]
        R3          | miss, ev 4c | A1in[6d 5d] Am[3c 1c] A1out[4 2]
        R7          | miss, ev 5d | A1in[7c 6d] Am[3c 1c] A1out[5 4]
        R2          | miss, ev 6d | A1in[2c 7c] Am[3c 1c] A1out[6 5]
        R6          | miss, ev 7c | A1in[2c] Am[6c 3c 1c] A1out[7 5]
        W1          | hit         | A1in[2c] Am[1d 6c 3c] A1out[7 5]
        R5          | miss, ev 3c | A1in[2c] Am[5c 1d 6c] A1out[7]
    ",
    );
}

#[test]
fn arc_every_case_of_figure_4() {
    on("arc", 2).check(
        "
        R1 R2 | miss        | T1[2c 1c] T2[] B1[] B2[] p=0
        R1    | hit         | T1[2c] T2[1c] B1[] B2[] p=0
        R3    | miss, ev 2c | T1[3c] T2[1c] B1[2] B2[] p=0
        R2    | miss, ev 1c | T1[3c] T2[2c] B1[] B2[1] p=1
        W4    | miss, ev 2c | T1[4d 3c] T2[] B1[] B2[2 1] p=1
        R5    | miss, ev 3c | T1[5c 4d] T2[] B1[] B2[2 1] p=1
        R2    | miss, ev 4d | T1[5c] T2[2c] B1[4] B2[1] p=0
        R5    | hit         | T1[] T2[5c 2c] B1[4] B2[1] p=0
        R6    | miss, ev 2c | T1[6c] T2[5c] B1[4] B2[2] p=0
        R7    | miss, ev 6c | T1[7c] T2[5c] B1[6] B2[2] p=0
    ",
    );
}

#[test]
fn arc_p_moves_by_the_ratio_of_the_ghosts() {
    on("arc", 3).check(
        "
        R1 R2 R1 R2 R3 R3 | hit         | T1[] T2[3c 2c 1c] B1[] B2[] p=0
        R4 R5             | miss, ev 4c | T1[5c] T2[3c 2c] B1[4] B2[1] p=0
        R4                | miss, ev 2c | T1[5c] T2[4c 3c] B1[] B2[2 1] p=1
        R6                | miss, ev 3c | T1[6c 5c] T2[4c] B1[] B2[3 2 1] p=1
        R7                | miss, ev 5c | T1[7c 6c] T2[4c] B1[5] B2[3 2] p=1
        R5                | miss, ev 4c | T1[7c 6c] T2[5c] B1[] B2[4 3 2] p=3
    ",
    );
}

#[test]
fn lirs_status_changes() {
    let lirs = On {
        set: &[("hir", "1")],
        ..on("lirs", 3)
    };
    lirs.check(
        "
        R1 R2       | miss        | S[2cL 1cL] Q[]
        W3          | miss        | S[3dH 2cL 1cL] Q[3d]
        R1          | hit         | S[1cL 3dH 2cL] Q[3d]
        R4          | miss, ev 3d | S[4cH 1cL 3 2cL] Q[4c]
        R3          | miss, ev 4c | S[3cL 4 1cL] Q[2c]
        R2          | hit         | S[2cH 3cL 4 1cL] Q[2c]
        R2          | hit         | S[2cL 3cL] Q[1c]
        W5          | miss, ev 1c | S[5dH 2cL 3cL] Q[5d]
        R3          | hit         | S[3cL 5dH 2cL] Q[5d]
        R2          | hit         | S[2cL 3cL] Q[5d]
        R6 R7 R8 R9 | miss, ev 8c | S[9cH 8 7 6 2cL 3cL] Q[9c]
        R10         | miss, ev 9c | S[10cH 9 8 7 2cL 3cL] Q[10c]
    ",
    );
}

/// In the paper, an access to a HIR page that is not in S does not change the page's state. In libCacheSim 0.3.5, such
/// an access turns an LIR page into a HIR page, which evicts a page. This string is the shortest one for which the
/// results differ: in libCacheSim, the last access is a hit.
#[test]
fn lirs_hit_outside_the_stack_evicts_nothing() {
    let lirs = On {
        set: &[("hir", "1")],
        ..on("lirs", 2)
    };
    lirs.check(
        "
        R1 R2 | miss        | S[2cH 1cL] Q[2c]
        R1    | hit         | S[1cL] Q[2c]
        R2    | hit         | S[2cH 1cL] Q[2c]
        R3    | miss, ev 2c | S[3cH 2 1cL] Q[3c]
        R2    | miss, ev 3c | S[2cL] Q[1c]
    ",
    );
}

#[test]
fn s3_fifo_queues() {
    let s3_fifo = On {
        set: &[("small", "1"), ("ghosts", "2")],
        ..on("s3-fifo", 5)
    };
    s3_fifo.check(
        "
        W1 R2 R3 W4 R5 | miss         | S[1d0] M[5c0 4d0 3c0 2c0] G[]
        R1 R1 R2       | hit          | S[1d2] M[5c0 4d0 3c0 2c1] G[]
        W6             | miss, ev 3c  | S[6d0] M[2c0 1d0 5c0 4d0] G[]
        R7             | miss, ev 6d  | S[7c0] M[2c0 1d0 5c0 4d0] G[6]
        W6             | miss, ev 7c  | S[] M[6d0 2c0 1d0 5c0 4d0] G[7]
        R8             | miss, ev 4d  | S[8c0] M[6d0 2c0 1d0 5c0] G[7]
        R8 R9          | miss, ev 8c  | S[9c0] M[6d0 2c0 1d0 5c0] G[8 7]
        R10            | miss, ev 9c  | S[10c0] M[6d0 2c0 1d0 5c0] G[9 8]
        R5 R5 R5 R5    | hit          | S[10c0] M[6d0 2c0 1d0 5c3] G[9 8]
    ",
    );
}

#[test]
fn sieve_hand() {
    on("sieve", 3).check(
        "
        W1 R2 W3 | miss        | 3d0 2c0 1d0 hand[]
        R1       | hit         | 3d0 2c0 1d1 hand[]
        W4       | miss, ev 2c | 4d0 3d0 1d0 hand[3]
        R3       | hit         | 4d0 3d1 1d0 hand[3]
        R5       | miss, ev 4d | 5c0 3d0 1d0 hand[]
        W6       | miss, ev 1d | 6d0 5c0 3d0 hand[3]
    ",
    );
}

/// Returns a function that draws a random number of pages for each key. `keys` has the limit of each number, as a
/// multiple of the capacity.
fn drawn(keys: &'static [(&'static str, u64)]) -> impl Fn(&mut Rng, u32) -> Vec<(String, String)> {
    |rng, capacity| {
        let pages = |rng: &mut Rng, most| rng.below(u64::from(capacity) * most + 1);
        keys.iter()
            .map(|&(key, most)| (key.to_owned(), pages(rng, most).to_string()))
            .collect()
    }
}

fn pages(case: &Case, key: usize) -> usize {
    case.set[key].1.parse().unwrap()
}

#[test]
fn fifo_equals_its_naive_list() {
    for (name, gcar) in [("fifo", false), ("gcar-fifo", true)] {
        compare(name, drawn(&[]), |case| {
            OneList::new(case.capacity, gcar, Rule::Fifo)
        });
    }
}

#[test]
fn clock_equals_a_ring_and_a_list() {
    compare("clock", drawn(&[]), |case| Ring::new(case.capacity));
    compare("gcar-clock", drawn(&[]), |case| {
        OneList::new(case.capacity, true, Rule::Clock)
    });
}

#[test]
fn lru_wsr_equals_its_naive_list() {
    for (name, gcar) in [("lru-wsr", false), ("gcar-lru-wsr", true)] {
        compare(name, drawn(&[]), |case| {
            OneList::new(case.capacity, gcar, Rule::LruWsr)
        });
    }
}

#[test]
fn sieve_equals_its_naive_queue() {
    for (name, gcar) in [("sieve", false), ("gcar-sieve", true)] {
        compare(name, drawn(&[]), |case| Sieve::new(case.capacity, gcar));
    }
}

#[test]
fn ccf_lru_equals_its_naive_lists() {
    for (name, gcar) in [("ccf-lru", false), ("gcar-ccf-lru", true)] {
        compare(name, drawn(&[]), |case| CcfLru::new(case.capacity, gcar));
    }
}

#[test]
fn ad_lru_equals_its_naive_lists() {
    for (name, gcar) in [("ad-lru", false), ("gcar-ad-lru", true)] {
        compare(name, drawn(&[("min_lc", 1)]), |case| {
            AdLru::new(case.capacity, gcar, pages(case, 0))
        });
    }
}

#[test]
fn two_q_equals_its_naive_queues() {
    for (name, gcar) in [("2q", false), ("gcar-2q", true)] {
        compare(name, drawn(&[("k_in", 1), ("k_out", 2)]), |case| {
            TwoQ::new(case.capacity, gcar, pages(case, 0), pages(case, 1))
        });
    }
}

#[test]
fn arc_equals_its_published_cases() {
    for (name, gcar) in [("arc", false), ("gcar-arc", true)] {
        compare(name, drawn(&[]), |case| Arc::new(case.capacity, gcar));
    }
}

#[test]
fn lirs_equals_its_naive_stack() {
    for (name, gcar) in [("lirs", false), ("gcar-lirs", true)] {
        compare(name, drawn(&[("hir", 1)]), |case| {
            Lirs::new(case.capacity, gcar, pages(case, 0) as u32)
        });
    }
}

#[test]
fn s3_fifo_equals_its_published_queues() {
    for (name, gcar) in [("s3-fifo", false), ("gcar-s3-fifo", true)] {
        compare(name, drawn(&[("small", 1), ("ghosts", 2)]), |case| {
            S3Fifo::new(case.capacity, gcar, pages(case, 0), pages(case, 1))
        });
    }
}

/// Returns the policy with this name, and the setup of a buffer of `capacity` pages for the policy.
fn device(policy: &str, capacity: u32) -> (flashtwin::buffer::ChosenPolicy, Setup) {
    let device = Traceable {
        policy,
        capacity,
        set: &[],
        chips: 1,
        stride_pages: 1,
        pages_per_block: 4,
    };
    let device = device.device().unwrap();
    let setup = Setup::of(&device);
    (device.buffer.unwrap().policy, setup)
}

#[test]
fn min_equals_the_best_of_all_choices() {
    for seed in flashtwin::seeds(3) {
        let mut rng = Rng::new(seed);
        for _ in 0..2_000 {
            let accesses: Vec<u32> = (0..rng.below(13)).map(|_| rng.below(6) as u32).collect();
            let pages: Vec<Lpn> = accesses.iter().map(|&lpn| Lpn(lpn)).collect();
            for capacity in 0..5 {
                let best = match capacity {
                    0 => 0,
                    _ => most_hits(&accesses, &[], capacity),
                };
                let found = min::hits(&pages, capacity as u32);
                assert_eq!(found, best, "{accesses:?} in {capacity} pages");
            }
        }
    }
}

/// Belady's example: with 3 pages, the string `1 2 3 4 1 2 5 1 2 3 4 5` has 7 misses.
#[test]
fn min_on_the_textbook_string() {
    let accesses = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5].map(Lpn);
    assert_eq!(min::hits(&accesses, 3), 5);
    assert_eq!(min::hits(&accesses, 5), 7);
    assert_eq!(min::hits(&[], 3), 0);
}

#[test]
fn no_policy_beats_min() {
    for seed in flashtwin::seeds(3) {
        let mut rng = Rng::new(seed);
        for _ in 0..100 {
            let capacity = 1 + rng.below(30) as u32;
            let accesses: Vec<(Lpn, bool)> = (0..2_000)
                .map(|_| {
                    // Half of the accesses go to a tenth of the pages.
                    let pages = if rng.below(2) == 0 { 9 } else { 90 };
                    (Lpn(rng.below(pages) as u32), rng.below(3) == 0)
                })
                .collect();
            let pages: Vec<Lpn> = accesses.iter().map(|access| access.0).collect();
            let most = min::hits(&pages, capacity);
            for name in [
                "lru",
                "lru-wsr",
                "ccf-lru",
                "ad-lru",
                "fifo",
                "clock",
                "2q",
                "arc",
                "lirs",
                "s3-fifo",
                "sieve",
                "clock-pro",
                "w-tinylfu",
            ] {
                let (policy, setup) = device(name, capacity);
                let mut buffer = UntimedBuffer::new(&policy, &setup, 0);
                let mut hits = 0;
                for (i, &(lpn, write)) in accesses.iter().enumerate() {
                    hits += u64::from(buffer.access(lpn, write, i as u64, 1).hit);
                }
                assert!(hits <= most, "{name}: {hits} of {most}");
            }
        }
    }
}
