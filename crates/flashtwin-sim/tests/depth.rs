//! Mean response times of policies, compared with the mean response time of LRU, with several requests in flight. A
//! policy with more hits than LRU must not be slower than LRU at any queue depth: an access that misses must not make
//! unrelated accesses wait (D-36). On a uniform load that arrives at a fixed rate, ECR must shorten the mean most,
//! GCaR-CFLRU less, and CFLRU least.

use crate::common::{load, run_all};
use flashtwin::{DeviceSpec, Ssd};
use flashtwin_sim::{Pacing, RunConfig};

/// Runs a load on a device in the steady state. Returns the mean response time in µs, and the mean number of hits per
/// request.
fn result(device: &str, more: &[(&str, &str)], text: &str, config: &RunConfig) -> (f64, f64) {
    let toml = flashtwin::spec::builtin(device).expect("it is built in");
    let spec = DeviceSpec::with_overrides(toml, device, more).expect("a sound device");
    let mut ssd = Ssd::new(&spec);
    ssd.fill_steady(1);
    let mut workload = load(text, &ssd, 1);
    let (_, completions) = run_all(&mut ssd, &mut *workload, config);
    let requests = completions.len() as f64;
    let total: f64 = completions
        .iter()
        .map(|c| (c.done - c.arrival).as_us())
        .sum();
    let hits: u32 = completions.iter().map(|c| c.hits).sum();
    (total / requests, f64::from(hits) / requests)
}

#[test]
fn policies_that_hit_more_are_not_slower_at_any_depth() {
    let run = |policy, depth| {
        let keys = [("buffer.policy", policy), ("buffer.capacity", "1 MiB")];
        let config = RunConfig {
            pacing: Pacing::Closed { depth },
            warmup_requests: 5_000,
            ..RunConfig::default()
        };
        let zipf = "zipf:theta=0.9,write=0.8,requests=20000";
        result("demo", &keys, zipf, &config)
    };
    for depth in [1, 4, 8, 32] {
        let (lru, lru_hits) = run("lru", depth);
        for policy in ["arc", "2q", "lirs", "s3-fifo", "sieve"] {
            let (mean, hits) = run(policy, depth);
            assert!(
                hits > 1.3 * lru_hits,
                "{policy}, depth {depth}: {hits} of {lru_hits}"
            );
            let slower = mean / lru;
            assert!(
                slower < 1.1,
                "{policy}, depth {depth}: {slower:.2} times LRU"
            );
        }
    }
}

/// Tests a part of claim ECR-F13 (docs/reproduction/ecr.md): how much policies shorten the mean response time, compared
/// with LRU. With 20 % writes, ECR must shorten it. With 80 % writes, ECR must shorten it most and by more than a
/// fifth, GCaR-CFLRU less, and CFLRU least.
#[test]
fn ecr_gains_on_uniform_loads_and_most_where_most_is_written() {
    let run = |policy, write: &str| {
        let config = RunConfig {
            warmup_requests: 12_000,
            ..RunConfig::default()
        };
        let text = format!("uniform:range=300M,write={write},rate=10k/s,requests=30000");
        result("ecr", &[("buffer.policy", policy)], &text, &config).0
    };
    let gain = |policy, write| 1.0 - run(policy, write) / run("lru", write);
    assert!(gain("ecr", "0.2") > 0.0);
    let (cflru, gcar, ecr) = (
        gain("cflru-eps", "0.8"),
        gain("gcar-cflru", "0.8"),
        gain("ecr", "0.8"),
    );
    assert!(ecr > gcar && gcar > cflru, "{ecr} {gcar} {cflru}");
    assert!(ecr > 0.2, "{ecr}");
}
