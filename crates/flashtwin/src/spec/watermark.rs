//! The key `gc.low_percent_of_reserve` is the GC watermark as a share of the reserve. It is useful for comparing
//! devices with different reserves or different numbers of blocks.
//!
//! A device file or an override may have either this key or `gc.low_percent`. `gc.low_percent_of_reserve` is converted
//! to `gc.low_percent`, so a specification has only the latter.

use super::error::{Problem, SpecError};
use super::tree::{Entry, Node, Tree};
use super::{Gc, Geometry};

pub(super) const KEY: &str = "gc.low_percent_of_reserve";

/// Renames `gc.low_percent_of_reserve` to `gc.low_percent` in the device file and in overrides. Returns the last share
/// that was given under the old name. Returns `None` if no share was given, or if a later override set
/// `gc.low_percent`.
///
/// # Errors
/// Fails if the share is not a valid percentage, or if the device file has both keys.
pub(super) fn rename(
    tree: &mut Tree,
    overrides: &mut [(&str, Entry)],
) -> Result<Option<Entry>, SpecError> {
    let low = Gc::low_percent.name();
    let mut share = tree.get(KEY).cloned();
    if let Some(entry) = &share {
        if tree.get(low).is_some() {
            let message = format!("the file has {low}, too; give one of them");
            return Err(tree.problem(KEY, message).into());
        }
        tree.set(low, entry.clone());
        tree.remove(KEY);
    }
    for (key, entry) in overrides {
        if *key == KEY {
            share = Some(entry.clone());
            *key = low;
        } else if *key == low {
            share = None;
        }
    }
    let Some(entry) = &share else {
        return Ok(None);
    };
    if !(0.0..100.0).contains(&number(Some(entry))) {
        let message = format!(
            "found {}; must be percent of the reserve from 0 to below 100",
            entry.node.show()
        );
        return Err(Problem::new(entry.place.clone(), KEY, message).into());
    }
    Ok(share)
}

/// Converts the share to the watermark, if the device has a watermark. The watermark is at least one block of a plane.
/// Otherwise, the last free block could be written before a collection starts.
pub(super) fn resolve(tree: &mut Tree, share: Option<Entry>) {
    let Some(entry) = share.filter(|_| tree.get(Gc::low_percent.name()).is_some()) else {
        return;
    };
    let of = |key: &str| number(tree.get(key));
    let reserve = of(Geometry::reserve_percent.name());
    let one_block = (1e6 / of(Geometry::blocks_per_plane.name())).ceil() / 1e4;
    let low = (reserve * number(Some(&entry)) * 100.0).round() / 1e4;
    // If one of these numbers is missing, the error message about the missing key is enough.
    let low = match (low + one_block).is_finite() {
        true => low.max(one_block),
        false => 0.0,
    };
    let (place, node) = (entry.place, Node::Float(low));
    tree.set(Gc::low_percent.name(), Entry { place, node });
}

fn number(entry: Option<&Entry>) -> f64 {
    match entry.map(|entry| &entry.node) {
        Some(Node::Int(n)) => u32::try_from(*n).map_or(f64::NAN, f64::from),
        Some(Node::Float(x)) => *x,
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::{builtin, DeviceSpec};

    fn low(overrides: &[(&str, &str)]) -> Result<f64, String> {
        let text = builtin("gcar").unwrap();
        let line = text
            .lines()
            .find(|line| line.starts_with("low_percent"))
            .unwrap();
        let text = text.replace(line, "low_percent_of_reserve = 20");
        let spec = DeviceSpec::with_overrides(&text, "x.toml", overrides);
        spec.map(|spec| spec.gc.low_percent)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn watermark_follows_the_reserve_and_the_blocks() {
        assert_eq!(low(&[]), Ok(3.0));
        assert_eq!(low(&[("geometry.reserve_percent", "30")]), Ok(6.0));
        assert_eq!(low(&[("geometry.over_provisioning", "25")]), Ok(4.0));
        assert_eq!(low(&[("gc.low_percent_of_reserve", "40")]), Ok(6.0));
        assert_eq!(low(&[("gc.low_percent", "1")]), Ok(1.0));
        let set = [("gc.low_percent", "1"), ("gc.low_percent_of_reserve", "10")];
        assert_eq!(low(&set), Ok(1.5), "the last one counts");
        // The reserve is 15 % of 25 blocks. A tenth of this reserve is less than one block.
        let few = [
            ("geometry.blocks_per_plane", "25"),
            ("gc.low_percent_of_reserve", "10"),
        ];
        assert_eq!(low(&few), Ok(4.0));
        assert_eq!(low(&[("geometry.reserve_percent", "15.5")]), Ok(3.1));
        // One of 48 blocks is 2.08333 %. If this percentage were rounded down, it would be less than a whole block.
        let few = [
            ("geometry.blocks_per_plane", "48"),
            ("gc.low_percent_of_reserve", "10"),
        ];
        assert_eq!(low(&few), Ok(2.0834));
    }

    #[test]
    fn both_forms_in_a_file_and_no_share_are_refused() {
        let text = builtin("gcar").unwrap();
        let both = text.replace("low_percent", "low_percent_of_reserve = 3\nlow_percent");
        let error = DeviceSpec::parse(&both, "x.toml").unwrap_err().to_string();
        assert!(error.contains("give one of them"), "{error}");
        for value in ["-1", "100", "some", "nan"] {
            let error = low(&[("gc.low_percent_of_reserve", value)]).unwrap_err();
            assert!(error.contains("percent of the reserve"), "{error}");
        }
        assert!(low(&[("geometry.blocks_per_plane", "some")])
            .unwrap_err()
            .contains("blocks_per_plane"));
    }
}
