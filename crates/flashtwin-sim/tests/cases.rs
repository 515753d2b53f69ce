//! Test cases that the fuzzer found. Each is a call of `try_case`, as the fuzzer prints it.

use crate::common::case::{try_case, Fill, Shown};
use flashtwin::Op::{self, *};

#[test]
fn a_case_is_printed_as_the_call_that_runs_it() {
    let steps: [(u64, Op, u64, u64, bool); 2] =
        [(0, Write, 0, 4096, false), (70, Read, 512, 9000, false)];
    let shown = Shown(&[("array.level", "raid0")], Fill::Steady(3), &steps).to_string();
    assert_eq!(
        shown,
        "#[test]\nfn found() {\n    try_case(\n        &[(\"array.level\", \"raid0\")],\n        Fill::Steady(3),\n        \
         &[\n            (0, Write, 0, 4096, false),\n            (70, Read, 512, 9000, false),\n        ],\n    );\n}\n"
    );
    for fill in [Fill::Empty, Fill::Sequential, Fill::Steady(3)] {
        try_case(&[], fill, &steps);
        try_case(&[("array.level", "raid0")], fill, &steps);
    }
}
