//! Arrays and their members: rebuilds, too many failures, power losses, the copy to read, saved
//! states, arrays of groups, and arrays with and without a log.

mod copies;
mod durable;
mod groups;
mod logged;
mod loss;
mod rebuild;
mod states;

use flashtwin::{Array, ArraySpec, Completion, Op, Request, Rng, Time};

/// Returns an array of small members with the given keys.
fn array(level: &str, members: &str, more: &[(&str, &str)]) -> Array {
    let mut all = vec![
        ("array.level", level),
        ("array.members", members),
        ("member.geometry.chips", "4"),
        ("member.geometry.planes_per_chip", "1"),
        ("member.geometry.blocks_per_plane", "64"),
        ("member.geometry.pages_per_block", "16"),
        ("member.nand.parallel_units", "1"),
    ];
    all.extend(more);
    let text = flashtwin::spec::builtin_array("harmonia-array").unwrap();
    Array::new(&ArraySpec::with_overrides(text, "harmonia-array", &all).unwrap())
}

fn request(op: Op, first_page: u64, pages: u64) -> Request {
    Request {
        arrival: Time::ZERO,
        offset: first_page * 4096,
        bytes: pages * 4096,
        op,
        fua: false,
        ..Request::default()
    }
}

fn pages(array: &Array) -> u64 {
    array.exported_bytes() / 4096
}

/// Submits one request to an idle array and returns its completion.
fn do_alone(array: &mut Array, request: &Request) -> Completion {
    array.submit(array.now(), request, 0).unwrap();
    loop {
        if let Some(done) = array.completions().pop() {
            return done;
        }
        assert!(array.step(), "a request without a response");
    }
}

fn until_idle(array: &mut Array) {
    while array.step() {}
}

/// Submits accesses to random single pages, one in each interval `every`. Returns the response
/// times in ascending order.
fn paced(array: &mut Array, op: Op, count: u64, every: Time, seed: u64) -> Vec<Time> {
    let mut rng = Rng::new(seed);
    let start = array.now();
    for i in 0..count {
        let now = start + every * i;
        array.advance(now);
        let page = rng.below(pages(array));
        array.submit(now, &request(op, page, 1), i).unwrap();
    }
    while array.outstanding() > 0 {
        array.step();
    }
    let done = std::mem::take(array.completions());
    let mut times: Vec<Time> = done.iter().map(|c| c.done - c.arrival).collect();
    times.sort_unstable();
    times
}
