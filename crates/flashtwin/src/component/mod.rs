//! What policies, victim rules and the like have in common: each is one file with its name, its
//! parameters, its constructor and its description, and one line of a table. Reader, writer, checks, suggestions,
//! lists and documentation follow from the tables.

mod kind;
mod parameter;
mod words;

pub(crate) use kind::size;
pub use kind::Kind;
pub(crate) use parameter::parameters;
pub use parameter::{Chosen, Component, FromSetting, Pages, Parameter, Settings, Value};
pub(crate) use words::words;
