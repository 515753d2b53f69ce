//! Open blocks that a user's policy chooses (`ftl.separation = "policy"`).

use flashtwin::buffer::{Access, DeviceView, Eviction, PageId, Policy, Skip};
use flashtwin::spec::builtin;
use flashtwin::{DeviceSpec, Lpn, Op, Request, Rng, Ssd, Stream};

/// FIFO. Logical pages below `hot_end` are hot.
#[derive(Clone)]
struct Below {
    pages: Vec<PageId>,
    hot_end: u32,
}

impl Policy for Below {
    fn insert(&mut self, _device: &dyn DeviceView, page: PageId, _access: &Access) {
        self.pages.push(page);
    }
    fn hit(&mut self, _device: &dyn DeviceView, _page: PageId, _access: &Access) {}
    fn forget(&mut self, page: PageId) {
        self.pages.retain(|&other| other != page);
    }
    fn evict(
        &mut self,
        device: &dyn DeviceView,
        _incoming: &Access,
        _skip: Skip,
        out: &mut Eviction,
    ) -> bool {
        let mut here = self.pages.iter().filter(|&&page| !device.in_flight(page));
        let Some(&page) = here.next() else {
            return false;
        };
        self.forget(page);
        out.one(page, 1);
        true
    }
    fn stream(&self, _page: PageId, lpn: Lpn) -> Stream {
        match lpn.0 < self.hot_end {
            true => Stream::Hot,
            false => Stream::Cold,
        }
    }
    fn state(&self, _device: &dyn DeviceView) -> String {
        format!("{:?}", self.pages)
    }
}

fn spec(backend: &[(&str, &str)], settings: &[(&str, &str)]) -> DeviceSpec {
    let small = [
        ("geometry.chips", "2"),
        ("geometry.blocks_per_plane", "48"),
        ("geometry.pages_per_block", "16"),
        ("geometry.reserve_percent", "25"),
        ("buffer.capacity", "128 KiB"),
    ];
    let set = [&small[..], backend, settings].concat();
    DeviceSpec::with_overrides(builtin("ecr").unwrap(), "ecr", &set).unwrap()
}

/// Runs random requests on a device that was never written. Returns the completions and the report of the flash.
fn outcome(spec: &DeviceSpec, hot_end: u32) -> String {
    let pages = Vec::new();
    let mut ssd = Ssd::with_policy(spec, Box::new(Below { pages, hot_end }));
    let page = u64::from(spec.geometry.page_bytes);
    let all = u64::from(spec.exported_pages());
    let mut rng = Rng::new(1);
    for tag in 0..8000 {
        let range = [all, all / 8][rng.below(2) as usize];
        let request = Request {
            arrival: ssd.now(),
            offset: rng.below(range) * page,
            bytes: page,
            op: [Op::Write, Op::Write, Op::Read][rng.below(3) as usize],
            ..Request::default()
        };
        ssd.submit(request.arrival, &request, tag).unwrap();
        while ssd.outstanding() > rng.below(12) as usize {
            assert!(ssd.step());
        }
    }
    while ssd.step() {}
    ssd.check().unwrap();
    let flash = format!("{:?}", ssd.flash_report());
    format!("{:?} {flash}", ssd.completions())
}

/// If a user's policy marks the pages of a region as hot, blocks are filled with the same pages as with the separation
/// "region". In both cases, GC moves pages to blocks of the victim's kind.
#[test]
fn a_policy_that_calls_a_region_hot_equals_the_region() {
    let modern = [("nand.backend", "modern"), ("geometry.channels", "2")];
    for backend in [&[][..], &modern] {
        let region = [("ftl.separation", "region"), ("ftl.region_percent", "12.5")];
        let policy = [("ftl.separation", "policy"), ("gc.moves", "victim")];
        let (region, policy) = (spec(backend, &region), spec(backend, &policy));
        let hot_end = region.exported_pages() / 8;
        let expected = outcome(&region, 0);
        assert!(outcome(&policy, hot_end) == expected);
        assert!(outcome(&policy, 0) != expected, "no page is hot");
    }
}
