//! Policies that rank blocks: test vectors, identities between policies, and comparisons with naive
//! implementations.

use super::block_naive as naive;
use super::harness::{compare, on, Case, On};
use flashtwin::Rng;

#[test]
fn bplru_1_2() {
    let padding = On {
        set: &[("padding", "true")],
        ..on("bplru", 4)
    };
    padding.check(
        "
        W0 | miss                                        | B0{0}
        W5 | miss                                        | B1{5} B0{0}
        W1 | miss                                        | B0{0,1} B1{5}
        W8 | miss                                        | B2{8} B0{0,1} B1{5}
        W9 | miss, ev B1{5}: 3 padding reads, 4 writes   | B2{8,9} B0{0,1}
    ",
    );
    let padding = On {
        set: &[("padding", "true")],
        ..on("bplru", 6)
    };
    padding.check(
        "
        W8 W0 W1 W2 W3 | miss                                            | B2{8} B0{0,1,2,3}
        W9             | miss                                            | B2{8,9} B0{0,1,2,3}
        W12            | miss, ev B0{0,1,2,3}: 0 padding reads, 4 writes | B3{12} B2{8,9}
    ",
    );
}

#[test]
fn bplru_without_compensation_keeps_a_whole_block() {
    let plain = On {
        set: &[("compensation", "false")],
        ..on("bplru", 6)
    };
    plain.check(
        "
        W8 W0 W1 W2 W3 W9 | miss             | B2{8,9} B0{0,1,2,3}
        R0                | hit              | B0{0,1,2,3} B2{8,9}
        W12               | miss, ev B2{8,9} | B3{12} B0{0,1,2,3}
    ",
    );
}

/// Decision D-6: in a shared buffer, a page that is read joins its block, and the block becomes the most recent one. In
/// a write buffer, the page does not join, and the order of blocks stays the same.
#[test]
fn bplru_reads() {
    on("bplru", 4).check(
        "
        W0 R4 W1 W8 | miss           | B2{8} B0{0,1} B1{4}
        R4          | hit            | B1{4} B2{8} B0{0,1}
        R12         | miss, ev B0{0,1} | B3{12} B1{4} B2{8}
    ",
    );
    let write_buffer = On {
        set: &[("cache_reads", "false"), ("padding", "true")],
        ..on("bplru", 2)
    };
    write_buffer.check(
        "
        W0 W4 R8 | miss | B1{4} B0{0}
        R0       | hit  | B1{4} B0{0}
        W8       | miss, ev B0{0}: 3 padding reads, 4 writes | B2{8} B1{4}
    ",
    );
    // A block without a dirty page is not padded. If a block has a dirty page, its clean cached pages need no padding
    // read.
    let shared = On {
        set: &[("padding", "true")],
        ..on("bplru", 3)
    };
    shared.check(
        "
        R0 R1 W4 W8 | miss, ev B0{0,1}                          | B2{8} B1{4}
        R5          | miss                                      | B1{4,5} B2{8}
        W9          | miss, ev B1{4,5}: 2 padding reads, 4 writes | B2{8,9}
    ",
    );
}

/// Decision D-209: with `room = "whole"`, two blocks of four pages fill a buffer of eight pages, even if few of their
/// pages are cached.
#[test]
fn blocks_with_whole_room() {
    let whole = |policy, capacity| On {
        set: &[("room", "whole")],
        ..on(policy, capacity)
    };
    whole("bplru", 8).check(
        "
        W0 W4 W1 | miss             | B0{0,1} B1{4}
        W8       | miss, ev B1{4}   | B2{8} B0{0,1}
        W9 W2    | miss             | B0{0,1,2} B2{8,9}
        W12      | miss, ev B2{8,9} | B3{12} B0{0,1,2}
    ",
    );
    whole("fab", 8).check(
        "
        W0 W4 W1 | miss             | B0{0,1} B1{4}
        W8       | miss, ev B0{0,1} | B2{8} B1{4}
    ",
    );
    // If a block is larger than the buffer, the buffer holds only this block.
    whole("bplru", 2).check(
        "
        W0 W1 | miss             | B0{0,1}
        W4    | miss, ev B0{0,1} | B1{4}
    ",
    );
    let bpac = On {
        set: &[
            ("room", "whole"),
            ("adapt", "false"),
            ("l_p", "2"),
            ("age", "2"),
        ],
        ..on("bpac", 8)
    };
    bpac.check(
        "
        W0 W4 W8 W12 | miss           | P[12 8] K[B1{4}age0 B0{0}age1]
        W16          | miss, ev B0{0} | P[16 12] K[B2{8}age0 B1{4}age1]
    ",
    );
}

