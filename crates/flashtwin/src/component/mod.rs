//! Components: policies, victim rules, translation layers and the like. Each component has one file with its name,
//! parameters, constructor and behaviour, and one line in a table. From these tables, device files are read and
//! written, values are checked, and error messages, lists and documentation are generated.

mod kind;
mod parameter;
mod source;
mod words;

pub use kind::Kind;
pub(crate) use kind::{size, TEXT_MAX};
pub(crate) use parameter::{parameters, AUTO};
pub use parameter::{Chosen, Component, FromSetting, Pages, Parameter, Settings, Value};
pub(crate) use source::source;
pub use source::{Provenance, Source};
pub(crate) use words::words;
pub use words::Word;
