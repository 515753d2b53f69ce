//! The translation layers of one chip: the test vectors of the specification, a shadow of the flash to which the layers
//! write, a comparison of their costs, and the page of their descriptions.

mod costs;
mod page;
mod setups;
mod shadow;
mod vectors;