#[test]
fn fab_1() {
    on("fab", 5).check(
        "
        W0 W4 W8 W9 W5 | miss             | B1{4,5} B2{8,9} B0{0}
        W12            | miss, ev B2{8,9} | -
        W13            | miss             | B3{12,13} B1{4,5} B0{0}
    ",
    );
}

#[test]
fn bpacr_1() {
    let fixed = On {
        set: &[("adapt", "false"), ("l_p", "2"), ("age", "2")],
        ..on("bpac", 6)
    };
    fixed.check(
        "
        W0 W4 W5 W8 W1 W12 | miss           | P[12 1] K[B2{8}age0 B1{4,5}age1 B0{0}age3]
        W5                 | hit            | P[5 12] K[B0{0,1}age0 B2{8}age1 B1{4}age2]
        W16                | miss, ev B1{4} | P[16 5] K[B3{12}age0 B0{0,1}age1 B2{8}age2]
        W20                | miss, ev B2{8} | P[20 16] K[B1{5}age0 B3{12}age1 B0{0,1}age2]
    ",
    );
}

#[test]
fn lbc_1() {
    on("lb-clock", 5).check(
        "
        W0 W4 W8 W9 W5 | miss             | B0r0{0} B1r1{4,5} B2r1{8,9}
        W12            | miss, ev B0{0}   | B1r1{4,5} B2r1{8,9} B3r0{12}
        W1             | miss, ev B1{4,5} | B3r0{12} B2r0{8,9} B0r0{1}
        W13            | miss             | B3r1{12,13} B2r0{8,9} B0r0{1}
        W16            | miss, ev B2{8,9} | B0r0{1} B3r0{12,13} B4r0{16}
    ",
    );
}

#[test]
fn pud_1() {
    on("pud-lru", 5).check(
        "
        W0 W1 W4 W0 W8 W0 W9 | miss           | B2{8,9} B0{0,1} B1{4}
        W12                  | miss, ev B1{4} | B3{12} B2{8,9} B0{0,1}
    ",
    );
}

#[test]
fn gcar_4_over_bplru() {
    let gcar = On {
        chips: 2,
        stride_pages: 4,
        ..on("gcar-bplru", 4)
    };
    gcar.check(
        "
        gc+1 W4 W0 W1 W12 | miss             | B3{12} B0{0,1} B1{4}
        W8                | miss, ev B0{0,1} | B2{8} B3{12} B1{4}
    ",
    );
    let plain = On {
        policy: "bplru",
        ..gcar
    };
    plain.check(
        "
        gc+1 W4 W0 W1 W12 | miss           | B3{12} B0{0,1} B1{4}
        W8                | miss, ev B1{4} | B2{8} B3{12} B0{0,1}
    ",
    );
}

/// Decision D-13: two of the three cached pages of block 0 are on a chip in GC. The rule `block_in_gc` determines
/// whether GCaR skips this block.
#[test]
fn gcar_takes_a_host_block_to_be_in_gc_by_its_pages() {
    for (rule, victim) in [
        ("any", "ev B1{5}"),
        ("majority", "ev B1{5}"),
        ("all", "ev B0{0,1,2}"),
    ] {
        let set = [("blocks", "host"), ("block_in_gc", rule)];
        let gcar = On {
            chips: 2,
            set: &set,
            ..on("gcar-bplru", 4)
        };
        gcar.check(&format!(
            "gc+0 W0 W1 W2 W5 | miss | B1{{5}} B0{{0,1,2}}\nW9 | miss, {victim} | -"
        ));
    }
}

