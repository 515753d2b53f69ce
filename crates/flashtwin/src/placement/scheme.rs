//! A placement scheme assigns each page the class of unit that the page is programmed into.
//!
//! A scheme sees the page and the number of pages that the host has written; no time, queue or chip. It calls
//! nothing. What it needs to know of each logical page it declares in [`Needs`]; nothing else is kept.

use crate::component::{words, Component, Provenance, Source};
use crate::units::Lpn;

/// Kind of unit, a number below the scheme's [`Needs::classes`].
pub type Class = u16;

/// Classes of a scheme at most.
pub const CLASSES_MAX: u16 = 256;

/// Age of a page that has no copy, or whose age is not kept.
pub const NO_AGE: u64 = u64::MAX;

/// Next write of a page that is not written again, or whose future is not known.
pub const NEVER: u64 = u64::MAX;

/// Needs of a scheme; nothing that is not declared is allocated, kept or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Classes that it gives, numbered from 0.
    pub classes: u16,
    /// Time of each page's last host write: 4 bytes a logical page.
    pub age: bool,
    /// Moves of each page since its last host write: 1 byte a logical page.
    pub moves: bool,
    /// Time of each page's next host write: 8 bytes a logical page, and the load must be known in advance.
    pub future: bool,
    /// Class of the old copy's unit.
    pub old: bool,
    /// Destination of pages that collection moves, unless the device has another one.
    pub survivors: Survivors,
    /// Classes whose survivors do not mix with those of other classes.
    pub isolated: Isolated,
}

/// Classes whose survivors do not mix with those of other classes, with [`Survivors::Apart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolated {
    /// No class.
    None,
    /// Every class.
    All,
    /// Classes are handles, and their types decide.
    ByHandle,
}

words! {
    /// Destination of pages that collection moves.
    pub enum Survivors {
        /// Pages of an isolated class go to units of their own, pages of all other classes to units that they share.
        Apart = "apart",
        /// Pages go to the open unit of their class, among the host's pages.
        Same = "same",
        /// Pages go to units that all classes share.
        Shared = "shared",
        /// Pages go to the open unit of the next class; pages of the last class stay in it.
        Next = "next",
        /// The scheme places each page.
        Scheme = "scheme",
    }
}

impl Needs {
    /// Nothing but this number of classes, whose survivors mix.
    pub const fn classes(classes: u16) -> Needs {
        Needs {
            classes,
            age: false,
            moves: false,
            future: false,
            old: false,
            survivors: Survivors::Apart,
            isolated: Isolated::None,
        }
    }
}

/// A page that the host writes.
#[derive(Clone, Copy, Debug)]
pub struct HostPage {
    /// The page.
    pub lpn: Lpn,
    /// The handle that the host's placement id names; handle 0's where the host gives none.
    pub handle: u16,
    /// The placement id as given.
    pub id: Option<u16>,
    /// Pages that the host has written before.
    pub clock: u64,
    /// Class of the unit with the old copy; `None` if there is no copy, it is in a shared unit, or
    /// [`Needs::old`] is not set.
    pub old_class: Option<Class>,
    /// Host pages since the last write of this page; [`NO_AGE`] if there was none, or without [`Needs::age`].
    pub age: u64,
    /// Host clock of the next write of this page; [`NEVER`] without [`Needs::future`].
    pub next: u64,
    /// Pages of the request.
    pub request_pages: u32,
}

/// A live page that collection moves.
#[derive(Clone, Copy, Debug)]
pub struct MovedPage {
    /// The page.
    pub lpn: Lpn,
    /// Class of the unit that it leaves.
    pub from: Class,
    /// Host pages since the last write of this page; [`NO_AGE`] without [`Needs::age`].
    pub age: u64,
    /// Earlier moves since the last host write, up to 255; 0 without [`Needs::moves`].
    pub moves: u8,
    /// Host clock of the next write of this page; [`NEVER`] without [`Needs::future`].
    pub next: u64,
    /// Pages that the host has written so far.
    pub clock: u64,
}

/// A unit.
#[derive(Clone, Copy, Debug)]
pub struct UnitView {
    /// Number of the unit in its group.
    pub number: u32,
    /// Group of the unit.
    pub group: u32,
    /// Class of the unit; `None` if all classes share it.
    pub class: Option<Class>,
    /// The unit holds survivors, not pages of the host.
    pub survivors: bool,
    /// Host clock at its opening.
    pub opened_at: u64,
    /// Pages of a unit.
    pub pages: u32,
    /// Live pages.
    pub live: u32,
    /// Erases so far.
    pub erases: u32,
}

/// A scheme in words.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name, parameters, and the rule as the rest of a sentence.
    pub component: Component,
    /// The publication, if there is one.
    pub source: Option<Source>,
    /// How the rule is known.
    pub provenance: Provenance,
    /// The rule in full.
    pub rule: &'static [&'static str],
}

/// A placement scheme.
pub trait Scheme: Send + Sync {
    /// Needs of the scheme, with the number of its classes.
    fn needs(&self) -> Needs;

    /// Name in results; that of a shipped scheme is in its [`Entry`].
    fn name(&self) -> &str {
        "own"
    }

    /// The class of a page that the host writes, below [`Needs::classes`]. Called once a program, in program order.
    fn host(&mut self, page: &HostPage) -> Class;

    /// The class of a survivor, with [`Survivors::Scheme`]: it goes to the open unit of that class.
    fn moved(&mut self, page: &MovedPage) -> Class {
        page.from
    }

    /// A unit is full, or was closed.
    fn closed(&mut self, _unit: &UnitView, _clock: u64) {}

    /// A unit was collected and erased; `valid` of its pages were moved.
    fn erased(&mut self, _unit: &UnitView, _valid: u32, _clock: u64) {}

    /// The host has trimmed a page.
    fn trimmed(&mut self, _lpn: Lpn) {}

    /// State for a snapshot; empty if there is none.
    fn words(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Sets the state to that of a snapshot; false if it is none of this scheme.
    fn set_words(&mut self, words: &[u64]) -> bool {
        words.is_empty()
    }

    /// State in the notation of the documentation; empty if there is none.
    fn state(&self) -> String {
        String::new()
    }
}

/// A scheme of a user, behind a pointer.
pub trait UserScheme: Scheme {
    /// A copy with its state.
    fn boxed_clone(&self) -> Box<dyn UserScheme>;
}

impl<S: Scheme + Clone + 'static> UserScheme for S {
    fn boxed_clone(&self) -> Box<dyn UserScheme> {
        Box::new(self.clone())
    }
}
