//! The volume of an array of groups: the meaning of its keys, its size, and its needs.

use super::read::{Reader, PAGES_MAX};
use super::{ArraySpec, Protect, Reads, VolumeSpec};
use crate::coordinate::Coordination;
use crate::spec::decimal::percent_of;
use crate::spec::DeviceSpec;
use crate::units::{narrow, saturating_u32};

/// Segments that each group must have beyond what the host's data fill: the one that is being written,
/// the one that moves go to, and one that can be gained.
const SPARE_SEGMENTS: u64 = 3;

/// The values of a volume's keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    groups: u32,
    /// `None`: as the first member has it.
    segment_bytes: Option<u64>,
    spare_percent: f64,
}

impl Given {
    pub fn read(r: &mut Reader) -> Given {
        let segment = r.tree.get("array.segment").is_some();
        Given {
            groups: saturating_u32(r.number("array.groups")),
            segment_bytes: segment.then(|| r.number("array.segment")),
            spare_percent: r.float("array.spare_percent"),
        }
    }

    /// With segments in pages of `member`.
    pub fn with(self, member: &DeviceSpec) -> VolumeSpec {
        let g = &member.geometry;
        let a_block_each = g.chips * g.planes_per_chip * member.data_pages_per_block();
        let pages = self
            .segment_bytes
            .map(|bytes| bytes / u64::from(g.page_bytes));
        VolumeSpec {
            groups: self.groups,
            segment_pages: pages.map_or(a_block_each, saturating_u32),
            spare_percent: self.spare_percent,
        }
    }
}

impl ArraySpec {
    /// Members of a group.
    pub(crate) fn members_per_group(&self) -> u32 {
        let groups = self.volume.map_or(1, |volume| volume.groups);
        narrow(self.members.len()) / groups
    }

    /// Segments of a group.
    pub(crate) fn segments_per_group(&self) -> u64 {
        let pages = self.volume.map_or(1, |volume| volume.segment_pages.max(1));
        self.member_pages() / u64::from(pages)
    }

    /// Data pages of a segment: one member of its group holds parity.
    fn data_pages_per_segment(&self) -> u64 {
        let pages = self.volume.map_or(1, |volume| volume.segment_pages);
        u64::from(pages) * u64::from(self.members_per_group().saturating_sub(1))
    }

    /// Data pages of all groups.
    fn data_pages_of_groups(&self) -> u64 {
        let groups = self.volume.map_or(1, |volume| volume.groups);
        u64::from(groups) * self.segments_per_group() * self.data_pages_per_segment()
    }

    /// Pages that the host can address.
    pub(super) fn volume_pages(&self) -> u64 {
        let all = self.data_pages_of_groups();
        all - percent_of(all, self.volume.map_or(0.0, |volume| volume.spare_percent))
    }

    pub(super) fn check_volume(&self, given: Given, r: &mut Reader) {
        let members = self.members.len();
        let groups = given.groups;
        if !members.is_multiple_of(groups as usize) || self.members_per_group() < 2 {
            let message = format!(
                "found {groups} for {members} members; groups are of equal size, at least two members \
                 each"
            );
            return r.report("array.groups", message);
        }
        let page_bytes = u64::from(self.page_bytes());
        let odd = given
            .segment_bytes
            .filter(|bytes| !bytes.is_multiple_of(page_bytes));
        if let Some(bytes) = odd.or(given.segment_bytes.filter(|&bytes| bytes == 0)) {
            let message = format!("found {bytes} bytes; must be whole pages of {page_bytes} bytes");
            return r.report("array.segment", message);
        }
        let segments = self.segments_per_group();
        let data = u64::from(groups) * self.data_pages_per_segment();
        let spare = segments - self.volume_pages().div_ceil(data.max(1)).min(segments);
        if spare < SPARE_SEGMENTS {
            let message = format!(
                "found {:?}; of {segments} segments in a group it leaves {spare}, at least \
                 {SPARE_SEGMENTS} are needed: give more, or a smaller array.segment",
                given.spare_percent
            );
            r.report("array.spare_percent", message);
        }
        if self.data_pages_of_groups() > PAGES_MAX {
            let message = format!(
                "the groups would have {} pages of data; at most {PAGES_MAX} can be numbered: take \
                 fewer or smaller members, or larger pages",
                self.data_pages_of_groups()
            );
            r.report("array.members", message);
        }
        if !Coordination::of(&self.coordination, members).is_local() {
            let message = format!(
                "found {:?}; swan itself says where is collected: needs \"local\" or \"ideal\"",
                self.coordination.name
            );
            r.report("array.coordination", message);
        }
        if self.reads != Reads::Direct {
            let message = "swan reads pages where they lie: needs \"direct\"".to_string();
            r.report("array.reads", message);
        }
        if self.protect != Protect::Data {
            let message =
                "found \"stripe\"; swan never writes to the stripe that holds a page: needs \
                           \"data\""
                    .to_string();
            r.report("array.protect", message);
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
            let said = make(more).expect_err("must be refused");
            assert!(said.contains(want), "{said}\n{want}");
        }
    }

    /// 436 blocks of a plane are usable, with 63 pages of data each; half of the members of a group of
    /// two hold parity, and a fifth is spare.
    #[test]
    fn sizes_follow_from_the_members() {
        let spec = make(&[("array.groups", "4")]).unwrap();
        let volume = spec.volume.unwrap();
        assert_eq!(volume.segment_pages, 64 * 4 * 63);
        assert_eq!(spec.segments_per_group(), 436);
        let data = 4 * 436 * 64 * 4 * 63;
        assert_eq!(spec.exported_pages(), data - data / 5);
        let of_four = make(&[]).unwrap();
        assert_eq!(of_four.exported_pages(), (data / 2 * 3) - data / 2 * 3 / 5);
    }
}
