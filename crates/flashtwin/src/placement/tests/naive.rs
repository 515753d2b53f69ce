//! A naive implementation of placement, for comparison. Units are lists of pages, and every search examines all units.

use std::collections::HashMap;

use super::super::setup::{FreeUnit, Isolation, Setup};
use super::super::{theory, Survivors};

struct Unit {
    number: usize,
    group: usize,
    owner: String,
    pages: Vec<Option<usize>>,
    bound: bool,
    erases: u32,
    sequence: usize,
    /// Host clock (number of host pages written) when a page of the unit last became invalid.
    last_death: u64,
}

pub struct Naive {
    setup: Setup,
    /// All units. A unit that is in use has an owner.
    units: Vec<Unit>,
    /// Free units of each group, in the order in which they became free.
    free: Vec<Vec<usize>>,
    sequence: Vec<usize>,
    roam: Vec<Option<usize>>,
    pub programs: u64,
    /// Number of moved pages, for each class of the page that waited for room and each owner (kind of unit) of the
    /// collected unit.
    pub caused: HashMap<(usize, String), u64>,
    events: Vec<String>,
    did: Vec<String>,
    host_by_class: Vec<u64>,
    shares: Vec<f64>,
    seen: Vec<u64>,
    quota: Vec<u32>,
    erases: u64,
    due: u64,
    optimal: bool,
    unlimited: bool,
}

impl Naive {
    pub fn new(setup: &Setup) -> Naive {
        let per_group = setup.units as usize;
        let all = setup.groups as usize * per_group;
        let unit = |i: usize| Unit {
            number: i % per_group,
            group: i / per_group,
            owner: String::new(),
            pages: Vec::new(),
            bound: false,
            erases: 0,
            sequence: 0,
            last_death: 0,
        };
        let n = setup.handles.len();
        let scope = format!("{:?}", setup.scope);
        let optimal = scope.contains("optimal");
        Naive {
            optimal,
            unlimited: optimal || scope.contains("none") || scope.contains("save-sequential"),
            units: (0..all).map(unit).collect(),
            free: (0..setup.groups as usize)
                .map(|g| (g * per_group..(g + 1) * per_group).collect())
                .collect(),
            sequence: vec![0; setup.groups as usize],
            roam: vec![None; n],
            programs: 0,
            caused: HashMap::new(),
            events: Vec::new(),
            did: Vec::new(),
            host_by_class: vec![0; n],
            shares: vec![0.0; n],
            seen: vec![0; n],
            quota: vec![setup.units / n as u32; n],
            erases: 0,
            due: 0,
            setup: setup.clone(),
        }
    }

    pub fn step(&mut self, op: &str) -> (Vec<String>, String) {
        self.did.clear();
        let words: Vec<&str> = op.split(' ').collect();
        let n = |i: usize| words[i].parse::<usize>().unwrap();
        match words[0] {
            "W" => {
                let (group, handle, invalid) = self.resolve(words[3]);
                if invalid {
                    self.did.push("03h".into());
                    self.events.push("03h".into());
                }
                for lpn in n(1)..n(1) + n(2) {
                    self.write(lpn, group, handle);
                }
            }
            "T" => (n(1)..n(1) + n(2)).for_each(|lpn| self.kill(lpn)),
            "U" => match self.resolve(words[1]) {
                (_, _, true) => self.did.push("invalid field".into()),
                (group, handle, _) => {
                    let owner = format!("h{handle}");
                    if let Some(unit) = self.frontier(group.unwrap_or(0), &owner) {
                        self.units[unit].bound = false;
                        self.did.push("00h".into());
                    }
                }
            },
            _ => {
                let mut units: Vec<usize> = (0..self.units.len()).collect();
                units.sort_by_key(|&u| (self.units[u].group, self.units[u].owner.clone()));
                for unit in units {
                    let unit = &mut self.units[unit];
                    if unit.bound && unit.owner.starts_with('h') {
                        unit.bound = false;
                        self.did.push("02h".into());
                    }
                }
            }
        }
        (self.did.clone(), self.state())
    }

