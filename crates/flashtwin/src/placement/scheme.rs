//! A placement scheme assigns each page the class of unit that the page is programmed into.
//!
//! A scheme sees the page and the number of pages that the host has written, but no time, queue or
//! chip. It calls no other module. It declares in [`Needs`] which data are recorded for each
//! logical page; no other data are recorded.

use crate::component::{words, Component, Provenance, Source};
use crate::units::Lpn;

/// Number of a class of pages, which share units. It is below the scheme's [`Needs::classes`].
pub type Class = u16;

/// Largest number of classes of a scheme.
pub const CLASSES_MAX: u16 = 256;

/// Age of a page that has no copy, or whose age is not recorded.
pub const NO_AGE: u64 = u64::MAX;

/// Instant of the next write of a page that is never written again, or whose future is not known.
pub const NEVER: u64 = u64::MAX;

/// Data that a scheme needs. Data that are not declared here are neither allocated nor recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Number of classes, which are numbered from 0.
    pub classes: u16,
    /// Whether the time of each page's last host write is needed: 4 bytes per logical page.
    pub age: bool,
    /// Whether the number of moves of each page since its last host write is needed: 1 byte per
    /// logical page.
    pub moves: bool,
    /// Whether the time of each page's next host write is needed: 8 bytes per logical page, and the
    /// load must be known in advance.
    pub future: bool,
    /// Whether the class of the unit with the old copy is needed.
    pub old: bool,
    /// Destination of pages that collection moves, unless the device's setup has another one.
    pub survivors: Survivors,
    /// Classes whose moved pages (survivors) are not mixed with moved pages of other classes.
    pub isolated: Isolated,
}

/// Classes whose moved pages are not mixed with those of other classes, if survivors are kept
/// [`Survivors::Apart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolated {
    /// Moved pages of all classes may be mixed.
    None,
    /// Moved pages of each class are kept apart from moved pages of all other classes.
    All,
    /// Classes are handles, and the types of the handles determine whose moved pages are not mixed
    /// with others.
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
        /// The scheme determines the class of each moved page.
        Scheme = "scheme",
    }
}

impl Needs {
    /// Returns needs of only this number of classes, whose moved pages may be mixed.
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
    /// The handle that the host's placement id names; handle 0's number if the host gives no id.
    pub handle: u16,
    /// The placement id as given by the host.
    pub id: Option<u16>,
    /// Number of pages that the host has written before this one.
    pub clock: u64,
    /// Class of the unit with the old copy; `None` if there is no copy, it is in a shared unit, or
    /// [`Needs::old`] is not set.
    pub old_class: Option<Class>,
    /// Host pages since the last write of this page; [`NO_AGE`] if there was none, or without [`Needs::age`].
    pub age: u64,
    /// Host clock of the next write of this page; [`NEVER`] without [`Needs::future`].
    pub next: u64,
    /// Number of pages of the host's request.
    pub request_pages: u32,
}

/// A live page that collection moves.
#[derive(Clone, Copy, Debug)]
pub struct MovedPage {
    /// The page.
    pub lpn: Lpn,
    /// Class of the unit from which the page is moved.
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
    /// Whether the unit holds moved pages instead of host pages.
    pub survivors: bool,
    /// Host clock when the unit was opened.
    pub opened_at: u64,
    /// Pages of a unit.
    pub pages: u32,
    /// Number of live pages.
    pub live: u32,
    /// Number of erases so far.
    pub erases: u32,
}

/// Description of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name, parameters, and a description that continues a sentence which begins with the name.
    pub component: Component,
    /// The publication, if there is one.
    pub source: Option<Source>,
    /// How certain the rule is.
    pub provenance: Provenance,
    /// The rule in full.
    pub rule: &'static [&'static str],
}

/// A placement scheme.
pub trait Scheme: Send + Sync {
    /// Needs of the scheme, with the number of its classes.
    fn needs(&self) -> Needs;

    /// Returns the name in results; the name of an included scheme is in its [`Entry`].
    fn name(&self) -> &str {
        "own"
    }

    /// Returns the class of a page that the host writes, which is below [`Needs::classes`]. Called
    /// once per program, in the order of the programs.
    fn host(&mut self, page: &HostPage) -> Class;

    /// Returns the class of a moved page, if survivors are placed by the [`Survivors::Scheme`]; the
    /// page goes to the open unit of that class.
    fn moved(&mut self, page: &MovedPage) -> Class {
        page.from
    }

    /// Called when a unit is full, or was closed before it was full.
    fn closed(&mut self, _unit: &UnitView, _clock: u64) {}

    /// Called when a unit was collected and erased; `valid` of its pages were moved.
    fn erased(&mut self, _unit: &UnitView, _valid: u32, _clock: u64) {}

    /// Called when the host has trimmed a page.
    fn trimmed(&mut self, _lpn: Lpn) {}

    /// Returns the number of units that each class may hold in a group of dies, for the scope `chain`. Classes without a
    /// number have no limit.
    fn limits(&self) -> &[u32] {
        &[]
    }

    /// Returns the state for a snapshot; empty if the scheme has none.
    fn words(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Sets the state to the state in a snapshot; returns false if it is not a state of this
    /// scheme.
    fn set_words(&mut self, words: &[u64]) -> bool {
        words.is_empty()
    }

    /// Returns the state in the notation of the documentation; empty if the scheme has none.
    fn state(&self) -> String {
        String::new()
    }
}

/// A scheme of a user, behind a pointer.
pub trait UserScheme: Scheme {
    /// Returns a copy with its state.
    fn boxed_clone(&self) -> Box<dyn UserScheme>;
}

impl<S: Scheme + Clone + 'static> UserScheme for S {
    fn boxed_clone(&self) -> Box<dyn UserScheme> {
        Box::new(self.clone())
    }
}
