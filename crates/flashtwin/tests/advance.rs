//! The methods that advance time, and their limits.

use flashtwin::spec::builtin;
use flashtwin::{DeviceSpec, Op, Request, Ssd, Time};

/// `advance_below` does not process an event that is due exactly at the limit.
#[test]
fn events_at_the_limit_are_not_due_before_it() {
    let spec = DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &[("buffer", "none")]);
    let mut ssd = Ssd::new(&spec.unwrap());
    let request = Request {
        arrival: Time::ZERO,
        offset: 0,
        bytes: 4096,
        op: Op::Write,
        fua: false,
        ..Request::default()
    };
    ssd.submit(Time::ZERO, &request, 0).unwrap();
    let mut steps = 0;
    while let Some(due) = ssd.next_event() {
        let now = ssd.now();
        ssd.advance_below(1, due);
        assert_eq!((ssd.now(), ssd.next_event()), (now, Some(due)));
        ssd.advance_below(1, Time(due.0 + 1));
        assert_eq!(ssd.now(), due);
        steps += 1;
    }
    assert!(steps >= 2, "the bus and the chip take their time");
    assert_eq!(ssd.completions().len(), 1);
}
