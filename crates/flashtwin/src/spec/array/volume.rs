//! The volume of an array with the level SWAN: its size, and the conditions for it.

use super::read::PAGES_MAX;
use super::{ArraySpec, Protect, Reads};
use crate::component::Value;
use crate::coordinate::Coordination;
use crate::spec::decimal::percent_of;
use crate::spec::section::Values;
use crate::units::narrow;

/// Number of segments that each group needs in addition to those filled with host data: one that is being written, one
/// that receives moved pages, and one that collection can free.
const SPARE_SEGMENTS: u64 = 3;

impl ArraySpec {
    /// Returns the number of members of a group.
    pub(crate) fn members_per_group(&self) -> u32 {
        narrow(self.members.len()) / self.groups
    }

    /// Returns the number of segments of a group.
    pub(crate) fn segments_per_group(&self) -> u64 {
        self.member_pages() / u64::from(self.segment_pages.max(1))
    }

    /// Returns the number of data pages of a segment. In each segment, one member of the group holds parity.
    fn data_pages_per_segment(&self) -> u64 {
        let members = self.members_per_group().saturating_sub(1);
        u64::from(self.segment_pages) * u64::from(members)
    }

    /// Returns the number of data pages of all groups.
    fn data_pages_of_groups(&self) -> u64 {
        u64::from(self.groups) * self.segments_per_group() * self.data_pages_per_segment()
    }

    /// Returns the number of pages that the host can address: the data pages of all groups without the spare pages.
    pub(super) fn volume_pages(&self) -> u64 {
        let all = self.data_pages_of_groups();
        all - percent_of(all, self.spare_percent)
    }

    pub(super) fn check_volume(&self, v: &Values, report: &mut dyn FnMut(&str, String)) {
        let (members, groups) = (self.members.len(), self.groups);
        if !members.is_multiple_of(groups as usize) || self.members_per_group() < 2 {
            let message = format!(
                "found {groups} for {members} members; groups are of equal size, at least two members \
                 each"
            );
            return report(ArraySpec::groups.name(), message);
        }
        let page = u64::from(self.page_bytes());
        if let Some(&Value::Number(bytes)) = v.get(&ArraySpec::segment_pages) {
            if bytes == 0 || !bytes.is_multiple_of(page) {
                let message = format!("found {bytes} bytes; must be whole pages of {page} bytes");
                return report(ArraySpec::segment_pages.name(), message);
            }
        }
        self.check_segments(report);
        if !Coordination::of(&self.coordination, members).is_local() {
            let message = format!(
                "found {:?}; swan itself says where is collected: needs \"local\" or \"ideal\"",
                self.coordination.name
            );
            report(ArraySpec::coordination.name(), message);
        }
        if self.reads != Reads::Direct {
            let message = "swan reads pages where they lie: needs \"direct\"".to_string();
            report(ArraySpec::reads.name(), message);
        }
        if self.protect != Protect::Data {
            let message =
                "found \"stripe\"; swan never writes to the stripe that holds a page: needs \
                           \"data\""
                    .to_string();
            report(ArraySpec::protect.name(), message);
        }
    }

    /// Checks that groups have enough spare segments, and that there are not too many pages.
    fn check_segments(&self, report: &mut dyn FnMut(&str, String)) {
        let segments = self.segments_per_group();
        let data = u64::from(self.groups) * self.data_pages_per_segment();
        let spare = segments - self.volume_pages().div_ceil(data.max(1)).min(segments);
        if spare < SPARE_SEGMENTS {
            let message = format!(
                "found {:?}; of {segments} segments in a group it leaves {spare}, at least \
                 {SPARE_SEGMENTS} are needed: give more, or a smaller {}",
                self.spare_percent,
                ArraySpec::segment_pages
            );
            report(ArraySpec::spare_percent.name(), message);
        }
        if self.data_pages_of_groups() > PAGES_MAX {
            let message = format!(
                "the groups would have {} pages of data; at most {PAGES_MAX} can be numbered: take \
                 fewer or smaller members, or larger pages",
                self.data_pages_of_groups()
            );
            report(ArraySpec::members.name(), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::builtin_array;
    use crate::ArraySpec;

    fn make(more: &[(&str, &str)]) -> Result<ArraySpec, String> {
        let mut set = vec![("array.level", "swan")];
        set.extend(more);
        let text = builtin_array("harmonia-array").unwrap();
        ArraySpec::with_overrides(text, "x.toml", &set).map_err(|e| e.to_string())
    }

    #[test]
    fn every_message() {
        for (more, want) in [
            (
                &[("array.groups", "3")][..],
                "array.groups: found 3 for 8 members; groups are of equal size, at least two members \
                 each",
            ),
            (
                &[("array.groups", "8")],
                "array.groups: found 8 for 8 members; groups are of equal size, at least two members \
                 each",
            ),
            (
                &[("array.members", "harmonia*2")],
                "array.members: 2 members; swan needs at least 4",
            ),
            (
                &[("array.segment", "6 KiB")],
                "array.segment: found 6144 bytes; must be whole pages of 4096 bytes",
            ),
            (
                &[("array.segment", "0")],
                "array.segment: found 0 bytes; must be whole pages of 4096 bytes",
            ),
            (
                &[("array.spare_percent", "0")],
                "array.spare_percent: found 0.0; of 436 segments in a group it leaves 0, at least 3 are \
                 needed: give more, or a smaller array.segment",
            ),
            (
                &[("array.segment", "8 GiB")],
                "array.spare_percent: found 20.0; of 3 segments in a group it leaves 0, at least 3 are \
                 needed: give more, or a smaller array.segment",
            ),
            (
                &[("array.segment", "1 TiB")],
                "array.spare_percent: found 20.0; of 0 segments in a group it leaves 0, at least 3 are \
                 needed: give more, or a smaller array.segment",
            ),
            (
                &[("array.coordination", "turns")],
                "array.coordination: found \"turns\"; swan itself says where is collected: needs \
                 \"local\" or \"ideal\"",
            ),
            (
                &[("array.reads", "hedged")],
                "array.reads: swan reads pages where they lie: needs \"direct\"",
            ),
            (
                &[("array.protect", "stripe")],
                "array.protect: found \"stripe\"; swan never writes to the stripe that holds a page: \
                 needs \"data\"",
            ),
        ] {
            let found = make(more).expect_err("must be refused");
            assert!(found.contains(want), "{found}\n{want}");
        }
    }

    /// Each plane has 436 usable blocks, with 63 data pages each. In a group of two members, half of the pages are
    /// parity. A fifth of the other pages is spare.
    #[test]
    fn sizes_follow_from_the_members() {
        let spec = make(&[("array.groups", "4")]).unwrap();
        assert_eq!(spec.segment_pages, 64 * 4 * 63);
        assert_eq!(spec.segments_per_group(), 436);
        let data = 4 * 436 * 64 * 4 * 63;
        assert_eq!(spec.exported_pages(), data - data / 5);
        let of_four = make(&[]).unwrap();
        assert_eq!(of_four.exported_pages(), (data / 2 * 3) - data / 2 * 3 / 5);
    }
}
