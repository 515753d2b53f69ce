//! Buffer policies: the test vectors of the specification, identities between policies, and a
//! comparison of each policy with a second, naive implementation of its published rule.

mod block;
mod block_naive;
mod clock_pro;
mod coop;
mod harness;
mod lfu;
mod page;
mod page_naive;
mod recency;
mod system;
mod system_naive;
mod w_tinylfu;
