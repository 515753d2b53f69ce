//! Policies: their descriptions, and tracing their steps over a string of accesses.

use flashtwin::buffer::catalog::{entries, find, Entry, FILTER};
use flashtwin::buffer::trace::{steps_text, Step};
use flashtwin::buffer::ChosenPolicy;
use flashtwin::spec::{policy_keys, KeyDoc, SpecError};
use flashtwin::stepping::{trace_policy as trace, trace_user_policy, Traceable};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::describe;
use crate::errors::{DeviceError, FlashtwinError};
use crate::user::UserPolicy;

/// Names of the replacement policies.
#[pyfunction]
pub fn policy_names() -> Vec<String> {
    ChosenPolicy::names()
}

/// Returns the names of the policies in the order of the documentation. They include policies that no device can use.
/// The filter GCaR, which can be put before other policies, is listed as `gcar-NAME`.
#[pyfunction]
pub fn catalog_names() -> Vec<&'static str> {
    entries().map(|entry| entry.name).collect()
}

/// Whether a policy has this name and a device can use it.
#[pyfunction]
pub fn is_policy(name: &str) -> bool {
    ChosenPolicy::is_name(name)
}

/// Returns the keys of the parameters of a policy. Empty if there is no such policy.
#[pyfunction]
pub fn policy_parameters(name: &str) -> Vec<&'static str> {
    if !ChosenPolicy::is_name(name) {
        return Vec::new();
    }
    policy_keys(name).iter().map(|doc| doc.key).collect()
}

/// Returns the description of a policy, as a dict.
#[pyfunction]
pub fn policy_info<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    let (entry, base) = match name {
        FILTER => (entries().find(|entry| entry.name == FILTER), None),
        _ => match find(name) {
            Some((entry, base)) => (Some(entry), base),
            None => (None, None),
        },
    };
    let Some(entry) = entry else {
        return Err(unknown_policy(name));
    };
    let d = PyDict::new(py);
    // In the texts about the filter GCaR, NAME stands for the name of the policy that it filters.
    let with_base = |text: &str| match base {
        Some(base) => text.replace("NAME", base.name),
        None => text.to_owned(),
    };
    d.set_item("name", name)?;
    let title = match base {
        Some(base) => format!("{} over {}", entry.title, base.title),
        None => entry.title.to_owned(),
    };
    d.set_item("title", title)?;
    d.set_item("description", with_base(entry.line))?;
    d.set_item("family", entry.family.title())?;
    d.set_item("base", base.map(|base| base.name))?;
    d.set_item("offline", entry.is_offline())?;
    d.set_item("source", describe::source(py, &entry.source)?)?;
    d.set_item("provenance", entry.provenance.word())?;
    let rule: Vec<String> = entry.rule.iter().map(|text| with_base(text)).collect();
    d.set_item("rule", rule)?;
    d.set_item("drawing", entry.drawing.trim_start_matches('\n'))?;
    d.set_item("state", with_base(entry.state))?;
    let cost = PyDict::new(py);
    cost.set_item("hit", with_base(entry.cost.hit))?;
    cost.set_item("miss_published", entry.cost.published)?;
    cost.set_item("miss_here", entry.cost.here)?;
    d.set_item("cost", cost)?;
    d.set_item("parameters", keys_list(py, &policy_keys(name))?)?;
    d.set_item("example", example(py, entry)?)?;
    Ok(d)
}

fn keys_list<'py>(py: Python<'py>, keys: &[&KeyDoc]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for doc in keys {
        let d = PyDict::new(py);
        d.set_item("key", doc.key)?;
        d.set_item("takes", doc.kind.to_string())?;
        d.set_item("default", doc.default)?;
        d.set_item("description", doc.doc)?;
        d.set_item("provenance", doc.provenance)?;
        list.append(d)?;
    }
    Ok(list)
}

fn example<'py>(py: Python<'py>, entry: &Entry) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(example) = entry.example else {
        return Ok(None);
    };
    let d = PyDict::new(py);
    d.set_item("policy", entry.example_name())?;
    d.set_item("accesses", example.accesses)?;
    d.set_item("capacity", example.capacity)?;
    let set = PyDict::new(py);
    for (key, value) in example.set {
        set.set_item(key, value)?;
    }
    d.set_item("set", set)?;
    d.set_item("chips", example.chips)?;
    d.set_item("pages_per_block", example.pages_per_block)?;
    Ok(Some(d))
}

