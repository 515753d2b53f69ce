//! BPAC-R: ranks the most recently written pages individually, and all other pages by block (after Wu, Eckart, He, MSST
//! 2010).
//!
//! This policy is a reconstruction. Two facts are published (CBM section II.D): BPAC has two lists, and a criterion
//! decides which pages are in which list. The formulas are ours. A written page enters a page list P at its most recent
//! end, and returns to this end when it is written again. If P has more than L_P pages, its least recent page moves to
//! the cluster of its block. A cluster is the set of pages of a block that are not in P. The cluster that received the
//! page becomes the most recent one in the list K.
//!
//! A cluster is *grown* if it has received no page for more than A page writes. The victim is the grown cluster with
//! the most pages. If several have equally many, it is the least recent of them. Without grown clusters, the victim is
//! the least recent cluster. Without any cluster, it is the least recent page.
//!
//! ```text
//! P   12 - 1            most recent first, at most L_P pages
//! K   B2 - B1 - | - B0  clusters older than A are grown: they are ranked by size
//! ```
//!
//! L_P and A adapt after every C page writes, where C is the capacity of the buffer in pages. Each adapts to a
//! distribution of recorded distances. A distance is a number of page writes between two events. Distances above C are
//! recorded as C.
//!
//! - When a page is rewritten, the distance since its previous write is recorded. L_P becomes the least distance that
//!   is not exceeded by 90 % of these distances, limited to 0.1 C to 0.9 C.
//! - When a page moves to a cluster that already has pages, the distance since the previous move to this cluster is
//!   recorded. A becomes the least distance that is not exceeded by 90 % of these distances.
//!
//! After each adaptation, the recorded counts of both distributions are halved.
//!
//! With `cache_reads`, a read is handled and counted as a write. Without it, reads change nothing.

use crate::buffer::blocks::{
    BlockParameters, BlockRoom, BlockTable, BySize, FilteredParameters, NodeId, ReadParameters,
    RoomParameters,
};
use crate::buffer::entry::{cost, example_with, Entry, Family, Make};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Skip};
use crate::buffer::{List, PageId, Setup};
use crate::component::{parameters, Kind, Pages};
use crate::component::{source, Provenance};
use crate::memory::{prefetch, reach};
use crate::units::Lpn;

parameters! {
    /// Parameters of BPAC.
    struct Parameters {
        /// Whether `l_p` and `age` adapt to the distances between references.
        adapt: bool = Kind::Bool, "true", "reconstruction";
        /// Length of the page list at the start.
        l_p: Pages = Kind::Window, "0.5", "reconstruction";
        /// Number of page writes without a new page after which a cluster counts as grown. With `adapt`, this is the
        /// initial value.
        age: Pages = Kind::Beyond, "0.25", "reconstruction";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "bpac",
    title: "BPAC",
    line: "Keeps recent pages singly, others in blocks; evicts the largest block that has stopped \
           growing.",
    family: Family::Blocks,
    source: source(
        "G. Wu, B. Eckart, X. He",
        "BPAC: An Adaptive Write Buffer Management Scheme for Flash-Based Solid State Drives",
        "MSST",
        2010,
    ),
    provenance: Provenance::Reconstruction,
    rule: &[
        "The page list P has recently written pages. The cluster list K has the other pages, \
             grouped by block. Both are in LRU order. Time is counted in page writes.",
        "Write: the page enters P or moves within P, to the most recent end. If P then has more \
         than `l_p` pages, the least recent page of P joins the cluster of its block, and this \
         cluster moves to the most recent end of K.",
        "Victim: of the clusters that received no page for more than `age` page writes, the one \
         with the most pages; of several, the least recent. If there is no such cluster, the \
         least recent cluster. If there is no cluster at all, the least recent page of P.",
        "With `adapt`, `l_p` and `age` are set anew after every C page writes. Both become 90th \
         percentiles of distances, which are counted in page writes. For `l_p`, these are the \
         distances between two writes of the same page; `l_p` is at least 0.1 C and at most 0.9 \
         C. For `age`, these are the distances between two additions of a page to the same \
         cluster.",
    ],
    drawing: "
write -> P [ 16  5 ] -- longer than l_p --> K [ B3{12} B0{0,1} | B2{8} B1{4} ]
                                              growing            the largest
                                                                 of these leaves",
    state: "`P[5 12] K[B0{0,1}age0]`: pages, then clusters, each with the page writes since it last grew.",
    cost: cost("O(1)", "O(B)", "O(N)"),
    example: example_with(
        6,
        &[("adapt", "false"), ("l_p", "2"), ("age", "2")],
        1,
        "W0 W4 W5 W8 W1 W12 W5 W16 W20",
    ),
    parameters: &[
        BlockParameters::ROWS,
        ReadParameters::ROWS,
        RoomParameters::ROWS,
        Parameters::ROWS,
    ],
    filtered: FilteredParameters::ROWS,
    make: Make::Base(|setup| Bpac::new(setup).into()),
    ..Entry::PLAIN
}];

