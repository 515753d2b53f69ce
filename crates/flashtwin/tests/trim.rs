//! A trim reaches every copy of its page, including copies that are still being written.

use flashtwin::{spec, DeviceSpec, Op, Request, Ssd, Time};

const PAGE: u64 = 4096;

#[test]
fn a_trim_forgets_an_older_copy_whose_program_waits() {
    let one_chip = [("geometry.chips", "1"), ("buffer.capacity", "8 KiB")];
    let text = spec::builtin("ecr").unwrap();
    let mut ssd = Ssd::new(&DeviceSpec::with_overrides(text, "ecr", &one_chip).unwrap());
    let submit = |ssd: &mut Ssd, op, page: u64| {
        let now = ssd.now();
        let (offset, bytes) = (page * PAGE, PAGE);
        let request = Request {
            arrival: now,
            offset,
            bytes,
            op,
            fua: false,
            ..Request::default()
        };
        ssd.submit(now, &request, page).unwrap();
        // In this time, the request crosses the host link, but no program completes.
        ssd.advance(now + Time::from_us(4));
    };
    // The buffer has two pages. Page 6 evicts page 5, and the program of page 5 occupies the chip. Page 7 evicts page
    // 0, whose program waits for that of page 5. Then page 0 is written again and trimmed.
    for page in [5, 0, 6, 7, 0] {
        submit(&mut ssd, Op::Write, page);
    }
    submit(&mut ssd, Op::Trim, 0);
    while ssd.step() {}
    ssd.check().unwrap();
    ssd.completions().clear();
    submit(&mut ssd, Op::Read, 0);
    while ssd.step() {}
    let read = ssd.completions().pop().unwrap();
    assert_eq!(read.breakdown.array, Time::ZERO, "flash still has page 0");
}
