//! The shadow of an array: the contents of its members' pages, the contents that jobs (operations on stripes) compute,
//! and the contents that the host may read.
//!
//! The shadow executes the log of an array. If a member reads a page that is being written, the read may return the old
//! or the new contents; the shadow chooses one of them at random. A read by the host may return the contents of any
//! concurrent write, or of the last writes completed before the read.

use std::collections::HashMap;

use super::field;
use flashtwin::{ArrayEvent, JobKind, Lpn, Method, Op, Rng, SentFor};

/// Layout of an array, computed independently of the model.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub members: usize,
    pub data: usize,
    pub parity: usize,
    pub copies: usize,
    pub chunk: u32,
    pub member_pages: u32,
    /// Number of groups, each with its own parity; 0 if the array has no groups.
    pub groups: usize,
}

impl Shape {
    /// Returns the position of an array page: the page number on its member, and the place of its data in the row of
    /// chunks.
    fn place_of(&self, lpn: Lpn) -> (u32, usize) {
        let unit = lpn.0 / self.chunk;
        let row = unit / self.data as u32;
        (
            row * self.chunk + lpn.0 % self.chunk,
            unit as usize % self.data,
        )
    }
}

/// A page of a member: its contents and its writes in flight. A write in flight has three values: the number of its
/// request to the member, its place in the order of writes, and the contents that it writes.
#[derive(Clone, Default)]
struct Cell {
    value: u64,
    order: u64,
    flying: Vec<(u32, u64, u64)>,
}

impl Cell {
    fn newest(&self) -> u64 {
        let flying = self.flying.iter().map(|&(_, order, value)| (order, value));
        flying
            .chain([(self.order, self.value)])
            .max()
            .expect("its own")
            .1
    }
}

struct Part {
    member: usize,
    first: u32,
    pages: u32,
    op: Op,
    on_behalf: SentFor,
    /// For each page of a read, the contents that the read may return.
    may_give: Vec<Vec<u64>>,
}

struct Job {
    kind: JobKind,
    first: u32,
    pages: u32,
    /// Contents to be written, by page and by the place of the data in the stripe.
    new: HashMap<(u32, usize), u64>,
    /// Contents read, by place and page.
    read: HashMap<(usize, u32), u64>,
}

struct PageOp {
    lpn: Lpn,
    what: Op,
    /// Contents written or read.
    value: Option<u64>,
    job: Option<u32>,
    /// Contents that a read may return.
    allowed: Vec<u64>,
}

/// A write of an array page. A read of the page may return the data of this write.
struct Written {
    value: u64,
    from: u64,
    until: Option<u64>,
}

pub struct Shadow {
    shape: Shape,
    rng: Rng,
    members: Vec<Vec<Cell>>,
    parts: HashMap<u32, Part>,
    jobs: HashMap<u32, Job>,
    ops: HashMap<u32, PageOp>,
    /// Contents that were read to be moved, by the number of the move.
    moves: HashMap<u32, u64>,
    /// Pairs of reads of the same page, where the second hedges the first. While both are in flight, each is mapped to
    /// the other.
    twins: HashMap<u32, u32>,
    pages: Vec<Vec<Written>>,
    /// Number of events so far. It also serves as page contents: a write stores the number of the event at which it
    /// begins.
    clock: u64,
    /// Whether only reads are in flight. All reads of a page must then return the same contents.
    pub at_rest: bool,
    /// Number of reads checked.
    pub reads: u64,
    /// Number of pages sent on the fast path of small writes. In the log, these pages have larger numbers than all
    /// requests.
    pub pages_of_pairs: u64,
}

impl Shadow {
    pub fn new(shape: Shape, pages: u64, seed: u64) -> Shadow {
        let blank = || Written {
            value: 0,
            from: 0,
            until: Some(0),
        };
        Shadow {
            shape,
            rng: Rng::new(seed),
            members: vec![vec![Cell::default(); shape.member_pages as usize]; shape.members],
            parts: HashMap::new(),
            jobs: HashMap::new(),
            ops: HashMap::new(),
            moves: HashMap::new(),
            twins: HashMap::new(),
            pages: (0..pages).map(|_| vec![blank()]).collect(),
            clock: 0,
            at_rest: false,
            reads: 0,
            pages_of_pairs: 0,
        }
    }

