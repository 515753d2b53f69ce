//! Checks that the settings of garbage collection and wear levelling do not contradict each other or other settings.

use super::super::{
    Buffer, DeviceSpec, Ftl, Gc, Geometry, Moves, MsrNand, Nand, Placement, Separation, SlcCache,
    Watermark, Wear, WriteUnits,
};
use crate::ftl::{DYNAMIC_LEVELLING, NO_LEVELLING, REFERENCE_LEVELLING, STATIC_LEVELLING};
use crate::gc::GREEDY;
use crate::placement;

/// Checks that only one setting separates pages, that the early watermark is within its range, and that the back end
/// supports the victim rule.
pub(super) fn check(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    separation(spec, report);
    if let Some(idle) = spec.gc.idle_percent {
        let (low, reserve) = (spec.gc.low_percent, spec.geometry.reserve_percent);
        if idle < low || idle >= reserve {
            let (from, below) = (Gc::low_percent, Geometry::reserve_percent);
            report(
                Gc::idle_percent.name(),
                format!("found {idle}; must be from {from} = {low} to below {below} = {reserve}"),
            );
        }
    }
    match (&spec.placement, spec.gc.has_superblocks()) {
        (Some(_), _) => write_units(spec, report),
        (None, true) => superblocks(spec, report),
        (None, false) => {}
    }
    if spec.wear.levelling.name == REFERENCE_LEVELLING.name {
        reference_levelling(spec, report);
    }
    let greedy_only = matches!(&spec.nand, Nand::Msr(msr) if !msr.copy_back);
    if greedy_only && spec.gc.victim.name != GREEDY {
        report(
            Gc::victim.name(),
            "must be \"greedy\" on the \"msr\" back end without copy-back, which collects several \
             blocks at once as its reference does"
                .to_owned(),
        );
    }
}

/// Checks that the FTL and the buffer policy do not both separate pages.
fn separation(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let separation = Ftl::separation;
    match spec.ftl.separation {
        Separation::None => return,
        Separation::Policy if spec.buffer.is_none() => {
            return report(
                separation.name(),
                "\"policy\" needs a buffer, whose policy chooses".into(),
            );
        }
        Separation::Policy => {
            if spec.gc.moves == Moves::Class && !spec.own_policy_separates() {
                report(
                    Gc::moves.name(),
                    format!(
                        "must be \"cold\" or \"victim\" with {separation} = \"policy\" and a policy without \
                         CDA-GC's dispatcher, since it has no classes of moved pages"
                    ),
                );
            }
            return;
        }
        Separation::Gc | Separation::Region => {}
    }
    if spec.own_policy_separates() {
        let policy = spec.buffer.as_ref().map_or("", |b| b.policy.base);
        let key = Buffer::policy;
        report(
            separation.name(),
            format!("must be \"none\" with {key} = \"{policy}\", which separates pages itself"),
        );
    }
    if spec.gc.moves != Moves::Cold {
        report(
            Gc::moves.name(),
            format!(
                "must be \"cold\" with another {separation} than \"none\", which decides where moved \
                 pages go"
            ),
        );
    }
}

/// Checks the conditions of the levelling `reference` (the wear levelling of the reference simulator): the `msr` back
/// end, an erase limit, and the greedy victim rule.
fn reference_levelling(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let wrong = match (&spec.nand, spec.wear.erase_limit, spec.gc.victim.name) {
        (Nand::Modern(_), ..) => {
            "is of the \"msr\" back end; must be another on \"modern\"".to_owned()
        }
        (_, None, _) => format!(
            "shares out the life that blocks have left: set {}, or another",
            Wear::erase_limit
        ),
        (_, _, GREEDY) => return,
        _ => format!(
            "chooses victims itself: set {} = \"greedy\", or another",
            Gc::victim
        ),
    };
    report(Wear::levelling.name(), format!("\"reference\" {wrong}"));
}