/// Distances seen, each counted at its length.
#[derive(Clone, Debug)]
struct Distances {
    counts: Vec<u32>,
}

impl Distances {
    fn new(longest: u32) -> Distances {
        Distances {
            counts: vec![0; longest as usize + 1],
        }
    }

    #[inline]
    fn add(&mut self, distance: u64) {
        let longest = self.counts.len() - 1;
        self.counts[distance.min(longest as u64) as usize] += 1;
    }

    /// Returns the least distance that 90 % of the recorded distances do not exceed; `None` if none is recorded. Then
    /// halves all counts.
    fn cover(&mut self) -> Option<u32> {
        let all: u64 = self.counts.iter().map(|&n| u64::from(n)).sum();
        let mut seen = 0;
        let found = self.counts.iter().position(|&n| {
            seen += u64::from(n);
            seen * 10 >= all * 9
        });
        for count in &mut self.counts {
            *count /= 2;
        }
        found.filter(|_| all > 0).map(|distance| distance as u32)
    }
}

#[derive(Clone, Debug, Default)]
struct Cluster {
    /// Time at which a page was last added to the cluster. The unit of time is one page write.
    at: u64,
    /// Whether the block counts as grown.
    grown: bool,
}

/// Block-page adaptive cache.
#[derive(Clone, Debug)]
pub struct Bpac {
    /// The clusters. Pages of P are in no cluster.
    clusters: BlockTable<Cluster>,
    p: List,
    /// Number of pages in clusters.
    in_clusters: u32,
    k: List,
    grown: BySize,
    grown_clusters: u64,
    /// The most recent of the grown clusters.
    boundary: Option<NodeId>,
    /// For each page, the time of its last write (counted in page writes), and its logical page.
    written: Vec<(u64, Lpn)>,
    /// Page writes so far.
    now: u64,
    l_p: u32,
    age: u64,
    adapt: bool,
    cache_reads: bool,
    room: BlockRoom,
    rewrites: Distances,
    growth: Distances,
}

impl Bpac {
    /// Makes the policy with the parameters of `setup`.
    pub fn new(setup: &Setup) -> Bpac {
        let parameters = Parameters::of(&setup.settings);
        Bpac {
            clusters: BlockTable::new(setup),
            p: List::default(),
            in_clusters: 0,
            k: List::default(),
            grown: BySize::new(),
            grown_clusters: 0,
            boundary: None,
            written: Vec::new(),
            now: 0,
            l_p: parameters.l_p.0,
            age: parameters.age.0.into(),
            adapt: parameters.adapt,
            cache_reads: ReadParameters::of(&setup.settings).cache_reads,
            room: RoomParameters::of(&setup.settings).room,
            rewrites: Distances::new(setup.capacity),
            growth: Distances::new(setup.capacity),
        }
    }

    /// Whether an access counts as a write. With `cache_reads`, all accesses do; otherwise only writes do.
    #[inline]
    fn counts(&self, access: &Access) -> bool {
        access.write || self.cache_reads
    }

    fn set_grown(&mut self, node: NodeId, grown: bool) {
        self.clusters[node].grown = grown;
        if grown {
            self.grown.push(node, self.clusters.pages(node));
            self.grown_clusters += 1;
        } else {
            self.grown.remove(node);
            self.grown_clusters -= 1;
        }
    }

    /// Takes a cluster out of K.
    fn unlink(&mut self, node: NodeId) {
        if self.clusters[node].grown {
            self.set_grown(node, false);
            if self.boundary == Some(node) {
                self.boundary = self.k.older(node);
            }
        }
        self.k.remove(node);
    }

    /// Removes a page from P or from its cluster. If the cluster is then empty, removes it from K.
    fn unplace(&mut self, page: PageId) {
        if self.clusters.node_of(page).is_none() {
            return self.p.remove(page);
        }
        let node = self.clusters.remove_page(page);
        self.in_clusters -= 1;
        if self.clusters.pages(node) == 0 {
            self.unlink(node);
            self.clusters.remove(node);
        } else if self.clusters[node].grown {
            self.grown.shrink(node);
        }
    }

    /// Makes a page the most recent one of P. If P then has more than L_P pages, moves its least recent pages to
    /// clusters.
    fn push(&mut self, page: PageId) {
        self.p.push_newest(page);
        self.written[page.0 as usize].0 = self.now;
        while self.p.len() > self.l_p as usize {
            let Some(page) = self.p.oldest() else { break };
            self.p.remove(page);
            let (node, offset) = self.clusters.node_for(self.written[page.0 as usize].1);
            if self.clusters.pages(node) > 0 {
                if self.adapt {
                    self.growth.add(self.now - self.clusters[node].at);
                }
                self.unlink(node);
            }
            self.clusters.add_page(node, page, offset);
            self.in_clusters += 1;
            self.clusters[node].at = self.now;
            self.k.push_newest(node);
        }
        self.look_ahead();
        let setup = self.clusters.setup();
        if self.adapt && self.now.is_multiple_of(u64::from(setup.capacity)) {
            self.adapt();
        }
    }

