//! A device that programs pages into units and is simulated without time. Writes, trims and commands of the host change
//! the tables at once. (The terms unit, group, class, owner and scope are defined in docs/placement.md.)
//!
//! The *host clock* is the number of pages that the host has written. A collection *gains* the pages of its victim that
//! are not live, because they become free.
//!
//! Before a page of the host is written, the group of the page collects victims while two conditions hold: at most
//! `early` units of the group are free, and the collection of some closed unit gains space. Pages of the host never use
//! the last `low` free units, which are kept for moved pages (survivors).

use std::fmt;

use super::events::{Event, EventType, Events};
use super::ids::{Ids, Resolved};
use super::scheme::{
    Class, HostPage, Isolated, MovedPage, Needs, Scheme, Survivors, UnitView, UserScheme, NEVER,
    NO_AGE,
};
use super::schemes::{AnyScheme, User};
use super::scopes::{AnyScope, Asked};
use super::setup::{Setup, SetupError};
use super::state::Classes;
use super::victims::{AnyVictim, Found, UserVictim};
use crate::ftl::{Owner, UnitShape, Units};
use crate::units::{Lpn, Ppn};

/// A step of the device. If recording is enabled, steps are recorded in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// The collection of a unit began.
    Victim {
        /// The group.
        group: u32,
        /// Number of the unit in the group.
        unit: u32,
        /// Number of live pages of the unit when its collection began.
        live: u32,
    },
    /// A unit was erased.
    Erase {
        /// The group.
        group: u32,
        /// Number of the unit in the group.
        unit: u32,
    },
    /// An event of flexible data placement.
    Event(Event),
}

/// Limit on the number of collections for one page of the host, as a multiple of the number of units of a group.
const ROUNDS_MAX: u32 = 4;

/// Error: a page of the host finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// The page.
    pub lpn: Lpn,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "page {} finds no room: no unit that may be collected has anything to gain, or the victim rule chooses none that \
             has; raise the reserve or low, or use fewer classes",
            self.lpn.0
        )
    }
}

impl std::error::Error for NoRoom {}

/// Rules defined by a user, in their initial state.
#[derive(Default)]
pub struct UserRules {
    /// The scheme; `None` for the one that the setup names.
    pub scheme: Option<Box<dyn UserScheme>>,
    /// The victim rule; `None` for the one that the setup names.
    pub victim: Option<Box<dyn UserVictim>>,
}

impl Clone for UserRules {
    fn clone(&self) -> UserRules {
        UserRules {
            scheme: self.scheme.as_ref().map(|scheme| scheme.boxed_clone()),
            victim: self.victim.as_ref().map(|victim| victim.boxed_clone()),
        }
    }
}

impl fmt::Debug for UserRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, victim) = (self.scheme.is_some(), self.victim.is_some());
        write!(f, "UserRules {{ scheme: {scheme}, victim: {victim} }}")
    }
}

/// A page of the host for which the class and the group are known, but not the unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageToPut {
    pub lpn: Lpn,
    pub class: Class,
    /// Group that the placement id of the page selects. If the page has no id, the group that the device chose.
    pub group: u32,
    /// Host clock of the page's next write.
    next: u64,
}

/// A unit that is being collected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collection {
    pub unit: u32,
    /// Class of the host page for which the unit is collected; `None` if no page waits for room.
    class: Option<Class>,
    /// State of the unit when its collection began.
    pub view: UnitView,
    /// Owner (kind of unit) to which all live pages of the unit are moved; `None` if the scheme chooses an owner for
    /// each page.
    to: Option<Owner>,
    /// Number of pages moved so far.
    pub moved: u32,
}

/// Data about each logical page, in tables that are empty unless the scheme needs them.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    /// Low 32 bits of the host clock at the last write.
    pub written_at: Vec<u32>,
    /// Number of moves since the last write.
    pub moves: Vec<u8>,
    /// Host clock at the next write.
    pub next: Vec<u64>,
}