/// Checks the conditions for devices that write by units, and that every load finds room in the units.
fn write_units(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let with = format!("with {} must be", WriteUnits::scheme);
    let (row, pages) = (spec.pages_per_program(), spec.geometry.pages_per_block);
    if !pages.is_multiple_of(row) {
        report(
            Geometry::pages_per_block.name(),
            format!("found {pages}; {with} a multiple of the {row} pages of a program"),
        );
    }
    let is_static = spec.ftl.placement == Placement::Static;
    let is_separated = spec.ftl.separation != Separation::None;
    let levelling = spec.wear.levelling.name;
    let levels = levelling != NO_LEVELLING.name && levelling != DYNAMIC_LEVELLING.name;
    let (superblock, blocks) = ("\"superblock\"", "\"blocks\"");
    for (wrong, key, wanted) in [
        (is_static, Ftl::placement.name(), "\"dynamic\""),
        (
            !spec.gc.has_superblocks(),
            Gc::granularity.name(),
            superblock,
        ),
        (spec.copy_back(), MsrNand::copy_back.name(), "false"),
        (spec.ftl.summary_page, Ftl::summary_page.name(), "false"),
        (is_separated, Ftl::separation.name(), "\"none\""),
        (spec.slc_cache().is_some(), SlcCache::percent.name(), "0"),
        (
            spec.gc.watermark != Watermark::Blocks,
            Gc::watermark.name(),
            blocks,
        ),
        (spec.gc.moves != Moves::Cold, Gc::moves.name(), "\"cold\""),
        (levels, Wear::levelling.name(), "\"none\" or \"dynamic\""),
        (
            spec.wear.erase_limit.is_some(),
            Wear::erase_limit.name(),
            "0",
        ),
    ] {
        if wrong {
            report(key, format!("{with} {wanted}"));
        }
    }
    match spec.placement_setup() {
        Some(Ok(setup)) => {
            // Early collections keep more units free. They must be able to reach this number, because otherwise they
            // would never end.
            let early = placement::Setup {
                low: setup.early.max(setup.low),
                ..setup.clone()
            };
            if let Err(message) = setup.check_timed() {
                report(WriteUnits::scheme.name(), message.to_string());
            } else if let Err(message) = early.check_timed() {
                report(Gc::idle_percent.name(), message.to_string());
            }
        }
        Some(Err((key, message))) => report(key, message),
        None => {}
    }
}

/// Checks the conditions for superblocks. For example, writes must go to all dies in turn, there must be only one write
/// stream, and the victim rule must be greedy.
fn superblocks(spec: &DeviceSpec, report: &mut dyn FnMut(&str, String)) {
    let with = format!("with {} = \"superblock\" must be", Gc::granularity);
    let (unit, pages) = (spec.pages_per_program(), spec.geometry.pages_per_block);
    if pages < 2 * unit {
        report(
            Geometry::pages_per_block.name(),
            format!("found {pages}; {with} at least two programs of {unit}"),
        );
    }
    let is_static = spec.ftl.placement == Placement::Static;
    let is_separated = spec.ftl.separation != Separation::None;
    let is_greedy = spec.gc.victim.name == GREEDY;
    let levels = spec.wear.levelling.name == STATIC_LEVELLING.name;
    let no_policy = "one that does not separate pages itself";
    for (wrong, key, wanted) in [
        (is_static, Ftl::placement.name(), "\"dynamic\""),
        (spec.copy_back(), MsrNand::copy_back.name(), "false"),
        (spec.ftl.summary_page, Ftl::summary_page.name(), "false"),
        (is_separated, Ftl::separation.name(), "\"none\""),
        (spec.slc_cache().is_some(), SlcCache::percent.name(), "0"),
        (
            spec.own_policy_separates(),
            Buffer::policy.name(),
            no_policy,
        ),
        (!is_greedy, Gc::victim.name(), "\"greedy\""),
        (levels, Wear::levelling.name(), "\"none\" or \"dynamic\""),
    ] {
        if wrong {
            report(key, format!("{with} {wanted}"));
        }
    }
}
