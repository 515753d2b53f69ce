//! Superblocks: write amplification, conservation of written data, and the effect of a die without blocks.

use crate::common::{assert_near, device, load, one_pool, run_all};
use flashtwin::{Cause, DeviceSpec, Op, Request, Rng, Ssd, Time};
use flashtwin_sim::{Pacing, RunConfig};

/// Returns a device of `dies` dies on two channels, each with `blocks` blocks of `pages` pages.
fn dies(dies: u32, blocks: u32, pages: u32, rho: f64, more: &[(&str, &str)]) -> DeviceSpec {
    let mut of = one_pool("modern", blocks, rho, &[]);
    of.geometry.chips = dies;
    let (reserve, low) = (of.geometry.reserve_percent, of.gc.low_percent);
    let texts = [dies, blocks, pages].map(|n| n.to_string());
    let (reserve, low) = (reserve.to_string(), low.to_string());
    let mut overrides = vec![
        ("geometry.chips", texts[0].as_str()),
        ("geometry.channels", "2"),
        ("geometry.planes_per_chip", "1"),
        ("geometry.blocks_per_plane", &texts[1]),
        ("geometry.pages_per_block", &texts[2]),
        ("geometry.reserve_percent", &reserve),
        ("gc.low_percent", &low),
        ("gc.granularity", "superblock"),
        ("ftl.summary_page", "false"),
        ("ftl.placement", "dynamic"),
        ("nand.backend", "modern"),
        ("nand.copy_back", "false"),
        ("buffer", "none"),
    ];
    overrides.extend(more);
    device(&overrides)
}

/// Returns the write amplification, under uniform writes, of the rule that collects the block with the fewest valid
/// pages among `d` random blocks (Van Houdt, SIGMETRICS 2013). Blocks have `b` pages. For large `d`, the result equals
/// that of the greedy rule.
fn mean_field(b: usize, d: i32, rho: f64) -> f64 {
    let mut pi = vec![0.0; b + 1];
    let mean = rho * b as f64;
    (pi[mean as usize], pi[mean as usize + 1]) = (1.0 - mean.fract(), mean.fract());
    let step = 0.5 / b as f64;
    let mut amplification = 0.0;
    for _ in 0..60 * b {
        let mut tail = 1.0f64;
        let chosen: Vec<f64> = pi
            .iter()
            .map(|share| {
                let next = (tail - share).max(0.0);
                let p = tail.powi(d) - next.powi(d);
                tail = next;
                p
            })
            .collect();
        let moved: f64 = chosen.iter().enumerate().map(|(i, p)| i as f64 * p).sum();
        let h = b as f64 - moved;
        amplification = b as f64 / h;
        let rate = h / mean;
        let decayed = |i: usize| match i < b {
            true => (i + 1) as f64 * pi[i + 1],
            false => 0.0,
        };
        let change: Vec<f64> = (0..=b)
            .map(|i| {
                let flow = rate * (decayed(i) - i as f64 * pi[i]);
                flow - chosen[i] + f64::from(u8::from(i == b))
            })
            .collect();
        pi.iter_mut()
            .zip(change)
            .for_each(|(share, by)| *share += step * by);
    }
    amplification
}

fn amplification(ssd: &mut Ssd, times: u64, rng: &mut Rng) -> f64 {
    ssd.reset_metrics(None);
    assert!(ssd.write_random(rng, times * u64::from(ssd.spec().exported_pages())));
    ssd.flash_report().gc_write_amplification().unwrap()
}

/// A superblock of four blocks has the write amplification of one block with four times as many pages. If blocks are
/// collected one by one, write amplification is lower, because the number of valid pages varies more between small
/// blocks.
#[test]
fn superblocks_amplify_as_blocks_of_their_size() {
    for seed in flashtwin::seeds(2) {
        let measured = |spec: &DeviceSpec| {
            let mut ssd = Ssd::new(spec);
            let mut rng = Rng::new(seed);
            ssd.fill_sequential();
            amplification(&mut ssd, 6, &mut rng);
            let got = amplification(&mut ssd, 6, &mut rng);
            ssd.check().expect("a consistent map");
            got
        };
        for rho in [0.8, 0.9] {
            let superblocks = measured(&dies(4, 1024, 16, rho, &[]));
            let field = mean_field(64, 60, rho);
            assert_near(
                &format!("rho {rho}: superblocks"),
                superblocks,
                field,
                0.015,
            );
            let apart = measured(&dies(4, 1024, 16, rho, &[("gc.granularity", "block")]));
            let field = mean_field(16, 60, rho);
            assert_near(&format!("rho {rho}: blocks"), apart, field, 0.015);
            assert!(superblocks > apart + 0.03, "{superblocks} {apart}");
        }
    }
}

/// Directly after the steady state is set up, write amplification is the same as during the third and fourth drive
/// write (a drive write writes the whole capacity once). It would be 4 % lower at first if the superblocks were only
/// copied (stamped) from the state of one chip, and not levelled by further writes.
#[test]
fn steady_superblocks_are_level() {
    let (mut first, mut later) = (0.0, 0.0);
    for seed in flashtwin::seeds(3) {
        let mut ssd = Ssd::new(&dies(16, 256, 64, 0.959, &[]));
        ssd.fill_steady(seed);
        let mut rng = Rng::new(seed);
        let twentieth = u64::from(ssd.spec().exported_pages()) / 20;
        ssd.reset_metrics(None);
        assert!(ssd.write_random(&mut rng, twentieth));
        first += ssd.flash_report().gc_write_amplification().unwrap();
        amplification(&mut ssd, 2, &mut rng);
        later += amplification(&mut ssd, 2, &mut rng);
    }
    assert_near("the first writes", first, later, 0.015);
}

