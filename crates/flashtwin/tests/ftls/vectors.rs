//! Test vectors of the translation layers, checked by hand, in the notation of `ftl trace`.

use flashtwin::ftl::chip::trace::{steps_text, total, trace_ftl, Step};
use flashtwin::ftl::chip::Setup;

struct On<'a> {
    ftl: &'a str,
    set: &'a [(&'a str, &'a str)],
    logical_pages: u32,
    blocks: u32,
    pages_per_block: u32,
    empty: bool,
}

/// Describes a layer with 8 logical blocks of 4 pages, all written, on 16 physical blocks.
fn on<'a>(ftl: &'a str, set: &'a [(&'a str, &'a str)]) -> On<'a> {
    On {
        ftl,
        set,
        logical_pages: 32,
        blocks: 16,
        pages_per_block: 4,
        empty: false,
    }
}

impl On<'_> {
    fn steps(&self, accesses: &str) -> Vec<Step> {
        let mut setup = Setup::new(
            self.ftl,
            self.logical_pages,
            self.blocks,
            self.pages_per_block,
        )
        .unwrap();
        setup.set_all(self.set).unwrap();
        trace_ftl(&setup, self.empty, accesses).unwrap()
    }

    /// Executes the accesses in the first column of a table. For each row, compares the cost of its accesses with the
    /// second column, and the state after them with the third. A column with `-` is not compared. Compares the cost of
    /// all rows together with `wanted`.
    fn check(&self, table: &str, wanted: &str) {
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        let accesses: Vec<&str> = rows.iter().map(|row| row[0]).collect();
        let steps = self.steps(&accesses.join(" "));
        let mut rest = &steps[..];
        for row in rows {
            let (these, others) = rest.split_at(row[0].split_whitespace().count());
            rest = others;
            let found = [
                total(these).to_string(),
                these[these.len() - 1].state.clone(),
            ];
            for (wanted, found) in row[1..].iter().zip(found) {
                assert!(
                    *wanted == "-" || *wanted == found,
                    "{}, {}: wanted {wanted}, found {found}\n{}",
                    self.ftl,
                    row[0],
                    steps_text(&steps)
                );
            }
        }
        assert_eq!(total(&steps).to_string(), wanted);
    }
}

/// Settings of the DFTL vectors: four entries per translation page (E_tp = 4), and an LRU cache.
const DFTL: [(&str, &str); 2] = [
    ("entries_per_translation_page", "4"),
    ("protected_entries", "0"),
];

fn dftl(entries: &'static str) -> Vec<(&'static str, &'static str)> {
    [&DFTL[..], &[("cmt_entries", entries)]].concat()
}

#[test]
fn vector_dftl_1() {
    on("dftl", &dftl("2")).check(
        "
        R0 | 1 host read, 1 map read                        | -
        1  | 1 host program, 1 map read                     | CMT[1* 0] free 5
        R4 | 1 host read, 1 map read                        | CMT[4 1*] free 5
        2  | 1 host program, 2 map reads, 1 map write       | -
        0  | 1 host program, 1 map read                     | -
        ",
        "2 host reads, 3 host programs, 6 map reads, 1 map write",
    );
}

#[test]
fn vector_dftl_2() {
    on("dftl", &dftl("3")).check(
        "
        0 1 R4 | 1 host read, 2 host programs, 3 map reads      | CMT[4 1* 0*] free 5
        R8     | 1 host read, 2 map reads, 1 map write          | CMT[8 4 1] free 4
        R12    | 1 host read, 1 map read                        | CMT[12 8 4] free 4
        ",
        "3 host reads, 2 host programs, 6 map reads, 1 map write",
    );
    let apart = [&dftl("3")[..], &[("batching", "false")]].concat();
    on("dftl", &apart).check(
        "
        0 1 R4 | -                                              | CMT[4 1* 0*] free 5
        R8     | 1 host read, 2 map reads, 1 map write          | CMT[8 4 1*] free 4
        R12    | 1 host read, 2 map reads, 1 map write          | CMT[12 8 4] free 4
        ",
        "3 host reads, 2 host programs, 7 map reads, 2 map writes",
    );
}

