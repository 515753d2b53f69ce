//! The translation layers that work on one chip each, in a device with queues. The device must execute the same flash
//! operations as a layer without a device, and take the time that they need. The number of pages must be conserved at
//! any fill level.

use crate::common::{device, load, run_all};
use flashtwin::ftl::chip::trace::Cost;
use flashtwin::ftl::chip::{ChipFtl, Ftl, OpKind, Why};
use flashtwin::{seed_of, Cause, Completion, DeviceSpec, Op, Request, Rng, Ssd, Time};
use flashtwin_sim::{Pacing, RunConfig};

const KINDS: [&str; 4] = ["dftl", "bast", "fast", "faster"];

/// Returns a device of two small chips without a buffer.
fn small(kind: &str, further: &[(&str, &str)]) -> DeviceSpec {
    let mut all = vec![
        ("geometry.chips", "2"),
        ("geometry.planes_per_chip", "2"),
        ("geometry.blocks_per_plane", "40"),
        ("geometry.pages_per_block", "16"),
        ("geometry.reserve_percent", "25"),
        ("ftl.kind", kind),
        ("buffer", "none"),
    ];
    if kind == "dftl" {
        all.extend([
            ("ftl.entries_per_translation_page", "32"),
            ("ftl.cmt_entries", "60"),
        ]);
    }
    all.extend(further);
    device(&all)
}

/// Submits one page operation to an idle device, and runs the device until the operation completes.
fn pass(ssd: &mut Ssd, op: Op, page: u64) -> Option<Completion> {
    let bytes = u64::from(ssd.spec().geometry.page_bytes);
    let request = Request {
        arrival: ssd.now(),
        offset: page * bytes,
        bytes,
        op,
        fua: false,
        ..Request::default()
    };
    ssd.submit(ssd.now(), &request, 0).expect("on the device");
    while ssd.step() {}
    ssd.completions().pop()
}

/// Returns the number of programs that must have occurred: the pages that erases freed, minus the increase in the
/// number of erased pages.
fn explained(ssd: &Ssd, erased_before: u64) -> i64 {
    let report = ssd.flash_report();
    let n = u64::from(ssd.spec().geometry.pages_per_block);
    let freed = n * report.flash.count(Cause::Erase) - report.flash.pages_skipped;
    freed as i64 + erased_before as i64 - ssd.free_flash_pages() as i64
}

#[test]
fn pages_are_conserved_at_any_fill() {
    let all = KINDS
        .iter()
        .flat_map(|kind| [70, 90, 99].map(|percent| (*kind, percent)));
    for (kind, percent) in all {
        for seed in flashtwin::seeds(2) {
            // Consecutive pages on a chip, too.
            let stride = if percent == 90 { "8" } else { "1" };
            let spec = small(kind, &[("ftl.stride_pages", stride)]);
            let mut ssd = Ssd::new(&spec);
            let exported = u64::from(spec.exported_pages());
            let mut is_mapped = vec![false; exported as usize];
            let mut mapped = 0;
            let mut rng = Rng::new(seed);
            let erased = ssd.free_flash_pages();
            for i in 0..20_000 {
                let page = rng.below(exported);
                let here = &mut is_mapped[page as usize];
                let is_full = mapped * 100 >= exported * percent;
                let op = match (rng.below(4), *here, is_full) {
                    (0, _, _) => Op::Read,
                    (1, true, true) => Op::Trim,
                    (_, false, true) => Op::Read,
                    _ => Op::Write,
                };
                if op != Op::Read {
                    let write = op == Op::Write;
                    mapped = mapped + u64::from(write) - u64::from(*here);
                    *here = write;
                }
                pass(&mut ssd, op, page);
                if i % 1000 == 999 {
                    ssd.check().unwrap_or_else(|e| panic!("{kind}: {e}"));
                    let programs = ssd.flash_report().programs() as i64;
                    assert_eq!(
                        programs,
                        explained(&ssd, erased),
                        "{kind} {percent} % {seed}"
                    );
                }
            }
            assert_eq!(ssd.pages_mapped(), mapped, "{kind} {percent} % {seed}");
            assert!(mapped * 100 >= exported * (percent - 1), "{kind}");
            assert!(!ssd.is_read_only());
            let report = ssd.flash_report();
            assert!(
                report.flash.count(Cause::Erase) > 100,
                "{kind} {percent} % {seed}"
            );
        }
    }
}

