//! Python bindings: the compiled module `flashtwin._core`.
//!
//! Thin on purpose: arguments are checked by the crates below, results leave as JSON text and as
//! columns of bytes, and the package in `python/flashtwin` gives them a shape. Whatever takes
//! longer than a moment runs with the GIL released. Nothing here computes a result.

mod accesses;
mod columns;
mod control;
mod device;
mod errors;
mod ftl;
mod hits;
mod log;
mod options;
mod policies;
mod user;
mod validate;
mod workload;

use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(m)?;
    flashtwin_workload::set_table_reader(workload::read_table);
    m.add_class::<control::Control>()?;
    m.add_class::<device::Spec>()?;
    m.add_class::<device::Device>()?;
    m.add_class::<workload::Workload>()?;
    m.add_class::<columns::Slices>()?;
    m.add_function(wrap_pyfunction!(columns::parts, m)?)?;
    m.add_class::<accesses::Accesses>()?;
    m.add_class::<user::Access>()?;
    m.add_class::<user::Page>()?;
    m.add_class::<user::PolicyDevice>()?;
    m.add_class::<user::UserPolicy>()?;
    m.add_function(wrap_pyfunction!(policies::policy_names, m)?)?;
    m.add_function(wrap_pyfunction!(policies::catalog_names, m)?)?;
    m.add_function(wrap_pyfunction!(policies::is_policy, m)?)?;
    m.add_function(wrap_pyfunction!(policies::policy_parameters, m)?)?;
    m.add_function(wrap_pyfunction!(policies::policy_info, m)?)?;
    m.add_function(wrap_pyfunction!(policies::trace_policy, m)?)?;
    m.add_function(wrap_pyfunction!(hits::count_hits, m)?)?;
    m.add_function(wrap_pyfunction!(ftl::ftl_names, m)?)?;
    m.add_function(wrap_pyfunction!(ftl::ftl_info, m)?)?;
    m.add_function(wrap_pyfunction!(ftl::trace_ftl, m)?)?;
    m.add_function(wrap_pyfunction!(device::device_names, m)?)?;
    m.add_function(wrap_pyfunction!(workload::presets, m)?)?;
    m.add_function(wrap_pyfunction!(workload::trace_formats, m)?)?;
    m.add_function(wrap_pyfunction!(workload::estimate_lines, m)?)?;
    m.add_function(wrap_pyfunction!(workload::trace_info, m)?)?;
    m.add_function(wrap_pyfunction!(workload::convert, m)?)?;
    m.add_function(wrap_pyfunction!(validate::validate, m)?)?;
    Ok(())
}
