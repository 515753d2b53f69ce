//! Req-block: uses write requests as the unit of replacement (a reconstruction after Lin, Sha, Li, Cai, Gerofi, Shi,
//! Liao, "DRAM Cache Management with Request Granularity for NAND-based SSDs", ICPP 2022).
//!
//! The abstract of the paper gives three rules. Data are managed by write request. Lists of several levels filter the
//! blocks of requests by size and hotness. Small blocks are kept longer. The remaining rules are ours. A *block* here
//! is a set of pages of one write request:
//!
//! - Insertion: the pages of a write request form a block at the head of IRL, the list of inserted requests.
//! - Hit on a small block: the whole block moves to the head of SRL, the list of small requests. A block is small if it
//!   has at most `small_request` pages when the request starts to access it.
//! - Hit on a large block: the pages that are hit are removed from it. The pages that one request removes form a new
//!   block at the head of DRL, the list of divided requests.
//! - Victim: the blocks at the tails of IRL, DRL and SRL are compared. The victim is the one with the least hits /
//!   (pages * age). Ties go to the first list in this order. The hits of a block are the requests that accessed it,
//!   including the request that created it. Age is measured in page accesses.
//! - If the victim is from DRL, the block from which it was divided is evicted too, if that block is still in IRL.
//! - The block that the current request fills is a victim only if there is no other block.
//!
//! ```text
//! IRL  {8,9} - {20..27}          inserted           head ... tail
//! DRL  {21,22}                   divided from {20..27}
//! SRL  {4} - {2,3}               small ones that were hit
//! ```
//!
//! Only writes enter the buffer. Both reads and writes of cached pages count as hits.

use crate::buffer::blocks::{BlockTable, NodeId};
use crate::buffer::entry::{cost, example_with, Entry, Family, Make};
use crate::buffer::policy::{Access, DeviceView, Eviction, Policy, Prefetch, Skip};
use crate::buffer::{PageId, Setup};
use crate::component::{parameters, Kind};
use crate::component::{source, Provenance};
use crate::list::Lists;

parameters! {
    /// Parameters of Req-block.
    struct Parameters {
        /// Maximum number of pages of a small block, counted when the block is hit.
        small_request: u32 = Kind::Count(1, 65_535), "5", "reconstruction";
    }
}

pub(crate) const ENTRIES: &[Entry] = &[Entry {
    name: "req-block",
    title: "Req-block",
    line: "Keeps and evicts pages by the request that wrote them; small requests stay longer.",
    family: Family::Blocks,
    source: source(
        "H. Lin, Z. Sha, J. Li, Z. Cai, B. Gerofi, Y. Shi, J. Liao",
        "DRAM Cache Management with Request Granularity for NAND-Based SSDs",
        "ICPP",
        2022,
    ),
    provenance: Provenance::Reconstruction,
    rule: &[
        "The pages of a write request form a block, which enters at the head of the list IRL. \
             Reads hit as writes do, but insert nothing.",
        "Hit in a small block (at most `small_request` pages): the block moves to the head of \
             the list SRL.",
        "Hit in a larger block: the block is divided. The pages that one request hits leave it \
         and form a block of their own at the head of the list DRL.",
        "Victim: of the three blocks at the tails of IRL, DRL and SRL, the one with the least \
         value of hits / (pages x age), with the age in page accesses. If values are equal, the \
         order of the lists decides: IRL before DRL before SRL. The block that the request is \
         filling is the victim only if there is no other.",
        "If the victim is from DRL, and the block from which it was divided is still in IRL, this \
         block is evicted, too.",
    ],
    drawing: "
write request -> IRL [ {20}  {16,17}  {8,10,11} ]   tail with the least
hit, small    -> SRL [ {0,1} ]                      hits / (pages x age)
hit, large    -> DRL [ {9} ]                        leaves",
    state:
        "`IRL[{20}x1] DRL[{9}x1] SRL[{0,1}x2]`: the lists with the pages and hits of each block, \
                the head first.",
    cost: cost("O(1)", "O(N)", "O(N)"),
    example: example_with(6, &[("small_request", "2")], 1, "W0x2 W8x4 W0 W9 W16x2 W20"),
    parameters: &[Parameters::ROWS],
    make: Make::Base(|setup| ReqBlock::new(setup).into()),
    ..Entry::PLAIN
}];