    pub fn has_groups(&self) -> bool {
        self.shape.groups > 0
    }

    /// Follows the log of the array.
    pub fn follow(&mut self, log: Vec<ArrayEvent>) -> Result<(), String> {
        for event in log {
            self.clock += 1;
            let text = format!("{event:?}");
            self.event(event)
                .map_err(|message| format!("{message}, at event {} {text}", self.clock))?;
        }
        Ok(())
    }

    fn event(&mut self, event: ArrayEvent) -> Result<(), String> {
        match event {
            ArrayEvent::Asked { op, lpn, what, .. } => self.asked(op, lpn, what),
            ArrayEvent::Forgotten { lpn } => self.forgotten(lpn),
            ArrayEvent::Answered { op } => return self.on_completion(op),
            ArrayEvent::FromMemory { op } => return self.completed_from_memory(op),
            ArrayEvent::Unwritten { op } => self.gives(op, 0),
            ArrayEvent::Hedged { op, twin } => self.hedged(op, twin),
            ArrayEvent::Late { op } => return self.late(op),
            ArrayEvent::Begun {
                job,
                kind,
                first,
                pages,
                ops,
            } => self.begun(job, kind, (first, pages), &ops),
            ArrayEvent::Sent {
                part,
                member,
                first,
                pages,
                op,
                on_behalf,
                ..
            } => return self.sent(part, member, (first, pages), op, on_behalf),
            ArrayEvent::Came { part } => self.on_member_completion(part),
            ArrayEvent::Failed { member } => self.lost(member),
            ArrayEvent::Replaced { member } => self.lost(member),
            ArrayEvent::Rebuilt { .. }
            | ArrayEvent::Message { .. }
            | ArrayEvent::Collected { .. } => {}
        }
        Ok(())
    }

    // ---- the array's pages ----

    fn asked(&mut self, op: u32, lpn: Lpn, what: Op) {
        let write = what == Op::Write;
        let page = &mut self.pages[lpn.0 as usize];
        if write {
            page.push(Written {
                value: self.clock,
                from: self.clock,
                until: None,
            });
            self.also_allowed(lpn, self.clock);
        }
        let page = &self.pages[lpn.0 as usize];
        let asked = PageOp {
            lpn,
            what,
            value: write.then_some(self.clock),
            job: None,
            allowed: page.iter().map(|written| written.value).collect(),
        };
        self.ops.insert(op, asked);
    }

    fn gives(&mut self, op: u32, value: u64) {
        self.ops.get_mut(&op).expect("it was asked").value = Some(value);
    }

    /// Checks a read that is served from the controller's memory. The read returns the contents of the newest write in
    /// flight.
    fn completed_from_memory(&mut self, op: u32) -> Result<(), String> {
        let page = &self.pages[self.ops[&op].lpn.0 as usize];
        let newest = page.iter().max_by_key(|written| written.value);
        let newest = newest.filter(|written| written.until.is_none());
        let newest = newest.ok_or("read from memory, but not being written")?;
        self.gives(op, newest.value);
        Ok(())
    }

    /// Records that a read is sent a second time, as `twin`, to hedge the first. Both reads may complete, and both must
    /// return permitted contents.
    fn hedged(&mut self, op: u32, twin: u32) {
        let first = &self.ops[&op];
        let second = PageOp {
            value: None,
            job: None,
            allowed: first.allowed.clone(),
            ..*first
        };
        assert_eq!(second.what, Op::Read);
        self.ops.insert(twin, second);
        self.twins.insert(op, twin);
        self.twins.insert(twin, op);
    }

    /// Checks the contents that the slower read of a pair of hedged reads has returned. If this read was lost with a
    /// member, there is nothing to check.
    fn late(&mut self, op: u32) -> Result<(), String> {
        if self.twins.remove(&op).is_some() {
            return Err("the first response is not late".into());
        }
        let late = self.ops.remove(&op).ok_or("late, but never asked")?;
        match self.value_of(&late)? {
            Some(value) if !late.allowed.contains(&value) => {
                let (page, allowed) = (late.lpn.0, late.allowed);
                Err(format!(
                    "page {page} reads {value:x}, late; allowed {allowed:x?}"
                ))
            }
            _ => Ok(()),
        }
    }