    /// Prefetches the data that the next moves of pages to clusters will read.
    #[inline]
    fn look_ahead(&self) {
        let [first, second, third] = self.p.oldest_three();
        if let Some(page) = third {
            prefetch(&self.written, page.0 as usize);
            self.clusters.prefetch_page(page);
        }
        let lpn = |page: PageId| self.written[page.0 as usize].1;
        second.inspect(|&page| self.clusters.prefetch_chain(lpn(page)));
        first.inspect(|&page| self.clusters.prefetch_first_of_chain(lpn(page)));
    }

    #[cold]
    fn adapt(&mut self) {
        let capacity = u64::from(self.clusters.setup().capacity);
        if let Some(distance) = self.rewrites.cover() {
            let share = |tenths: u64| ((capacity * tenths / 10) as u32).max(1);
            self.l_p = distance.clamp(share(1), share(9));
        }
        if let Some(distance) = self.growth.cover() {
            self.age = distance.max(1).into();
        }
    }

    /// Moves the boundary in K so that all clusters older than A are grown and all other clusters are not.
    fn find_grown(&mut self, now: u64) {
        while let Some(node) = self.boundary {
            if now - self.clusters[node].at > self.age {
                break;
            }
            self.set_grown(node, false);
            self.boundary = self.k.older(node);
        }
        while let Some(node) = self.first_growing() {
            if now - self.clusters[node].at <= self.age {
                break;
            }
            self.set_grown(node, true);
            self.boundary = Some(node);
        }
    }

    /// Returns the least recent cluster that is not grown.
    fn first_growing(&self) -> Option<NodeId> {
        match self.boundary {
            Some(node) => self.k.newer(node),
            None => self.k.oldest(),
        }
    }

    fn choose(&self, device: &dyn DeviceView, skip: Skip, out: &mut Eviction) -> Option<Victim> {
        let (clusters, skipped) = (&self.clusters, &mut out.skipped);
        let mut passed_over = |node| clusters.passed_over(device, skip, node, skipped);
        out.inspected += self.grown_clusters;
        if let Some(node) = self.grown.largest_but(&mut passed_over) {
            return Some(Victim::Cluster(node));
        }
        let newer = |&node: &NodeId| self.k.newer(node);
        for node in std::iter::successors(self.first_growing(), newer) {
            out.inspected += 1;
            if !passed_over(node) {
                return Some(Victim::Cluster(node));
            }
        }
        for page in self.p.iter_oldest_first() {
            out.inspected += 1;
            if !skip.page(device, page) {
                return Some(Victim::Page(page));
            }
            out.skipped |= skip.page_by_chip(device, page);
        }
        None
    }
}

enum Victim {
    Cluster(NodeId),
    Page(PageId),
}

impl Policy for Bpac {
    fn admits(&self, access: &Access) -> bool {
        self.counts(access)
    }

    fn takes_whole_blocks(&self) -> bool {
        self.room == BlockRoom::Whole
    }

    fn room_kept(&self) -> u32 {
        let room = self.clusters.len() * self.clusters.setup().pages_per_block;
        room - self.in_clusters
    }

    fn lacks_room(&self, _incoming: &Access) -> bool {
        // The incoming page enters P. A page of P may then move to a cluster, possibly to a new one.
        self.room == BlockRoom::Whole && self.clusters.lack_room_beside(self.p.len() as u32 + 1)
    }

    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        reach(&mut self.written, page.0 as usize, (0, access.lpn));
        self.written[page.0 as usize].1 = access.lpn;
        self.now += 1;
        self.push(page);
    }

    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        if !self.counts(access) {
            return;
        }
        self.now += 1;
        if self.adapt {
            let (written, _) = self.written[page.0 as usize];
            self.rewrites.add(self.now - written);
        }
        self.unplace(page);
        self.push(page);
    }

    fn forget(&mut self, page: PageId) {
        self.unplace(page);
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        // The ages of clusters are computed for the time of the incoming write. `self.now` does not yet count this
        // write.
        self.find_grown(self.now + 1);
        match self.choose(device, skip, out) {
            Some(Victim::Cluster(node)) => {
                self.unlink(node);
                self.in_clusters -= self.clusters.pages(node);
                self.clusters.evict(node, out);
            }
            Some(Victim::Page(page)) => {
                self.p.remove(page);
                out.victims.push(page);
            }
            None => return false,
        }
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let mut pages: Vec<String> = self
            .p
            .iter_oldest_first()
            .map(|page| device.lpn(page).0.to_string())
            .collect();
        pages.reverse();
        let mut clusters: Vec<String> = self
            .k
            .iter_oldest_first()
            .map(|node| {
                let age = self.now - self.clusters[node].at;
                format!("{}age{age}", self.clusters.text(device, node))
            })
            .collect();
        clusters.reverse();
        format!("P[{}] K[{}]", pages.join(" "), clusters.join(" "))
    }
}