/// The victim has 8 pages, of which the logical pages 0, 1, 5 and 9 are live. Only the map entry of page 5 is cached.
/// The test adds accesses until this block is collected by a write that finds its own map entry in the cache.
#[test]
fn vector_dftl_3() {
    let set = dftl("2");
    let small = On {
        logical_pages: 48,
        blocks: 12,
        pages_per_block: 8,
        empty: true,
        ..on("dftl", &set)
    };
    let wanted = "1 host program, 4 copies, 2 map reads, 2 map writes, 1 erase";
    let mut accesses = "0 1 5 9 2 3 6 7 2 3 6 7 8 10 11 12".to_owned();
    for page in (13..48).chain([4]).chain((13..45).step_by(6)) {
        accesses.push_str(&format!(" {page}"));
        let steps = small.steps(&format!("{accesses} R5 40 40 40 40 40 40 40 40"));
        let found = steps.iter().rev().take(7).any(|step| {
            let is_wanted = step.cost.to_string() == wanted;
            is_wanted && step.state.starts_with("CMT[40* 5*]")
        });
        if found {
            return;
        }
    }
    panic!("the block was never collected");
}

#[test]
fn vector_bast_1() {
    on("bast", &[("log_blocks", "2")]).check(
        "
        0 1 2 3 | 4 host programs                                         | log0[0 1 2 3]
        0       | 1 host program, 1 erase, 1 switch merge                 | log0[0]
        5 4     | 2 host programs                                         | log1[5 4] log0[0]
        8       | 1 host program, 3 copies, 1 erase, 1 partial merge      | log2[8] log1[5 4]
        12      | 1 host program, 4 copies, 2 erases, 1 full merge        | log3[12] log2[8]
        ",
        "9 host programs, 7 copies, 4 erases, 1 switch merge, 1 partial merge, 1 full merge",
    );
}

#[test]
fn vector_fast_1() {
    on("fast", &[("rw_log_blocks", "2")]).check(
        "
        0 1 2 3   | 4 host programs                            | SW0[0 1 2 3] RW
        4         | 1 host program, 1 erase, 1 switch merge    | SW1[4] RW
        9 13 10 17| 4 host programs                            | SW1[4] RW[9 13 10 17]
        9 14      | 2 host programs                            | SW1[4] RW[- 13 10 17] [9 14]
        5         | 1 host program                             | SW1[4 5] RW[- 13 10 17] [9 14]
        18 11     | 2 host programs                            | SW1[4 5] RW[- 13 10 17] [9 14 18 11]
        15        | 1 host program, 12 copies, 4 erases, 3 full merges | SW1[4 5] RW[- - - -] [15]
        ",
        "15 host programs, 12 copies, 5 erases, 1 switch merge, 3 full merges",
    );
}

#[test]
fn vector_fast_2() {
    on("fast", &[("rw_log_blocks", "2")]).check(
        "
        0 1    | 2 host programs                                       | SW0[0 1] RW
        3      | 1 host program, 1 copy, 1 erase, 1 partial merge      | SW[] RW
        4 5    | 2 host programs                                       | SW1[4 5] RW
        5      | 1 host program, 3 copies, 2 erases, 1 full merge      | SW[] RW
        8 9    | 2 host programs                                       | SW2[8 9] RW
        12     | 1 host program, 2 copies, 1 erase, 1 partial merge    | SW3[12] RW
        ",
        "9 host programs, 6 copies, 4 erases, 2 partial merges, 1 full merge",
    );
}

#[test]
fn vectors_faster_1_and_2() {
    let first = "
        5 9 13 17  | 4 host programs                     | SW[] RW[5 9 13 17] ISO
        6 5 10 14  | 4 host programs                     | SW[] RW[- 9 13 17] [6 5 10 14] ISO
        18         | 1 host program, 3 copies, 1 erase   | SW[] RW[6 5 10 14] [9* 13* 17* 18] ISO
    ";
    let off = [
        ("rw_log_blocks", "2"),
        ("isolation_blocks", "3"),
        ("refinements", "false"),
    ];
    on("faster", &off).check(first, "9 host programs, 3 copies, 1 erase");

    // All four pages of the log block with page 18 are written, so the next write finds the log full.
    let refined = [("rw_log_blocks", "2"), ("isolation_blocks", "3")];
    let second = "
        9 | 1 host program, 4 copies, 1 erase | SW[] RW[6* 5* 10* 14*] [18* 9] ISO[- 13 17]
    ";
    on("faster", &refined).check(
        &format!("{first}{second}"),
        "10 host programs, 7 copies, 2 erases",
    );
}

