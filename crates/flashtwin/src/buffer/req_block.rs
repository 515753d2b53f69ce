//! Req-block: write requests as the unit (a reconstruction after Lin, Sha, Li, Cai, Gerofi, Shi, Liao,
//! "DRAM Cache Management with Request Granularity for NAND-based SSDs", ICPP 2022).
//!
//! Certain is what the abstract says: data are kept by write request, lists of several levels sift
//! these request blocks by size and hotness, small ones are kept longer. The rest is ours:
//!
//! insert -> the pages of a write request form a block at the head of IRL, the inserted requests.
//! hit -> a small block (at most `small_request` pages when the request that hits it begins to) moves
//! whole to the head of SRL, the small requests. From a large one the pages that are hit are divided:
//! those of one request form a new block at the head of DRL, the divided requests.
//! Victim: of the tails of IRL, DRL and SRL the block with the least hits / (pages * age), the
//! first of several; hits are requests that touched it, its own among them, age is in page accesses.
//! A victim from DRL takes along the block it was divided from if that still stands in IRL. The
//! block that the request is filling is no victim unless it is the only one.
//!
//! ```text
//! IRL  {8,9} - {20..27}          inserted           head ... tail
//! DRL  {21,22}                   divided from {20..27}
//! SRL  {4} - {2,3}               small ones that were hit
//! ```
//!
//! Only writes come in; reads hit as writes do.

use super::blocks::{BlockTable, NodeId};
use super::policy::{Access, DeviceView, Eviction, Policy, Spare};
use super::{List, PageId, Setup};

/// The lists, in the order in which their tails are compared.
const IRL: u8 = 0;
const DRL: u8 = 1;
const SRL: u8 = 2;

#[derive(Clone, Debug, Default)]
struct Request {
    /// The host request whose pages it collects.
    request: u64,
    /// When it came.
    at: u64,
    hits: u32,
    /// The request that hit it last, and whether the block was small then.
    hit_by: u64,
    small: bool,
    list: u8,
    /// The block divided from it by that request; 0: none.
    divided: u32,
    /// The block it was divided from; 0: none.
    origin: u32,
}

/// Request-granularity cache.
#[derive(Clone, Debug)]
pub struct ReqBlock {
    /// Request blocks under serial numbers.
    blocks: BlockTable<Request>,
    lists: [List; 3],
    /// The last block inserted.
    last: u32,
    serial: u32,
    /// Page accesses so far.
    now: u64,
}

impl ReqBlock {
    /// With the parameters of `setup`.
    pub fn new(setup: &Setup) -> ReqBlock {
        ReqBlock {
            blocks: BlockTable::new(setup),
            lists: Default::default(),
            last: 0,
            serial: 0,
            now: 0,
        }
    }

    fn list(&mut self, list: u8) -> &mut List {
        &mut self.lists[usize::from(list)]
    }

    /// A new block at the head of a list.
    fn add(&mut self, list: u8, request: u64, origin: u32) -> NodeId {
        self.serial = self.serial.wrapping_add(1);
        while self.serial == 0 || self.blocks.find(self.serial).is_some() {
            self.serial = self.serial.wrapping_add(1);
        }
        let node = self.blocks.add(self.serial);
        self.blocks[node] = Request {
            list,
            request,
            at: self.now,
            hits: 1,
            hit_by: request,
            origin,
            ..Request::default()
        };
        self.list(list).push_newest(node);
        node
    }

    fn remove(&mut self, node: NodeId) {
        let list = self.blocks[node].list;
        self.list(list).remove(node);
        self.blocks.remove(node);
    }

    /// The block into which `request` divides pages of `from`.
    fn divided(&mut self, from: NodeId, request: u64) -> NodeId {
        if let Some(node) = self.blocks.find(self.blocks[from].divided) {
            return node;
        }
        let node = self.add(DRL, request, self.blocks.number(from));
        self.blocks[from].divided = self.blocks.number(node);
        node
    }

    /// `a` has fewer hits for its pages and age than `b`.
    fn colder(&self, a: NodeId, b: NodeId) -> bool {
        let hits = |node: NodeId| u128::from(self.blocks[node].hits);
        let room = |node: NodeId| {
            u128::from(self.blocks.pages(node)) * u128::from(self.now - self.blocks[node].at)
        };
        hits(a) * room(b) < hits(b) * room(a)
    }

    /// The coldest of the blocks nearest to the tails that are not passed over.
    fn choose(
        &self,
        inspected: &mut u64,
        passed_over: &mut dyn FnMut(NodeId) -> bool,
    ) -> Option<NodeId> {
        let mut best = None;
        for list in &self.lists {
            for node in list.iter_oldest_first() {
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
        let last = self.blocks.find(self.last);
        let node = match last.filter(|&node| self.blocks[node].request == access.request) {
            Some(node) => node,
            None => self.add(IRL, access.request, 0),
        };
        self.last = self.blocks.number(node);
        self.blocks.add_page(node, page, access.lpn.0);
    }

    fn hit(&mut self, _device: &dyn DeviceView, page: PageId, access: &Access) {
        self.now += 1;
        let Some(node) = self.blocks.node_of(page) else {
            return;
        };
        let most = self.blocks.setup().params.small_request_pages;
        let pages = self.blocks.pages(node);
        let block = &mut self.blocks[node];
        if block.hit_by != access.request {
            block.hit_by = access.request;
            block.hits += 1;
            block.small = pages <= most;
            block.divided = 0;
            if block.small {
                let from = std::mem::replace(&mut block.list, SRL);
                self.list(from).remove(node);
                self.list(SRL).push_newest(node);
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
        spare: Spare,
        out: &mut Eviction,
    ) -> bool {
        let spared = |node| self.blocks.spared_by_pages(device, spare, node);
        let own = |node: NodeId| self.blocks[node].request == incoming.request;
        let found = self
            .choose(&mut out.inspected, &mut |node| own(node) || spared(node))
            .or_else(|| self.choose(&mut out.inspected, &mut |node| spared(node)));
        let heads = self.lists.iter().filter_map(List::oldest);
        out.spared |= spare != Spare::Nobody && heads.into_iter().any(spared);
        let Some(node) = found else { return false };
        let origin = self.blocks.find(self.blocks[node].origin);
        let origin = origin.filter(|&node| self.blocks[node].list == IRL && !spared(node));
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

    #[inline]
    fn expect(&self, page: PageId, near: bool) {
        self.blocks.expect(page, near);
    }

    fn state(&self, device: &dyn DeviceView) -> String {
        let text = |list: u8| {
            let nodes = self.lists[usize::from(list)].iter_oldest_first();
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
