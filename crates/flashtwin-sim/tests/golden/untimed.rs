//! Policies and translation layers without a device, which process random sequences of accesses. The checksums cover
//! the effect of each step and the state after it.

use std::fmt::Write;

use super::{hold, Checksum};
use crate::common::drawn::{one_in, pick};
use flashtwin::buffer::trace::steps_text;
use flashtwin::buffer::{min, ChosenPolicy};
use flashtwin::ftl::chip::{trace, Setup, ENTRIES};
use flashtwin::stepping::{trace_policy, Traceable};
use flashtwin::{Lpn, Rng};

/// Returns random accesses in the notation of policy traces.
fn accesses(rng: &mut Rng, pages: u64, chips: u64) -> String {
    let mut text = String::new();
    for _ in 0..120 {
        let (page, chip) = (rng.below(pages), rng.below(chips));
        match rng.below(24) {
            0 => write!(text, "gc+{chip} "),
            1 => write!(text, "gc-{chip} "),
            2 => write!(text, "drain{chip}={} ", rng.below(4) * 100),
            3 => write!(text, "idle{chip} "),
            4 => write!(text, "t+{} ", rng.below(600)),
            5 => write!(text, "W{page}x{} ", 1 + rng.below(6)),
            6..=12 => write!(text, "R{page} "),
            _ => write!(text, "W{page} "),
        }
        .expect("a string takes all");
    }
    text
}

#[test]
fn policies() {
    let mut names = ChosenPolicy::names();
    names.extend(["gcar-ecr", "gcar-arc", "gcar-lirs", "gcar-fab"].map(String::from));
    let case = |name: &String| {
        let mut rng = Rng::new(3);
        let mut sum = Checksum::new();
        for round in 0..12 {
            let capacity = 1 + rng.below(if round % 4 == 0 { 60 } else { 9 }) as u32;
            let chips = 1 + rng.below(4) as u32;
            let read_cache = rng.below(4).to_string();
            let device = Traceable {
                policy: name,
                capacity,
                set: if one_in(&mut rng, 3) {
                    &[("read_cache", read_cache.as_str())]
                } else {
                    &[]
                },
                chips,
                stride_pages: 1 + rng.below(3) as u32,
                pages_per_block: 2 + rng.below(7) as u32,
            };
            let text = accesses(&mut rng, 2 * u64::from(capacity) + 4, chips.into());
            match device.device() {
                Ok(device) => match trace_policy(&device, &text) {
                    Ok(steps) => sum.add(steps_text(&steps).as_bytes()),
                    Err(e) => sum.show(&e.to_string()),
                },
                Err(e) => sum.show(&e.to_string()),
            }
        }
        (name.clone(), sum.0)
    };
    hold(
        "untimed_policies",
        &names.iter().map(case).collect::<Vec<_>>(),
    );
}

#[test]
fn belady() {
    let mut rng = Rng::new(9);
    let case = |capacity: u32| {
        let string: Vec<Lpn> = (0..3000)
            .map(|_| Lpn(rng.below(90).min(rng.below(90)) as u32))
            .collect();
        (format!("capacity {capacity}"), min::hits(&string, capacity))
    };
    hold("untimed_min", &[1, 2, 3, 10, 40, 89, 200].map(case));
}

#[test]
fn translation_layers() {
    let case = |name: &str| {
        let mut rng = Rng::new(5);
        let mut sum = Checksum::new();
        for _ in 0..25 {
            let pages_per_block = pick(&mut rng, &[2, 4, 8]);
            let logical = pages_per_block * pick(&mut rng, &[8, 16]) - rng.below(2) as u32;
            let setup = Setup::new(
                name,
                logical,
                pick(&mut rng, &[24, 32, 48]),
                pages_per_block,
            );
            let made = setup.and_then(|mut setup| {
                let parameters = setup.parameters();
                let parameter = &parameters[rng.below(parameters.len() as u64) as usize];
                let value = pick(&mut rng, &["1", "2", "3", "6", "true", "none"]);
                // If the new value conflicts with other parameters, the previous setup is restored.
                let before = setup.clone();
                let wrong = setup
                    .set_all(&[(parameter.key, value)])
                    .and_then(|()| setup.check());
                if let Err(e) = wrong {
                    sum.show(&e.to_string());
                    setup = before;
                }
                setup.check().map(|()| setup)
            });
            let setup = match made {
                Ok(setup) => setup,
                Err(e) => {
                    sum.show(&e.to_string());
                    continue;
                }
            };
            let mut text = String::new();
            for _ in 0..150 {
                let few = one_in(&mut rng, 2);
                let page = rng.below(if few { 6 } else { logical.into() });
                let run = 1 + rng.below(6).min(u64::from(logical) - page - 1);
                match rng.below(10) {
                    0 => write!(text, "T{page} "),
                    1 | 2 => write!(text, "R{page} "),
                    3 => write!(text, "{page}x{run} "),
                    4 => write!(text, "F "),
                    _ => write!(text, "{page} "),
                }
                .expect("a string takes all");
            }
            match trace::trace_ftl(&setup, one_in(&mut rng, 3), &text) {
                Ok(steps) => sum.add(trace::steps_text(&steps).as_bytes()),
                Err(e) => sum.show(&e.to_string()),
            }
        }
        (name.to_owned(), sum.0)
    };
    hold(
        "untimed_layers",
        &ENTRIES
            .iter()
            .map(|entry| case(entry.name))
            .collect::<Vec<_>>(),
    );
}