/// A device that writes by units, without time.
#[derive(Clone, Debug)]
pub struct Placed {
    setup: Box<Setup>,
    pub(super) units: Units,
    pub(super) classes: Classes,
    pub(super) ids: Ids,
    pub(super) scheme: AnyScheme,
    needs: Needs,
    pub(super) survivors: Survivors,
    victim: AnyVictim,
    pub(super) scope: AnyScope,
    /// A victim within the scope may have at most this number of live pages more than the closed unit with the fewest
    /// live pages. `None` means no limit.
    tolerance: Option<u32>,
    pub(super) low: u32,
    /// Early watermark, at least `low`. If at most this number of the group's units is free, a device without time
    /// begins a collection. A device with time may begin one, but need not.
    pub(super) early: u32,
    /// Minimum number of pages that a collection must gain to begin while more than `low` units are free.
    least_gain: u32,
    /// For each group, a value of the host clock. Before this value, no collection gains `least_gain` pages, because a
    /// host page makes at most one page invalid. Trims and early closes of units reset the value to 0. Snapshots omit
    /// the value, because it follows from the rest of the state.
    pub(super) rests_until: Vec<u64>,
    pub(super) pages: Pages,
    /// For each class, the group that receives writes without a placement id. The group stays the same as long as the
    /// class has an open unit in it.
    pub(super) roams: Vec<Option<u32>>,
    pub(super) events: Events,
    /// For each handle, the number of pages that the host wrote with it.
    pub(super) accepted: Vec<u64>,
    /// Number of pages that were written to another group than their id selects, because that group was full.
    pub(super) redirected: u64,
    /// Number of victims that were chosen outside the scope, because no unit of the scope gained space.
    pub(super) fallbacks: u64,
    did: Option<Vec<Did>>,
    pub(super) untimed: Untimed,
    /// For each group, whether a unit is being collected.
    collecting: Vec<bool>,
}

/// Counts of the collections that were executed in no simulated time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Untimed {
    pub moves: u64,
    /// Number of units erased.
    pub erases: u64,
    /// Number of pages erased without having been written.
    pub unwritten: u64,
}

impl Placed {
    /// Creates a device that was never written.
    ///
    /// # Errors
    /// Fails if the setup is invalid, or if some sequence of writes would find no room.
    pub fn new(setup: &Setup) -> Result<Placed, SetupError> {
        let parts = setup.parts()?;
        Placed::build(setup, parts.scheme, parts.scope)
    }

    /// Creates a device with a user's scheme, which replaces the one that the setup names.
    ///
    /// # Errors
    /// Fails as [`Placed::new`] does.
    pub fn with_scheme(setup: &Setup, scheme: Box<dyn UserScheme>) -> Result<Placed, SetupError> {
        let parts = setup.parts()?;
        Placed::build(setup, AnyScheme::User(User(scheme)), parts.scope)
    }