    /// Returns the contents that a read has returned; `None` if it has not completed.
    fn value_of(&self, op: &PageOp) -> Result<Option<u64>, String> {
        if let (None, Some(job)) = (op.value, op.job) {
            let (stripe, place) = self.shape.place_of(op.lpn);
            let job = &self.jobs[&job];
            return Ok(Some(self.whole(job, stripe - job.first)?[place]));
        }
        Ok(op.value)
    }

    /// Adds a value to the contents that reads of this page may return. This applies to all such reads in flight.
    fn also_allowed(&mut self, lpn: Lpn, value: u64) {
        let reads = self.ops.values_mut().filter(|op| op.lpn == lpn);
        reads.for_each(|op| op.allowed.push(value));
    }

    /// Records a trim. Later reads of the page may return either zeros or the contents from before the trim.
    fn forgotten(&mut self, lpn: Lpn) {
        let page = &mut self.pages[lpn.0 as usize];
        page.retain(|written| written.value != 0);
        page.push(Written {
            value: 0,
            from: self.clock,
            until: Some(self.clock),
        });
        self.also_allowed(lpn, 0);
    }

    fn on_completion(&mut self, op: u32) -> Result<(), String> {
        if let Some(twin) = self.twins.remove(&op) {
            self.twins.remove(&twin);
        }
        let op = self
            .ops
            .remove(&op)
            .ok_or("completed, but never submitted")?;
        if op.what == Op::Flush {
            return Ok(());
        }
        if op.what == Op::Write {
            let page = &mut self.pages[op.lpn.0 as usize];
            let own = page.iter_mut().find(|w| Some(w.value) == op.value);
            let own = own.ok_or("written twice")?;
            own.until = Some(self.clock);
            let from = own.from;
            page.retain(|w| w.until.is_none_or(|until| until > from));
            return Ok(());
        }
        let value = self.value_of(&op)?.ok_or("completed without a read")?;
        if !op.allowed.contains(&value) {
            return Err(format!(
                "page {} reads {value:x}; allowed {:x?}",
                op.lpn.0, op.allowed
            ));
        }
        self.reads += 1;
        if self.at_rest {
            self.pages[op.lpn.0 as usize].retain(|w| w.value == value);
        }
        Ok(())
    }

    // ---- jobs ----

    fn begun(&mut self, id: u32, kind: JobKind, (first, pages): (u32, u32), ops: &[u32]) {
        let mut new = HashMap::new();
        for op in ops {
            let op = self.ops.get_mut(op).expect("the job works for it");
            op.job = Some(id);
            if let (Op::Write, Some(value)) = (op.what, op.value) {
                let (stripe, place) = self.shape.place_of(op.lpn);
                new.insert((stripe - first, place), value);
            }
        }
        let job = Job {
            kind,
            first,
            pages,
            new,
            read: HashMap::new(),
        };
        self.jobs.insert(id, job);
    }

    /// Computes the data of a page stripe as they were before the job, from the pages that the job has read.
    fn whole(&self, job: &Job, page: u32) -> Result<Vec<u64>, String> {
        let at = |place: usize| job.read.get(&(place, page)).copied();
        let known: Vec<Option<u64>> = (0..self.shape.data).map(at).collect();
        let parities: Vec<(usize, u64)> = (0..self.shape.parity)
            .filter_map(|j| Some((j, at(self.shape.data + j)?)))
            .collect();
        field::solve(&known, &parities).ok_or_else(|| "too little was read".into())
    }

