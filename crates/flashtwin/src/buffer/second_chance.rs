//! Code shared by policies with a flag or count per page: searches that skip flagged pages once,
//! the flags themselves, and their text form.

use super::policy::{page_text, DeviceView, Eviction};
use super::PageId;
use crate::memory::reach;

/// Returns the least recent page that gets no second chance. `oldest` returns the next candidate. `moves` returns true
/// for a page that gets a second chance. In this case, `moves` has also moved the page from the least recent end to the
/// most recent end or to another list.
///
/// A page that `oldest` skips keeps its place and counts as inspected once. A page that moves counts as inspected each
/// time the search reaches it.
#[inline]
pub(super) fn second_chance<L>(
    lists: &mut L,
    out: &mut Eviction,
    oldest: impl Fn(&mut L, &mut Eviction) -> Option<PageId>,
    mut moves: impl FnMut(&mut L, PageId) -> bool,
) -> Option<PageId> {
    let mut looked = out.inspected;
    loop {
        // Inspected entries: the pages that moved, the pages that `oldest` skipped, and the page that it found.
        out.inspected = looked;
        let page = oldest(lists, out)?;
        if !moves(lists, page) {
            return Some(page);
        }
        looked += 1;
    }
}

/// Sets the entry of a page in an array, which is extended if necessary.
#[inline]
pub(super) fn set<T: Copy + Default>(per_page: &mut Vec<T>, page: PageId, value: T) {
    reach(per_page, page.0 as usize, T::default());
    per_page[page.0 as usize] = value;
}

/// Formats pages with a number each, as in `4d1 3c0`, the most recent first; `oldest_first` starts at the least
/// recent.
pub(super) fn flagged_text(
    device: &dyn DeviceView,
    oldest_first: impl Iterator<Item = PageId>,
    number: impl Fn(PageId) -> u8,
) -> String {
    let mut texts: Vec<String> = oldest_first
        .map(|page| format!("{}{}", page_text(device, page), number(page)))
        .collect();
    texts.reverse();
    texts.join(" ")
}
