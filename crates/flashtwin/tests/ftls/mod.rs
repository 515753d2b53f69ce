//! The translation layers of one chip: the specification's vectors, a shadow of the flash that they
//! write, what they cost beside each other, and their words.

mod costs;
mod page;
mod setups;
mod shadow;
mod vectors;
