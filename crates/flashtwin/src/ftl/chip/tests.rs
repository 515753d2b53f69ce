//! Chips too small for their translation layer, which only tests can make: what cannot be written is
//! refused, and what was written stays.

use super::{Bast, ChipFtl, Dftl, Fast, Faster, FlashOp, Kind, NoSpace, Setup};
use crate::rng::Rng;

/// Writes at random until nothing more is taken, and then goes on.
fn overfill(ftl: &mut impl ChipFtl, logical_pages: u32) {
    let mut rng = Rng::new(3);
    let mut ops: Vec<FlashOp> = Vec::new();
    let mut written = vec![false; logical_pages as usize];
    let mut refused = 0;
    for _ in 0..4000 {
        let page = rng.below(logical_pages.into()) as u32;
        let before = ftl.lookup(page);
        ops.clear();
        match ftl.write(page, &mut ops) {
            Ok(()) => written[page as usize] = true,
            Err(NoSpace) => {
                refused += 1;
                assert!(ftl.lookup(page).is_some() == before.is_some());
            }
        }
        ftl.check().unwrap();
    }
    assert!(refused > 0, "the chip was meant to be too small");
    for (page, written) in written.iter().enumerate() {
        assert_eq!(ftl.lookup(page as u32).is_some(), *written, "page {page}");
    }
}

#[test]
fn what_finds_no_room_is_refused_and_nothing_is_lost() {
    for name in Setup::NAMES {
        // 20 logical blocks on 16.
        let setup = Setup::new(name, 80, 16, 4).unwrap();
        assert!(setup.check().is_err(), "{name}");
        match &setup.kind {
            Kind::Dftl(own) => overfill(&mut Dftl::new(&setup, own), 80),
            Kind::Bast(own) => overfill(&mut Bast::new(&setup, own), 80),
            Kind::Fast(own) => overfill(&mut Fast::new(&setup, own), 80),
            Kind::Faster(own) => overfill(&mut Faster::new(&setup, own), 80),
        }
    }
}