#[test]
fn cbm_1() {
    let cbm = On {
        set: &[("read_cache", "4"), ("theta", "0.5")],
        ..on("cbm", 8)
    };
    cbm.check(
        "
        W0 W4   | miss | PR[4 0] BR[] THR=2 RC[]
        W5      | miss | PR[0] BR[B1 pop2 {4,5}] THR=2 RC[]
        W8      | miss | PR[8 0] BR[B1 pop2 {4,5}] THR=2 RC[]
        R6      | miss | PR[8 0] BR[B1 pop2 {4,5}] THR=2 RC[6]
        W8      | hit  | PR[8 0] BR[B1 pop2 {4,5}] THR=2 RC[6]
        W12 W13 | miss | PR[8 0] BR[B3 pop2 {12,13}, B1 pop2 {4,5}] THR=2 RC[6]
        W16 W20 | miss | PR[20 16 8 0] BR[B3 pop2 {12,13}, B1 pop2 {4,5}] THR=2 RC[6]
        W24     | miss, ev B1{4,5}: write {4,5,6} | PR[24 20 16 8 0] BR[B3 pop2 {12,13}] THR=2 RC[6]
    ",
    );
}

#[test]
fn cbm_2() {
    let cbm = On {
        set: &[("read_cache", "8"), ("theta", "1.0")],
        ..on("cbm", 6)
    };
    cbm.check(
        "
        W0x2 W0 W4x3 | miss               | PR[] BR[B0 pop2 {0,1}, B1 pop1 {4,5,6}] THR=2 RC[]
        R2 R3 W8     | miss               | PR[8] BR[B0 pop2 {0,1}, B1 pop1 {4,5,6}] THR=2 RC[3 2]
        W12          | miss, ev B1{4,5,6} | PR[12 8] BR[B0 pop2 {0,1}] THR=2 RC[3 2]
        W16 W20      | miss               | PR[20 16 12 8] BR[B0 pop2 {0,1}] THR=2 RC[3 2]
        W24          | miss, ev B0{0,1}   | PR[24 20 16 12 8] BR[] THR=2 RC[3 2]
    ",
    );
}

#[test]
fn cbm_3_both_floors() {
    let one = On {
        set: &[("read_cache", "4"), ("theta", "0.5")],
        ..on("cbm", 4)
    };
    one.check(
        "
        W0 W4 W8 W12 | miss            | PR[12 8 4 0] BR[] THR=2 RC[]
        W16          | miss, ev B0{0}  | PR[12 8 4] BR[B4 pop1 {16}] THR=1 RC[]
        W20          | miss, ev B4{16} | PR[12 8 4] BR[B5 pop1 {20}] THR=1 RC[]
    ",
    );
    let two = On {
        set: &[
            ("read_cache", "4"),
            ("theta", "0.5"),
            ("threshold_floor", "2"),
        ],
        ..one
    };
    two.check(
        "
        W0 W4 W8 W12 | miss           | PR[12 8 4 0] BR[] THR=2 RC[]
        W16          | miss, ev B0{0} | PR[16 12 8 4] BR[] THR=2 RC[]
        W20          | miss, ev B1{4} | PR[20 16 12 8] BR[] THR=2 RC[]
    ",
    );
}

/// When page 24 is written, the threshold is 4 and the block region is empty. The threshold is therefore halved to 2.
/// Block 1 has two pages, which is enough for the new threshold.
#[test]
fn cbm_migrates_blocks_when_the_threshold_falls() {
    let write = On {
        set: &[("read_cache", "4"), ("theta", "0.5")],
        ..on("cbm", 6)
    };
    let begin = "
        W0 W1 W2 W3 | miss                | PR[] BR[B0 pop4 {0,1,2,3}] THR=4 RC[]
        W8 W4 W5    | miss, ev B0{0,1,2,3} | PR[5 4 8] BR[] THR=4 RC[]
        W12 W16 W20 | miss                | PR[20 16 12 5 4 8] BR[] THR=4 RC[]";
    write.check(&format!(
        "{begin}
        W24 | miss, ev B2{{8}}   | PR[24 20 16 12 5 4] BR[] THR=2 RC[]
        W4  | hit              | PR[4 24 20 16 12 5] BR[] THR=2 RC[]
        W6  | miss, ev B3{{12}}  | PR[24 20 16] BR[B1 pop4 {{4,5,6}}] THR=1 RC[]"
    ));
    let scan = On {
        set: &[
            ("read_cache", "4"),
            ("theta", "0.5"),
            ("migrate", "\"scan\""),
        ],
        ..write
    };
    scan.check(&format!(
        "{begin}
        W24 | miss, ev B2{{8}}   | PR[24 20 16 12] BR[B1 pop2 {{4,5}}] THR=2 RC[]
        W28 | miss, ev B1{{4,5}} | PR[28 24 20 16 12] BR[] THR=2 RC[]"
    ));
}

