//! Code shared by policies that keep a flag or a count per page. It has the search that gives such pages a second
//! chance, the array of flags, and the text form of the pages.

use super::policy::{page_text, DeviceView, Eviction};
use super::PageId;
use crate::memory::reach;

/// Returns the least recent page that gets no second chance. `oldest` returns the next candidate. `moves` returns true
/// for a page that gets a second chance, after it has moved the page to the most recent end or to another list.
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
        // Inspected entries: the pages that moved, the pages that `oldest` skipped, and the page that `oldest` found.
        out.inspected = looked;
        let page = oldest(lists, out)?;
        if !moves(lists, page) {
            return Some(page);
        }
        looked += 1;
    }
}

/// Sets the entry of a page in an array. Extends the array if necessary.
#[inline]
pub(super) fn set<T: Copy + Default>(per_page: &mut Vec<T>, page: PageId, value: T) {
    reach(per_page, page.0 as usize, T::default());
    per_page[page.0 as usize] = value;
}

/// Formats pages and a number for each, such as `4d1 3c0`. The text starts with the most recent page, although
/// `oldest_first` starts with the least recent one.
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
