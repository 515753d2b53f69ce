//! Tests of several clients at once: their request rates, their limits on requests in flight, and clients that fall
//! behind the arrival times of their loads.

use flashtwin::{DeviceSpec, Ssd, Time};
use flashtwin_sim::{run_clients, Client, ClientsOutcome, ClientsPlan, Control, SimError};
use flashtwin_workload::{GeneratorSpec, Workload};

const PLAN: ClientsPlan = ClientsPlan {
    warm: Time::from_ms(10),
    span: Time::from_ms(100),
    parts: 5,
    behind_max: Time::from_ms(5),
};

fn device() -> Ssd {
    let toml = flashtwin::spec::builtin("tlc-client").expect("it is built in");
    let keys = [
        ("geometry.chips", "4"),
        ("geometry.channels", "4"),
        ("geometry.blocks_per_plane", "64"),
        ("buffer.capacity", "1 MiB"),
    ];
    let spec = DeviceSpec::with_overrides(toml, "tlc-client", &keys).expect("a sound device");
    let mut ssd = Ssd::new(&spec);
    ssd.fill_steady(1);
    ssd
}

fn run(clients: &[(&str, u32)], plan: &ClientsPlan) -> Result<ClientsOutcome, SimError> {
    let mut ssd = device();
    let exported = ssd.exported_bytes();
    let mut loads: Vec<Box<dyn Workload>> = (clients.iter())
        .map(|(text, _)| GeneratorSpec::parse(text).and_then(|spec| spec.build(exported, 1)))
        .collect::<Result<_, _>>()
        .expect("good loads");
    let mut clients: Vec<Client> = (loads.iter_mut().zip(clients))
        .map(|(load, &(_, in_flight_max))| Client {
            load: load.as_mut(),
            in_flight_max,
        })
        .collect();
    let outcome = run_clients(&mut ssd, &mut clients, plan, &Control::default());
    assert_eq!(ssd.outstanding(), 0, "the device is idle behind the run");
    outcome
}

fn requests(outcome: &ClientsOutcome, client: usize) -> Vec<u64> {
    let parts = outcome.clients[client].iter();
    parts
        .map(|part| part.reads.requests + part.writes.requests)
        .collect()
}

#[test]
fn each_client_has_its_rate_in_every_part() {
    let probe = "uniform:write=0.5,rate=5k/s,arrival=constant";
    let outcome = run(&[(probe, 64), ("uniform:write=0,rate=2k/s", 64)], &PLAN);
    let outcome = outcome.expect("a good run");
    assert_eq!(requests(&outcome, 0), [100; 5]);
    let other: u64 = requests(&outcome, 1).iter().sum();
    assert!((150..250).contains(&other), "{other}");
    let writes: u64 = outcome.clients[0].iter().map(|p| p.writes.requests).sum();
    assert_eq!(outcome.host_bytes, writes * 4096);
}

#[test]
fn a_saturated_client_keeps_its_limit_in_flight() {
    let flood = "uniform:write=0,rate=10M/s";
    let alone = run(&[(flood, 16)], &PLAN).expect("a good run");
    // By Little's law, the sum of the response times is 16 times the span, because 16 requests are always in flight.
    let parts = alone.clients[0].iter();
    let sum: u128 = parts.map(|p| p.reads.response_ps_sum()).sum();
    let in_flight = sum as f64 * 1e-12 / PLAN.span.as_s();
    assert!((15.0..17.5).contains(&in_flight), "{in_flight}");
}

#[test]
fn backlog_beyond_the_limit_is_dropped() {
    let plan = ClientsPlan {
        behind_max: Time::from_us(1),
        ..PLAN
    };
    let fast = "uniform:write=0,rate=200k/s,arrival=constant";
    let kept = run(&[(fast, 4)], &PLAN).expect("a good run");
    let dropped = run(&[(fast, 4)], &plan).expect("a good run");
    let sum = |outcome: &ClientsOutcome| requests(outcome, 0).iter().sum::<u64>();
    assert!(sum(&dropped) <= sum(&kept) + sum(&kept) / 20);
    assert!(
        (1..20_000).contains(&sum(&dropped)),
        "fewer than the rate asks for"
    );
}

#[test]
fn wrong_plans_are_refused() {
    let is_config = |result: Result<ClientsOutcome, SimError>| {
        matches!(result.expect_err("it is wrong"), SimError::Config(_))
    };
    assert!(is_config(run(&[], &PLAN)));
    assert!(is_config(run(&[("uniform:write=1", 0)], &PLAN)));
    assert!(is_config(run(
        &[("uniform:write=1", 1)],
        &ClientsPlan { parts: 0, ..PLAN }
    )));
}

#[test]
fn ended_loads_end_the_run() {
    let outcome = run(&[("uniform:write=1,requests=50", 8)], &PLAN).expect("a good run");
    assert!(!outcome.interrupted);
    assert!(requests(&outcome, 0).iter().sum::<u64>() <= 50);
}