/// While blocks take no more than their share of the buffer, CBM evicts pages of the page region. When they take more,
/// CBM evicts the tail of the block list.
#[test]
fn cbm_with_a_share_for_blocks() {
    let half = On {
        set: &[("theta", "1"), ("block_share", "0.5")],
        ..on("cbm", 6)
    };
    half.check(
        "
        W0 W1 W8 W12 W16 W20 | miss              | PR[20 16 12 8] BR[B0 pop2 {0,1}] THR=2 RC[]
        W24                  | miss, ev B2{8}    | PR[24 20 16 12] BR[B0 pop2 {0,1}] THR=2 RC[]
        W25                  | miss, ev B3{12}   | PR[20 16] BR[B6 pop2 {24,25}, B0 pop2 {0,1}] THR=2 RC[]
        W28                  | miss, ev B0{0,1}  | PR[28 20 16] BR[B6 pop2 {24,25}] THR=2 RC[]
    ",
    );
}

/// CBM looks up the node of a block when an access arrives (CBM III.C). Therefore, the popularity of the block is kept
/// even if the access removes the block's last page. This happens in two cases: the access takes the page over from the
/// read cache, or it evicts the block to make room.
#[test]
fn cbm_keeps_the_popularity_of_a_block_that_an_access_empties() {
    let cbm = On {
        set: &[("read_cache", "4"), ("theta", "1")],
        ..on("cbm", 4)
    };
    cbm.check(
        "
        R0 W1 W1 W1 W8 W12 W16 | miss           | PR[16 12 8 1] BR[] THR=2 RC[0]
        W20                    | miss, ev B0{1} | PR[16 12 8] BR[B5 pop1 {20}] THR=1 RC[0]
        W0                     | miss, ev B5{20} | PR[16 12 8] BR[B0 pop4 {0}] THR=1 RC[]
        W2                     | miss, ev B2{8} | PR[16 12] BR[B0 pop5 {0,2}] THR=1 RC[]
    ",
    );
    let own = On {
        set: &[("read_cache", "1"), ("threshold", "1")],
        ..on("cbm", 2)
    };
    own.check(
        "
        W0 W1 | miss             | PR[] BR[B0 pop2 {0,1}] THR=1 RC[]
        W2    | miss, ev B0{0,1} | PR[] BR[B0 pop3 {2}] THR=1 RC[]
    ",
    );
    // The last page of block 0 is removed from the read cache three times: by an access to another page of block 0,
    // by an access to a page of block 2, and by a trim.
    let read = On {
        set: &[("read_cache", "1"), ("threshold", "1")],
        ..on("cbm", 1)
    };
    read.check(
        "
        R0 W1 W1 W8 R2 | miss, ev 0c | PR[] BR[B2 pop1 {8}] THR=1 RC[2]
        W3             | miss, ev B2{8} | PR[] BR[B0 pop3 {3}] THR=1 RC[2]
        W8 R12 W1      | miss, ev B2{8} | PR[] BR[B0 pop1 {1}] THR=1 RC[12]
        R0 W8 trim0 W2 | miss, ev B2{8} | PR[] BR[B0 pop1 {2}] THR=1 RC[]
    ",
    );
}

/// Decision D-160: the block that is being written is evicted last. In this test, it is evicted last although its chip
/// is the only one that does not collect.
#[test]
fn gcar_lets_the_block_being_written_leave_last() {
    let bplru = On {
        chips: 2,
        pages_per_block: 2,
        ..on("gcar-bplru", 4)
    };
    bplru.check(
        "
        W1 W3 W5 W0 gc+1 | -              | B0{0} B3{5} B1{1,3}
        W2               | miss, ev B1{1,3} | B3{5} B0{0,2}
    ",
    );
    // If the block being written is the only one in the buffer, it is evicted, as without GCaR.
    let alone = On {
        capacity: 2,
        ..bplru
    };
    let alone = On {
        pages_per_block: 4,
        ..alone
    };
    alone.check("W0 W2 gc+1 | - | B0{0,2}\nW4 | miss, ev B0{0,2} | B0{4}");
    let cbm = On {
        policy: "gcar-cbm",
        set: &[("blocks", "element"), ("threshold", "1")],
        ..bplru
    };
    cbm.check(
        "
        W1 W3 W5 W0 gc+1 | -            | -
        W2               | miss, ev B3{5} | -
    ",
    );
    let req_block = On {
        policy: "gcar-req-block",
        set: &[],
        stride_pages: 4,
        ..bplru
    };
    req_block.check(
        "
        W4 W5 gc+1 | -           | IRL[{5}x1 {4}x1] DRL[] SRL[]
        W0x3       | miss, ev 4d | IRL[{0,1,2}x1 {5}x1] DRL[] SRL[]
    ",
    );
}