/// Timed runs at three fill levels, also with trims and reads in between. Write amplification equals that of the
/// mean-field model, superblocks are erased together, and the number of pages is conserved.
#[test]
fn timed_runs_keep_all_pages_and_amplify_as_much() {
    for fill in [0.7, 0.9, 0.99] {
        let spec = dies(4, 512, 16, 0.9, &[]);
        let mut ssd = Ssd::new(&spec);
        let pages = (f64::from(spec.exported_pages()) * fill) as u64;
        let range = pages * u64::from(spec.geometry.page_bytes);
        let run = |ssd: &mut Ssd, what: &str, times: u64| {
            let free_before = ssd.free_flash_pages() as i64;
            ssd.reset_metrics(None);
            let config = RunConfig {
                pacing: Pacing::Closed { depth: 32 },
                ..RunConfig::default()
            };
            let text = format!("uniform:{what},range={range},requests={}", times * pages);
            let mut workload = load(&text, ssd, times);
            run_all(ssd, &mut *workload, &config);
            let report = ssd.flash_report();
            let freed = 16 * report.flash.count(Cause::Erase) as i64;
            let used = free_before - ssd.free_flash_pages() as i64;
            assert_eq!(report.programs() as i64, freed + used);
            assert_eq!(report.flash.count(Cause::Erase) % 4, 0, "erased as one");
            ssd.check().expect("a consistent map");
            report.gc_write_amplification().unwrap()
        };
        run(&mut ssd, "write=1", 8);
        let got = run(&mut ssd, "write=1", 4);
        let field = mean_field(64, 60, 0.9 * fill);
        assert_near(&format!("fill {fill}"), got, field, 0.03);
        let mapped = ssd.pages_mapped();
        assert!(mapped <= pages && mapped as f64 > 0.99 * pages as f64);
        run(&mut ssd, "write=0.6,trim=0.2", 1);
        assert!(ssd.pages_mapped() < mapped);
    }
}

/// Blocks wear out, and dies lose them at different times. All dies write in step until one die has no block left.
#[test]
fn a_die_that_loses_blocks_leaves_the_others_usable() {
    for seed in flashtwin::seeds(2) {
        let wears = [
            ("wear.erase_limit", "40"),
            ("wear.endurance_spread_percent", "20"),
        ];
        for timed in [false, true] {
            let spec = dies(4, 64, 16, 0.7, &wears);
            let mut ssd = Ssd::new(&spec);
            ssd.fill_sequential();
            let mut spent = 0;
            let mut rng = Rng::new(seed);
            let portion = u64::from(spec.exported_pages()) / 32;
            for round in 0..8000 {
                if timed {
                    let text = format!("uniform:write=1,requests={portion}");
                    let mut workload = load(&text, &ssd, round);
                    let config = RunConfig {
                        pacing: Pacing::Closed { depth: 64 },
                        ..RunConfig::default()
                    };
                    run_all(&mut ssd, &mut *workload, &config);
                } else {
                    ssd.write_random(&mut rng, portion);
                }
                assert_eq!(ssd.outstanding(), 0);
                ssd.check().expect("a consistent map");
                if ssd.is_read_only() {
                    break;
                }
                spent = ssd.flash_report().spent_blocks;
            }
            assert!(ssd.is_read_only());
            // More blocks were lost in total than one die has in reserve.
            assert!(spent > 20, "{spent}");
        }
    }
}

/// Repeated reads of one page delay the writes to its die, while the host writes more than the other dies have room
/// for. The other dies get at most two blocks ahead, and then wait. Finally, all data are written.
#[test]
fn dies_wait_for_one_that_lags() {
    let spec = dies(4, 64, 16, 0.7, &[]);
    let page = u64::from(spec.geometry.page_bytes);
    let mut ssd = Ssd::new(&spec);
    ssd.fill_sequential();
    let request = |op, lpn: u64| Request {
        arrival: Time::ZERO,
        offset: lpn * page,
        bytes: page,
        op,
        fua: false,
        ..Request::default()
    };
    for lpn in 1..1500 {
        ssd.submit(Time::ZERO, &request(Op::Write, lpn), lpn)
            .unwrap();
    }
    for i in 0..4000u64 {
        while ssd.outstanding() > 1200 && i % 16 > 0 {
            ssd.step();
        }
        ssd.submit(ssd.now(), &request(Op::Read, 0), 0).unwrap();
        if i % 64 == 0 {
            ssd.check().expect("dies are in step");
        }
    }
    while ssd.step() {}
    ssd.check().expect("a consistent map");
    assert_eq!(ssd.outstanding(), 0);
    assert_eq!(ssd.flash_report().flash.count(Cause::HostWrite), 1499);
    assert!(!ssd.is_read_only());
}

/// The first drive write that follows the steady state has the same write amplification as the fifth to eighth drive
/// write together. Superblocks are collected in waves, so single drive writes vary by some percent.
#[test]
fn steady_state_is_that_of_long_random_writing() {
    for seed in flashtwin::seeds(2) {
        let spec = dies(32, 64, 64, 0.85, &[]);
        let mut ssd = Ssd::new(&spec);
        ssd.fill_steady(seed);
        let mut rng = Rng::new(seed);
        let first = amplification(&mut ssd, 1, &mut rng);
        amplification(&mut ssd, 3, &mut rng);
        let later = amplification(&mut ssd, 4, &mut rng);
        assert_near("first drive write", first, later, 0.03);
    }
}
