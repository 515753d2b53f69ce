//! Tests of code that several policies share, and of situations that access strings cannot produce.

mod page;
mod system;

use super::{Blocking, Blocks, Programs, Setup};
use crate::component::Settings;
use crate::stepping::Traceable;
use crate::units::Lpn;

/// Returns the parameters of a policy. The parameters in `set` have the given values; all others have their defaults.
fn settings(policy: &str, capacity: u32, set: &[(&str, &str)]) -> Settings {
    let device = Traceable {
        policy,
        capacity,
        set,
        chips: 1,
        stride_pages: 1,
        pages_per_block: 4,
    };
    Setup::of(&device.device().expect("settings of the policy")).settings
}

#[test]
fn blocks_of_either_kind_hold_each_page_once() {
    for (chips, stride) in [(1, 1), (2, 1), (7, 1), (3, 4), (4, 2)] {
        for blocks in [Blocks::Host, Blocks::Element] {
            let setup = Setup {
                capacity: 8,
                chips,
                channels: 1,
                stride_pages: Some(stride),
                pages_per_block: 4,
                page_bytes: 4096,
                programs: Programs::INSTANT,
                filtered: false,
                settings: Settings::default(),
            };
            let blocking = Blocking::new(&setup, blocks);
            for page in 0..500 {
                let (block, offset) = blocking.block_of(Lpn(page));
                assert_eq!(blocking.page_of_block(block, offset), Some(Lpn(page)));
                if blocks == Blocks::Element {
                    let chip = page / stride % chips;
                    assert_eq!(block % chips, chip, "a block of one chip");
                }
            }
        }
    }
}