/// Numbers of the lists, in the order in which their tails are compared.
const IRL: u8 = 0;
const DRL: u8 = 1;
const SRL: u8 = 2;

/// Identity of a block: its node, and the time of its insertion. The time is needed because nodes are reused.
type Arrival = (NodeId, u64);

#[derive(Clone, Debug, Default)]
struct Request {
    /// The host request whose pages the block collects.
    request: u64,
    /// Time of the insertion, unique to the block.
    at: u64,
    hits: u32,
    /// The last request that hit the block. `small` is true if the block was small when this request first hit it.
    hit_by: u64,
    small: bool,
    list: u8,
    /// The block in DRL that was last divided from this one.
    divided: Option<NodeId>,
    /// The block from which this one was divided.
    origin: Option<Arrival>,
}

/// Request-granularity cache.
#[derive(Clone, Debug)]
pub struct ReqBlock {
    /// Maximum number of pages of a small block. The pages are counted when the block is hit.
    small_request: u32,
    blocks: BlockTable<Request>,
    lists: Lists<3>,
    /// The last block inserted.
    last: Option<Arrival>,
    /// Page accesses so far.
    now: u64,
}

impl ReqBlock {
    /// Makes the policy with the parameters of `setup`.
    pub fn new(setup: &Setup) -> ReqBlock {
        ReqBlock {
            blocks: BlockTable::of_requests(setup),
            small_request: Parameters::of(&setup.settings).small_request,
            lists: Lists::new(),
            last: None,
            now: 0,
        }
    }

    /// Returns the node of a block; `None` if the block no longer exists.
    fn find(&self, block: Option<Arrival>) -> Option<NodeId> {
        let (node, at) = block?;
        (self.blocks[node].at == at && self.blocks.pages(node) > 0).then_some(node)
    }

    /// Adds a new block at the head of a list. Returns the node of the block.
    fn add(&mut self, list: u8, request: u64, origin: Option<Arrival>) -> NodeId {
        let node = self.blocks.add_apart(0);
        self.blocks[node] = Request {
            list,
            request,
            at: self.now,
            hits: 1,
            hit_by: request,
            origin,
            ..Request::default()
        };
        self.lists.push_newest(list.into(), node);
        node
    }

    fn remove(&mut self, node: NodeId) {
        self.lists.remove(self.blocks[node].list.into(), node);
        self.blocks.remove(node);
    }

    /// Returns the block for the pages that `request` removes from the block `from`. Creates it if necessary.
    fn divided(&mut self, from: NodeId, request: u64) -> NodeId {
        let origin = Some((from, self.blocks[from].at));
        let of = |&node: &NodeId| self.blocks.pages(node) > 0 && self.blocks[node].origin == origin;
        if let Some(node) = self.blocks[from].divided.filter(of) {
            return node;
        }
        let node = self.add(DRL, request, origin);
        self.blocks[from].divided = Some(node);
        node
    }

    /// Whether block `a` has a smaller value of hits / (pages * age) than block `b`.
    fn colder(&self, a: NodeId, b: NodeId) -> bool {
        let hits = |node: NodeId| u128::from(self.blocks[node].hits);
        let room = |node: NodeId| {
            u128::from(self.blocks.pages(node)) * u128::from(self.now - self.blocks[node].at)
        };
        hits(a) * room(b) < hits(b) * room(a)
    }

    /// Compares one candidate from each list, and returns the one with the least hits / (pages * age). The candidate of
    /// a list is the block nearest to its tail that is not skipped.
    fn choose(
        &self,
        inspected: &mut u64,
        passed_over: &mut dyn FnMut(NodeId) -> bool,
    ) -> Option<NodeId> {
        let mut best = None;
        for list in [IRL, DRL, SRL] {
            for node in self.lists.iter_oldest_first(list.into()) {
                *inspected += 1;
                if passed_over(node) {
                    continue;
                }
                if best.is_none_or(|best| self.colder(node, best)) {
                    best = Some(node);
                }
                break;
            }
        }
        best
    }
}