    /// Returns the contents that a job writes to a place of a page stripe.
    fn content(&self, job: &Job, place: usize, page: u32) -> Result<u64, String> {
        let shape = &self.shape;
        let new = |k: usize| job.new.get(&(page, k)).copied();
        let read = |at: usize| {
            let read = job.read.get(&(at, page)).copied();
            read.ok_or_else(|| format!("place {at} was not read"))
        };
        if shape.copies > 1 {
            let data = place / shape.copies;
            return match job.kind {
                JobKind::Rebuild => (data * shape.copies..(data + 1) * shape.copies)
                    .find_map(|at| read(at).ok())
                    .ok_or_else(|| "no copy was read".into()),
                _ => new(data).ok_or_else(|| "nothing to write".into()),
            };
        }
        let (method, places) = match job.kind {
            JobKind::Write { method, places } => (method, places),
            JobKind::Rebuild => {
                let data = self.whole(job, page)?;
                let parity = |j| field::parity(j, &data);
                return Ok(match place.checked_sub(shape.data) {
                    Some(j) => parity(j),
                    None => data[place],
                });
            }
            _ => return Err("a job that does not write".into()),
        };
        let Some(j) = place.checked_sub(shape.data) else {
            return new(place).ok_or_else(|| "nothing to write".into());
        };
        let written = |k: usize| places >> k & 1 == 1;
        let mut data = vec![0; shape.data];
        for (k, value) in data.iter_mut().enumerate() {
            *value = match (method, new(k)) {
                (Method::ReadModifyWrite, Some(new)) if written(k) => new ^ read(k)?,
                (Method::ReadModifyWrite, _) => 0,
                (_, Some(new)) => new,
                (Method::ReconstructWrite, None) => read(k)?,
                (Method::Recover, None) => self.whole(job, page)?[k],
                (Method::Write | Method::WithoutParity, None) => {
                    return Err("parity of a stripe partly known".into());
                }
            };
        }
        let of_data = field::parity(j, &data);
        Ok(match method {
            Method::ReadModifyWrite => read(place)? ^ of_data,
            _ => of_data,
        })
    }

    // ---- members ----

    fn sent(
        &mut self,
        id: u32,
        member: usize,
        (first, pages): (u32, u32),
        op: Op,
        on_behalf: SentFor,
    ) -> Result<(), String> {
        self.pages_of_pairs += u64::from(id >> 31);
        if self.has_groups() {
            self.is_in_order(member, (first, pages), op)?;
        }
        let mut may_give = Vec::new();
        for page in 0..pages {
            let at = (first + page) as usize;
            if op == Op::Read {
                let cell = &self.members[member][at];
                let flying = cell.flying.iter().map(|&(_, _, value)| value);
                may_give.push(flying.chain([cell.value]).collect());
                continue;
            }
            let value = match (&on_behalf, op) {
                (_, Op::Trim) => 0,
                (SentFor::Pages(ops), _) => {
                    let op = self.ops.get(&ops[page as usize]);
                    op.and_then(|op| op.value).ok_or("nothing to write")?
                }
                (SentFor::Parity, _) => self.sum_of_others(member, at),
                (SentFor::Move { number }, _) => self.moves[number],
                (SentFor::Job { job, place }, _) => {
                    let job = &self.jobs[job];
                    self.content(job, *place as usize, first + page - job.first)?
                }
                (SentFor::Rows { job, places }, _) => {
                    let job = &self.jobs[job];
                    let place = places[(page / self.shape.chunk) as usize];
                    self.content(job, place as usize, first + page - job.first)?
                }
            };
            let cell = &mut self.members[member][at];
            cell.flying.push((id, self.clock, value));
            let reads = self.parts.values_mut().filter(|part| {
                let within = part.first..part.first + part.pages;
                part.op == Op::Read && part.member == member && within.contains(&(first + page))
            });
            for part in reads {
                part.may_give[(first + page - part.first) as usize].push(value);
            }
        }
        let part = Part {
            member,
            first,
            pages,
            op,
            on_behalf,
            may_give,
        };
        match self.parts.insert(id, part) {
            Some(_) => Err("two parts of one number".into()),
            None => Ok(()),
        }
    }

