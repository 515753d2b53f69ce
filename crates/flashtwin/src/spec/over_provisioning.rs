//! The key `geometry.over_provisioning` is the reserve as a share of the exported capacity, as in data sheets and
//! closed forms. In contrast, `geometry.reserve_percent` is the reserve as a share of all blocks.
//!
//! A device file or an override may have either of these keys. `geometry.over_provisioning` is converted to
//! `geometry.reserve_percent`, so a specification has only the latter.

use super::error::{Problem, SpecError};
use super::tree::{Entry, Node, Tree};
use super::Geometry;

pub(super) const KEY: &str = "geometry.over_provisioning";

/// Converts `geometry.over_provisioning` in a file to `geometry.reserve_percent`.
///
/// # Errors
/// Fails if the value is not a valid percentage, or if the file has both keys.
pub(super) fn translate_file(tree: &mut Tree) -> Result<(), SpecError> {
    let Some(entry) = tree.get(KEY).cloned() else {
        return Ok(());
    };
    let reserve = Geometry::reserve_percent.name();
    if tree.get(reserve).is_some() {
        let message = format!("the file has {reserve}, too; give one of them");
        return Err(tree.problem(KEY, message).into());
    }
    let entry = translated(entry)?;
    tree.remove(KEY);
    tree.set(reserve, entry);
    Ok(())
}

/// Converts `geometry.over_provisioning` among overrides to `geometry.reserve_percent`.
///
/// # Errors
/// Fails if a value is not a valid percentage.
pub(super) fn translate_overrides(overrides: &mut [(&str, Entry)]) -> Result<(), SpecError> {
    for (key, entry) in overrides {
        if *key == KEY {
            *entry = translated(entry.clone())?;
            *key = Geometry::reserve_percent.name();
        }
    }
    Ok(())
}

fn translated(entry: Entry) -> Result<Entry, SpecError> {
    let percent = match entry.node {
        Node::Int(n) => u32::try_from(n).map_or(f64::NAN, f64::from),
        Node::Float(x) => x,
        _ => f64::NAN,
    };
    if !(0.0..1e6).contains(&percent) {
        let message = format!(
            "found {}; must be percent of the exported capacity, 0 or more",
            entry.node.show()
        );
        return Err(Problem::new(entry.place, KEY, message).into());
    }
    Ok(Entry {
        place: entry.place,
        node: Node::Float(100.0 * percent / (100.0 + percent)),
    })
}

#[cfg(test)]
mod tests {
    use crate::spec::{builtin, DeviceSpec};

    fn exported(overrides: &[(&str, &str)]) -> Result<u32, String> {
        let set = [
            ("geometry.blocks_per_plane", "1000"),
            ("gc.low_percent", "1"),
        ];
        let text = builtin("gcar").unwrap();
        let spec = DeviceSpec::with_overrides(text, "gcar", &[&set, overrides].concat());
        Ok(spec.map_err(|e| e.to_string())?.exported_pages())
    }

    /// 28 % of the exported capacity is 21.875 % of all blocks.
    #[test]
    fn both_definitions_give_the_same_device() {
        for (over_provisioning, reserve) in [("28", "21.875"), ("25", "20"), ("100.0", "50")] {
            assert_eq!(
                exported(&[("geometry.over_provisioning", over_provisioning)]),
                exported(&[("geometry.reserve_percent", reserve)]),
            );
        }
        let text = builtin("gcar").unwrap();
        let line = text
            .lines()
            .find(|line| line.starts_with("reserve_percent"))
            .unwrap();
        let other = text.replace(line, "over_provisioning = 25");
        let spec = DeviceSpec::parse(&other, "x.toml").unwrap();
        assert_eq!(spec.geometry.reserve_percent, 20.0);
        let both = text.replace(line, &format!("{line}\nover_provisioning = 25"));
        let error = DeviceSpec::parse(&both, "x.toml").unwrap_err().to_string();
        assert!(error.contains("give one of them"), "{error}");
    }

    #[test]
    fn a_value_that_is_no_share_is_refused() {
        for value in ["-1", "nan", "1e6", "some", "[7]", "7%"] {
            let error = exported(&[("geometry.over_provisioning", value)]).unwrap_err();
            assert!(
                error.contains("percent of the exported capacity"),
                "{error}"
            );
        }
    }
}