/// Predicted distances are quotients. 6 / 3 equals 2 / 1, and 12 / 9 equals 4 / 3, although thirds have no exact binary
/// representation.
#[test]
fn pud_lru_takes_equal_distances_to_be_equal() {
    on("pud-lru", 3).check(
        "
        W0 W0 W0 W8 W4 W8 | - | B2{8} B1{4} B0{0}
        W12               | miss, ev B0{0} | -
    ",
    );
    on("pud-lru", 3).check(
        "
        W0 W1 W0 W1 W0 W1 W0 W1 W4 W4 W4 W0 | - | B0{0,1} B1{4}
        W8                                  | miss, ev B0{0,1} | -
    ",
    );
}

/// A test vector for Req-block that is not from the paper. It has small and large requests, and a request block that is
/// divided. The victim is evicted together with the block from which it was divided.
#[test]
fn req_block_sifts_requests() {
    let req_block = On {
        set: &[("small_request", "2")],
        ..on("req-block", 8)
    };
    req_block.check(
        "
        W0x4 W8x2 | miss                    | IRL[{8,9}x1 {0,1,2,3}x1] DRL[] SRL[]
        W9        | hit                     | IRL[{0,1,2,3}x1] DRL[] SRL[{8,9}x2]
        R1x2      | hit                     | IRL[{0,3}x2] DRL[{1,2}x1] SRL[{8,9}x2]
        W20x2     | miss                    | IRL[{20,21}x1 {0,3}x2] DRL[{1,2}x1] SRL[{8,9}x2]
        W9 W9 W9 W9 W9 | hit               | IRL[{20,21}x1 {0,3}x2] DRL[{1,2}x1] SRL[{8,9}x7]
        W24       | miss, ev 0d 1d 2d 3d    | IRL[{24}x1 {20,21}x1] DRL[] SRL[{8,9}x7]
    ",
    );
}

/// If the threshold THR equals the number of pages of a block and no block is ever complete, the block region of CBM
/// stays empty. The victim is then the least recent page, together with all other pages of its block.
#[test]
fn cbm_without_sequential_writes_is_lru_by_block() {
    for seed in flashtwin::seeds(3) {
        let mut rng = Rng::new(seed);
        for _ in 0..200 {
            let accesses: Vec<u32> = (0..300)
                .map(|_| rng.below(12) as u32 * 4 + rng.below(3) as u32)
                .collect();
            let text: Vec<String> = accesses.iter().map(|page| format!("W{page}")).collect();
            let cbm = On {
                set: &[("threshold", "4"), ("blocks", "host")],
                ..on("cbm", 12)
            };
            let mut lru: Vec<u32> = Vec::new();
            for (step, &page) in cbm.steps(&text.join(" ")).iter().zip(&accesses) {
                assert!(step.state.contains("BR[]"), "{}", step.state);
                let mut evicted: Vec<u32> = Vec::new();
                if let Some(i) = lru.iter().position(|&p| p == page) {
                    lru.remove(i);
                } else if lru.len() == 12 {
                    let oldest = lru.iter().rev().find(|&&p| p / 4 != page / 4);
                    let block = oldest.expect("a block holds three pages at most") / 4;
                    evicted = lru.iter().copied().filter(|p| p / 4 == block).collect();
                    evicted.sort();
                    lru.retain(|p| p / 4 != block);
                }
                lru.insert(0, page);
                let found: Vec<u32> = step.evicted().iter().map(|p| p.lpn).collect();
                assert_eq!(found, evicted, "{}", text.join(" "));
            }
        }
    }
}

type Set = Vec<(String, String)>;

/// Draws a value for each key.
fn draw(rng: &mut Rng, choices: &[(&str, &[&str])]) -> Set {
    let mut set = Set::new();
    for (key, values) in choices {
        let value = values[rng.below(values.len() as u64) as usize];
        set.push(((*key).into(), value.into()));
    }
    set
}