    fn resolve(&self, id: &str) -> (Option<usize>, usize, bool) {
        let Ok(id) = id.parse::<usize>() else {
            return (None, 0, false);
        };
        let groups = self.setup.groups as usize;
        let shift = 16 - self.setup.group_bits;
        let (group, handle) = (id >> shift, id & ((1 << shift) - 1));
        match group < groups && handle < self.setup.handles.len() {
            true => (Some(group), handle, false),
            false => (None, 0, true),
        }
    }

    fn frontier(&self, group: usize, owner: &str) -> Option<usize> {
        let is = |u: &Unit| u.bound && u.group == group && u.owner == owner;
        self.units.iter().position(is)
    }

    fn write(&mut self, lpn: usize, group: Option<usize>, class: usize) {
        let owner = format!("h{class}");
        let mut group = match group {
            Some(group) => group,
            None if self.setup.groups == 1 => 0,
            None => {
                let stays = self.roam[class].filter(|&g| self.frontier(g, &owner).is_some());
                let group = stays.unwrap_or_else(|| self.roomiest());
                self.roam[class] = Some(group);
                group
            }
        };
        self.make_room(group, class);
        if self.frontier(group, &owner).is_none() && !self.has_room(group) {
            let mut others: Vec<usize> = (0..self.free.len()).filter(|&g| g != group).collect();
            others.sort_by_key(|&g| (std::cmp::Reverse(self.free[g].len()), g));
            for other in others {
                self.make_room(other, class);
                if self.frontier(other, &owner).is_some() || self.has_room(other) {
                    group = other;
                    break;
                }
            }
        }
        self.kill(lpn);
        self.give(group, &owner, lpn);
        self.host_by_class[class] += 1;
    }

    fn has_room(&self, group: usize) -> bool {
        self.free[group].len() > self.setup.low as usize
    }

    fn roomiest(&self) -> usize {
        let best = self.free.iter().map(Vec::len).max().unwrap();
        self.free
            .iter()
            .position(|free| free.len() == best)
            .unwrap()
    }

    /// Removes the old copy of a page that the host has written or trimmed.
    fn kill(&mut self, lpn: usize) {
        let host = self.host_by_class.iter().sum();
        if let Some(unit) = self.take(lpn) {
            self.units[unit].last_death = host;
        }
    }

    /// Removes a page from its unit, and returns the unit.
    fn take(&mut self, lpn: usize) -> Option<usize> {
        let has = |unit: &Unit| unit.pages.contains(&Some(lpn));
        let unit = self.units.iter().position(has)?;
        for page in self.units[unit]
            .pages
            .iter_mut()
            .filter(|page| **page == Some(lpn))
        {
            *page = None;
        }
        Some(unit)
    }

    fn give(&mut self, group: usize, owner: &str, lpn: usize) {
        let unit = match self.frontier(group, owner) {
            Some(unit) => unit,
            None => {
                let at = match self.setup.reuse {
                    FreeUnit::Oldest => 0,
                    FreeUnit::LeastWorn => {
                        let wear = |&u: &usize| (self.units[u].erases, u);
                        let best = self.free[group].iter().copied().min_by_key(wear).unwrap();
                        self.free[group].iter().position(|&u| u == best).unwrap()
                    }
                };
                let unit = self.free[group].remove(at);
                self.units[unit].owner = owner.into();
                self.units[unit].bound = true;
                self.units[unit].last_death = self.host_by_class.iter().sum();
                self.units[unit].sequence = self.sequence[group];
                self.sequence[group] += 1;
                unit
            }
        };
        self.units[unit].pages.push(Some(lpn));
        self.programs += 1;
        if self.units[unit].pages.len() == self.setup.unit_pages as usize {
            self.units[unit].bound = false;
            if owner.starts_with('h') {
                self.did.push("81h".into());
            }
        }
    }

    fn live(&self, unit: usize) -> usize {
        self.units[unit].pages.iter().flatten().count()
    }

    fn class(&self, unit: usize) -> Option<usize> {
        self.units[unit].owner.get(1..).and_then(|n| n.parse().ok())
    }