/// Returns the time that operations take on a chip with a channel of its own, as two sums: operations for the host, and
/// operations that count as GC.
fn durations(spec: &DeviceSpec, ops: &[flashtwin::ftl::chip::FlashOp]) -> (Time, Time) {
    let (t, transfer) = (&spec.timing, spec.page_transfer());
    let mut sums = (Time::ZERO, Time::ZERO);
    for op in ops {
        let time = match op.kind {
            OpKind::Read { .. } => t.read + transfer,
            OpKind::Program { .. } => t.program + transfer,
            OpKind::Copy { .. } if spec.copy_back() => t.read + t.program,
            OpKind::Copy { .. } => t.read + t.program + transfer * 2,
            OpKind::Erase { .. } => t.erase,
        };
        match op.why {
            Why::Host | Why::Map => sums.0 += time,
            Why::Gc | Why::GcMap | Why::Merge => sums.1 += time,
        }
    }
    sums
}

/// With one chip and one request at a time, the device executes exactly the operations that the translation layer
/// returns. It takes the time that these operations need.
#[test]
fn a_device_performs_the_operations_of_its_translation_layer() {
    for seed in flashtwin::seeds(3) {
        for (kind, copy_back) in KINDS.into_iter().zip(["true", "false", "true", "false"]) {
            for backend in ["msr", "modern"] {
                let mut further = vec![
                    ("geometry.chips", "1"),
                    ("nand.copy_back", copy_back),
                    ("nand.backend", backend),
                    ("link.bus_ns_per_sector", "0"),
                ];
                if backend == "modern" {
                    further.push(("geometry.channels", "1"));
                }
                let spec = small(kind, &further);
                let mut ssd = Ssd::new(&spec);
                ssd.fill_sequential();
                let setup = spec.chip_setup().expect("it has a translation layer");
                let mut ftl = Ftl::new(&setup).expect("the device was checked");
                ftl.fill();
                let mut rng = Rng::new(seed);
                let (mut total, mut gc_time) = (Cost::default(), Time::ZERO);
                let mut ops = Vec::new();
                for i in 0..6000 {
                    // Sequential runs of pages alternate with random pages, so that switch merges occur, too: a log
                    // block that was written in order becomes the data block.
                    let page = match i / 100 % 3 {
                        0 => i % 100,
                        _ => rng.below(u64::from(setup.logical_pages)),
                    };
                    ops.clear();
                    let op = if rng.below(4) == 0 {
                        Op::Read
                    } else {
                        Op::Write
                    };
                    match op {
                        Op::Read => ftl.read(page as u32, &mut ops),
                        _ => ftl.write(page as u32, &mut ops).expect("there is room"),
                    }
                    total += Cost::of(&ops);
                    let (served, collected) = durations(&spec, &ops);
                    gc_time += collected;
                    let done = pass(&mut ssd, op, page).expect("a read or write completes");
                    let parts = &done.breakdown;
                    assert_eq!(parts.transfer + parts.array, served, "{kind} {backend}");
                    assert_eq!(parts.queue_host, Time::ZERO, "{kind} {backend}");
                    assert!(parts.queue_gc <= collected);
                    let last_is_hosts = ops.last().is_some_and(|op| op.why == Why::Host);
                    if last_is_hosts && kind == "dftl" {
                        assert_eq!(parts.queue_gc, collected);
                    }
                }
                let report = ssd.flash_report();
                let count = |cause| report.flash.count(cause);
                assert_eq!(count(Cause::HostRead), total.host_reads, "{kind}");
                assert_eq!(count(Cause::HostWrite), total.host_programs, "{kind}");
                let copies = count(Cause::GcMove) + count(Cause::MergeCopy);
                assert_eq!(copies, total.copies, "{kind}");
                assert_eq!(count(Cause::MapRead), total.map_reads, "{kind}");
                assert_eq!(count(Cause::MapWrite), total.map_writes, "{kind}");
                assert_eq!(count(Cause::Erase), total.erases, "{kind}");
                assert_eq!(kind == "dftl", count(Cause::MapRead) > 0, "{kind}");
                assert_eq!(kind == "dftl", count(Cause::MergeCopy) == 0, "{kind}");
                assert_eq!(report.gc_time[0].max(gc_time), report.gc_time[0], "{kind}");
                let counters = ftl.counters().named();
                assert_eq!(report.ftl_counters, counters, "{kind}");
                let programs = report.programs() as f64;
                let host = total.host_programs as f64;
                assert_eq!(
                    report.gc_write_amplification().unwrap(),
                    programs / host,
                    "{kind}"
                );
                ssd.check().expect("consistent tables");
            }
        }
    }
}

