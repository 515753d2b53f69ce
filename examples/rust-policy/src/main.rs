//! Compares the policy with LRU on a small SSD: `cargo run --release -p rust-policy`.

use flashtwin::{Cause, DeviceSpec, Op, Request, Rng, Ssd};
use rust_policy::Random;

const REQUESTS: u64 = 100_000;
const QUEUE_DEPTH: usize = 16;
const PAGE: u64 = 4096;

fn main() {
    let spec = spec();
    println!("policy    mean response   hit ratio   write amplification   erases");
    for (name, mut ssd) in [
        ("lru", Ssd::new(&spec)),
        ("random", Ssd::with_policy(&spec, Box::new(Random::new(1)))),
    ] {
        run(&mut ssd);
        let (host, flash) = (ssd.metrics().reads_and_writes(), ssd.flash_report());
        println!(
            "{name:<8}{:>12.0} us{:>10.2} %{:>22.3}{:>9}",
            host.response_us_mean(),
            100.0 * host.hits as f64 / host.pages as f64,
            flash.gc_write_amplification().unwrap_or(f64::NAN),
            flash.flash.count(Cause::Erase),
        );
    }
}

/// Returns the device `demo` with fewer blocks than in its profile, and with a reserve of 20 %.
fn spec() -> DeviceSpec {
    let demo = flashtwin::spec::builtin("demo").expect("demo comes with flashtwin");
    let smaller = [
        ("geometry.blocks_per_plane", "72"),
        ("geometry.reserve_percent", "20"),
    ];
    DeviceSpec::with_overrides(demo, "demo", &smaller).expect("a good device")
}

/// Number of hot pages, to which most accesses go: twice as many as the buffer holds.
const HOT: u64 = 2048;

/// Runs a closed loop of page accesses: 80 % are writes, and 80 % go to the hot pages.
fn run(ssd: &mut Ssd) {
    ssd.fill_steady(1);
    let pages = ssd.exported_bytes() / PAGE;
    let mut rng = Rng::new(2);
    for tag in 0..REQUESTS {
        let range = if rng.below(10) < 8 { HOT } else { pages };
        let request = Request {
            arrival: ssd.now(),
            offset: rng.below(range) * PAGE,
            bytes: PAGE,
            op: if rng.below(10) < 8 {
                Op::Write
            } else {
                Op::Read
            },
            fua: false,
            ..Request::default()
        };
        while ssd.outstanding() >= QUEUE_DEPTH && ssd.step() {}
        let now = ssd.now();
        ssd.advance(now);
        ssd.submit(now, &request, tag)
            .expect("the request lies on the device");
    }
    while ssd.step() {}
}