impl Policy for ReqBlock {
    fn admits(&self, access: &Access) -> bool {
        access.write
    }

    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        self.now += 1;
        let last = self.find(self.last);
        let node = match last.filter(|&node| self.blocks[node].request == access.request) {
            Some(node) => node,
            None => self.add(IRL, access.request, None),
        };
        self.last = Some((node, self.blocks[node].at));
        self.blocks.add_page(node, page, access.lpn.0);
    }

    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        self.now += 1;
        let Some(node) = self.blocks.node_of(page) else {
            return;
        };
        let most = self.small_request;
        let pages = self.blocks.pages(node);
        let block = &mut self.blocks[node];
        if block.hit_by != access.request {
            block.hit_by = access.request;
            block.hits = block.hits.saturating_add(1);
            block.small = pages <= most;
            block.divided = None;
            if block.small {
                let from = std::mem::replace(&mut block.list, SRL);
                self.lists.remove(from.into(), node);
                self.lists.push_newest(SRL.into(), node);
            }
        }
        if self.blocks[node].small {
            return;
        }
        let divided = self.divided(node, access.request);
        let lpn = self.blocks.offset(page);
        self.forget(page);
        self.blocks.add_page(divided, page, lpn);
    }

    fn forget(&mut self, page: PageId) {
        let node = self.blocks.remove_page(page);
        if self.blocks.pages(node) == 0 {
            self.remove(node);
        }
    }

    fn evict(
        &mut self,
        device: &dyn DeviceView,
        incoming: &Access,
        skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let skipped = |node| self.blocks.skipped_by_pages(device, skip, node);
        let passed_over = |node| self.blocks.in_flight(device, node) || skipped(node);
        let own = |node: NodeId| self.blocks[node].request == incoming.request;
        let mut any_skipped = false;
        let mut found = self.choose(&mut out.inspected, &mut |node| {
            any_skipped |= !own(node) && skipped(node);
            own(node) || passed_over(node)
        });
        if found.is_none() && !any_skipped {
            found = self.choose(&mut out.inspected, &mut |node| passed_over(node));
        }
        let mut tails = [IRL, DRL, SRL]
            .into_iter()
            .filter_map(|list| self.lists.oldest(list.into()));
        out.skipped |= tails.any(skipped);
        let Some(node) = found else { return false };
        let origin = self.find(self.blocks[node].origin);
        let origin = origin.filter(|&node| self.blocks[node].list == IRL && !passed_over(node));
        self.blocks.evict_pages(node, out);
        if self.blocks[node].list == DRL {
            if let Some(origin) = origin {
                self.blocks.evict_pages(origin, out);
                self.remove(origin);
            }
        }
        self.remove(node);
        true
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let text = |list: u8| {
            let nodes = self.lists.iter_oldest_first(list.into());
            let mut texts: Vec<String> = nodes
                .map(|node| {
                    let pages = self.blocks.pages_text(device, node);
                    format!("{pages}x{}", self.blocks[node].hits)
                })
                .collect();
            texts.reverse();
            texts.join(" ")
        };
        format!("IRL[{}] DRL[{}] SRL[{}]", text(IRL), text(DRL), text(SRL))
    }
}

impl Prefetch for ReqBlock {
    #[inline]
    fn prefetch_victims(&self) -> [Option<PageId>; 3] {
        let Some(coldest) = self.choose(&mut 0, &mut |_| false) else {
            return [None; 3];
        };
        let links = self.lists.links();
        let nodes = links.three_from(Some(coldest));
        if let Some(next) = nodes[2].and_then(|node| links.newer(node)) {
            links.prefetch(next);
            self.blocks.prefetch_node(next);
        }
        nodes.map(|node| self.blocks.pages_of(node?).next())
    }
}
