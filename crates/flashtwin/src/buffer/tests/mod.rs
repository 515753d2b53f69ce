//! Tests of what policies share, and of what access strings cannot reach.

mod page;
mod system;

use super::*;
use crate::spec::{Blocks, PolicyParams};
use crate::units::Lpn;

#[test]
fn blocks_of_either_kind_hold_each_page_once() {
    for (chips, stride) in [(1, 1), (2, 1), (7, 1), (3, 4), (4, 2)] {
        for blocks in [Blocks::Host, Blocks::Element] {
            let mut params = PolicyParams::defaults(8);
            params.blocks = blocks;
            let setup = Setup {
                capacity: 8,
                chips,
                channels: 1,
                stride_pages: Some(stride),
                pages_per_block: 4,
                page_bytes: 4096,
                filtered: false,
                params,
            };
            for page in 0..500 {
                let (block, offset) = setup.block_of(Lpn(page));
                assert_eq!(setup.page_of_block(block, offset), Some(Lpn(page)));
                if blocks == Blocks::Element {
                    let chip = page / stride % chips;
                    assert_eq!(block % chips, chip, "a block of one chip");
                }
            }
        }
    }
}