    fn destination(&self, unit: usize) -> String {
        let Some(class) = self.class(unit) else {
            return "s".into();
        };
        let isolated = self.setup.handles[class] == Isolation::Persistently;
        match self.setup.survivors.unwrap_or(Survivors::Apart) {
            Survivors::Apart if isolated => format!("g{class}"),
            Survivors::Apart | Survivors::Shared => "s".into(),
            Survivors::Next => format!("h{}", (class + 1).min(self.setup.handles.len() - 1)),
            Survivors::Same | Survivors::Scheme => format!("h{class}"),
        }
    }

    fn fits(&self, unit: usize) -> bool {
        let group = self.units[unit].group;
        let whole = self.setup.unit_pages as usize;
        let open = self.frontier(group, &self.destination(unit));
        let left = open.map_or(0, |open| whole - self.units[open].pages.len());
        self.live(unit) <= left + self.free[group].len() * whole
    }

    fn make_room(&mut self, group: usize, class: usize) {
        let Setup {
            low,
            early,
            unit_pages,
            ..
        } = self.setup;
        let least_gain = self.setup.least_gain_percent / 100.0 * f64::from(unit_pages);
        while self.free[group].len() <= early.max(low) as usize {
            let quota = (
                self.shares.clone(),
                self.seen.clone(),
                self.quota.clone(),
                self.due,
            );
            let Some(victim) = self.victim(group, class) else {
                return;
            };
            let gain = unit_pages as usize - self.live(victim);
            if self.free[group].len() > low as usize && (gain as f64) < least_gain {
                // If a choice is declined, it must not change the state.
                (self.shares, self.seen, self.quota, self.due) = quota;
                return;
            }
            let live: Vec<usize> = self.units[victim].pages.iter().flatten().copied().collect();
            let number = self.units[victim].number;
            self.did.push(format!("victim u{number} v{}", live.len()));
            if !live.is_empty() {
                self.did.push("80h".into());
            }
            let from = (class, self.units[victim].owner.clone());
            *self.caused.entry(from).or_default() += live.len() as u64;
            let owner = self.destination(victim);
            for lpn in live {
                self.take(lpn);
                self.give(group, &owner, lpn);
            }
            self.units[victim].pages.clear();
            self.units[victim].owner.clear();
            self.units[victim].erases += 1;
            self.free[group].push(victim);
            self.erases += 1;
            self.did.push(format!("erase u{number}"));
        }
    }

    /// Returns the best of the given units. Of several equally good units, returns the one that was opened first.
    fn best(&self, among: &[usize]) -> Option<usize> {
        let whole = self.setup.unit_pages as usize;
        let mut order = among.to_vec();
        order.sort_by_key(|&u| self.units[u].sequence);
        let benefit = |u: usize| {
            let age = self.sequence[self.units[u].group] - 1 - self.units[u].sequence;
            age * (whole - self.live(u))
        };
        let better = |a: usize, b: usize| match self.setup.victim.name {
            "greedy" => self.live(a) < self.live(b),
            "fifo" => false,
            _ => benefit(a) * self.live(b) > benefit(b) * self.live(a),
        };
        let best = |best: usize, next: usize| if better(next, best) { next } else { best };
        order.into_iter().reduce(best)
    }