/// Continues vector FASTER-2. If only one page of a log block is live, the block is not isolated, even if this page is
/// marked.
#[test]
fn few_pages_get_a_further_chance() {
    let set = [("rw_log_blocks", "2"), ("isolation_blocks", "5")];
    let roomy = On {
        blocks: 18,
        ..on("faster", &set)
    };
    roomy.check(
        "
        5 9 13 17 6 5 10 14 18 9 | - | SW[] RW[6* 5* 10* 14*] [18* 9] ISO[- 13 17]
        5 6   | 2 host programs                   | SW[] RW[- - 10* 14*] [18* 9 5 6] ISO[- 13 17]
        10    | 1 host program, 2 copies, 1 erase | SW[] RW[18* 9 5 6] [10] ISO[- 13 17 -] [14]
        9 5 6 | 3 host programs                   | SW[] RW[18* - - -] [10 9 5 6] ISO[- 13 17 -] [14]
        14    | 1 host program, 1 copy, 1 erase   | SW[] RW[10 9 5 6] [18* 14] ISO[- 13 17 -] [-]
        ",
        "17 host programs, 10 copies, 4 erases",
    );
}

#[test]
fn the_same_writes_cost_fast_merges() {
    let steps = on("fast", &[("rw_log_blocks", "2")]).steps("5 9 13 17 6 5 10 14 18");
    assert_eq!(
        steps[8].cost.to_string(),
        "1 host program, 12 copies, 4 erases, 3 full merges"
    );
}

#[test]
fn a_sequential_stream_begins_the_sequential_log_block() {
    let small = [("rw_log_blocks", "2"), ("isolation_blocks", "1")];
    let set = On {
        logical_pages: 32,
        blocks: 12,
        pages_per_block: 8,
        ..on("faster", &small)
    };
    set.check(
        "
        1 2 3 4  | 4 host programs                        | SW[] RW[1 2 3 4] ISO
        5        | 1 host program, 5 copies               | SW0[0 1 2 3 4 5] RW[- - - -] ISO
        6 7      | 2 host programs                        | SW0[0 1 2 3 4 5 6 7] RW[- - - -] ISO
        8        | 1 host program, 1 erase, 1 switch merge | SW1[8] RW[- - - -] ISO
        ",
        "8 host programs, 5 copies, 1 erase, 1 switch merge",
    );
}

/// A sequential stream begins at page 3, so that the sequential log block passes the offsets of pages 0 to 2, which
/// were never written. A later write of page 1 cannot be in place.
#[test]
fn a_place_that_the_sequential_log_block_has_passed_is_not_written_in_place() {
    let small = [("rw_log_blocks", "2"), ("isolation_blocks", "1")];
    let empty = On {
        pages_per_block: 8,
        empty: true,
        ..on("faster", &small)
    };
    empty.check(
        "
        3 4 5 6 7 | 5 host programs                                 | SW[] RW ISO
        3 4 5 6   | 4 host programs                                 | SW[] RW[3 4 5 6] ISO
        7         | 1 host program, 4 copies                        | SW0[- - - 3 4 5 6 7] RW[- - - -] ISO
        1         | 1 host program, 5 copies, 2 erases, 1 full merge | SW[] RW[- - - -] ISO
        0 8 8 R1  | 1 host read, 3 host programs                    | SW1[8] RW[- - - -] ISO
        ",
        "1 host read, 14 host programs, 9 copies, 2 erases, 1 full merge",
    );
}

#[test]
fn pages_never_written_go_to_their_place_and_trims_leave_a_log() {
    for ftl in ["bast", "fast", "faster"] {
        let empty = On {
            empty: true,
            ..on(ftl, &[])
        };
        let steps = empty.steps("2 1 0 3 R2 T2 R2");
        assert_eq!(
            total(&steps).to_string(),
            "1 host read, 4 host programs",
            "{ftl}: a trimmed page is not read"
        );
        let state = &steps[6].state;
        assert!(!state.contains("[0"), "{ftl}: no log is used: {state}");
    }
}

#[test]
fn a_flush_writes_each_translation_page_once() {
    on("dftl", &dftl("8")).check(
        "
        0 1 5 | 3 host programs, 3 map reads | CMT[5* 1* 0*] free 5
        F     | 2 map reads, 2 map writes    | CMT[5 1 0] free 4
        F     | nothing                      | CMT[5 1 0] free 4
        T0    | nothing                      | CMT[0* 5 1] free 4
        R0    | nothing                      | CMT[0* 5 1] free 4
        F     | 1 map read, 1 map write      | CMT[0 5 1] free 4
        ",
        "3 host programs, 6 map reads, 3 map writes",
    );
}