const BLOCKS: (&str, &[&str]) = ("blocks", &["host", "element"]);
const IN_GC: (&str, &[&str]) = ("block_in_gc", &["any", "all", "majority"]);
const READS: (&str, &[&str]) = ("cache_reads", &["true", "false"]);
const ROOM: (&str, &[&str]) = ("room", &["pages", "whole"]);
const FLAG: &[&str] = &["true", "false"];

/// Adds a read cache of random size if the buffer is a write buffer.
fn read_cache(rng: &mut Rng, mut set: Set) -> Set {
    if set
        .iter()
        .any(|(key, value)| key == "cache_reads" && value == "false")
    {
        set.push(("read_cache".into(), rng.below(6).to_string()));
    }
    set
}

fn differ<R: naive::Rule>(
    policy: &str,
    gcar: bool,
    choices: &[(&'static str, &'static [&'static str])],
    rule: fn(&Case) -> R,
) {
    let mut choices = choices.to_vec();
    if gcar && policy != "gcar-req-block" {
        choices.push(IN_GC);
    }
    compare(
        policy,
        |rng, _| {
            let set = draw(rng, &choices);
            read_cache(rng, set)
        },
        |case| naive::Buffer::new(case, gcar, rule(case)),
    );
}

/// Parameters of BPLRU that are drawn at random.
const OF_BPLRU: [(&str, &[&str]); 5] = [
    BLOCKS,
    READS,
    ROOM,
    ("padding", FLAG),
    ("compensation", FLAG),
];

#[test]
fn bplru_equals_its_published_list() {
    differ("bplru", false, &OF_BPLRU, naive::Bplru::new);
}

#[test]
fn gcar_bplru_equals_its_published_list() {
    differ("gcar-bplru", true, &OF_BPLRU, naive::Bplru::new);
}

#[test]
fn fab_equals_its_published_scan() {
    differ("fab", false, &[BLOCKS, READS, ROOM], naive::Fab::new);
}

#[test]
fn gcar_fab_equals_its_published_scan() {
    differ("gcar-fab", true, &[BLOCKS, READS, ROOM], naive::Fab::new);
}

#[test]
fn lb_clock_equals_its_published_ring() {
    differ("lb-clock", false, &[BLOCKS, READS], naive::LbClock::new);
}

#[test]
fn gcar_lb_clock_equals_its_published_ring() {
    differ("gcar-lb-clock", true, &[BLOCKS, READS], naive::LbClock::new);
}

#[test]
fn pud_lru_equals_its_published_scan() {
    differ("pud-lru", false, &[BLOCKS, READS], naive::PudLru::new);
}

#[test]
fn gcar_pud_lru_equals_its_published_scan() {
    differ("gcar-pud-lru", true, &[BLOCKS, READS], naive::PudLru::new);
}

const BPAC: &[(&str, &[&str])] = &[
    BLOCKS,
    READS,
    ROOM,
    ("adapt", FLAG),
    ("l_p", &["0", "1", "0.3", "0.5", "1.0"]),
    ("age", &["0", "1", "3", "0.25"]),
];

#[test]
fn bpac_equals_its_lists() {
    differ("bpac", false, BPAC, naive::Bpac::new);
}

#[test]
fn gcar_bpac_equals_its_lists() {
    differ("gcar-bpac", true, BPAC, naive::Bpac::new);
}

const CBM: &[(&str, &[&str])] = &[
    BLOCKS,
    ("read_cache", &["0", "1", "3", "8"]),
    ("theta", &["0.1", "0.3", "0.5", "1.0"]),
    ("threshold", &["0", "0", "0", "1", "2", "3", "8"]),
    ("threshold_floor", &["1", "2", "4"]),
    ("migrate", &["\"write\"", "\"scan\""]),
    ("block_share", &["0", "0", "0.1", "0.3", "0.5", "1.0"]),
    ("merge", FLAG),
];

#[test]
fn cbm_equals_its_published_lists() {
    differ("cbm", false, CBM, naive::Cbm::new);
}

#[test]
fn gcar_cbm_equals_its_published_lists() {
    differ("gcar-cbm", true, CBM, naive::Cbm::new);
}

const SMALL: &[(&str, &[&str])] = &[("small_request", &["1", "2", "3", "5"])];

#[test]
fn req_block_equals_its_lists() {
    differ("req-block", false, SMALL, naive::ReqBlock::new);
}

#[test]
fn gcar_req_block_equals_its_lists() {
    differ("gcar-req-block", true, SMALL, naive::ReqBlock::new);
}