    /// Checks three conditions for an operation on pages of a group: no write of these pages is in flight; a page to be
    /// written was trimmed before, or never written; a page to be written or trimmed is not being read.
    fn is_in_order(&self, member: usize, pages: (u32, u32), op: Op) -> Result<(), String> {
        let (first, end) = (pages.0, pages.0 + pages.1);
        let cells = &self.members[member][first as usize..end as usize];
        if cells.iter().any(|cell| !cell.flying.is_empty()) {
            return Err("a page is being written".into());
        }
        if op == Op::Write && cells.iter().any(|cell| cell.value != 0) {
            return Err("a page is written twice".into());
        }
        let mut parts = self.parts.values().filter(|part| part.member == member);
        let is_read = parts.any(|part| part.first < end && first < part.first + part.pages);
        match op != Op::Read && is_read {
            true => Err("a page is being read".into()),
            false => Ok(()),
        }
    }

    /// Returns the sum of a page's newest contents on all other members of the group.
    fn sum_of_others(&self, member: usize, page: usize) -> u64 {
        let size = self.shape.members / self.shape.groups;
        let first = member / size * size;
        let others = (first..first + size).filter(|&other| other != member);
        others.fold(0, |sum, other| sum ^ self.members[other][page].newest())
    }

    fn on_member_completion(&mut self, id: u32) {
        let part = self.parts.remove(&id).expect("it was sent");
        if part.op != Op::Read {
            for page in part.first..part.first + part.pages {
                let cell = &mut self.members[part.member][page as usize];
                let at = cell.flying.iter().position(|&(by, _, _)| by == id);
                let (_, order, value) = cell.flying.remove(at.expect("it was sent"));
                if order > cell.order {
                    (cell.order, cell.value) = (order, value);
                }
            }
            return;
        }
        let drawn = |may_give: &Vec<u64>| {
            let at = self.rng.below(may_give.len() as u64);
            may_give[at as usize]
        };
        let values: Vec<u64> = part.may_give.iter().map(drawn).collect();
        match part.on_behalf {
            SentFor::Pages(ops) => {
                for (op, value) in ops.iter().zip(values) {
                    self.ops.get_mut(op).expect("it was asked").value = Some(value);
                }
            }
            SentFor::Move { number } => {
                self.moves.insert(number, values[0]);
            }
            SentFor::Parity => unreachable!("parity is not read"),
            SentFor::Job { job, place } => {
                let job = self.jobs.get_mut(&job).expect("it has begun");
                assert_eq!(job.pages as usize, values.len());
                let pages = (0..).zip(values);
                let read = pages.map(|(page, value)| ((place as usize, page), value));
                job.read.extend(read);
            }
            SentFor::Rows { job, places } => {
                let job = self.jobs.get_mut(&job).expect("it has begun");
                for (at, value) in (0..).zip(values) {
                    let place = places[(at / self.shape.chunk) as usize] as usize;
                    job.read.insert((place, part.first + at - job.first), value);
                }
            }
        }
    }

    /// Makes all data of a member random, after a failure or before a rebuild.
    fn lost(&mut self, member: usize) {
        self.parts.retain(|_, part| part.member != member);
        for cell in &mut self.members[member] {
            *cell = Cell {
                value: self.rng.next_u64(),
                order: self.clock,
                flying: Vec::new(),
            };
        }
    }

    // ---- the end ----

    /// Checks that nothing is in flight, and that the parity of groups is right.
    pub fn finished(&self) -> Result<(), String> {
        match (self.parts.len(), self.ops.len()) {
            (0, 0) => self.parity_is_whole(),
            (parts, ops) => Err(format!("{parts} parts and {ops} operations are left over")),
        }
    }

    /// Checks that data and parity sum to zero in every page stripe of each group. In each group, one stripe may be an
    /// exception: the stripe that is being written.
    fn parity_is_whole(&self) -> Result<(), String> {
        let size = self.shape.members / self.shape.groups.max(1);
        for group in 0..self.shape.groups {
            let whole = |page: &usize| {
                let member = group * size;
                self.sum_of_others(member, *page) == self.members[member][*page].newest()
            };
            let pages = 0..self.shape.member_pages as usize;
            let odd = pages.filter(|page| !whole(page)).count();
            if odd > 1 {
                return Err(format!("{odd} stripes of group {group} have no parity"));
            }
        }
        Ok(())
    }
}
