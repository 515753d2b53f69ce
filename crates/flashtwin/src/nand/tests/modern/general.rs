//! Comparison of fast paths with the general path. On both, random operations must end at equal instants, and lead to
//! equal maps and counters.

use super::*;

impl Bench {
    /// Queues an operation and activates its die, on the general path.
    pub(in super::super) fn queue(&mut self, chip: usize, mut op: PageOp) {
        op.enqueued = self.now;
        op.stream = self.nand.host_stream(op.lpn, op.stream);
        let Nand::Modern(nand) = &mut self.nand else {
            unreachable!("another back end has no shorter ways");
        };
        let overtakes = op.is_read() && nand.reads_overtake();
        nand.chips[chip].take_in(op, overtakes, self.now);
        if overtakes {
            nand.suspend_for_read(chip, self.now, &mut self.events);
        }
        nand.activate(chip, self.now, &mut self.events);
    }

    /// Returns the bench's observable state.
    fn seen(&self) -> String {
        let (ftl, chips) = (self.nand.ftl(), self.nand.chips());
        ftl.check().unwrap();
        let places = (0..ftl.shape.exported_pages).map(|lpn| ftl.lookup(Lpn(lpn)));
        let places: Vec<_> = places.collect();
        let (at, done, stats) = (self.now, &self.done, self.nand.stats());
        format!("{at:?} {done:?} {stats:?} {chips:?} {places:?}")
    }
}

#[test]
fn usual_operations_do_what_all_do() {
    let cases: [&[(&str, &str)]; 10] = [
        &[],
        &[("nand.suspend", "true"), ("ftl.summary_page", "false")],
        &[("gc.preemptible", "true"), ("gc.idle_percent", "15")],
        &[("nand.copy_back", "false")],
        &[("nand.background_gc", "false"), ("gc.watermark", "pages")],
        &[("nand.read_priority", "false")],
        &[("nand.multi_plane", "2"), ("nand.program_wait_us", "50")],
        &[("nand.cached_commands", "true")],
        &[("buffer.policy", "cda-gc"), ("gc.moves", "victim")],
        &[
            ("buffer.policy", "cda-gc"),
            ("buffer.filter_reset_ms", "50"),
            ("gc.moves", "class"),
        ],
    ];
    for (seed, case) in cases.iter().enumerate() {
        let mut all = vec![("nand.backend", "modern"), ("geometry.channels", "1")];
        all.extend(*case);
        let (mut usual, mut general) =
            (Bench::new(&all, seed as u64), Bench::new(&all, seed as u64));
        general.general = true;
        general.nand.set_log(true);
        let mut rng = Rng::new(seed as u64);
        for _ in 0..2_000 {
            // In some rounds no operation is queued, so that dies become idle. In others, a queue builds up.
            for _ in 0..rng.below(2) * rng.below(9) {
                usual.enqueue(7);
                general.enqueue(7);
            }
            for _ in 0..rng.below(40) {
                assert_eq!(usual.step(), general.step());
                assert_eq!(usual.now, general.now, "{case:?}");
            }
        }
        assert_eq!(usual.seen(), general.seen(), "{case:?}");
        let moves = usual.nand.stats().count(Cause::GcMove);
        assert!(moves > 1_000, "{case:?}: {moves}");
    }
}
