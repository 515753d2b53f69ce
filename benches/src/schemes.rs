//! `flashtwin-bench schemes`: the cost of published schemes relative to the plain device that each of them extends.
//!
//! Instructions are counted as in [`crate::stages`]. For processor times, each round runs all cases, one after the
//! other, and divides the time of each case by that of its plain device. The medians of these ratios over the rounds
//! are reported.

use crate::{figure, median, stages, Failure};

/// Rounds of all cases in turn.
const ROUNDS: usize = 5;
/// Requests of a case in a round.
const REQUESTS: u64 = 400_000;

/// A case of [`crate::stages`], and the case of the plain device with which it is compared.
const SCHEMES: [(&str, &str); 7] = [
    ("policy_ecr", "msr"),
    ("policy_gcar_lru", "msr"),
    ("depth_4096", "msr"),
    ("dftl", "msr"),
    ("fast", "msr"),
    ("raid5_of_8", "msr"),
    ("raid5_gcar_lru", "raid5_of_8"),
];

/// Prints the ratios of instructions and of processor time.
pub fn ratios() -> Result<(), Failure> {
    let mut cases = vec!["msr"];
    cases.extend(SCHEMES.map(|(name, _)| name));
    if stages::has_valgrind() {
        let mut counts = Vec::new();
        for &case in &cases {
            counts.push(stages::total(case)? as f64 / stages::requests(case)? as f64);
            figure(&format!("instructions_{case}"), counts[counts.len() - 1]);
        }
        for (name, of) in SCHEMES {
            let ratio = counts[index(&cases, name)] / counts[index(&cases, of)];
            figure(&format!("instructions_ratio_{name}"), ratio);
        }
    }
    let times = times(&cases)?;
    for (name, of) in SCHEMES {
        let rounds = times[index(&cases, name)]
            .iter()
            .zip(&times[index(&cases, of)]);
        let ratios = rounds.map(|(time, of)| time / of).collect();
        figure(&format!("time_ratio_{name}"), median(ratios));
    }
    Ok(())
}

fn index(cases: &[&str], name: &str) -> usize {
    let at = cases.iter().position(|&case| case == name);
    at.expect("a scheme is a case")
}

/// Returns the processor seconds of each case in each round.
fn times(cases: &[&str]) -> Result<Vec<Vec<f64>>, Failure> {
    let mut replays = Vec::new();
    for case in cases {
        let mut replay = stages::prepare(case)?;
        replay(REQUESTS / 4)?;
        replays.push(replay);
    }
    let mut times = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (replay, times) in replays.iter_mut().zip(&mut times) {
            let before = processor_seconds()?;
            replay(REQUESTS)?;
            times.push(processor_seconds()? - before);
        }
    }
    Ok(times)
}

/// Returns the processor time of this thread so far.
fn processor_seconds() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split(' ').next().ok_or("the first field")?;
    Ok(nanoseconds.parse::<f64>()? / 1e9)
}
