//! What must hold of garbage collection and wear levelling.

use super::super::{DeviceSpec, Moves, Nand, Placement, Separation};
use crate::ftl::{REFERENCE_LEVELLING, STATIC_LEVELLING};
use crate::gc::GREEDY;

/// Pages must be separated in one way only, and a victim be chosen where it can.
pub(super) fn check(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    if spec.ftl.separation != Separation::None && spec.policy_separates() {
        let policy = spec.buffer.as_ref().map_or("", |b| b.policy.base);
        report(
            "ftl.separation",
            format!(
                "must be \"none\" with buffer.policy = \"{policy}\", which separates pages itself"
            ),
        );
    }
    if spec.ftl.separation != Separation::None && spec.gc.moves != Moves::Cold {
        report(
            "gc.moves",
            "must be \"cold\" with another ftl.separation than \"none\", which decides where moved pages go"
                .to_owned(),
        );
    }
    let g = &spec.geometry;
    if let Some(idle) = spec.gc.idle_percent {
        if idle < spec.gc.low_percent || idle >= g.reserve_percent {
            report(
                "gc.idle_percent",
                format!(
                    "found {idle}; must be from gc.low_percent = {} to below \
                     geometry.reserve_percent = {}",
                    spec.gc.low_percent, g.reserve_percent
                ),
            );
        }
    }
    if spec.gc.superblocks {
        superblocks(spec, report);
    }
    if spec.wear.levelling.name == REFERENCE_LEVELLING.name {
        let wrong = match (&spec.nand, spec.wear.erase_limit, spec.gc.victim.name) {
            (Nand::Modern(_), ..) => "is of the \"msr\" back end; must be another on \"modern\"",
            (_, None, _) => {
                "shares out the life that blocks have left: set wear.erase_limit, or another"
            }
            (_, _, GREEDY) => "",
            _ => "chooses victims itself: set gc.victim = \"greedy\", or another",
        };
        if !wrong.is_empty() {
            report("wear.levelling", format!("\"reference\" {wrong}"));
        }
    }
    let greedy_only = matches!(&spec.nand, Nand::Msr(msr) if !msr.copy_back);
    if greedy_only && spec.gc.victim.name != GREEDY {
        report(
            "gc.victim",
            "must be \"greedy\" on the \"msr\" back end without copy-back, which collects several \
             blocks at once as its reference does"
                .to_owned(),
        );
    }
}

/// A superblock is written over all dies in turn, by one stream, and chosen by what it holds.
fn superblocks(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let (unit, pages) = (spec.pages_per_program(), spec.geometry.pages_per_block);
    if pages < 2 * unit {
        report(
            "geometry.pages_per_block",
            format!(
                "found {pages}; with gc.granularity = \"superblock\" must be at least two programs of \
                 {unit}"
            ),
        );
    }
    let static_levelling = spec.wear.levelling.name == STATIC_LEVELLING.name;
    for (wrong, key, wanted) in [
        (
            spec.ftl.placement == Placement::Static,
            "ftl.placement",
            "\"dynamic\"",
        ),
        (spec.copy_back(), "nand.copy_back", "false"),
        (spec.ftl.summary_page, "ftl.summary_page", "false"),
        (
            spec.ftl.separation != Separation::None,
            "ftl.separation",
            "\"none\"",
        ),
        (spec.slc_cache().is_some(), "nand.pslc_percent", "0"),
        (
            spec.policy_separates(),
            "buffer.policy",
            "one that does not separate pages itself",
        ),
        (spec.gc.victim.name != GREEDY, "gc.victim", "\"greedy\""),
        (
            static_levelling,
            "wear.levelling",
            "\"none\" or \"dynamic\"",
        ),
    ] {
        if wrong {
            report(
                key,
                format!("with gc.granularity = \"superblock\" must be {wanted}"),
            );
        }
    }
}
