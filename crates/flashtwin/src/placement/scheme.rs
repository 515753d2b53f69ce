//! A placement scheme assigns a class to each page. The page is then programmed into a unit of that class.
//!
//! A scheme receives the page and the *host clock*, which is the number of pages that the host has written. It has no
//! access to time, queues, chips or other modules. In [`Needs`], the scheme declares the data that it needs about each
//! logical page. Other data are not recorded.

use crate::component::{words, Component, Provenance, Source};
use crate::units::Lpn;

/// Number of a class. Host pages of the same class share units. The number is below [`Needs::classes`] of the scheme.
pub type Class = u16;

/// Largest number of classes of a scheme.
pub const CLASSES_MAX: u16 = 256;

/// Age of a page that has no copy, or whose age is not recorded.
pub const NO_AGE: u64 = u64::MAX;

/// Value in place of the host clock of a page's next write, if the page is never written again, or if its next write is
/// not known.
pub const NEVER: u64 = u64::MAX;

/// Data that a scheme needs. Data that are not declared here are neither allocated nor recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Number of classes, which are numbered from 0.
    pub classes: u16,
    /// Whether the host clock at each page's last write is needed. This takes 4 bytes per logical page.
    pub age: bool,
    /// Whether the number of moves of each page since the last write of the page is needed. This takes 1 byte per
    /// logical page.
    pub moves: bool,
    /// Whether the host clock at each page's next write is needed. This takes 8 bytes per logical page, and the load
    /// must be known in advance.
    pub future: bool,
    /// Whether the class of the unit that holds the old copy of the page is needed.
    pub old: bool,
    /// Destination of moved pages, unless the device's setup specifies another one.
    pub survivors: Survivors,
    /// Classes whose moved pages (survivors) are not mixed with moved pages of other classes.
    pub isolated: Isolated,
}

/// Classes whose moved pages are not mixed with those of other classes. Has an effect only with [`Survivors::Apart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolated {
    /// Moved pages of all classes may be mixed.
    None,
    /// Moved pages of each class are kept apart from moved pages of all other classes.
    All,
    /// Classes are handles. The type of a handle determines whether its moved pages may be mixed with those of other
    /// handles.
    ByHandle,
}

words! {
    /// Destination of pages that collection moves.
    pub enum Survivors {
        /// Moved pages of an isolated class go to units of their own. Moved pages of all other classes share units.
        Apart = "apart",
        /// Moved pages go to the open unit of their class, which also receives host pages.
        Same = "same",
        /// Pages go to units that all classes share.
        Shared = "shared",
        /// Moved pages go to the open unit of the next class. Moved pages of the last class stay in the last class.
        Next = "next",
        /// The scheme determines the class of each moved page.
        Scheme = "scheme",
    }
}

impl Needs {
    /// Returns the needs of a scheme that has this number of classes, needs no data about pages, and permits mixing its
    /// moved pages.
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
    /// The reclaim unit handle that the placement id selects. If the host gives no id, the reclaim unit handle of
    /// placement handle 0.
    pub handle: u16,
    /// The placement id as given by the host.
    pub id: Option<u16>,
    /// Number of pages that the host has written before this one.
    pub clock: u64,
    /// Class of the unit that holds the old copy of the page. `None` in three cases: there is no old copy, several
    /// classes share its unit, or [`Needs::old`] is not set.
    pub old_class: Option<Class>,
    /// Number of pages that the host has written since it last wrote this page. [`NO_AGE`] if it never wrote the page
    /// before, or if [`Needs::age`] is not set.
    pub age: u64,
    /// Host clock at the next write of this page. [`NEVER`] if [`Needs::future`] is not set.
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
    /// Number of pages that the host has written since it last wrote this page. [`NO_AGE`] if [`Needs::age`] is not
    /// set.
    pub age: u64,
    /// Number of earlier moves of this page since the host last wrote it; counts up to 255. 0 if [`Needs::moves`] is
    /// not set.
    pub moves: u8,
    /// Host clock at the next write of this page. [`NEVER`] if [`Needs::future`] is not set.
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
    /// Class of the unit. `None` if several classes share the unit.
    pub class: Option<Class>,
    /// Whether the unit holds only moved pages.
    pub survivors: bool,
    /// Host clock when the unit was opened.
    pub opened_at: u64,
    /// Number of pages of a unit.
    pub pages: u32,
    /// Number of live pages.
    pub live: u32,
    /// Number of erases so far.
    pub erases: u32,
}

/// Description of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name, parameters and description. The description completes a sentence that begins with the name.
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
    /// Returns the needs of the scheme, including the number of its classes.
    fn needs(&self) -> Needs;

    /// Returns the name of the scheme in results. A shipped scheme does not implement this function, because its name
    /// is in its [`Entry`].
    fn name(&self) -> &str {
        "own"
    }

    /// Returns the class of a page that the host writes. The class must be below [`Needs::classes`]. Called once per
    /// program, in the order of the programs.
    fn host(&mut self, page: &HostPage) -> Class;

    /// Returns the class of a moved page, which is then moved to the open unit of this class. Called only with
    /// [`Survivors::Scheme`].
    fn moved(&mut self, page: &MovedPage) -> Class {
        page.from
    }

    /// Called when a unit becomes full, or is closed before it is full.
    fn closed(&mut self, _unit: &UnitView, _clock: u64) {}

    /// Called after a unit was collected and erased. `valid` is the number of pages that were moved from the unit.
    fn erased(&mut self, _unit: &UnitView, _valid: u32, _clock: u64) {}

    /// Called when the host has trimmed a page.
    fn trimmed(&mut self, _lpn: Lpn) {}

    /// Returns the number of units that each class may hold in a group of dies. The scope `chain` enforces these
    /// limits. Classes without a number have no limit.
    fn limits(&self) -> &[u32] {
        &[]
    }

    /// Returns the state for a snapshot; empty if the scheme has none.
    fn words(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Restores the state from a snapshot. Returns false if the words are not a state of this scheme.
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