/// Largest capacity of a buffer whose steps can be traced. Each step prints the whole buffer.
const CAPACITY_MAX: u32 = 4096;
const CHIPS_MAX: u32 = 256;
const STRIDE_MAX: u32 = 256;

/// Applies a string of accesses to a policy. Returns the effects of the steps as a list of dicts, and as a table for
/// people to read. `user`, if given, replaces the policy called `name`.
#[pyfunction]
#[pyo3(signature = (name, user, accesses, *, capacity, set, chips, stride_pages, pages_per_block))]
#[allow(clippy::too_many_arguments)] // Keywords of one call from Python.
pub fn trace_policy<'py>(
    py: Python<'py>,
    name: &str,
    user: Option<&UserPolicy>,
    accesses: &str,
    capacity: u32,
    set: Vec<(String, String)>,
    chips: u32,
    stride_pages: u32,
    pages_per_block: u32,
) -> PyResult<(Bound<'py, PyList>, String)> {
    for (what, found, max) in [
        ("capacity", capacity, CAPACITY_MAX),
        ("chips", chips, CHIPS_MAX),
        ("stride_pages", stride_pages, STRIDE_MAX),
    ] {
        if !(1..=max).contains(&found) {
            return Err(FlashtwinError::new_err(format!(
                "{what}: found {found}; must be a whole number from 1 to {max}"
            )));
        }
    }
    if find(name).is_some_and(|(entry, _)| entry.is_offline()) {
        return Err(FlashtwinError::new_err(format!(
            "policy {name} knows the future: only hit ratios can be computed with it"
        )));
    }
    let set: Vec<(&str, &str)> = set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let traceable = Traceable {
        policy: name,
        capacity,
        set: &set,
        chips,
        stride_pages,
        pages_per_block,
    };
    let device = traceable.device().map_err(|e| of_little_device(&e))?;
    let steps = py.detach(|| match user {
        Some(user) => trace_user_policy(&device, user.boxed(), accesses),
        None => trace(&device, accesses),
    });
    if let Some(e) = user.and_then(|user| user.failure.take()) {
        return Err(e);
    }
    let steps = steps.map_err(|e| FlashtwinError::new_err(format!("accesses: {e}")))?;
    let list = PyList::empty(py);
    for step in &steps {
        list.append(step_dict(py, step)?)?;
    }
    Ok((list, steps_text(&steps)))
}

fn step_dict<'py>(py: Python<'py>, step: &Step) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("op", &step.op)?;
    d.set_item("hit", step.hit)?;
    let evicted: Vec<String> = step.evicted().iter().map(ToString::to_string).collect();
    d.set_item("evicted", evicted)?;
    let grown = |e: &&flashtwin::buffer::trace::Evicted| {
        e.write_clean || !e.padding.is_empty() || !e.merged.is_empty()
    };
    if step.evictions.iter().any(|e| grown(&e)) {
        let written: Vec<u32> = step.evictions.iter().flat_map(|e| e.written()).collect();
        let read: Vec<u32> = step
            .evictions
            .iter()
            .flat_map(|e| e.padding.clone())
            .collect();
        d.set_item("written", written)?;
        d.set_item("read", read)?;
    }
    if !step.written_back.is_empty() {
        d.set_item("written_back", &step.written_back)?;
    }
    d.set_item("state", &step.state)?;
    Ok(d)
}

/// Returns the error for a device that was created only to use its policy. The error does not locate keys in a device
/// file, because the caller has no such file.
pub fn of_little_device(e: &SpecError) -> PyErr {
    let text = |p: &flashtwin::spec::Problem| match p.key.as_str() {
        "buffer.policy" => format!("policy: {}", p.message),
        key => format!("{key}: {}", p.message),
    };
    let texts: Vec<String> = e.problems.iter().map(text).collect();
    DeviceError::new_err(texts.join("\n"))
}

fn unknown_policy(name: &str) -> PyErr {
    let traceable = Traceable {
        policy: name,
        capacity: 1,
        set: &[],
        chips: 1,
        stride_pages: 1,
        pages_per_block: 4,
    };
    match traceable.device() {
        Err(e) => of_little_device(&e),
        Ok(_) => FlashtwinError::new_err(format!("policy {name} is not described")),
    }
}