/// A read that arrives during a merge waits for the end of the merge. The breakdown of its response time counts this
/// wait as GC.
#[test]
fn waiting_for_a_merge_counts_as_gc() {
    let further = [
        ("geometry.chips", "1"),
        ("ftl.log_blocks", "1"),
        ("nand.backend", "msr"),
        ("link.bus_ns_per_sector", "0"),
        ("link.command_overhead_us", "0"),
    ];
    let spec = small("bast", &further);
    let mut ssd = Ssd::new(&spec);
    ssd.fill_sequential();
    pass(&mut ssd, Op::Write, 5);
    let page = u64::from(spec.geometry.page_bytes);
    let start = ssd.now();
    let request = |page_number: u64, op| Request {
        arrival: start,
        offset: page_number * page,
        bytes: page,
        op,
        fua: false,
        ..Request::default()
    };
    // The write needs the log block of another logical block. Therefore, the log block is first merged, with 16 copies
    // and 2 erases.
    ssd.submit(start, &request(40, Op::Write), 1).expect("in");
    let actions = |ssd: &Ssd| ssd.flash_report().flash.gc_actions;
    while actions(&ssd) == 0 {
        assert!(ssd.step() && ssd.now() == start, "the merge begins at once");
    }
    ssd.submit(start, &request(100, Op::Read), 2).expect("in");
    while ssd.step() {}
    let done: Vec<Completion> = ssd.completions().drain(..).collect();
    let t = &spec.timing;
    let merge = (t.read + t.program) * 16 + t.erase * 2;
    let parts = |tag| {
        let of = done.iter().find(|c| c.tag == tag);
        of.expect("it completed").breakdown
    };
    assert_eq!(parts(1).queue_gc, merge);
    assert_eq!(parts(2).queue_gc, merge);
    assert_eq!(parts(2).queue_host, t.program + spec.page_transfer());
    assert_eq!(actions(&ssd), 1);
    assert_eq!(ssd.flash_report().gc_time[0], merge);
}

/// Every buffer policy works with every translation layer, on either back end.
#[test]
fn every_policy_runs_with_every_translation_layer() {
    let names = flashtwin::buffer::ChosenPolicy::names();
    for policy in &names {
        for kind in KINDS {
            let backend = ["msr", "modern"][seed_of(policy, 0) as usize % 2];
            let mut overrides = vec![
                ("geometry.blocks_per_plane", "80"),
                ("geometry.chips", "4"),
                ("nand.backend", backend),
                ("ftl.kind", kind),
                ("buffer.capacity", "256KiB"),
                ("buffer.policy", policy),
            ];
            if backend == "modern" {
                overrides.push(("geometry.channels", "2"));
            }
            // The default reserve of 9.5 % is too small for so few blocks.
            overrides.push(("geometry.reserve_percent", "15"));
            let mut ssd = Ssd::new(&device(&overrides));
            ssd.fill_steady(1);
            ssd.reset_metrics(None);
            let mut workload = load("zipf:write=0.7,size=4k", &ssd, 5);
            let config = RunConfig {
                pacing: Pacing::Closed { depth: 8 },
                requests_max: Some(3000),
                ..RunConfig::default()
            };
            let (outcome, _) = run_all(&mut ssd, &mut *workload, &config);
            assert_eq!(outcome.submitted, 3000, "{policy} {kind}");
            ssd.check()
                .unwrap_or_else(|e| panic!("{policy} {kind}: {e}"));
        }
    }
}

/// If copies transfer their data over the channel, a device with one channel for all chips is slower than a device with
/// one channel per chip. If copies stay within the chip (copy-back), both devices are about equally fast.
#[test]
fn copies_share_the_channel_unless_they_stay_in_the_chip() {
    let elapsed = |channels: &str, copy_back: &str| {
        let spec = small(
            "fast",
            &[
                ("geometry.chips", "4"),
                ("nand.backend", "modern"),
                ("geometry.channels", channels),
                ("nand.copy_back", copy_back),
                ("timing.transfer_ns_per_byte", "25"),
            ],
        );
        let mut ssd = Ssd::new(&spec);
        ssd.fill_steady(1);
        let mut workload = load("uniform:write=1,size=4k", &ssd, 5);
        let config = RunConfig {
            pacing: Pacing::Closed { depth: 16 },
            requests_max: Some(2000),
            ..RunConfig::default()
        };
        run_all(&mut ssd, &mut *workload, &config);
        ssd.now().as_s()
    };
    let (own, shared) = (elapsed("4", "false"), elapsed("1", "false"));
    assert!(shared > 1.2 * own, "{shared} s shared, {own} s own");
    let (own, shared) = (elapsed("4", "true"), elapsed("1", "true"));
    assert!(shared < 1.05 * own, "{shared} s shared, {own} s own");
}
