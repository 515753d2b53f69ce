//! The integration tests of this crate, linked as one program, because linking one program per file takes longer than
//! its tests. Every file and directory here must be listed; `tests/python/test_sources.py` checks that.

mod backlog;
mod cases;
mod clients;
mod clock;
mod common;
mod depth;
mod errors;
mod faults;
mod forged;
mod ftls;
mod golden;
mod identities;
mod passes;
mod physics;
mod power;
mod published;
mod reference;
mod shadow;
mod superblocks;
mod threads;
mod victims;
mod warmup;
