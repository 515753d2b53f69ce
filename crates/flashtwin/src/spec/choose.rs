//! Chooses a component outside a device file, from its name and from the values of some parameters as text.

use super::convert::{convert, wrong_value};
use super::section::default_value;
use super::suggest::nearest;
use super::tree::Node;
use crate::component::{Chosen, Component, Kind, Settings};

/// Returns the component called `name`. Its parameters have the values in `set`. Parameters that are not in `set` have
/// their defaults.
///
/// # Errors
/// The error contains the wrong word and the permitted words. `what` is the name of the kind of component in the
/// message, such as `scheme`.
pub(crate) fn choose(
    what: &str,
    among: &[Component],
    name: &str,
    set: &[(String, String)],
) -> Result<Chosen, String> {
    let names: Vec<&str> = among.iter().map(|component| component.name).collect();
    let Some(component) = among.iter().find(|component| component.name == name) else {
        let near = nearest(name, names.iter().copied());
        let near = near.map(|near| format!("; did you mean {near:?}?"));
        return Err(format!(
            "{what}: found {name:?}; must be one of {}{}",
            names.join(", "),
            near.unwrap_or_default()
        ));
    };
    let keys: Vec<&str> = component.parameters.iter().map(|p| p.key).collect();
    if let Some((key, _)) = set.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
        return Err(match keys.is_empty() {
            true => format!("{key}: {what} {name} has no parameters"),
            false => format!("{key}: {what} {name} has {}", keys.join(", ")),
        });
    }
    let value = |parameter: &crate::component::Parameter| {
        let Some((_, text)) = set.iter().find(|(key, _)| key == parameter.key) else {
            return Ok((
                parameter.key,
                default_value(parameter.kind, parameter.default),
            ));
        };
        let node = match parameter.kind {
            Kind::Text => Node::Str(text.clone()),
            _ => Node::from_override(text),
        };
        let value = convert(parameter.kind, &node);
        let value = value
            .ok_or_else(|| format!("{}: {}", parameter.key, wrong_value(parameter.kind, &node)))?;
        Ok((parameter.key, value))
    };
    let values: Result<Vec<_>, String> = component.parameters.iter().map(value).collect();
    Ok(Chosen {
        name: component.name,
        settings: Settings::new(values?),
    })
}