    fn victim(&mut self, group: usize, class: usize) -> Option<usize> {
        if self.optimal {
            self.update_quota();
        }
        let whole = self.setup.unit_pages as usize;
        let all: Vec<usize> = (0..self.units.len())
            .filter(|&u| self.units[u].group == group && !self.units[u].owner.is_empty())
            .filter(|&u| !self.units[u].bound && self.fits(u))
            .collect();
        let least = all.iter().map(|&u| self.live(u)).min()?;
        if least == whole {
            return None;
        }
        let name = self.setup.scope.name;
        if name == "global" {
            return self.best(&all);
        }
        let in_use = |class: usize| {
            let own = |&u: &usize| self.units[u].group == group && self.class(u) == Some(class);
            (0..self.units.len()).filter(own).count()
        };
        let is_above = |class: usize| in_use(class) > self.quota[class] as usize;
        let above: Vec<bool> = (0..self.setup.handles.len()).map(is_above).collect();
        let any = above.contains(&true);
        let isolated = self.setup.handles[class] == Isolation::Persistently;
        let host: u64 = self.host_by_class.iter().sum();
        let has = |&u: &usize| match (name, self.class(u)) {
            ("save-sequential", _) => {
                let pages = &self.units[u].pages;
                let dead = pages.iter().filter(|page| page.is_none()).count();
                let prefix = pages.iter().take_while(|page| page.is_none()).count();
                let lately = host - self.units[u].last_death < 2 * whole as u64;
                !(dead > 0 && dead == prefix && dead < pages.len() && lately)
            }
            ("handle", Some(of)) => of == class,
            ("handle", None) => !isolated,
            (_, of) => !any || of.is_some_and(|class| above[class]),
        };
        let scoped: Vec<usize> = all.iter().copied().filter(has).collect();
        if scoped.iter().all(|&u| self.live(u) == whole) {
            return self.best(&all);
        }
        let tolerance = whole as f64 * 0.125;
        let found = self.best(&scoped)?;
        let limit = least + tolerance as usize;
        match self.unlimited || self.live(found) <= limit {
            true => Some(found),
            false => self.best(&all),
        }
    }

    fn update_quota(&mut self) {
        if self.erases < self.due {
            return;
        }
        let whole = self.setup.units - self.setup.low;
        self.due = self.erases + u64::from((whole / 16).max(1));
        let written: Vec<u64> = (0..self.seen.len())
            .map(|c| self.host_by_class[c] - self.seen[c])
            .collect();
        let sum = written.iter().sum::<u64>() as f64;
        if sum > 0.0 {
            let capacity = f64::from(whole) * f64::from(self.setup.unit_pages);
            let first = self.shares.iter().all(|&s| s == 0.0);
            let weight = if first {
                1.0
            } else {
                1.0 - (-sum / capacity).exp()
            };
            for (share, pages) in self.shares.iter_mut().zip(&written) {
                *share += weight * (*pages as f64 / sum - *share);
            }
            self.seen = self.host_by_class.clone();
        }
        let live_of = |class: usize| {
            let units = (0..self.units.len()).filter(|&u| self.class(u) == Some(class));
            units.map(|u| self.live(u)).sum::<usize>() as f64
        };
        let live: Vec<f64> = (0..self.seen.len())
            .map(|c| live_of(c) / f64::from(self.setup.unit_pages))
            .collect();
        if let Some(split) = theory::optimal_split(&live, &self.shares, f64::from(whole)) {
            self.quota = split.iter().map(|&units| units as u32).collect();
            let rest = whole.saturating_sub(self.quota.iter().sum());
            let most = |a: &usize, b: &usize| self.shares[*a].total_cmp(&self.shares[*b]);
            let most = (0..self.quota.len()).max_by(most).unwrap();
            self.quota[most] += rest;
        }
    }

    fn state(&self) -> String {
        let group = |g: usize| {
            let mut used: Vec<&Unit> = self
                .units
                .iter()
                .filter(|u| u.group == g && !u.owner.is_empty())
                .collect();
            used.sort_by_key(|u| u.sequence);
            let mut words: Vec<String> = used.iter().map(|u| self.unit_text(u)).collect();
            words.push("free".into());
            let mut free = self.free[g].clone();
            if self.setup.reuse == FreeUnit::LeastWorn {
                free.sort_by_key(|&u| (self.units[u].erases, u));
            }
            words.extend(free.iter().map(|&u| self.units[u].number.to_string()));
            words.join(" ")
        };
        let groups: Vec<String> = (0..self.free.len()).map(group).collect();
        groups.join(" | ")
    }

    fn unit_text(&self, unit: &Unit) -> String {
        let page = |i: usize| match unit.pages.get(i) {
            None => ".".to_string(),
            Some(None) => "-".to_string(),
            Some(Some(lpn)) => lpn.to_string(),
        };
        let pages: Vec<String> = (0..self.setup.unit_pages as usize).map(page).collect();
        let star = if unit.bound { "*" } else { "" };
        format!("{}:u{}[{}]{star}", unit.owner, unit.number, pages.join(" "))
    }
}