    fn build(setup: &Setup, scheme: AnyScheme, scope: AnyScope) -> Result<Placed, SetupError> {
        let needs = scheme.needs();
        let (survivors, isolated) = setup.survivors(&needs)?;
        setup.check_room(&needs, survivors, &isolated, 1)?;
        if setup.early > setup.low {
            // Early collections must be able to reach `early` free units. Otherwise they would never end.
            let early = Setup {
                low: setup.early,
                ..setup.clone()
            };
            let checked = early.check_room(&needs, survivors, &isolated, 1);
            checked.map_err(|e| SetupError::new(format!("early: found {}: {e}", setup.early)))?;
        }
        let classes = Classes::new(needs.classes, isolated, setup.groups);
        let pages = setup.logical_pages as usize;
        let table = |needed: bool| if needed { pages } else { 0 };
        let percent = scope.tolerance_percent();
        let tolerance = percent.map(|p| (f64::from(setup.unit_pages) * p / 100.0) as u32);
        let ids = Ids::new(setup.groups, setup.group_bits, setup.namespace.clone());
        Ok(Placed {
            units: Units::new(UnitShape {
                groups: setup.groups,
                units: setup.units,
                pages: setup.unit_pages,
                logical_pages: setup.logical_pages,
                owners: classes.owners(),
                reuse: setup.reuse(),
            }),
            ids,
            scheme,
            needs,
            survivors,
            victim: AnyVictim::new(&setup.victim),
            scope,
            tolerance,
            low: setup.low,
            early: setup.early.max(setup.low),
            least_gain: (f64::from(setup.unit_pages) * setup.least_gain_percent / 100.0).ceil()
                as u32,
            rests_until: vec![0; setup.groups as usize],
            pages: Pages {
                written_at: vec![0; table(needs.age)],
                moves: vec![0; table(needs.moves)],
                next: vec![NEVER; table(needs.future)],
            },
            roams: vec![None; usize::from(needs.classes)],
            events: Events::default(),
            accepted: vec![0; setup.handles.len()],
            redirected: 0,
            fallbacks: 0,
            did: None,
            untimed: Untimed::default(),
            collecting: vec![false; setup.groups as usize],
            classes,
            setup: Box::new(setup.clone()),
        })
    }

    /// Creates a device with a user's rules, which replace those that the setup names.
    ///
    /// # Errors
    /// Fails as [`Placed::new`] does.
    pub fn with_rules(setup: &Setup, rules: &UserRules) -> Result<Placed, SetupError> {
        let mut device = match &rules.scheme {
            Some(scheme) => Placed::with_scheme(setup, scheme.boxed_clone())?,
            None => Placed::new(setup)?,
        };
        if let Some(victim) = &rules.victim {
            device.set_victim(victim.boxed_clone());
        }
        Ok(device)
    }

    /// Replaces the victim rule that the setup names by a user's rule.
    pub fn set_victim(&mut self, victim: Box<dyn UserVictim>) {
        self.victim = AnyVictim::user(victim);
    }

    /// Returns the setup.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the name of the scheme in use.
    pub fn scheme_name(&self) -> &str {
        self.scheme.name()
    }

    /// Returns the name of the victim rule in use.
    pub fn victim_name(&self) -> &str {
        self.victim.name_of_own().unwrap_or(self.setup.victim.name)
    }

    /// Returns the needs of the scheme.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Returns the scheme's state as text.
    pub fn scheme_state(&self) -> String {
        self.scheme.state()
    }

    /// Starts or stops recording the steps for [`Placed::take_did`].
    pub fn keep_did(&mut self, on: bool) {
        self.did = on.then(Vec::new);
    }

    /// Returns the steps recorded since the last call, and removes them.
    pub fn take_did(&mut self) -> Vec<Did> {
        self.did.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note(&mut self, did: Did) {
        if let Some(log) = &mut self.did {
            log.push(did);
        }
    }

    pub(super) fn raise(&mut self, kind: EventType, event: Event) {
        let event = Event {
            kind,
            clock: self.classes.clock(),
            ..event
        };
        self.events.add(event);
        self.note(Did::Event(event));
    }

    // ---- the host writes ----

    /// Writes `n` pages from `first` on, with or without a placement id. For each page, `next` has the host clock at
    /// the next write of the page. `next` may be empty if the scheme does not need these clocks ([`Needs::future`]).
    ///
    /// # Errors
    /// Fails if a page finds no room. The pages before this page have then been written.
    ///
    /// # Panics
    /// Panics if a page is beyond the last logical page.
    pub fn write(
        &mut self,
        first: Lpn,
        n: u32,
        id: Option<u16>,
        next: &[u64],
    ) -> Result<(), NoRoom> {
        assert!(
            n <= self.setup.logical_pages && first.0 <= self.setup.logical_pages - n,
            "pages {first:?} and {n} on are beyond the device"
        );
        let to = self.accept(id, n);
        for i in 0..n {
            let next = next.get(i as usize).copied().unwrap_or(NEVER);
            let asked = self.ask(Lpn(first.0 + i), to, id, n, next);
            let group = self.room_for(&asked)?;
            self.put(&asked, group);
        }
        Ok(())
    }

    /// Counts the `n` pages of a write command for the handle that the placement id selects. If the id is invalid,
    /// records one event for the whole command.
    #[inline]
    pub(crate) fn accept(&mut self, id: Option<u16>, n: u32) -> Resolved {
        let to = self.ids.resolve(id);
        if to.invalid {
            let event = of_handle(to.handle, id, 0);
            self.raise(EventType::InvalidId, event);
        }
        self.accepted[usize::from(to.handle)] += u64::from(n);
        to
    }

    /// Returns page `lpn`, which is about to be programmed for the host, with its group and the class that the scheme
    /// assigns to it. Must be called once per program, in the order of the programs. `to` must be the destination of
    /// `id`.
    #[inline(always)]
    pub(crate) fn ask(
        &mut self,
        lpn: Lpn,
        to: Resolved,
        id: Option<u16>,
        request_pages: u32,
        next: u64,
    ) -> PageToPut {
        let page = HostPage {
            lpn,
            handle: to.handle,
            id,
            clock: self.classes.clock(),
            old_class: self.old_class(lpn),
            age: self.age(lpn),
            next,
            request_pages,
        };
        let class = self.scheme.host(&page);
        let class = self.known(class);
        let group = match to.group {
            Some(group) => group,
            None if self.setup.groups == 1 => 0,
            None => self.roam(class),
        };
        PageToPut {
            lpn,
            class,
            group,
            next,
        }
    }

    /// Makes room for a page by collections that take no simulated time. Returns the group that has room.
    #[inline(always)]
    pub(crate) fn room_for(&mut self, page: &PageToPut) -> Result<u32, NoRoom> {
        self.make_room(page.group, page.class);
        let owner = self.classes.host(page.class);
        match self.units.frontier(page.group, owner) {
            Some(_) => Ok(page.group),
            None => self.group_with_room(page.group, page.class, page.lpn),
        }
    }

    /// Writes a page of the host to the open unit of its class in a group. The class must have an open unit there.
    #[inline(always)]
    pub(crate) fn put(&mut self, page: &PageToPut, group: u32) -> Ppn {
        let (lpn, class) = (page.lpn, page.class);
        let owner = self.classes.host(class);
        let clock = self.classes.clock();
        match self.units.lookup(lpn) {
            Some(ppn) => self.overwrite(ppn, class, clock),
            None => self.units.count_mapped(),
        }
        let given = self.units.give(group, owner, lpn);
        self.classes.count_host(class);
        if self.needs.age {
            self.pages.written_at[lpn.0 as usize] = clock as u32;
        }
        if self.needs.moves {
            self.pages.moves[lpn.0 as usize] = 0;
        }
        if self.needs.future {
            self.pages.next[lpn.0 as usize] = page.next;
        }
        if given.full {
            self.filled(given.unit);
        }
        given.ppn
    }

    #[inline(always)]
    fn overwrite(&mut self, ppn: Ppn, class: Class, clock: u64) {
        let unit = self.units.kill(ppn, clock);
        let of = self.classes.class_of(self.units.unit(unit).owner);
        self.classes.crossed += u64::from(of.is_some_and(|of| of != class));
    }

    #[inline(always)]
    fn old_class(&self, lpn: Lpn) -> Option<Class> {
        if !self.needs.old {
            return None;
        }
        let unit = self.units.unit_of(self.units.lookup(lpn)?);
        self.classes.class_of(self.units.unit(unit).owner)
    }

    /// Checks a class that the scheme returned.
    #[inline(always)]
    fn known(&self, class: Class) -> Class {
        let classes = self.needs.classes;
        assert!(class < classes, "class {class} of a scheme with {classes}");
        class
    }

    /// Returns the age of page `lpn`: the number of pages that the host has written since it last wrote this page.
    /// Returns [`NO_AGE`] if the page has no copy, or if the scheme does not need ages.
    #[inline(always)]
    fn age(&self, lpn: Lpn) -> u64 {
        if !self.needs.age || self.units.lookup(lpn).is_none() {
            return NO_AGE;
        }
        let at = self.pages.written_at[lpn.0 as usize];
        u64::from((self.classes.clock() as u32).wrapping_sub(at))
    }

    /// Returns the group for a write without a placement id. The class stays in the group that it used last while it
    /// has an open unit there. Otherwise, the group with the most free units is chosen.
    fn roam(&mut self, class: Class) -> u32 {
        let owner = self.classes.host(class);
        let now = self.roams[usize::from(class)];
        let stays = now.filter(|&group| self.units.frontier(group, owner).is_some());
        let group = stays.unwrap_or_else(|| {
            let most = |&group: &u32| (self.units.free(group), std::cmp::Reverse(group));
            (0..self.setup.groups).max_by_key(most).unwrap_or(0)
        });
        self.roams[usize::from(class)] = Some(group);
        group
    }

    /// Returns a group in which the class has an open unit: the wanted group or, if that group is full, another one.
    /// Opens the unit if necessary.
    #[inline(never)]
    fn group_with_room(&mut self, wanted: u32, class: Class, lpn: Lpn) -> Result<u32, NoRoom> {
        if self.open(wanted, class) {
            return Ok(wanted);
        }
        let owner = self.classes.host(class);
        for group in self.others_by_room(wanted) {
            self.make_room(group, class);
            if self.units.frontier(group, owner).is_some() || self.open(group, class) {
                self.redirected += 1;
                return Ok(group);
            }
        }
        Err(NoRoom { lpn })
    }

    /// Opens a unit for host pages of the class, provided that more than `low` units are free. Returns whether a unit
    /// was opened.
    pub(super) fn open(&mut self, group: u32, class: Class) -> bool {
        self.units.free(group) > self.low && self.bind(group, self.classes.host(class))
    }

    /// Opens a unit for an owner. Returns false if no unit is free.
    fn bind(&mut self, group: u32, owner: Owner) -> bool {
        let bound = self.units.bind(group, owner, self.classes.clock());
        if bound.is_some() {
            self.classes.count_opened(group, owner);
        }
        bound.is_some()
    }

    /// Notifies the scheme that a unit is full. For a unit of host pages, also raises the event that its handle now
    /// refers to another unit.
    #[inline(never)]
    fn filled(&mut self, unit: u32) {
        let owner = self.units.unit(unit).owner;
        if self.classes.is_host(owner) {
            let group = self.units.group_of(unit);
            self.raise(
                EventType::ImplicitChange,
                self.of_class(owner.0, None, group),
            );
        }
        self.closed(unit);
    }

    fn closed(&mut self, unit: u32) {
        let view = self.view(unit);
        self.scheme.closed(&view, self.classes.clock());
    }

    /// Unmaps `n` pages from `first` on.
    ///
    /// # Panics
    /// Panics if a page is beyond the last logical page.
    pub fn trim(&mut self, first: Lpn, n: u32) {
        assert!(
            n <= self.setup.logical_pages && first.0 <= self.setup.logical_pages - n,
            "pages {first:?} and {n} on are beyond the device"
        );
        let clock = self.classes.clock();
        self.rests_until.fill(0);
        for lpn in (first.0..first.0 + n).map(Lpn) {
            if self.units.unmap(lpn, clock).is_some() {
                self.scheme.trimmed(lpn);
            }
        }
    }

    /// Prefetches the data that a write of the logical page `lpn` accesses first into the processor's cache.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        if lpn.0 < self.setup.logical_pages {
            self.units.prefetch(lpn);
        }
    }

    /// Prefetches the state of the unit with the old copy of `lpn`. The map entry of `lpn` must be in the processor's
    /// cache.
    #[inline(always)]
    pub fn prefetch_old_copy(&self, lpn: Lpn) {
        if lpn.0 < self.setup.logical_pages {
            self.units.prefetch_old_copy(lpn);
        }
    }

    // ---- collection ----

    /// Collects while the group has at most `early` free units and the collection of some closed unit gains space.
    #[inline(always)]
    fn make_room(&mut self, group: u32, class: Class) {
        if self.units.free(group) <= self.early {
            self.collect_until_room(group, class);
        }
    }

    #[inline(never)]
    fn collect_until_room(&mut self, group: u32, class: Class) {
        // The number of rounds is limited, because a rule that chooses only units without invalid pages never gains
        // space.
        for _ in 0..self.setup.units.saturating_mul(ROUNDS_MAX) {
            if self.units.free(group) > self.early {
                return;
            }
            let Some(unit) = self.choose(group, Some(class)) else {
                return;
            };
            self.collect(unit, Some(class));
        }
    }

    /// Returns the next victim of a group. Returns `None` in three cases: no closed unit gains space, a user's rule
    /// chooses none, or the victim gains fewer than `least_gain` pages although more than `low` units are free.
    pub(crate) fn choose(&mut self, group: u32, class: Option<Class>) -> Option<u32> {
        let may_wait = self.least_gain > 0 && self.units.free(group) > self.low;
        if may_wait && self.classes.clock() < self.rests_until[group as usize] {
            return None;
        }
        // A victim that gains too little is declined. The choice must then leave the scope unchanged: a device that is
        // loaded from a snapshot has no `rests_until`, therefore chooses once more, and must continue like the original
        // device.
        let scope = may_wait.then(|| self.scope.clone());
        let found = self.choose_any(group, class);
        let unit = found.unit?;
        let gain = self.setup.unit_pages - self.units.unit(unit).live;
        if !may_wait || gain >= self.least_gain {
            self.fallbacks += u64::from(found.fell_back);
            return Some(unit);
        }
        if let Some(scope) = scope {
            self.scope = scope;
        }
        let opened = self.units.opened(group).iter();
        let dead = opened.map(|&unit| {
            let unit = self.units.unit(unit);
            match unit.bound {
                true => unit.given - unit.live,
                false => self.setup.unit_pages - unit.live,
            }
        });
        // Number of pages that must still become invalid before the collection of any unit gains enough. If another
        // unit than the chosen victim gains enough, the number is 0.
        let missing = self.least_gain.saturating_sub(dead.max().unwrap_or(0));
        self.rests_until[group as usize] = self.classes.clock() + u64::from(missing);
        None
    }

    fn choose_any(&mut self, group: u32, class: Option<Class>) -> Found {
        let asked = Asked {
            units: &self.units,
            classes: &self.classes,
            group,
            class,
            limits: self.scheme.limits(),
        };
        self.scope.prepare(&asked);
        self.victim.choose(&super::victims::Choice {
            asked: &asked,
            scope: &self.scope,
            survivors: self.survivors,
            tolerance: self.tolerance,
            low: self.low,
        })
    }

    /// Moves the live pages of a unit in their order, then erases the unit.
    fn collect(&mut self, unit: u32, class: Option<Class>) {
        let mut run = self.begin_collection(unit, class);
        let words = self.units.live_words(unit).len() as u32;
        self.units.prefetch_moves(unit, 0);
        for word in 0..words {
            self.units.prefetch_moves(unit, word + 1);
            let mut bits = self.units.live_words(unit)[word as usize];
            while bits != 0 {
                let page = word * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                self.move_page(&mut run, page);
            }
        }
        self.untimed.unwritten += u64::from(self.unwritten(unit));
        self.end_collection(&run);
        self.untimed.moves += u64::from(run.moved);
        self.untimed.erases += 1;
    }

    /// Begins to collect a unit. `class` is the class of the host page that needs room, if there is one.
    pub(crate) fn begin_collection(&mut self, unit: u32, class: Option<Class>) -> Collection {
        let view = self.view(unit);
        let u = *self.units.unit(unit);
        let group = view.group;
        self.note(Did::Victim {
            group,
            unit: view.number,
            live: u.live,
        });
        if u.live > 0 {
            let event = Event {
                handle: view.class.filter(|_| self.is_by_handle()),
                moved: u.live,
                ..of_handle(0, None, group)
            };
            self.raise(EventType::Reallocated, event);
        }
        self.classes.count_collected(&u, self.setup.unit_pages);
        self.collecting[group as usize] = true;
        let to = match self.survivors {
            Survivors::Scheme => None,
            _ => Some(self.destination(u.owner)),
        };
        Collection {
            unit,
            class,
            view,
            to,
            moved: 0,
        }
    }

    /// Assigns a new place to a live page of the unit that `run` collects. Changes only the tables. Returns the new
    /// place.
    #[inline(always)]
    pub(crate) fn move_page(&mut self, run: &mut Collection, page: u32) -> Ppn {
        let lpn = self.units.lpn_at(run.unit, page);
        let owner = match run.to {
            Some(owner) => owner,
            None => self.ask_where(lpn, &run.view),
        };
        let group = run.view.group;
        if self.units.frontier(group, owner).is_none() {
            let bound = self.bind(group, owner);
            assert!(bound, "a victim's survivors find room");
        }
        self.units.clear(run.unit, page);
        let given = self.units.give(group, owner, lpn);
        self.classes.count_moved(owner);
        run.moved += 1;
        if self.needs.moves {
            let moves = &mut self.pages.moves[lpn.0 as usize];
            *moves = moves.saturating_add(1);
        }
        if given.full {
            self.filled(given.unit);
        }
        given.ppn
    }

    /// Erases the unit that `run` has collected. The unit must have no live page.
    pub(crate) fn end_collection(&mut self, run: &Collection) {
        let view = &run.view;
        self.collecting[view.group as usize] = false;
        let owner = self.units.unit(run.unit).owner;
        self.classes.count_moved_out(owner, run.class, run.moved);
        self.classes
            .count_erased(view.group, self.units.unit(run.unit));
        self.units.erase(run.unit);
        let erased = UnitView {
            erases: view.erases + 1,
            ..*view
        };
        self.scheme.erased(&erased, run.moved, self.classes.clock());
        self.note(Did::Erase {
            group: view.group,
            unit: view.number,
        });
    }

    /// Returns the owner that the scheme chooses for a survivor.
    fn ask_where(&mut self, lpn: Lpn, view: &UnitView) -> Owner {
        let moved = MovedPage {
            lpn,
            // The fallback 0 is never used: if the scheme places moved pages, every unit has a class.
            from: view.class.unwrap_or(0),
            age: self.age(lpn),
            moves: self.pages.moves.get(lpn.0 as usize).copied().unwrap_or(0),
            next: self
                .pages
                .next
                .get(lpn.0 as usize)
                .copied()
                .unwrap_or(NEVER),
            clock: self.classes.clock(),
        };
        let class = self.scheme.moved(&moved);
        self.classes.host(self.known(class))
    }

    /// Returns the owner (kind of unit) to which the live pages of a unit of the owner `from` are moved. Used if the
    /// scheme does not choose an owner for each page.
    fn destination(&self, from: Owner) -> Owner {
        super::victims::destination(&self.classes, self.survivors, from)
    }

    pub(super) fn view(&self, unit: u32) -> UnitView {
        let u = self.units.unit(unit);
        let group = self.units.group_of(unit);
        UnitView {
            number: unit - group * self.setup.units,
            group,
            class: self.classes.class_of(u.owner),
            survivors: !self.classes.is_host(u.owner),
            opened_at: u.opened_at,
            pages: self.setup.unit_pages,
            live: u.live,
            erases: u.erases,
        }
    }

    // ---- commands ----

    /// Whether classes are handles.
    pub(super) fn is_by_handle(&self) -> bool {
        self.needs.isolated == Isolated::ByHandle
    }

    /// Creates an event for a class. If classes are handles, the event contains the handle.
    fn of_class(&self, class: Class, id: Option<u16>, group: u32) -> Event {
        Event {
            handle: Some(class).filter(|_| self.is_by_handle()),
            ..of_handle(class, id, group)
        }
    }

    /// Whether a command may now close open units of the group. While a collection moves pages to open units of the
    /// host, this requires that another unit is free.
    pub(super) fn may_close(&self, group: u32) -> bool {
        !self.collecting[group as usize] || !self.mixes_survivors() || self.units.free(group) > 0
    }

    /// Closes the open unit of a class in a group, even if the unit is not full. Returns whether there was an open
    /// unit.
    pub(super) fn close(&mut self, group: u32, class: Class) -> bool {
        match self.units.close(group, self.classes.host(class)) {
            Some(unit) => {
                // A collection of the closed unit now also gains its unwritten pages, so a collection may be worthwhile
                // earlier.
                self.rests_until[group as usize] = 0;
                self.closed(unit);
                true
            }
            None => false,
        }
    }

    /// Simulates a power loss. If the setup has `closes_at_power_cut`, the host's open units are closed, even if they
    /// are not full. Otherwise, nothing changes.
    pub fn cut_power(&mut self) {
        if !self.setup.closes_at_power_cut {
            return;
        }
        for group in 0..self.setup.groups {
            for class in 0..self.needs.classes {
                if self.close(group, class) {
                    self.raise(EventType::ResetChanged, self.of_class(class, None, group));
                }
            }
        }
    }

    /// Checks that the tables agree with each other and with the counts.
    ///
    /// # Errors
    /// The error names the first disagreement.
    pub fn check(&self) -> Result<(), String> {
        self.units.check()?;
        let host: u64 = (0..self.needs.classes)
            .map(|class| self.classes.host_pages(class))
            .sum();
        if host != self.classes.clock() {
            let all = self.classes.clock();
            return Err(format!("{host} pages of the host by class, {all} in all"));
        }
        let out: u64 = self.classes.counts.iter().map(|c| c.moved_out).sum();
        if out != self.classes.moved() {
            return Err(format!(
                "{out} survivors left units, {} came into some",
                self.classes.moved()
            ));
        }
        for owner in (0..self.classes.owners()).map(Owner) {
            for group in 0..self.setup.groups {
                let of = |&&unit: &&u32| self.units.unit(unit).owner == owner;
                let there = self.units.opened(group).iter().filter(of).count() as u32;
                if there != self.classes.in_use_of(group, owner) {
                    let owner = self.classes.show(owner);
                    return Err(format!("group {group}: {there} units of {owner}"));
                }
            }
        }
        self.check_isolation()
    }

    /// Checks that, if survivors are kept apart, only isolated classes have units of their own for survivors. (Another
    /// invariant is checked by the naive implementation in the tests: each page was last written with the class of its
    /// unit.)
    fn check_isolation(&self) -> Result<(), String> {
        for group in 0..self.setup.groups {
            for &unit in self.units.opened(group) {
                let owner = self.units.unit(unit).owner;
                let apart = self.survivors == Survivors::Apart;
                if owner == self.classes.shared() || !apart || self.classes.is_host(owner) {
                    continue;
                }
                let class = self.classes.class_of(owner).unwrap_or(0);
                if !self.classes.is_isolated(class) {
                    let owner = self.classes.show(owner);
                    return Err(format!("unit {unit} is of {owner}, which is not isolated"));
                }
            }
        }
        Ok(())
    }
}

/// Creates an event for a handle. Its type and its time are placeholders, which the caller replaces when it records the
/// event.
pub(super) fn of_handle(handle: u16, id: Option<u16>, group: u32) -> Event {
    Event {
        kind: EventType::InvalidId,
        handle: Some(handle),
        id,
        group,
        clock: 0,
        moved: 0,
    }
}
